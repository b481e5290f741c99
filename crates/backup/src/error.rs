//! The errors of backups and restores. Each message says what happened, where, and what an operator can do.

use ostler_proto::id::{Epoch, Zxid};
use ostler_storage::StorageError;
use std::{io, path::PathBuf};

/// The result of a backup or a restore.
pub type Result<T> = std::result::Result<T, BackupError>;

/// A failure of a backup or a restore.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BackupError {
    /// A file of a data folder cannot be read or written.
    #[error(transparent)]
    Storage(#[from] StorageError),

    /// An operation on a local file failed.
    #[error("cannot {action} {path}: {source}")]
    File {
        /// The operation that failed: "read", "write", ...
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },

    /// The place of the backup cannot be used.
    #[error("{location} is no place for a backup: {reason}")]
    BadLocation {
        /// The place as the operator has named it.
        location: String,
        /// The reason, in words.
        reason: String,
    },

    /// An operation on an object of the backup failed.
    #[error("cannot {action} {object} in {location}: {source}")]
    Store {
        /// The operation that failed.
        action: &'static str,
        /// The name of the object.
        object: String,
        /// The place of the backup.
        location: String,
        /// The error of the store.
        source: Box<object_store::Error>,
    },

    /// The runtime for the store cannot be started.
    #[error("cannot start the threads that the store needs: {0}")]
    Runtime(io::Error),

    /// There is no backup at this place.
    #[error("{location} has no backup: no object NUMBER/part.json is there")]
    NoBackup {
        /// The place of the backup.
        location: String,
    },

    /// An object of the backup is damaged.
    #[error("{object} in {location} is damaged: {reason}")]
    Damaged {
        /// The name of the object.
        object: String,
        /// The place of the backup.
        location: String,
        /// The reason, in words.
        reason: String,
    },

    /// Another process writes into the same backup.
    #[error(
        "another process writes into the backup {location}, too: {object} is from it. Nothing was overwritten. Stop one \
         of the two, or give each a place of its own"
    )]
    AnotherWriter {
        /// The place of the backup.
        location: String,
        /// The manifest that the other process has written.
        object: String,
    },

    /// The data folder has no snapshot that can be read.
    #[error(
        "{folder} has no snapshot that can be read{details}. A backup begins with a snapshot: check that the folder is \
         the server's dataDir, or make the server write one"
    )]
    NoBase {
        /// The folder of the snapshots.
        folder: PathBuf,
        /// The snapshots that cannot be read, each with the reason. Empty, or starts with a separator.
        details: String,
    },

    /// The log cannot be read on, and there is no newer snapshot to begin again from.
    #[error(
        "the log in {folder} cannot be copied beyond {last}: {reason}. What was copied is kept. If the server runs, back          up another server of the ensemble"
    )]
    Stuck {
        /// The folder of the logs.
        folder: PathBuf,
        /// The last transaction that was copied.
        last: Zxid,
        /// The reason, in words.
        reason: String,
    },

    /// The server does not say how far its history is committed.
    #[error(
        "{server} does not say how far its history is committed: {reason}. Without that, transactions could be copied          that the ensemble takes back"
    )]
    NotServing {
        /// The client address of the server.
        server: String,
        /// The reason, in words.
        reason: String,
    },

    /// The folder's history is not that of the backup.
    #[error(
        "the backup {location} has transactions up to {confirmed} that were committed, but the log in {folder} {found}: \
         the ensemble was restored or emptied, or this is the folder of another one. Nothing was \
         written. Begin a new backup at another place"
    )]
    HistoryTakenBack {
        /// The place of the backup.
        location: String,
        /// The folder of the logs.
        folder: PathBuf,
        /// The last transaction of the backup that is known to be committed.
        confirmed: Zxid,
        /// The difference, in words.
        found: String,
    },

    /// The backup does not have the transaction.
    #[error("the backup has no transaction {wanted}; {nearest}")]
    NoSuchTransaction {
        /// The transaction as the operator has named it.
        wanted: String,
        /// The transactions that the backup has, in words.
        nearest: String,
    },

    /// At this time the backup has no log.
    #[error(
        "the backup does not have the log of the time {time_ms} ms: after {before} it goes on with a snapshot of {after}, \
         and it is not known which transactions in between came first. Choose one of the two: --to-zxid {before} or \
         --to-zxid {after}"
    )]
    TimeInGap {
        /// The time in ms since 1970.
        time_ms: i64,
        /// The last transaction before the gap.
        before: Zxid,
        /// The first transaction after it.
        after: Zxid,
    },

    /// The transaction is not known to be committed.
    #[error(
        "transaction {wanted} is in the server's log, but the backup does not know that it was committed; it knows that \
         up to {confirmed}. A later leader may have taken it back. Choose {confirmed} or an earlier transaction, or say \
         --unconfirmed if it is right to have it"
    )]
    NotConfirmed {
        /// The transaction.
        wanted: Zxid,
        /// The last transaction that is known to be committed.
        confirmed: Zxid,
    },

    /// Transactions are missing between two others.
    #[error(
        "the backup lacks transactions between {after} and {found}: the log was not copied while it was there"
    )]
    Gap {
        /// The last transaction before the gap.
        after: Zxid,
        /// The first transaction after it.
        found: Zxid,
    },

    /// No snapshot of the backup is old enough, or all that are cannot be read.
    #[error("the backup has no usable base for transaction {wanted}{details}")]
    NoUsableBase {
        /// The transaction.
        wanted: Zxid,
        /// The bases that cannot be used, each with the reason. Empty, or starts with a separator.
        details: String,
    },

    /// The restored tree differs from the one that the server had.
    #[error(
        "the tree at {zxid} has the digest {found:#x}, but the leader recorded {recorded:#x} then: the backup's files \
         are whole, but do not give the tree that the ensemble had. Nothing was written"
    )]
    DigestDiffers {
        /// The transaction.
        zxid: Zxid,
        /// The digest of the restored tree.
        found: u64,
        /// The digest in the record of the transaction, or in the snapshot.
        recorded: u64,
    },

    /// The epoch for the restored ensemble is not above all others.
    #[error(
        "epoch {epoch} is too low: the backup has seen epoch {seen}. A server with old data could win the election and \
         bring back what is to be undone. Leave --epoch out, or choose a higher one",
        epoch = .epoch.0, seen = .seen.0
    )]
    EpochTooLow {
        /// The epoch as the operator has named it.
        epoch: Epoch,
        /// The highest epoch that the backup knows.
        seen: Epoch,
    },

    /// There is no higher epoch.
    #[error("there is no epoch above {seen} for the restored ensemble: name one with --epoch", seen = .seen.0)]
    NoEpochLeft {
        /// The highest epoch that the backup knows.
        seen: Epoch,
    },

    /// The folder for a restored server has data already.
    #[error(
        "{folder} has data of a server already ({found}). Nothing was written. Move the folder version-2 away, or choose \
         another folder"
    )]
    FolderInUse {
        /// The folder.
        folder: PathBuf,
        /// The name of a file that is there.
        found: String,
    },

    /// The subtree is not in the backup at this transaction.
    #[error("the backup has no znode {path} at {zxid}")]
    NoSubtree {
        /// The path of the subtree.
        path: String,
        /// The transaction.
        zxid: Zxid,
    },

    /// The ensemble refused an operation.
    #[error("the ensemble did not {action}: {source}")]
    Client {
        /// The operation that failed, in words.
        action: String,
        /// The client's error.
        source: ostler_client::Error,
    },
}

/// Adds the operation and the path to an error of the system.
pub(crate) trait FileContext<T> {
    fn during(self, action: &'static str, path: &std::path::Path) -> Result<T>;
}

impl<T> FileContext<T> for io::Result<T> {
    fn during(self, action: &'static str, path: &std::path::Path) -> Result<T> {
        self.map_err(|source| BackupError::File { action, path: path.to_path_buf(), source })
    }
}
