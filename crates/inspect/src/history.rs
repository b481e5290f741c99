//! The transactions that touched one znode.

use crate::{
    error::Result,
    logs::{self, LogFinding, LogItem, LogTotals},
    view::{DataForm, OpView, TxnView},
};
use ostler_proto::{
    id::SessionId,
    txn::{Txn, TxnRecord},
};
use ostler_storage::{disk::Disk, names::LogFile};

/// An item of a history, in order.
#[derive(Debug)]
pub enum HistoryItem {
    /// A transaction that touched the znode. Of a multi there are only the parts that did.
    Touched(Box<TxnView>),
    /// Damage or a gap: transactions may be missing in the history.
    Finding(LogFinding),
}

/// Reads the logs and passes on all transactions that touched the znode at `path`. The end of a session counts if it
/// deletes the znode. Refused writes have no path in the log, so they are not found.
pub fn history(
    disk: &dyn Disk,
    files: &[LogFile],
    (path, form): (&str, DataForm),
    take: &mut dyn FnMut(HistoryItem) -> Result<()>,
) -> Result<LogTotals> {
    let mut owner = None;
    logs::walk(disk, files, &mut |item| match item {
        LogItem::Txn(logged) => {
            let Ok(record) = logged.record else { return Ok(()) };
            match touched(&record, path, owner, form) {
                Some(view) => {
                    owner = owner_after(&record, path, owner);
                    take(HistoryItem::Touched(Box::new(view)))
                }
                None => Ok(()),
            }
        }
        LogItem::Finding(finding) if finding.is_damage() => take(HistoryItem::Finding(finding)),
        LogItem::Finding(_) => Ok(()),
    })
}

/// The view of a record with the parts that touch the znode; `None` if it does not.
fn touched(record: &TxnRecord<'_>, path: &str, owner: Option<SessionId>, form: DataForm) -> Option<TxnView> {
    let is_owner = owner == Some(record.header.session);
    match &record.txn {
        Txn::Multi(parts) => {
            let parts: Vec<OpView> =
                parts.iter().filter(|part| has_path(part, path)).map(|part| OpView::of(part, form)).collect();
            if parts.is_empty() {
                return None;
            }
            let mut view = TxnView::of(&TxnRecord { txn: Txn::Multi(Vec::new()), ..record.clone() }, form);
            view.op.parts = Some(parts);
            Some(view)
        }
        // Before ZooKeeper 3.6 the end of a session does not name its ephemerals.
        Txn::CloseSession(None) if is_owner => {
            let mut view = TxnView::of(record, form);
            view.op.ephemerals = Some(vec![path.to_owned()]);
            Some(view)
        }
        Txn::CloseSession(Some(paths)) if paths.iter().any(|found| found == path) => {
            let mut view = TxnView::of(record, form);
            view.op.ephemerals = Some(vec![path.to_owned()]);
            Some(view)
        }
        other => has_path(other, path).then(|| TxnView::of(record, form)),
    }
}

fn has_path(txn: &Txn<'_>, wanted: &str) -> bool {
    match txn {
        Txn::Create(create) => create.path == wanted,
        Txn::Delete { path, .. }
        | Txn::SetData { path, .. }
        | Txn::SetAcl { path, .. }
        | Txn::Check { path, .. } => path == wanted,
        Txn::CreateSession { .. } | Txn::CloseSession(_) | Txn::Error(_) | Txn::Multi(_) => false,
    }
}

/// The session whose ephemeral the znode is after a transaction that touched it.
fn owner_after(record: &TxnRecord<'_>, wanted: &str, before: Option<SessionId>) -> Option<SessionId> {
    let parts = match &record.txn {
        Txn::Multi(parts) => parts.as_slice(),
        single => std::slice::from_ref(single),
    };
    parts.iter().filter(|part| has_path(part, wanted)).fold(before, |owner, part| match part {
        Txn::Create(create) => create.ephemeral.then_some(record.header.session),
        Txn::Delete { .. } => None,
        _ => owner,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ostler_proto::{
        id::Zxid,
        txn::{CreateTxn, TxnCreateKind, TxnHeader},
    };

    fn record(session: i64, txn: Txn<'static>) -> TxnRecord<'static> {
        let header =
            TxnHeader { session: SessionId(session), cxid: 1, zxid: Zxid(5), time_ms: 0, code: txn.code() };
        TxnRecord { header, txn, digest: None }
    }

    fn ephemeral(path: &'static str) -> Txn<'static> {
        Txn::Create(CreateTxn {
            kind: TxnCreateKind::Create,
            path: path.into(),
            data: None,
            acl: Vec::new().into(),
            ephemeral: true,
            parent_cversion: 1,
        })
    }

    #[test]
    fn of_a_multi_only_the_parts_of_the_znode_are_shown() {
        let multi =
            Txn::Multi(vec![ephemeral("/b"), ephemeral("/a"), Txn::Check { path: "/a".into(), version: 1 }]);
        let view = touched(&record(7, multi.clone()), "/a", None, DataForm::Size).unwrap();
        assert_eq!(view.op.parts.map(|parts| parts.len()), Some(2));
        assert_eq!(touched(&record(7, multi), "/c", None, DataForm::Size), None);
    }

    #[test]
    fn the_end_of_a_session_counts_if_it_deletes_the_znode() {
        let named = record(7, Txn::CloseSession(Some(vec!["/x".into(), "/a".into()])));
        assert!(touched(&named, "/a", None, DataForm::Size).is_some());
        assert_eq!(touched(&named, "/b", None, DataForm::Size), None);
        let owner = owner_after(&record(7, ephemeral("/a")), "/a", None);
        assert!(touched(&record(7, Txn::CloseSession(None)), "/a", owner, DataForm::Size).is_some());
        assert_eq!(touched(&record(8, Txn::CloseSession(None)), "/a", owner, DataForm::Size), None);
        let gone = owner_after(&record(9, Txn::Delete { reaped: false, path: "/a".into() }), "/a", owner);
        assert_eq!(gone, None);
    }
}
