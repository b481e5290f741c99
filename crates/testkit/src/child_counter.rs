//! Sets the number that a znode gives to its next sequential child. Without this, a test of the counter's end would have
//! to create 2,147,483,647 children.

use crate::error::TestkitError;
use ostler_proto::{
    acl::{Acl, Perms},
    id::{SessionId, Zxid},
    txn::{CreateTxn, Txn, TxnCreateKind, TxnHeader, TxnRecord},
};
use ostler_storage::{
    disk::Disk,
    txnlog::{LogOptions, TxnLog},
};
use std::{path::Path, sync::Arc};

/// Appends two transactions to the log after `last`: a child of `parent` is created and deleted, and the next sequential
/// child gets `number`.
pub(crate) fn append(
    disk: &Arc<dyn Disk>,
    logs: &Path,
    last: Zxid,
    parent: &str,
    number: i32,
) -> Result<(), TestkitError> {
    let child = format!("{}/counted", parent.trim_end_matches('/'));
    let create = CreateTxn {
        kind: TxnCreateKind::Create,
        path: child.as_str().into(),
        data: None,
        acl: vec![Acl::world(Perms::ALL)].into(),
        ephemeral: false,
        parent_cversion: number,
    };
    let delete = Txn::Delete { reaped: false, path: child.as_str().into() };
    let options = LogOptions { prealloc_bytes: 0, ..LogOptions::default() };
    let mut log = TxnLog::open(disk.clone(), logs.to_owned(), options);
    log.continue_after(last);
    for (zxid, txn) in [(Zxid(last.0 + 1), Txn::Create(create)), (Zxid(last.0 + 2), delete)] {
        let header = TxnHeader { session: SessionId::NONE, cxid: 0, zxid, time_ms: 0, code: txn.code() };
        let mut record = Vec::new();
        TxnRecord { header, txn, digest: None }.write(&mut record);
        log.append(zxid, &record)?;
    }
    Ok(log.commit()?)
}
