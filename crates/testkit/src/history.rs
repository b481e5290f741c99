//! What the servers have agreed on, read from the log of one of them.

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

/// A znode that has come or gone, in a transaction that is done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The transaction. Those of a multi have one, and so do those that go with a session.
    pub zxid: u64,
    /// When the leader made it, by its wall clock, ms since 1970.
    pub time_ms: u64,
    /// Which znode.
    pub path: String,
    /// What has become of it.
    pub kind: ChangeKind,
}

/// What has become of a znode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChangeKind {
    /// It was created.
    Created {
        /// The session that it goes with, if it is ephemeral.
        owner: Option<SessionId>,
        /// What it was created with.
        data: Vec<u8>,
    },
    /// It was deleted, by somebody or with its session.
    Deleted,
}

/// The changes that a log has.
pub(crate) struct Logged {
    pub(crate) changes: Vec<Change>,
    /// Whether the last transaction that was asked for is in it.
    pub(crate) reaches: bool,
    /// Whether a snapshot took the place of some of it. What stands before that may never have been agreed on.
    pub(crate) gaps: bool,
}

/// The changes after a transaction, up to another one. A log that is being written can look torn behind that one, and a
/// member's log can be behind what it has applied: neither is an error.
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
        |path: &str, kind| changes.push(Change { zxid: header.zxid.0, time_ms, path: path.into(), kind });
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
