//! The errors of the storage layer. Each message says what happened, where, and what an operator can do.

use ostler_proto::id::Zxid;
use std::{
    io,
    path::{Path, PathBuf},
};

/// The result of an operation on files.
pub type Result<T> = std::result::Result<T, StorageError>;

/// The reason for which a sink of the caller refused a part of a snapshot or a record.
pub type Refusal = Box<dyn std::error::Error + Send + Sync>;

/// A failure of the storage layer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StorageError {
    /// An operation of the operating system failed.
    #[error("cannot {action} {path}: {source}")]
    Io {
        /// The operation that failed: "read", "write", ...
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },

    /// The disk or the quota is full.
    #[error(
        "the disk is full: cannot {action} {path} ({source}). Free some space (old snapshots and logs can be \
         purged), then restart the server; nothing that was acknowledged is lost"
    )]
    DiskFull {
        /// The operation that failed: "write", "create", ...
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },

    /// A file that has to be changed is a symbolic link. The file that it leads to is not touched.
    #[error(
        "cannot {action} {path}: it is a link, and the file that it leads to is not changed; put the file itself there"
    )]
    IsLink {
        /// The operation that failed.
        action: &'static str,
        /// The link.
        path: PathBuf,
    },

    /// The ensemble was changed, and the new configuration cannot be written to the files that the next start reads.
    #[error(
        "the configuration of the ensemble has changed, and cannot be saved beside {file}: {source}. Without this change \
         the server could count votes of servers that are no voters any more. Make the file and its folder writable for the server and start it again; or \
         write the server lines of the ensemble as it is now into the file, or into its dynamicConfigFile if it names \
         one, and start it again"
    )]
    ConfigNotKept {
        /// The path of zoo.cfg.
        file: PathBuf,
        /// The error of writing the files.
        source: Box<StorageError>,
    },

    /// An earlier write or sync failed. The content of the disk is unknown, so the log takes no more records.
    #[error(
        "the transaction log in {dir} is closed after an earlier write error: it is not known which bytes \
         reached the disk. Restart the server; it will read the log again and continue from there"
    )]
    Poisoned {
        /// The log folder.
        dir: PathBuf,
    },

    /// A log is damaged before its end.
    #[error("{file}: damaged at byte {offset}: {reason}. {}", remedy(.file, *.offset, *.last_good))]
    Corrupt {
        /// The log file.
        file: PathBuf,
        /// The byte at which the first unreadable record starts; 0 for the header of the file.
        offset: u64,
        /// The damage, in words.
        reason: String,
        /// The last transaction before the damage. Everything up to it is intact.
        last_good: Zxid,
    },

    /// Transactions are missing between two log files, or between the snapshot and the log.
    #[error(
        "{file}: transactions are missing: after {last} the log goes on with {found}. Nothing was changed. Put the \
         missing log files or a snapshot of {needed} or later back; or empty this server's data folders and let it \
         copy from another server; or, to accept the loss of everything after {last}, move this and all later log \
         files away"
    )]
    Gap {
        /// The file in which the gap is, or which starts after it.
        file: PathBuf,
        /// The last transaction before the gap.
        last: Zxid,
        /// The first transaction after the gap.
        found: Zxid,
        /// The last transaction that is missing, as far as that is known.
        needed: Zxid,
    },

    /// A snapshot cannot be read, and the logs end before the last transaction that it contained.
    #[error(
        "{snapshot} cannot be read ({reason}), and the logs in {dir} only reach {last}, so transactions up to \
         {needed} would be lost. Nothing was changed. Put the snapshot or the missing log files back from a backup; \
         or empty this server's data folders and let it copy from another server; or, to accept the loss, move the \
         snapshot away"
    )]
    LogTooShort {
        /// The snapshot that was skipped.
        snapshot: PathBuf,
        /// The reason why it cannot be read.
        reason: String,
        /// The log folder.
        dir: PathBuf,
        /// The last transaction in the logs.
        last: Zxid,
        /// The last transaction of the snapshot, which the logs should reach.
        needed: Zxid,
    },

    /// A snapshot cannot be read, and the logs do not have its last transaction.
    #[error(
        "{snapshot} cannot be read ({reason}), and nothing shows that the logs in {dir} have all of its transactions: a \
         leader may have sent its whole tree in place of the transactions up to {needed}, and a tree from these logs \
         alone could be wrong. Nothing was changed. Put the snapshot back from a backup, or empty this server's \
         data folders and let it copy from another server; or, to accept the loss, move the snapshot away"
    )]
    LogLacks {
        /// The snapshot that was skipped.
        snapshot: PathBuf,
        /// The reason why it cannot be read.
        reason: String,
        /// The log folder.
        dir: PathBuf,
        /// The last transaction of the snapshot.
        needed: Zxid,
    },

    /// There are logs, and no snapshot that can be read.
    #[error(
        "{logs} has transaction logs, but {snapshots} has no snapshot that can be read{details}. Nothing was \
         changed. Put a snapshot back, or check dataDir and dataLogDir. If the logs go back to the very first \
         transaction (data of ZooKeeper 3.4), start once with snapshot.trust.empty=true"
    )]
    NoSnapshot {
        /// The log folder.
        logs: PathBuf,
        /// The snapshot folder.
        snapshots: PathBuf,
        /// The snapshots that cannot be read, each with the reason. Empty, or starts with a separator.
        details: String,
    },

    /// There are snapshots, none of them can be read, and there is no log.
    #[error(
        "no snapshot in {dir} can be read{details}. Nothing was changed. Put a good snapshot back from a backup; or \
         empty this server's data folders and let it copy from another server; or move the snapshots away to start \
         with an empty tree"
    )]
    NoUsableSnapshot {
        /// The snapshot folder.
        dir: PathBuf,
        /// The snapshots, each with the reason why it cannot be read.
        details: String,
    },

    /// A snapshot cannot be read.
    #[error("{file}: not a usable snapshot: {reason}")]
    BadSnapshot {
        /// The snapshot file.
        file: PathBuf,
        /// The byte at which the first part that cannot be read starts; in the contents if the file is compressed.
        offset: u64,
        /// The reason, in words.
        reason: String,
    },

    /// The sink refused a transaction of the log.
    #[error(
        "{file}: transaction {zxid} at byte {offset} cannot be applied: {source}. Nothing was changed. Restore this \
         server's data folders from a backup, or empty them and let it copy from another server"
    )]
    Refused {
        /// The log file.
        file: PathBuf,
        /// The byte at which the record starts.
        offset: u64,
        /// The transaction.
        zxid: Zxid,
        /// The reason of the sink.
        source: Refusal,
    },

    /// A new log file would overwrite one with transactions in it.
    #[error(
        "{file} exists and has transactions, so it is not overwritten. It did not exist, or was shorter, when \
         this server read the folder: check that no other server writes to it, then restart"
    )]
    LogExists {
        /// The log file that exists already.
        file: PathBuf,
    },

    /// The folder for snapshots has logs in it, or the folder for logs has snapshots.
    #[error(
        "{folder} is for {expected} only, but holds {found}. dataDir and dataLogDir differ: check that they are \
         not swapped, or move the file to the other folder"
    )]
    Misplaced {
        /// The folder with the wrong file.
        folder: PathBuf,
        /// The kind of files that belong there: "snapshots" or "transaction logs".
        expected: &'static str,
        /// The name of a file that does not belong there.
        found: String,
    },

    /// A folder does not exist, and the configuration forbids to make it.
    #[error(
        "{folder} does not exist, and datadir.autocreate is off. Create it, or correct {setting} in the config"
    )]
    NoFolder {
        /// The folder that is missing.
        folder: PathBuf,
        /// The setting that names the folder.
        setting: &'static str,
    },

    /// Another process has locked the folder.
    #[error(
        "{folder} is in use by another server{}. Nothing was touched. Stop that server, or give this one its own \
         folder", .pid.as_ref().map(|pid| format!(" (process {pid})")).unwrap_or_default()
    )]
    Locked {
        /// The folder that is locked.
        folder: PathBuf,
        /// The id of the process that has the lock, if the lock file says it.
        pid: Option<u32>,
    },

    /// An epoch file does not have an epoch in it.
    #[error(
        "{file} should hold an epoch number, but holds {content:?}. Restore it from a backup, or empty this server's data \
         folders and let it copy from another server"
    )]
    BadEpoch {
        /// The epoch file.
        file: PathBuf,
        /// The content of the file.
        content: String,
    },
}

impl StorageError {
    /// Wraps an error of the system. A full disk has its own variant.
    pub(crate) fn io(action: &'static str, path: &Path, source: io::Error) -> StorageError {
        let path = path.to_path_buf();
        // The system's answer to an open that must not go through links.
        if source.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) {
            return StorageError::IsLink { action, path };
        }
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                StorageError::DiskFull { action, path, source }
            }
            _ => StorageError::Io { action, path, source },
        }
    }
}

/// Adds the operation and the path to an error of the system.
pub trait IoContext<T> {
    /// Makes a [`StorageError`] of an error: `action` on `path` failed.
    fn during(self, action: &'static str, path: &Path) -> Result<T>;
}

impl<T> IoContext<T> for io::Result<T> {
    fn during(self, action: &'static str, path: &Path) -> Result<T> {
        self.map_err(|source| StorageError::io(action, path, source))
    }
}

/// The advice for an operator about a damaged log.
fn remedy(file: &Path, offset: u64, last_good: Zxid) -> String {
    let file = file.display();
    let cut = match offset {
        0 => format!("move {file} and all later log files away"),
        _ => format!("run `truncate -s {offset} {file}` and move all later log files away"),
    };
    format!(
        "Everything up to {last_good} is intact, and nothing was changed. Restore the file from a backup; or empty \
         this server's data folders and let it copy from another server; or, to accept the loss of everything after \
         {last_good}, {cut}"
    )
}
