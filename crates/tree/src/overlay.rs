//! Pending changes: the tree as it will be when all outstanding proposals are committed.
//!
//! Prepare reads the overlay and writes to it. An entry is removed when its transaction is applied. A multi notes the
//! entries that it overwrites, so that they can be restored if it fails.

use crate::{acl_table::AclRef, apply::advance_children, digest, tree::Tree, znode::Znode};
use alloc::{
    collections::{BTreeSet, VecDeque},
    vec::Vec,
};
use arcstr::ArcStr;
use hashbrown::{HashMap, hash_map::Entry::Occupied};
use ostler_proto::{
    id::{SessionId, Zxid},
    stat::{EphemeralOwner, ExtendedTypes, NodeKind, StatPersisted},
};
use rustc_hash::FxBuildHasher;

/// A znode as it will be. The data are not kept, since prepare needs only their length and the digest.
#[derive(Debug, Clone)]
pub struct PendingNode {
    stat: StatPersisted,
    /// The number of direct children.
    pub num_children: u32,
    /// The length of the data in bytes; 0 for null.
    pub data_len: usize,
    /// The ACL.
    pub acl: AclRef,
    /// The digest of path, data and Stat. It is not used if the path does not count for the tree's digest.
    digest: u32,
    /// Path and digest of the znode in the tree from which this one was made.
    origin: Option<(ArcStr, u32)>,
}

impl PendingNode {
    /// A znode that a pending transaction creates.
    pub fn new(path: &str, data: Option<&[u8]>, stat: StatPersisted, acl: AclRef) -> Self {
        PendingNode {
            stat,
            num_children: 0,
            data_len: data.map_or(0, <[u8]>::len),
            acl,
            digest: digest::of_znode(path, data, &stat),
            origin: None,
        }
    }

    fn of(tree: &Tree, node: &Znode) -> Self {
        PendingNode {
            stat: node.stat,
            num_children: node.num_children,
            data_len: node.data_len(),
            acl: tree.acl(node),
            digest: node.digest(),
            origin: Some((node.path.clone(), node.digest())),
        }
    }

    /// The stored part of the Stat.
    pub fn stat(&self) -> &StatPersisted {
        &self.stat
    }

    fn change_stat(&mut self, change: impl FnOnce(&mut StatPersisted)) {
        let old = self.stat;
        change(&mut self.stat);
        self.digest = digest::with_stat(self.digest, &old, &self.stat);
    }

    /// Applies a pending setData.
    pub fn set_data(&mut self, path: &str, data: Option<&[u8]>, version: i32, zxid: Zxid, time_ms: i64) {
        self.stat.version = version;
        self.stat.mzxid = zxid;
        self.stat.mtime = time_ms;
        self.data_len = data.map_or(0, <[u8]>::len);
        self.digest = digest::of_znode(path, data, &self.stat);
    }

    /// Applies a pending setACL.
    pub fn set_acl(&mut self, acl: AclRef, version: i32) {
        self.acl = acl;
        self.change_stat(|stat| stat.aversion = version);
    }

    /// Applies a pending create of a child. cversion and pzxid advance in the same way as in the tree.
    pub fn child_created(&mut self, cversion: i32, zxid: Zxid) {
        self.num_children += 1;
        self.change_stat(|stat| advance_children(stat, cversion, zxid));
    }

    /// Applies a pending delete of a child.
    pub fn child_deleted(&mut self, zxid: Zxid) {
        self.num_children = self.num_children.saturating_sub(1);
        self.change_stat(|stat| stat.pzxid = stat.pzxid.max(zxid));
    }
}

#[derive(Debug, Clone)]
struct Entry {
    zxid: Zxid,
    /// The znode; `None` if it will be deleted.
    node: Option<PendingNode>,
    /// The znode's part of the tree's digest.
    digest: u32,
}

impl Entry {
    fn owner(&self) -> i64 {
        self.node.as_ref().map_or(0, |node| node.stat.ephemeral_owner.0)
    }
}

/// Pending changes over a tree.
#[derive(Debug, Default)]
pub struct Overlay {
    entries: HashMap<ArcStr, Entry, FxBuildHasher>,
    /// All changes with their paths, in the order of the transactions.
    queue: VecDeque<(Zxid, ArcStr)>,
    /// The paths of the entries with an owner, by owner: the session of an ephemeral.
    owned: HashMap<i64, BTreeSet<ArcStr>, FxBuildHasher>,
    /// The last serial of a list that the tree does not have yet.
    last_serial: u64,
    /// The tree's digest when everything is applied.
    digest: u64,
    undo: Option<Undo>,
}

/// The bit in the serials of pending lists by which they differ from the serials of the tree.
const PENDING_SERIALS: u64 = 1 << 63;

#[derive(Debug)]
struct Undo {
    digest: u64,
    queue_len: usize,
    overwritten: Vec<(ArcStr, Option<Entry>)>,
}

impl Overlay {
    /// An overlay over a tree, without pending changes.
    pub fn new(tree: &Tree) -> Self {
        Overlay { digest: tree.digest(), ..Overlay::default() }
    }

    /// The znode at `path` as it will be. `None` if there will be none.
    pub fn get(&self, tree: &Tree, path: &str) -> Option<PendingNode> {
        if !self.entries.is_empty()
            && let Some(entry) = self.entries.get(path)
        {
            return entry.node.clone();
        }
        tree.get(path).filter(|_| !path.is_empty()).map(|node| PendingNode::of(tree, node))
    }

    /// The next serial for a list that the tree does not have yet, see [`crate::AclList::new`].
    pub fn next_serial(&mut self) -> u64 {
        self.last_serial += 1;
        PENDING_SERIALS | self.last_serial
    }

    /// The tree's digest when everything is applied.
    pub fn digest(&self) -> u64 {
        self.digest
    }

    /// Notes the znode at `path` after transaction `zxid`; `None` if the transaction deletes it.
    pub fn put(&mut self, tree: &Tree, zxid: Zxid, path: &str, mut node: Option<PendingNode>) {
        let digest = node.as_ref().filter(|_| digest::counts(path)).map_or(0, |node| node.digest);
        let origin = node.as_mut().and_then(|node| node.origin.take());
        let entry = Entry { zxid, node, digest };
        let owner = entry.owner();
        if let Some((key, before)) = self.entries.get_key_value_mut(path) {
            let (key, old) = (key.clone(), before.digest);
            let before = core::mem::replace(before, entry);
            self.change_owner(&key, before.owner(), owner);
            return self.note(zxid, key, Some(before), (old, digest));
        }
        let applied = || tree.get(path).map(|node| (node.path.clone(), node.digest()));
        let (key, old) = origin.or_else(applied).unwrap_or_else(|| (ArcStr::from(path), 0));
        self.entries.insert(key.clone(), entry);
        self.change_owner(&key, 0, owner);
        self.note(zxid, key, None, (old, digest));
    }

    fn change_owner(&mut self, path: &ArcStr, before: i64, after: i64) {
        if before == after {
            return;
        }
        if before != 0
            && let Occupied(mut paths) = self.owned.entry(before)
        {
            paths.get_mut().remove(path);
            if paths.get().is_empty() {
                paths.remove();
            }
        }
        if after != 0 {
            self.owned.entry(after).or_default().insert(path.clone());
        }
    }

    fn note(&mut self, zxid: Zxid, path: ArcStr, before: Option<Entry>, (old, new): (u32, u32)) {
        self.digest = self.digest.wrapping_sub(old.into()).wrapping_add(new.into());
        if let Some(undo) = &mut self.undo {
            undo.overwritten.push((path.clone(), before));
        }
        self.queue.push_back((zxid, path));
    }

    /// Begins a multi. [`Overlay::roll_back`] undoes all changes after this point.
    pub fn begin(&mut self) {
        assert!(self.undo.is_none(), "a multi begins inside a multi");
        self.undo = Some(Undo { digest: self.digest, queue_len: self.queue.len(), overwritten: Vec::new() });
    }

    /// Ends a multi and keeps its changes.
    pub fn keep(&mut self) {
        self.undo = None;
    }

    /// Ends a multi and undoes its changes.
    pub fn roll_back(&mut self) {
        let undo = self.undo.take().expect("a multi that fails has begun");
        self.digest = undo.digest;
        self.queue.truncate(undo.queue_len);
        for (path, before) in undo.overwritten.into_iter().rev() {
            let owner = before.as_ref().map_or(0, Entry::owner);
            let undone = match before {
                Some(entry) => self.entries.insert(path.clone(), entry),
                None => self.entries.remove(&path),
            };
            self.change_owner(&path, undone.map_or(0, |entry| entry.owner()), owner);
        }
    }

    /// Removes the changes of the transactions up to `zxid`, which the tree has applied. Returns the number of changes.
    pub fn retire(&mut self, zxid: Zxid) -> u64 {
        let mut retired = 0;
        while let Some((noted, _)) = self.queue.front()
            && *noted <= zxid
        {
            let Some((noted, path)) = self.queue.pop_front() else { break };
            retired += 1;
            // A later transaction may have overwritten the entry.
            if let Occupied(entry) = self.entries.entry(path)
                && entry.get().zxid == noted
            {
                let (path, entry) = entry.remove_entry();
                self.change_owner(&path, entry.owner(), 0);
            }
        }
        retired
    }

    /// Whether there are no pending changes.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The paths of a session's ephemerals as they will be, in order.
    pub fn ephemerals(&self, tree: &Tree, session: SessionId, types: ExtendedTypes) -> BTreeSet<ArcStr> {
        let stays = |path: &str| {
            self.entries.is_empty() || self.entries.get(path).is_none_or(|entry| entry.owner() == session.0)
        };
        let all = tree.ephemerals(session).iter();
        let mut paths: BTreeSet<ArcStr> =
            all.filter(|path| stays(path)).map(|path| ArcStr::from(&*path)).collect();
        if EphemeralOwner(session.0).kind(types) == NodeKind::Ephemeral(session) {
            paths.extend(self.owned.get(&session.0).into_iter().flatten().cloned());
        }
        paths
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ostler_proto::stat::ExtendedTypes;

    #[test]
    fn a_multi_leaves_nothing_if_rolled_back_and_stays_until_applied_if_kept() {
        let tree = Tree::fresh(ExtendedTypes::default());
        let mut overlay = Overlay::new(&tree);
        let node = |data: &[u8]| PendingNode::new("/a", Some(data), StatPersisted::default(), None);
        overlay.put(&tree, Zxid(1), "/a", Some(node(b"1")));
        let digest = overlay.digest();
        assert_ne!(digest, Overlay::new(&tree).digest());
        for kept in [false, false, true] {
            overlay.begin();
            overlay.put(&tree, Zxid(2), "/a", None);
            overlay.put(&tree, Zxid(2), "/b", Some(node(b"2")));
            assert!(overlay.get(&tree, "/a").is_none() && overlay.get(&tree, "/b").is_some());
            assert_ne!(overlay.digest(), digest);
            if kept {
                overlay.keep();
            } else {
                overlay.roll_back();
                assert_eq!(overlay.digest(), digest);
            }
            assert_eq!(
                (overlay.get(&tree, "/a").is_none(), overlay.get(&tree, "/b").is_some()),
                (kept, kept)
            );
        }
        overlay.begin();
        overlay.roll_back();
        assert!(overlay.get(&tree, "/a").is_none(), "only the changes since the last begin are undone");
        overlay.retire(Zxid(1));
        assert!(overlay.get(&tree, "/a").is_none(), "a later change waits");
        overlay.retire(Zxid(2));
        assert!(overlay.is_empty());
    }

    #[test]
    fn ephemerals_of_a_session_include_pending_creates_and_exclude_pending_deletes() {
        let (types, mine) = (ExtendedTypes::default(), SessionId(7));
        let mut tree = Tree::fresh(types);
        let owned =
            |owner: i64| StatPersisted { ephemeral_owner: EphemeralOwner(owner), ..Default::default() };
        for (path, owner) in [("/stays", 7), ("/goes", 7), ("/other", 8)] {
            tree.restore_node(path, None, owned(owner), (-1, None)).unwrap();
        }
        let mut overlay = Overlay::new(&tree);
        let of = |overlay: &Overlay, session| {
            overlay.ephemerals(&tree, session, types).iter().map(|path| path.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(of(&overlay, mine), ["/goes", "/stays"]);
        overlay.put(&tree, Zxid(1), "/goes", None);
        for (path, owner) in [("/comes", 7), ("/others", 8)] {
            let node = PendingNode::new(path, None, owned(owner), None);
            overlay.put(&tree, Zxid(2), path, Some(node));
        }
        assert_eq!(of(&overlay, mine), ["/comes", "/stays"]);
        assert_eq!(of(&overlay, SessionId(8)), ["/other", "/others"]);
        assert_eq!(of(&overlay, SessionId(9)), [""; 0]);
    }
}
