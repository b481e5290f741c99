//! A tree that is restored from files as at a server's start, together with everything that was read.

use ostler_proto::{
    acl::Acl,
    id::{SessionId, Zxid},
    path,
    stat::{ExtendedTypes, StatPersisted},
    txn::TxnRecord,
};
use ostler_storage::{
    error::Refusal,
    recover::RecoverySink,
    snapshot::{SnapshotNode, SnapshotSink, SnapshotTrailer},
};
use ostler_tree::{FrozenTree, Tree};
use std::collections::{BTreeSet, HashMap};

/// TTL znodes are enabled, so that their owner ids are decoded.
pub const TYPES: ExtendedTypes = ExtendedTypes { enabled: true, emulate_353: false };

/// A copy of a znode of a snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptNode {
    pub path: String,
    pub data: Option<Vec<u8>>,
    pub acl: i64,
    pub stat: StatPersisted,
}

/// Everything that was read, and the tree that was made of it.
#[derive(Debug)]
pub struct Restored {
    pub tree: Tree,
    pub sessions: Vec<(SessionId, i32)>,
    pub acls: Vec<(i64, Vec<Acl>)>,
    pub nodes: Vec<KeptNode>,
    pub records: Vec<(Zxid, Vec<u8>)>,
    by_index: HashMap<i64, Vec<Acl>>,
    has_root: bool,
}

impl Default for Restored {
    fn default() -> Self {
        Restored {
            tree: Tree::fresh(TYPES),
            sessions: Vec::new(),
            acls: Vec::new(),
            nodes: Vec::new(),
            records: Vec::new(),
            by_index: HashMap::new(),
            has_root: false,
        }
    }
}

impl SnapshotSink for Restored {
    fn session(&mut self, id: SessionId, timeout_ms: i32) -> Result<(), Refusal> {
        self.sessions.push((id, timeout_ms));
        Ok(())
    }

    fn acl(&mut self, index: i64, acl: Vec<Acl>) -> Result<(), Refusal> {
        self.acls.push((index, acl.clone()));
        self.by_index.insert(index, acl);
        Ok(())
    }

    fn node(&mut self, node: SnapshotNode<'_>) -> Result<(), Refusal> {
        if &*node.path == "/" && !self.has_root {
            self.tree = Tree::empty(TYPES);
            self.has_root = true;
        }
        let acl = (node.acl, self.by_index.get(&node.acl).map(Vec::as_slice));
        self.tree.restore_node(&node.path, node.data, node.stat, acl)?;
        self.nodes.push(KeptNode {
            path: node.path.into_owned(),
            data: node.data.map(<[u8]>::to_vec),
            acl: node.acl,
            stat: node.stat,
        });
        Ok(())
    }
}

impl RecoverySink for Restored {
    fn reset(&mut self) {
        *self = Restored::default();
    }

    fn snapshot_loaded(&mut self, zxid: Zxid, trailer: SnapshotTrailer) -> Result<(), Refusal> {
        self.finish(zxid, trailer);
        Ok(())
    }

    fn record(&mut self, zxid: Zxid, bytes: &[u8]) -> Result<(), Refusal> {
        let record = TxnRecord::read(bytes)?;
        self.tree.apply(&record, &mut Vec::new());
        self.records.push((zxid, bytes.to_vec()));
        Ok(())
    }
}

impl Restored {
    /// Ends the restore of a snapshot.
    pub fn finish(&mut self, zxid: Zxid, trailer: SnapshotTrailer) {
        self.tree.finish_restore(zxid, self.sessions.clone(), trailer.digest.map(|digest| digest.zxid));
    }
}

/// Asserts what must be true of every tree and of its frozen view.
pub fn check_tree(tree: &Tree) {
    let frozen = tree.freeze();
    assert_eq!(frozen.len(), tree.node_count());
    let mut seen = BTreeSet::new();
    for node in frozen.nodes() {
        if &*node.path != "/" {
            let parent = path::parent(&node.path).expect("a znode below the root has a parent's path");
            assert!(seen.contains(parent), "{} comes before its parent", node.path);
        }
        assert_eq!(
            tree.children(&node.path).count(),
            node.num_children as usize,
            "children of {}",
            node.path
        );
        seen.insert(node.path.to_string());
    }
    assert_eq!(seen.len(), frozen.len());
    assert_eq!(
        restored_from(&frozen).digest(),
        tree.digest(),
        "the running digest differs from the digest of the znodes"
    );
}

/// The tree that a snapshot of this view gives.
pub fn restored_from(frozen: &FrozenTree) -> Tree {
    let acls: HashMap<i64, Vec<Acl>> =
        frozen.acls.iter().map(|(id, acls)| (id.to_disk(), acls.to_vec())).collect();
    let mut tree = Tree::empty(TYPES);
    for node in frozen.nodes() {
        let index = node.acl.to_disk();
        let acl = (index, acls.get(&index).map(Vec::as_slice));
        tree.restore_node(&node.path, node.data.as_deref(), node.stat, acl)
            .expect("a tree's own znodes make a tree");
    }
    tree.finish_restore(frozen.zxid, frozen.sessions.iter().copied(), None);
    tree
}
