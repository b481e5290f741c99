//! The number that a znode gives to its next sequential child, set by hand: to get it to its end otherwise takes
//! 2,147,483,647 children.

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

/// Logs, after the transaction `last`, that a child of `parent` came and went, and that the next one has `number`.
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
