//! Builds a tree from a snapshot and records.

use ostler_proto::{
    acl::Acl,
    id::{SessionId, Zxid},
    stat::ExtendedTypes,
    txn::TxnRecord,
};
use ostler_storage::{
    error::Refusal,
    snapshot::{SnapshotNode, SnapshotSink, SnapshotTrailer},
};
use ostler_tree::{Tree, TreeEvent};
use std::collections::HashMap;

/// A tree that is being built: the parts of a snapshot first, then records.
pub(crate) struct TreeBuilder {
    tree: Tree,
    /// The ACLs of the snapshot by their indexes.
    acls: HashMap<i64, Vec<Acl>>,
    sessions: Vec<(SessionId, i32)>,
    /// The events of applied records. They are discarded: nobody watches.
    events: Vec<TreeEvent>,
}

impl TreeBuilder {
    pub(crate) fn new(types: ExtendedTypes) -> TreeBuilder {
        TreeBuilder {
            tree: Tree::empty(types),
            acls: HashMap::new(),
            sessions: Vec::new(),
            events: Vec::new(),
        }
    }

    /// Ends the snapshot, whose name has this zxid.
    pub(crate) fn end_snapshot(&mut self, zxid: Zxid, trailer: &SnapshotTrailer) {
        let digest_zxid = trailer.digest.map(|digest| digest.zxid).filter(|zxid| zxid.to_wire() > 0);
        self.tree.finish_restore(zxid, std::mem::take(&mut self.sessions), digest_zxid);
        self.acls = HashMap::new();
    }

    /// Applies a record.
    pub(crate) fn apply(&mut self, record: &TxnRecord<'_>) {
        self.tree.apply(record, &mut self.events);
        self.events.clear();
    }

    pub(crate) fn tree(&self) -> &Tree {
        &self.tree
    }

    pub(crate) fn into_tree(self) -> Tree {
        self.tree
    }
}

impl SnapshotSink for TreeBuilder {
    fn session(&mut self, id: SessionId, timeout_ms: i32) -> Result<(), Refusal> {
        self.sessions.push((id, timeout_ms));
        Ok(())
    }

    fn acl(&mut self, index: i64, acl: Vec<Acl>) -> Result<(), Refusal> {
        self.acls.insert(index, acl);
        Ok(())
    }

    fn node(&mut self, node: SnapshotNode<'_>) -> Result<(), Refusal> {
        let acl = (node.acl, self.acls.get(&node.acl).map(Vec::as_slice));
        self.tree.restore_node(&node.path, node.data, node.stat, acl).map_err(Refusal::from)
    }
}
