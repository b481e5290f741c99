//! Reads created and deleted znodes from the transaction log of a server.

use crate::error::TestkitError;
use ostler_proto::{
    id::{SessionId, Zxid},
    jute::{JuteError, Reader},
    txn::{Txn, TxnHeader},
};
use ostler_storage::{
    StorageError,
    disk::Disk,
    txnlog::{LogReader, LogRecord},
};
use std::path::Path;

/// A created or deleted znode, in a committed transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Change {
    /// The zxid of the transaction. All changes of a multi have the same, and all deletions at the end of a session.
    pub zxid: Zxid,
    /// The time of the transaction by the leader's wall clock, in ms since 1970.
    pub time_ms: u64,
    /// The path of the znode.
    pub path: String,
    /// Whether it was created or deleted.
    pub kind: ChangeKind,
}

/// The kind of a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChangeKind {
    /// The znode was created.
    Created {
        /// The session that owns it, if it is ephemeral.
        owner: Option<SessionId>,
        /// The data with which it was created.
        data: Vec<u8>,
    },
    /// The znode was deleted, by a request or at the end of its session.
    Deleted,
}

/// The changes found in a log.
pub(crate) struct Logged {
    pub(crate) changes: Vec<Change>,
    /// Whether the log reaches the last requested transaction.
    pub(crate) reaches: bool,
    /// Whether transactions are missing because the server received a snapshot. Earlier ones may not be committed.
    pub(crate) gaps: bool,
}

/// The changes after the transaction `after`, up to `to`. A log that is being written can look torn behind `to`, and the
/// log of a member can be behind the transactions it has applied. Neither is an error.
pub(crate) fn read(disk: &dyn Disk, log: &Path, after: Zxid, to: Zxid) -> Result<Logged, TestkitError> {
    let (mut changes, mut reader) = (Vec::new(), LogReader::open(disk, log, after)?);
    let (mut last, mut gaps) = (after, false);
    while last < to {
        let record = match reader.next_record() {
            Ok(Some(record)) if record.zxid <= to => record,
            Ok(_) | Err(StorageError::Corrupt { .. }) => break,
            Err(StorageError::Gap { found, .. }) => {
                gaps = true;
                reader = LogReader::open(disk, log, Zxid(found.0 - 1))?;
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        changes_of(&record, &mut changes)
            .map_err(|cause| TestkitError::Record { zxid: record.zxid, cause })?;
        last = record.zxid;
    }
    // The first zxid of an epoch is no transaction.
    Ok(Logged { changes, reaches: last >= to || to.counter() == 0, gaps })
}

fn changes_of(record: &LogRecord<'_>, changes: &mut Vec<Change>) -> Result<(), JuteError> {
    let mut bytes = Reader::new(record.bytes);
    let header = TxnHeader::read(&mut bytes)?;
    add(&header, &Txn::read(header.code, &mut bytes)?, changes);
    Ok(())
}

fn add(header: &TxnHeader, txn: &Txn<'_>, changes: &mut Vec<Change>) {
    let time_ms = u64::try_from(header.time_ms).unwrap_or(0);
    let mut push =
        |path: &str, kind| changes.push(Change { zxid: header.zxid, time_ms, path: path.into(), kind });
    match txn {
        Txn::Create(create) => {
            let owner = create.ephemeral.then_some(header.session);
            let data = create.data.unwrap_or_default().to_vec();
            push(&create.path, ChangeKind::Created { owner, data });
        }
        Txn::Delete { path, .. } => push(path, ChangeKind::Deleted),
        Txn::CloseSession(ephemerals) => {
            for path in ephemerals.iter().flatten() {
                push(path, ChangeKind::Deleted);
            }
        }
        Txn::Multi(txns) => txns.iter().for_each(|txn| add(header, txn, changes)),
        Txn::CreateSession { .. }
        | Txn::SetData { .. }
        | Txn::SetAcl { .. }
        | Txn::Check { .. }
        | Txn::Error(_) => {}
    }
}
