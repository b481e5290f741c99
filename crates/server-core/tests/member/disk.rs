//! A disk that does nothing until the test says so, and what a member finds on it after a crash.

use ostler_proto::{id::Zxid, stat::ExtendedTypes, txn::TxnRecord};
use ostler_server_core::{PersistOp, Record};
use ostler_tree::{FrozenTree, Tree};
use ostler_zab::PersistSeq;
use std::collections::BTreeMap;

/// The persistent acts that one life of a member asked for, and how many of them the member was told are
/// done.
#[derive(Debug)]
pub(crate) struct Disk {
    /// Where the log ended when this life began.
    start: Zxid,
    acts: Vec<PersistOp>,
    reported: usize,
}

impl Disk {
    pub(crate) fn new(start: Zxid) -> Disk {
        Disk { start, acts: Vec::new(), reported: 0 }
    }

    /// Takes an act. Numbers and zxids come without a gap.
    pub(crate) fn push(&mut self, seq: PersistSeq, act: PersistOp) {
        assert_eq!(seq.0, self.acts.len() as u64 + 1, "acts are numbered 1, 2, 3...");
        if let PersistOp::Append { zxid, .. } = &act {
            let begun = self.acts.iter().rev().find_map(|act| match act {
                PersistOp::SaveCurrent(epoch) => Some(Zxid::new(*epoch, 1)),
                _ => None,
            });
            let next = self.last().next();
            assert_eq!(*zxid, begun.unwrap_or(next).max(next), "every write takes the next zxid");
        }
        let lone = matches!(
            act,
            PersistOp::Append { .. }
                | PersistOp::RollLog
                | PersistOp::SaveAccepted(_)
                | PersistOp::SaveCurrent(_)
                | PersistOp::Install(_)
        );
        assert!(lone, "{act:?} is for members of an ensemble");
        self.acts.push(act);
    }

    fn zxid_after(&self, acts: usize) -> Zxid {
        let appended = self.acts[..acts].iter().rev().find_map(|act| match act {
            PersistOp::Append { zxid, .. } => Some(*zxid),
            PersistOp::Install(frozen) => Some(frozen.zxid),
            _ => None,
        });
        appended.unwrap_or(self.start)
    }

    /// The last record asked for.
    pub(crate) fn last(&self) -> Zxid {
        self.zxid_after(self.acts.len())
    }

    /// The last record that the member knows to be on disk.
    pub(crate) fn durable(&self) -> Zxid {
        self.zxid_after(self.reported)
    }

    /// Acts that the member has not been told of.
    pub(crate) fn waiting(&self) -> usize {
        self.acts.len() - self.reported
    }

    /// Does this number of further acts; returns what the member is told.
    pub(crate) fn advance(&mut self, acts: usize) -> PersistSeq {
        self.reported += acts.min(self.waiting());
        PersistSeq(self.reported as u64)
    }

    /// All acts that were asked for, in order.
    pub(crate) fn acts(&self) -> &[PersistOp] {
        &self.acts
    }

    /// The records appended so far, in order.
    pub(crate) fn records(&self) -> impl Iterator<Item = (Zxid, &Record)> {
        self.acts.iter().filter_map(|act| match act {
            PersistOp::Append { zxid, record } => Some((*zxid, record)),
            _ => None,
        })
    }

    /// The disk after a crash: all acts that were reported to the member, and this number of later ones.
    pub(crate) fn left_by_crash(&self, unreported: usize) -> Vec<Record> {
        let end = self.reported + unreported.min(self.waiting());
        let records = self.acts[..end].iter().filter_map(|act| match act {
            PersistOp::Append { record, .. } => Some(record.clone()),
            _ => None,
        });
        records.collect()
    }
}

/// The tree that a log describes, on top of another one.
pub(crate) fn replay<'r>(mut tree: Tree, log: impl IntoIterator<Item = &'r Record>) -> Tree {
    for record in log {
        let record = TxnRecord::read(&record.0).unwrap();
        if record.header.zxid > tree.last_processed() {
            tree.apply(&record, &mut Vec::new());
        }
    }
    assert_eq!(tree.digest_mismatches(), 0, "replay gives the tree that the leader predicted");
    tree
}

/// The tree that a snapshot holds.
pub(crate) fn restore(frozen: &FrozenTree, types: ExtendedTypes) -> Tree {
    let acls: BTreeMap<_, _> = frozen.acls.iter().cloned().collect();
    let mut tree = Tree::empty(types);
    for node in frozen.nodes() {
        let acl = (node.acl.to_disk(), acls.get(&node.acl).map(|acls| &**acls));
        tree.restore_node(&node.path, node.data.as_deref(), node.stat, acl).unwrap();
    }
    tree.finish_restore(frozen.zxid, frozen.sessions.iter().copied(), Some(frozen.zxid));
    assert_eq!(tree.digest(), frozen.digest, "a snapshot holds what its digest says");
    tree
}

/// All znodes with everything that a snapshot would hold of them, as text.
pub(crate) fn contents(frozen: &FrozenTree) -> BTreeMap<String, String> {
    let acls: BTreeMap<_, _> = frozen.acls.iter().cloned().collect();
    let nodes = frozen.nodes().map(|node| {
        let acl = acls.get(&node.acl);
        (node.path.to_string(), format!("{:?} {:?} {} {acl:?}", node.data, node.stat, node.num_children))
    });
    let sessions = frozen.sessions.iter().map(|(id, timeout)| (format!("session {id}"), timeout.to_string()));
    nodes.chain(sessions).collect()
}
