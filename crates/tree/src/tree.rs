//! The tree: znodes, sessions and the indexes over them, with the restoration from a snapshot.

use crate::{
    acl_table::{AclId, AclRef, AclTable},
    children::ChildIndex,
    digest::DigestEntry,
    freeze::FrozenTree,
    quota::{self, QuotaNode, QuotaNumbers, QuotaTable},
    scan::Scan,
    sorted_strings::SortedStrings,
    table::{SharedZnode, ZnodeTable},
    znode::{DetachedZnode, Znode},
};
use alloc::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet, VecDeque, btree_set},
    format,
    string::String,
    sync::Arc,
    vec::Vec,
};
use arcstr::ArcStr;
use core::ops::Bound::{self, Included, Unbounded};
use ostler_planted::{self as planted, Bug};
use ostler_proto::{
    acl::{Acl, Perms},
    id::{SessionId, Zxid},
    path::{self, CONFIG, QUOTA_ROOT},
    reply::Data,
    shared::SharedBytes,
    stat::{ExtendedTypes, NodeKind, Stat, StatPersisted},
    strings::SharedStrings,
};

/// The parent of the znodes that servers make.
const SYSTEM: &str = "/zookeeper";
/// The value of `digest_trusted_after` while it is not known at which zxid the copying of a tree ended.
const NEVER: Zxid = Zxid(u64::MAX);

/// The replicated state, as one server has it.
#[derive(Debug)]
pub struct Tree {
    pub(crate) types: ExtendedTypes,
    pub(crate) table: ZnodeTable,
    pub(crate) child_index: ChildIndex,
    pub(crate) acls: AclTable,
    pub(crate) sessions: BTreeMap<SessionId, i32>,
    pub(crate) ephemerals: BTreeMap<SessionId, SortedStrings>,
    pub(crate) containers: BTreeSet<ArcStr>,
    pub(crate) ttls: BTreeSet<ArcStr>,
    pub(crate) quotas: QuotaTable,
    pub(crate) digest: u64,
    pub(crate) digest_log: VecDeque<DigestEntry>,
    pub(crate) digest_mismatches: u64,
    /// Digests are compared only above this: a fuzzy snapshot holds changes of later transactions.
    pub(crate) digest_trusted_after: Zxid,
    pub(crate) last_processed: Zxid,
    /// The bytes of all paths and data.
    pub(crate) data_size: i64,
    /// The paths that were restored without their ACL.
    without_acl: Vec<ArcStr>,
}

/// The ACL by which nobody may do anything. An empty list would let everybody do everything, in Java too.
fn acl_of_nobody() -> [Acl; 1] {
    [Acl::world(Perms(0))]
}

/// The reason why a snapshot cannot be restored to a tree.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RestoreError {
    /// A znode came before its parent.
    #[error("znode {path} comes before its parent")]
    NoParent {
        /// The path of the znode.
        path: ArcStr,
    },
    /// A name in the path of a znode is empty: it ends with a slash, or begins with two.
    #[error("znode {path:?} has an empty name in its path")]
    NoName {
        /// The path of the znode.
        path: ArcStr,
    },
    /// A znode came twice.
    #[error("znode {path} comes twice")]
    Twice {
        /// The path of the znode.
        path: ArcStr,
    },
}

impl Tree {
    /// A tree without znodes, into which a snapshot is restored.
    pub fn empty(types: ExtendedTypes) -> Tree {
        Tree {
            types,
            table: ZnodeTable::default(),
            child_index: ChildIndex::default(),
            acls: AclTable::default(),
            sessions: BTreeMap::new(),
            ephemerals: BTreeMap::new(),
            containers: BTreeSet::new(),
            ttls: BTreeSet::new(),
            quotas: QuotaTable::default(),
            digest: 0,
            digest_log: VecDeque::new(),
            digest_mismatches: 0,
            digest_trusted_after: Zxid::ZERO,
            last_processed: Zxid::ZERO,
            data_size: 0,
            without_acl: Vec::new(),
        }
    }

    /// The tree of a new database: the root and the system znodes.
    pub fn fresh(types: ExtendedTypes) -> Tree {
        let mut tree = Tree::empty(types);
        let data: Data = Some(SharedBytes::from([].as_slice()));
        for path in ["/", SYSTEM, QUOTA_ROOT] {
            tree.put_new(Znode::new(path.into(), data.clone(), StatPersisted::default(), AclId::OPEN));
        }
        tree.add_missing_config();
        tree
    }

    /// Adds `/zookeeper/config` if only its parent exists.
    pub(crate) fn add_missing_config(&mut self) {
        if self.table.get(CONFIG).is_some() || self.table.get(SYSTEM).is_none() {
            return;
        }
        let acl = self.acls.acquire(&[Acl::world(Perms::READ)]);
        let stat = StatPersisted { aversion: -1, ..StatPersisted::default() };
        self.put_new(Znode::new(CONFIG.into(), Some(SharedBytes::from([].as_slice())), stat, acl));
    }

    /// Adds a znode of a snapshot. `acl` is the number of its ACL in the snapshot, and the list with this number.
    ///
    /// A fuzzy snapshot of Java can lack the list: Java writes the lists before the znodes, while the tree changes. The
    /// transaction that set the list comes after the snapshot's zxid then, so replay sets it. Until then the znode has
    /// an ACL by which nobody may do anything. See [`Tree::take_znodes_without_acl`].
    pub fn restore_node(
        &mut self,
        path: &str,
        data: Option<&[u8]>,
        stat: StatPersisted,
        acl: (i64, Option<&[Acl]>),
    ) -> Result<(), RestoreError> {
        self.restore_detached(DetachedZnode::new(path, data, stat), acl)
    }

    /// As [`Tree::restore_node`], for a znode that another thread can have made.
    pub fn restore_detached(
        &mut self,
        DetachedZnode(mut node): DetachedZnode,
        acl: (i64, Option<&[Acl]>),
    ) -> Result<(), RestoreError> {
        let path = node.path.clone();
        if self.table.get(&path).is_some() {
            return Err(RestoreError::Twice { path });
        }
        if !has_no_empty_name(&path) {
            return Err(RestoreError::NoName { path });
        }
        let acl = match acl {
            (-1, _) => AclId::OPEN,
            (_, Some(acls)) => self.acls.acquire(acls),
            (_, None) => {
                self.without_acl.push(path.clone());
                self.acls.acquire(&acl_of_nobody())
            }
        };
        if !self.attach(&path, node.data_len()) {
            return Err(RestoreError::NoParent { path });
        }
        let znode = SharedZnode::make_mut(&mut node);
        znode.acl = acl;
        if planted::is(Bug::CversionOffInSnapshot) {
            znode.change_stat(|stat| stat.cversion = stat.cversion.min(stat.version + 1));
        }
        self.put_attached(node);
        Ok(())
    }

    /// Ends a restoration: sets sessions and zxid, and counts the usage of quotas. `digest_zxid` is the zxid from the
    /// snapshot's digest; digests are compared after it.
    pub fn finish_restore(
        &mut self,
        zxid: Zxid,
        sessions: impl IntoIterator<Item = (SessionId, i32)>,
        digest_zxid: Option<Zxid>,
    ) {
        self.sessions.extend(sessions);
        self.last_processed = zxid;
        self.digest_trusted_after = digest_zxid.unwrap_or(zxid);
        self.set_up_quotas();
    }

    /// Notes that the tree was copied from one that went on changing, and that it is not known yet at which zxid the
    /// copying ended. Digests are neither compared nor logged.
    pub fn distrust_digests(&mut self) {
        self.digest_trusted_after = NEVER;
    }

    /// Ends [`Tree::distrust_digests`]: the copying ended at this zxid at the latest.
    pub fn trust_digests_after(&mut self, zxid: Zxid) {
        if self.digest_trusted_after == NEVER {
            self.digest_trusted_after = zxid;
        }
    }

    /// Deletes the ephemerals of sessions that do not exist, without a transaction, and returns their paths. A fuzzy
    /// snapshot of Java can have some.
    pub fn drop_orphaned_ephemerals(&mut self) -> Vec<ArcStr> {
        let orphans: Vec<ArcStr> = self
            .ephemerals
            .iter()
            .filter(|(session, _)| !self.sessions.contains_key(session))
            .flat_map(|(_, paths)| paths.iter())
            .map(|path| ArcStr::from(&*path))
            .collect();
        for path in &orphans {
            self.delete(path, self.last_processed, &mut Vec::new());
        }
        orphans
    }

    /// Takes the paths of the restored znodes whose ACL neither the snapshot nor a transaction since then defines.
    ///
    /// Nobody but the super user can read or change such a znode. Java can lose an ACL for good (ZOOKEEPER-4689), and
    /// answers each request for the znode with an error.
    pub fn take_znodes_without_acl(&mut self) -> Vec<ArcStr> {
        let mut paths = core::mem::take(&mut self.without_acl);
        paths.retain(|path| {
            let acl = self.get(path).and_then(|node| self.acl(node));
            acl.is_some_and(|acl| **acl == acl_of_nobody())
        });
        paths
    }

    /// The znode at `path`. The empty path is the root, too.
    pub fn get(&self, path: &str) -> Option<&Znode> {
        self.table.get(path::canonical(path))
    }

    /// A znode's Stat as clients see it.
    pub fn stat(&self, node: &Znode) -> Stat {
        node.client_stat(self.types)
    }

    /// A znode's ACL.
    pub fn acl(&self, node: &Znode) -> AclRef {
        self.acls.get(node.acl)
    }

    /// The names of a znode's children.
    pub fn children(&self, path: &str) -> impl Iterator<Item = Cow<'_, str>> {
        self.child_index.of(path::canonical(path))
    }

    /// The names of a znode's children from this one on, in the order of [`crate::sorted_strings::order`], at most `max`. With
    /// `after` without this one itself.
    pub fn children_from(&self, path: &str, from: (&str, bool), max: usize) -> Vec<String> {
        self.child_index.names_from(path::canonical(path), from, max)
    }

    /// Of the names of a znode's children that begin with a text, those from a place on, in the order of
    /// [`crate::sorted_strings::order`], at most `max`, and the number of all of them. The work does not grow with the
    /// place.
    pub fn children_at(&self, path: &str, place: (&str, usize), max: usize) -> (Vec<String>, usize) {
        self.child_index.names_at(path::canonical(path), place, max)
    }

    /// The last name of a znode's children, in the order of [`crate::sorted_strings::order`].
    pub fn last_child(&self, path: &str) -> Option<String> {
        self.child_index.last(path::canonical(path))
    }

    /// The names of a znode's children for a reply, and the number of pieces that the list was made of, as a measure of
    /// the work.
    pub fn shared_children(&self, path: &str) -> (SharedStrings, usize) {
        self.child_index.share(path::canonical(path))
    }

    pub(crate) fn paths_of_children(&self, path: &str) -> impl Iterator<Item = String> {
        let above = if path == "/" { "" } else { path };
        self.child_index.of(path).map(move |name| format!("{above}/{name}"))
    }

    /// The size of the encoded list of the children's names, in bytes.
    pub fn names_size(&self, path: &str) -> usize {
        self.child_index.names_size(path::canonical(path))
    }

    /// The number of znodes below `path`, at any depth.
    pub fn count_below(&self, path: &str) -> usize {
        self.child_index.below(path::canonical(path)).0
    }

    /// The paths of a session's ephemerals.
    pub fn ephemerals(&self, session: SessionId) -> &SortedStrings {
        static NONE: SortedStrings = SortedStrings::new();
        self.ephemerals.get(&session).unwrap_or(&NONE)
    }

    /// The sessions with ephemerals, each with their paths.
    pub fn ephemerals_by_session(&self) -> impl Iterator<Item = (SessionId, &SortedStrings)> {
        self.ephemerals.iter().map(|(session, paths)| (*session, paths))
    }

    /// The paths of the containers after this path, in order.
    pub fn containers_after(&self, path: &str) -> btree_set::Range<'_, ArcStr> {
        after(&self.containers, path)
    }

    /// The ephemerals with their sessions, in order; with `after` those that come after this one.
    pub fn ephemerals_after<'a>(
        &'a self,
        after: Option<(SessionId, &'a str)>,
    ) -> impl Iterator<Item = (SessionId, Cow<'a, str>)> {
        let from = after.map_or(Unbounded, |(session, _)| Included(session));
        self.ephemerals.range((from, Unbounded)).flat_map(move |(session, paths)| {
            let last = after.filter(|(of, _)| of == session).map_or("", |(_, path)| path);
            paths.after(last).map(|path| (*session, path))
        })
    }

    /// The paths of the TTL znodes after this path, in order.
    pub fn ttls_after(&self, path: &str) -> btree_set::Range<'_, ArcStr> {
        after(&self.ttls, path)
    }

    /// The sessions and their timeouts in ms.
    pub fn sessions(&self) -> impl Iterator<Item = (SessionId, i32)> {
        self.sessions.iter().map(|(session, timeout)| (*session, *timeout))
    }

    /// The sessions from this bound on, and their timeouts in ms.
    pub fn sessions_after(&self, from: Bound<SessionId>) -> impl Iterator<Item = (SessionId, i32)> {
        self.sessions.range((from, Unbounded)).map(|(session, timeout)| (*session, *timeout))
    }

    /// The number of sessions.
    pub fn session_count(&self) -> usize {
        self.sessions.len()
    }

    /// Whether this session exists.
    pub fn has_session(&self, session: SessionId) -> bool {
        self.sessions.contains_key(&session)
    }

    /// The nearest limited path at or above `path`, with its limits and its usage.
    pub fn quota<'p>(&self, path: &'p str) -> Option<(&'p str, QuotaNumbers, QuotaNumbers)> {
        let limited = self.quotas.limit_of(path)?;
        let numbers = |path: &str| {
            let node = self.table.get(path)?;
            Some(QuotaNumbers::parse(node.data.as_deref().unwrap_or_default()))
        };
        Some((limited, numbers(&quota::limits_path(limited))?, numbers(&quota::stats_path(limited))?))
    }

    /// Whether this path itself has a limit.
    pub fn is_limited(&self, path: &str) -> bool {
        self.quotas.limit_of(path) == Some(path)
    }

    /// The setting by which owner fields are read.
    pub fn types(&self) -> ExtendedTypes {
        self.types
    }

    /// The zxid of the last applied transaction, or the beginning of the epoch after it.
    pub fn last_processed(&self) -> Zxid {
        self.last_processed
    }

    /// Begins an epoch at `zxid`: its first transaction comes after this one.
    pub fn begin_epoch(&mut self, zxid: Zxid) {
        assert!(zxid >= self.last_processed, "{zxid} begins an epoch after {}", self.last_processed);
        self.last_processed = zxid;
    }

    /// The digest of the tree as it is now.
    pub fn digest(&self) -> u64 {
        self.digest
    }

    /// The last digests after transactions whose zxid is a multiple of 128.
    pub fn digest_log(&self) -> impl Iterator<Item = &DigestEntry> {
        self.digest_log.iter()
    }

    /// The number of transactions after which the tree's digest differed from the leader's.
    pub fn digest_mismatches(&self) -> u64 {
        self.digest_mismatches
    }

    /// The number of znodes, with the root.
    pub fn node_count(&self) -> usize {
        self.table.len()
    }

    /// The number of ephemerals.
    pub fn ephemeral_count(&self) -> usize {
        self.ephemerals.values().map(SortedStrings::len).sum()
    }

    /// The bytes of all paths and data (`approximate_data_size`).
    pub fn data_size(&self) -> i64 {
        self.data_size
    }

    /// A frozen view of the tree as it is now.
    pub fn freeze(&self) -> FrozenTree {
        FrozenTree::of(self)
    }

    /// A view of the znodes as they are now, for a search.
    pub fn scan(&self) -> Scan {
        Scan::of(self)
    }

    pub(crate) fn table(&self) -> &ZnodeTable {
        &self.table
    }

    pub(crate) fn acl_entries(&self) -> Vec<(AclId, Arc<[Acl]>)> {
        self.acls.entries()
    }

    /// Adds a znode and updates every index, but not the usage of quotas. The parent must exist.
    pub(crate) fn put_new(&mut self, node: Znode) {
        assert!(self.attach(&node.path, node.data_len()), "a znode was put below nothing");
        self.put_attached(SharedZnode::new(node));
    }

    /// Adds a path to its parent's children. Returns false if the parent does not exist.
    fn attach(&mut self, path: &ArcStr, bytes: usize) -> bool {
        if path == "/" {
            return true;
        }
        let Some(parent) = path::parent(path).and_then(|parent| self.table.get_mut(parent)) else {
            return false;
        };
        parent.num_children += 1;
        self.child_index.insert(&parent.path, path.clone(), bytes);
        true
    }

    /// Adds a znode that is among its parent's children already.
    pub(crate) fn put_attached(&mut self, node: SharedZnode) {
        let path = &node.path;
        self.digest = self.digest.wrapping_add(u64::from(node.digest()));
        self.data_size += node_size(&node);
        match node.stat.ephemeral_owner.kind(self.types) {
            NodeKind::Persistent => {}
            NodeKind::Ephemeral(session) => {
                self.ephemerals.entry(session).or_default().insert(path);
            }
            NodeKind::Container => {
                self.containers.insert(path.clone());
            }
            NodeKind::Ttl(_) => {
                self.ttls.insert(path.clone());
            }
        }
        let before = self.table.insert(node);
        assert!(before.is_none(), "a znode was put where one is");
    }

    /// Changes a znode and updates the digest.
    pub(crate) fn change<T>(&mut self, path: &str, change: impl FnOnce(&mut Znode) -> T) -> Option<T> {
        let node = self.table.get_mut(path)?;
        let old_digest = node.digest();
        let old_size = node_size(node);
        let result = change(node);
        let grown = node_size(node) - old_size;
        self.data_size += grown;
        node.hash();
        let difference = u64::from(node.digest()).wrapping_sub(u64::from(old_digest));
        self.digest = self.digest.wrapping_add(difference);
        if grown != 0
            && path != "/"
            && let Some(parent) = path::parent(path)
        {
            self.child_index.add_bytes(parent, grown);
        }
        Some(result)
    }

    /// Changes a znode's Stat and updates the digest, without hashing the data.
    pub(crate) fn change_stat(&mut self, path: &str, change: impl FnOnce(&mut StatPersisted)) {
        let Some(node) = self.table.get_mut(path) else { return };
        let old = node.digest();
        node.change_stat(change);
        self.digest = self.digest.wrapping_sub(old.into()).wrapping_add(node.digest().into());
    }

    /// Adds to the usage of the limited path above `path`. No transaction does this, so the data of the usage znode
    /// change and its version and mzxid stay.
    pub(crate) fn count_usage(&mut self, path: &str, count: i64, bytes: i64) {
        let Some(limited) = self.quotas.limit_of(path) else { return };
        let stats = quota::stats_path(limited);
        let Some(node) = self.table.get(&stats) else { return };
        let text = QuotaNumbers::grown_text(node.data.as_deref().unwrap_or_default(), count, bytes);
        self.write_usage(&stats, &text);
    }

    /// Counts the usage of a limited path again.
    pub(crate) fn recount_usage(&mut self, limited: &str) {
        let limited_path = path::canonical(limited);
        let (mut count, mut bytes) = (0, 0);
        if let Some(node) = self.table.get(limited_path) {
            let below = self.child_index.below(limited_path);
            (count, bytes) = (1 + below.0 as i64, node.data_len() as i64 + below.1);
        }
        self.write_usage(&quota::stats_path(limited), &QuotaNumbers::usage_text(count, bytes));
    }

    fn write_usage(&mut self, stats: &str, text: &str) {
        self.change(stats, |node| node.set_data(Some(text.as_bytes())));
    }

    fn set_up_quotas(&mut self) {
        let mut limited: Vec<ArcStr> = Vec::new();
        let mut rest = Vec::from([String::from(QUOTA_ROOT)]);
        while let Some(path) = rest.pop() {
            rest.extend(self.paths_of_children(&path));
            if let Some(QuotaNode::Limits(of)) = quota::classify(&path) {
                limited.push(of.into());
            }
        }
        for path in limited {
            self.quotas.insert(&path);
            self.recount_usage(&path);
        }
    }
}

/// Whether no part of this path is empty, if its parent is in the tree. Else the path that is put together of its
/// parent's and its name would be another one: "//" and "//a" have the root as parent.
pub(crate) fn has_no_empty_name(path: &str) -> bool {
    path == "/" || !path.ends_with('/') && !path.starts_with("//")
}

fn after<'a>(paths: &'a BTreeSet<ArcStr>, path: &str) -> btree_set::Range<'a, ArcStr> {
    paths.range::<str, _>((Bound::Excluded(path), Bound::Unbounded))
}

fn node_size(node: &Znode) -> i64 {
    (node.path.len() + node.data_len()) as i64
}

impl Znode {
    pub(crate) fn set_data(&mut self, data: Option<&[u8]>) {
        self.data = data.map(SharedBytes::from);
    }
}
