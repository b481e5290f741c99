//! The tree as it will be once the outstanding proposals have committed.
//!
//! Prepare reads it and writes to it; an entry retires when its transaction is applied. A multi notes what
//! it overwrote, so that a failure takes all of it back.

use crate::{acl_table::AclRef, apply::advance_children, digest, tree::Tree, znode::Znode};
use alloc::{
    collections::{BTreeSet, VecDeque},
    vec::Vec,
};
use arcstr::ArcStr;
use hashbrown::HashMap;
use ostler_proto::{
    id::{SessionId, Zxid},
    stat::{ExtendedTypes, NodeKind, StatPersisted},
};
use rustc_hash::FxBuildHasher;

/// A znode as it will be. Its data is not here: what prepare needs of it is its length and its CRC.
#[derive(Debug, Clone)]
pub struct PendingNode {
    /// Stored Stat.
    pub stat: StatPersisted,
    /// Direct children.
    pub num_children: u32,
    /// Bytes of data.
    pub data_len: usize,
    /// Who may do what.
    pub acl: AclRef,
    /// CRC of path and data; `None` while they are those of the tree, so that it is computed only if needed.
    content_crc: Option<u32>,
}

impl PendingNode {
    /// A znode that a pending transaction creates.
    pub fn new(path: &str, data: Option<&[u8]>, stat: StatPersisted, acl: AclRef) -> Self {
        PendingNode {
            stat,
            num_children: 0,
            data_len: data.map_or(0, <[u8]>::len),
            acl,
            content_crc: Some(digest::content_crc(path, data)),
        }
    }

    fn of(tree: &Tree, node: &Znode) -> Self {
        PendingNode {
            stat: node.stat,
            num_children: node.num_children,
            data_len: node.data_len(),
            acl: tree.acl(node),
            content_crc: None,
        }
    }

    /// Pending new data.
    pub fn set_data(&mut self, path: &str, data: Option<&[u8]>) {
        self.data_len = data.map_or(0, <[u8]>::len);
        self.content_crc = Some(digest::content_crc(path, data));
    }

    /// A pending create of a child. The counter and the pzxid move as they will when it is applied.
    pub fn child_created(&mut self, cversion: i32, zxid: Zxid) {
        self.num_children += 1;
        advance_children(&mut self.stat, cversion, zxid);
    }

    /// A pending delete of a child.
    pub fn child_deleted(&mut self, zxid: Zxid) {
        self.num_children = self.num_children.saturating_sub(1);
        self.stat.pzxid = self.stat.pzxid.max(zxid);
    }

    /// `applied` is the tree's znode at the same path, whose content this one has until it is given another.
    fn digest(&self, applied: Option<&Znode>) -> u64 {
        let content = self.content_crc.or_else(|| applied.map(Znode::content_crc)).unwrap_or_default();
        u64::from(digest::node_digest(content, &self.stat))
    }
}

#[derive(Debug, Clone)]
struct Entry {
    zxid: Zxid,
    /// `None`: will be deleted.
    node: Option<PendingNode>,
}

/// Pending changes over a tree.
#[derive(Debug, Default)]
pub struct Overlay {
    entries: HashMap<ArcStr, Entry, FxBuildHasher>,
    /// What to retire, in the order of the transactions.
    queue: VecDeque<(Zxid, ArcStr)>,
    /// The tree's digest once all is applied.
    digest: u64,
    undo: Option<Undo>,
}

#[derive(Debug)]
struct Undo {
    digest: u64,
    queue_len: usize,
    overwritten: Vec<(ArcStr, Option<Entry>)>,
}

impl Overlay {
    /// Over a tree with nothing pending.
    pub fn new(tree: &Tree) -> Self {
        Overlay { digest: tree.digest(), ..Overlay::default() }
    }

    /// The znode at `path` as it will be.
    pub fn get(&self, tree: &Tree, path: &str) -> Option<PendingNode> {
        if !self.entries.is_empty()
            && let Some(entry) = self.entries.get(path)
        {
            return entry.node.clone();
        }
        tree.get(path).filter(|_| !path.is_empty()).map(|node| PendingNode::of(tree, node))
    }

    /// The tree's digest once all is applied.
    pub fn digest(&self) -> u64 {
        self.digest
    }

    /// Notes what the transaction `zxid` makes of `path`: a znode, or nothing.
    pub fn put(&mut self, tree: &Tree, zxid: Zxid, path: &str, node: Option<PendingNode>) {
        let applied = tree.get(path);
        if digest::counts(path) {
            let old = match self.entries.get(path) {
                Some(entry) => entry.node.as_ref().map_or(0, |node| node.digest(applied)),
                None => applied.map_or(0, |node| u64::from(node.digest())),
            };
            let new = node.as_ref().map_or(0, |node| node.digest(applied));
            self.digest = self.digest.wrapping_sub(old).wrapping_add(new);
        }
        let key = match self.entries.get_key_value(path) {
            Some((key, _)) => key.clone(),
            None => applied.map_or_else(|| ArcStr::from(path), |node| node.path.clone()),
        };
        let before = self.entries.insert(key.clone(), Entry { zxid, node });
        self.queue.push_back((zxid, key.clone()));
        if let Some(undo) = &mut self.undo {
            undo.overwritten.push((key, before));
        }
    }

    /// From here on [`Overlay::roll_back`] can undo.
    pub fn begin(&mut self) {
        assert!(self.undo.is_none(), "a multi begins inside a multi");
        self.undo = Some(Undo { digest: self.digest, queue_len: self.queue.len(), overwritten: Vec::new() });
    }

    /// Keeps what was put since [`Overlay::begin`].
    pub fn keep(&mut self) {
        self.undo = None;
    }

    /// Takes back what was put since [`Overlay::begin`].
    pub fn roll_back(&mut self) {
        let undo = self.undo.take().expect("a multi that fails has begun");
        self.digest = undo.digest;
        self.queue.truncate(undo.queue_len);
        for (path, before) in undo.overwritten.into_iter().rev() {
            match before {
                Some(entry) => self.entries.insert(path, entry),
                None => self.entries.remove(&path),
            };
        }
    }

    /// The transactions up to `zxid` are applied: what they noted is in the tree now.
    pub fn retire(&mut self, zxid: Zxid) {
        while let Some((noted, _)) = self.queue.front()
            && *noted <= zxid
        {
            let Some((noted, path)) = self.queue.pop_front() else { break };
            // A later transaction may have overwritten the entry.
            if self.entries.get(&path).is_some_and(|entry| entry.zxid == noted) {
                self.entries.remove(&path);
            }
        }
    }

    /// Whether nothing is pending.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// A session's ephemerals as they will be, in order.
    pub fn ephemerals(&self, tree: &Tree, session: SessionId, types: ExtendedTypes) -> BTreeSet<ArcStr> {
        let mut paths: BTreeSet<ArcStr> = tree.ephemerals(session).cloned().collect();
        for (path, entry) in &self.entries {
            match &entry.node {
                Some(node) if node.stat.ephemeral_owner.kind(types) == NodeKind::Ephemeral(session) => {
                    paths.insert(path.clone());
                }
                _ => {
                    paths.remove(path);
                }
            }
        }
        paths
    }
}
