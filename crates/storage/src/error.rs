//! What can go wrong with files, said so that an operator knows what to do.

use ostler_proto::id::Zxid;
use std::{
    io,
    path::{Path, PathBuf},
};

/// Result of file work.
pub type Result<T> = std::result::Result<T, StorageError>;

/// Whatever a caller's callback did not like.
pub type Refusal = Box<dyn std::error::Error + Send + Sync>;

/// A failure of the storage layer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StorageError {
    /// The operating system refused.
    #[error("cannot {action} {path}: {source}")]
    Io {
        /// What was tried: "read", "write", ...
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },

    /// No space left, or no quota left.
    #[error(
        "the disk is full: cannot {action} {path} ({source}). Free some space (old snapshots and logs can be \
         purged), then restart the server; nothing that was acknowledged is lost"
    )]
    DiskFull {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// The system's words.
        source: io::Error,
    },

    /// The ensemble was changed, and the files that tell the next start of it cannot be written.
    #[error(
        "the ensemble was changed, and that cannot be kept beside {file}: {source}. A server that forgot it could count \
         votes that do not count any more. Make the file and its folder writable for the server and start it again; or \
         write the server lines of the ensemble as it is now into the file, or into its dynamicConfigFile if it names \
         one, and start it again"
    )]
    ConfigNotKept {
        /// The zoo.cfg.
        file: PathBuf,
        /// What could not be done.
        source: Box<StorageError>,
    },

    /// A write or a sync failed before: what is on disk is unknown, so the log takes nothing more.
    #[error(
        "the transaction log in {dir} is closed after an earlier write error: what reached the disk is not known. \
         Restart the server; it will read the log again and go on from what is there"
    )]
    Poisoned {
        /// The log folder.
        dir: PathBuf,
    },

    /// A log is damaged before its end.
    #[error("{file}: damaged at byte {offset}: {reason}. {}", way_out(.file, *.offset, *.last_good))]
    Corrupt {
        /// The log file.
        file: PathBuf,
        /// Where the first unreadable record starts; 0 for the file's header.
        offset: u64,
        /// What is wrong there.
        reason: String,
        /// Everything up to here is intact.
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
        /// The file that starts, or goes on, too late.
        file: PathBuf,
        /// The last transaction before the gap.
        last: Zxid,
        /// The first one after it.
        found: Zxid,
        /// The last one that is missing, as far as that is known.
        needed: Zxid,
    },

    /// The logs end before what a damaged snapshot is known to have contained.
    #[error(
        "{snapshot} cannot be read ({reason}), and the logs in {dir} only reach {last}, so transactions up to \
         {needed} would be lost. Nothing was changed. Put the snapshot or the missing log files back from a backup; \
         or empty this server's data folders and let it copy from another server; or, to accept the loss, move the \
         snapshot away"
    )]
    LogTooShort {
        /// The newest snapshot that was skipped.
        snapshot: PathBuf,
        /// Why it was skipped.
        reason: String,
        /// The log folder.
        dir: PathBuf,
        /// How far the logs go.
        last: Zxid,
        /// How far they should go at least.
        needed: Zxid,
    },

    /// The logs do not have what a damaged snapshot contained.
    #[error(
        "{snapshot} cannot be read ({reason}), and nothing shows that the logs in {dir} have all that it contained: a \
         whole tree may have come from a leader in the place of transactions up to {needed}, and without it these logs \
         make a tree that never was. Nothing was changed. Put the snapshot back from a backup, or empty this server's \
         data folders and let it copy from another server; or, to accept the loss, move the snapshot away"
    )]
    LogLacks {
        /// The snapshot that was skipped.
        snapshot: PathBuf,
        /// Why it was skipped.
        reason: String,
        /// The log folder.
        dir: PathBuf,
        /// Its last transaction.
        needed: Zxid,
    },

    /// Logs without any snapshot.
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
        /// The snapshots that were tried, with reasons; empty or starting with a separator.
        details: String,
    },

    /// Snapshots exist, none can be read, and there is no log either.
    #[error(
        "no snapshot in {dir} can be read{details}. Nothing was changed. Put a good snapshot back from a backup; or \
         empty this server's data folders and let it copy from another server; or move the snapshots away to start \
         with an empty tree"
    )]
    NoUsableSnapshot {
        /// The snapshot folder.
        dir: PathBuf,
        /// Which and why.
        details: String,
    },

    /// One snapshot cannot be read.
    #[error("{file}: not a usable snapshot: {reason}")]
    BadSnapshot {
        /// The file.
        file: PathBuf,
        /// What is wrong.
        reason: String,
    },

    /// The caller could not apply a logged transaction.
    #[error(
        "{file}: transaction {zxid} at byte {offset} cannot be applied: {source}. Nothing was changed. Restore this \
         server's data folders from a backup, or empty them and let it copy from another server"
    )]
    Refused {
        /// The log file.
        file: PathBuf,
        /// Where its record starts.
        offset: u64,
        /// The transaction.
        zxid: Zxid,
        /// The caller's reason.
        source: Refusal,
    },

    /// A new log file would overwrite one with transactions in it.
    #[error(
        "{file} exists and holds transactions, so it is not overwritten. It was not there, or not that far, when \
         this server read the folder: check that no other server writes to it, then restart"
    )]
    LogExists {
        /// The file.
        file: PathBuf,
    },

    /// The folder for snapshots holds logs or the other way round.
    #[error(
        "{folder} is for {expected} only, but holds {found}. dataDir and dataLogDir differ: check that they are \
         not swapped, or move the file to the other folder"
    )]
    Misplaced {
        /// The folder.
        folder: PathBuf,
        /// "snapshots" or "transaction logs".
        expected: &'static str,
        /// The name of a file that does not belong there.
        found: String,
    },

    /// A folder does not exist and may not be made.
    #[error(
        "{folder} does not exist, and datadir.autocreate is off. Create it, or correct {setting} in the config"
    )]
    NoFolder {
        /// The folder.
        folder: PathBuf,
        /// The setting that names it.
        setting: &'static str,
    },

    /// Another process has the folder.
    #[error(
        "{folder} is in use by another server{}. Nothing was touched. Stop that server, or give this one its own \
         folder", .pid.as_ref().map(|pid| format!(" (process {pid})")).unwrap_or_default()
    )]
    Locked {
        /// The folder.
        folder: PathBuf,
        /// The holder's process id, where its lock file says it.
        pid: Option<u32>,
    },

    /// An epoch file holds something else.
    #[error(
        "{file} should hold an epoch number, but holds {content:?}. Restore it from a backup, or empty this server's data \
         folders and let it copy from another server"
    )]
    BadEpoch {
        /// The file.
        file: PathBuf,
        /// What it holds.
        content: String,
    },
}

impl StorageError {
    /// Wraps what the system said; a full disk gets its own variant.
    pub(crate) fn io(action: &'static str, path: &Path, source: io::Error) -> StorageError {
        let path = path.to_path_buf();
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                StorageError::DiskFull { action, path, source }
            }
            _ => StorageError::Io { action, path, source },
        }
    }
}

/// Adds what was tried, and on what, to the system's words.
pub trait IoContext<T> {
    fn during(self, action: &'static str, path: &Path) -> Result<T>;
}

impl<T> IoContext<T> for io::Result<T> {
    fn during(self, action: &'static str, path: &Path) -> Result<T> {
        self.map_err(|source| StorageError::io(action, path, source))
    }
}

fn way_out(file: &Path, offset: u64, last_good: Zxid) -> String {
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
