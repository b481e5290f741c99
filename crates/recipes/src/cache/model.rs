//! The model of a cache: its znodes, and how events and the answers to reads change them. It uses no clock and no
//! socket.
//!
//! The caller must give the model all events that the server has sent before an answer, and then that answer. A server
//! sends the event of a change before any answer that shows the change. So an event about a znode is never older than
//! the model's content. If an event comes while a read of the same znode is under way, the read's answer may be older
//! than the event, and the model reads again. It uses that answer all the same: the answer is newer than its content,
//! and otherwise it would never hold a znode that changes in every round trip. Only if the znode may have been deleted
//! since, or changed without an event, the model waits for the next answer.
//!
//! Answers to different reads may come in any order. A list of children without a znode is newer than that znode only
//! if the list's `pzxid` is not below the znode's `czxid`.

use bytes::Bytes;
use ostler_client::{ErrorCode, EventKind, Stat, paths};
use std::{
    collections::{BTreeMap, HashMap, HashSet, VecDeque},
    sync::Arc,
};

/// A znode as it was when it was last read. `ChildData` in Curator.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CachedNode {
    /// The znode's path.
    pub path: String,
    /// The znode's data; empty if the cache keeps no data.
    pub data: Bytes,
    /// The znode's Stat when the data was read. The number of children may have changed since.
    pub stat: Stat,
}

impl CachedNode {
    /// The znode's name, the last part of its path.
    pub fn name(&self) -> &str {
        paths::name(&self.path)
    }
}

/// A change of a cache's content.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum CacheEvent {
    /// A znode was created, or found at the start.
    Created(Arc<CachedNode>),
    /// A znode's data was set. It can be equal to the old data.
    Changed {
        /// The znode before the change.
        old: Arc<CachedNode>,
        /// The znode after the change.
        new: Arc<CachedNode>,
    },
    /// A znode was deleted. This is its last content.
    Deleted(Arc<CachedNode>),
    /// All znodes that existed when the cache was started have been read. This comes once.
    Initialized,
    /// This client may not read a znode that exists, so the cache does not hold it.
    Unreadable {
        /// The znode's path.
        path: String,
        /// The server's error code, `NoAuth`.
        code: ErrorCode,
    },
    /// The reader was too slow, and this number of events was left out. The cache itself has all changes.
    Gap(u64),
}

/// The znodes that a cache holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Scope {
    /// The root alone.
    Node,
    /// The root and its children.
    Children,
    /// The root and all znodes below it.
    Tree,
}

/// The watches by which the cache hears of changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Watching {
    /// One persistent watch, which is set before the first read. Its events have the paths of the changed znodes.
    Persistent,
    /// Each read leaves a watch that fires once.
    OneShot,
}

/// The part of a znode that is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum ReadKind {
    Data,
    Children,
}

/// A read of a znode. At most one read of each kind is under way for a znode.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct NodeRead {
    pub(crate) kind: ReadKind,
    pub(crate) path: String,
}

/// A server's answer to a read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ReadAnswer {
    Data(Bytes, Stat),
    Children(Vec<String>, Stat),
    NoNode,
    Refused(ErrorCode),
}

/// The reads to send and the events to report after a step of the model, both in order.
#[derive(Debug, Default)]
pub(crate) struct Effects {
    pub(crate) reads: VecDeque<NodeRead>,
    pub(crate) events: Vec<CacheEvent>,
}

/// How old the answer to a pending read may be. Unless it is [`Fresh`](Staleness::Fresh), the znode is read again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Staleness {
    /// No event about the znode has come since the read was sent.
    Fresh,
    /// The answer may be older than an event, and is newer than the cache's content. It is used.
    MaybeOld,
    /// The answer may be of a znode that was deleted since, or be older than a gap in the events. It is not used.
    Void,
}

/// The state of a read without an answer.
#[derive(Debug, Clone, Copy)]
struct PendingRead {
    staleness: Staleness,
    /// The end of the sweep waits for this read.
    in_sweep: bool,
}

#[derive(Debug)]
pub(crate) struct Model {
    root: String,
    scope: Scope,
    watching: Watching,
    nodes: BTreeMap<String, Arc<CachedNode>>,
    pending: HashMap<NodeRead, PendingRead>,
    /// The number of the sweep's reads without an answer. A sweep reads all znodes from the root on, at the start and
    /// after a gap in the events. Reads because of an event do not count: with steady changes the sweep would not end.
    sweep_reads: usize,
    initialized: bool,
}

impl Model {
    pub(crate) fn new(root: &str, scope: Scope, watching: Watching) -> Model {
        Model {
            root: root.to_owned(),
            scope,
            watching,
            nodes: BTreeMap::new(),
            pending: HashMap::new(),
            sweep_reads: 0,
            initialized: false,
        }
    }

    pub(crate) fn nodes(&self) -> &BTreeMap<String, Arc<CachedNode>> {
        &self.nodes
    }

    pub(crate) fn is_initialized(&self) -> bool {
        self.initialized
    }

    /// Begins a sweep: at the start, or because events may have been lost. The answers to older reads do not count.
    pub(crate) fn begin_sweep(&mut self, effects: &mut Effects) {
        for read in self.pending.values_mut() {
            read.staleness = Staleness::Void;
        }
        let known = self.nodes.contains_key(&self.root);
        let kind = if known && self.scope != Scope::Node { ReadKind::Children } else { ReadKind::Data };
        self.start_read(kind, self.root.clone(), true, effects);
    }

    /// Handles an event of a watch.
    pub(crate) fn watch_fired(&mut self, kind: EventKind, path: &str, effects: &mut Effects) {
        if kind == EventKind::Gap {
            return self.begin_sweep(effects);
        }
        if !self.covers(path) {
            return;
        }
        match kind {
            EventKind::NodeCreated | EventKind::NodeDataChanged => {
                self.start_read(ReadKind::Data, path.to_owned(), false, effects);
            }
            EventKind::NodeDeleted => {
                self.remove(path, effects);
                // The creation of any other znode is reported by a watch of its parent.
                if self.watching == Watching::OneShot && path == self.root {
                    self.start_read(ReadKind::Data, path.to_owned(), false, effects);
                }
            }
            EventKind::NodeChildrenChanged
                if self.covers_children_of(path) && self.nodes.contains_key(path) =>
            {
                self.start_read(ReadKind::Children, path.to_owned(), false, effects);
            }
            EventKind::NodeChildrenChanged => {}
            // A kind that is not known here may be any change.
            _ => return self.begin_sweep(effects),
        }
        self.report_initialized(effects);
    }

    /// Handles the answer to a read. Returns false if the answer may be too old, so that the znode is read again.
    pub(crate) fn read_answered(
        &mut self,
        read: &NodeRead,
        answer: ReadAnswer,
        effects: &mut Effects,
    ) -> bool {
        let unknown = PendingRead { staleness: Staleness::Void, in_sweep: false };
        let PendingRead { staleness, in_sweep } = self.pending.remove(read).unwrap_or(unknown);
        self.sweep_reads -= usize::from(in_sweep);
        if staleness != Staleness::Void {
            self.apply_answer(read, answer, PendingRead { staleness, in_sweep }, effects);
        }
        if staleness != Staleness::Fresh {
            self.start_read(read.kind, read.path.clone(), in_sweep && staleness == Staleness::Void, effects);
        }
        self.report_initialized(effects);
        staleness == Staleness::Fresh
    }

    fn apply_answer(
        &mut self,
        read: &NodeRead,
        answer: ReadAnswer,
        asked: PendingRead,
        effects: &mut Effects,
    ) {
        match answer {
            ReadAnswer::Data(data, stat) => self.apply_data(&read.path, data, stat, asked, effects),
            ReadAnswer::Children(names, stat) => {
                self.apply_children(&read.path, &names, &stat, asked, effects)
            }
            ReadAnswer::NoNode => self.remove(&read.path, effects),
            ReadAnswer::Refused(code) => {
                self.remove(&read.path, effects);
                effects.events.push(CacheEvent::Unreadable { path: read.path.clone(), code });
            }
        }
    }

    fn report_initialized(&mut self, effects: &mut Effects) {
        if self.sweep_reads == 0 && !self.initialized {
            self.initialized = true;
            effects.events.push(CacheEvent::Initialized);
        }
    }

    /// Starts a read. If the same read is under way, its answer may be too old, and the read is repeated after it.
    fn start_read(&mut self, kind: ReadKind, path: String, in_sweep: bool, effects: &mut Effects) {
        let read = NodeRead { kind, path };
        if let Some(pending) = self.pending.get_mut(&read) {
            pending.staleness = pending.staleness.max(Staleness::MaybeOld);
            self.sweep_reads += usize::from(in_sweep && !pending.in_sweep);
            pending.in_sweep |= in_sweep;
            return;
        }
        self.sweep_reads += usize::from(in_sweep);
        self.pending.insert(read.clone(), PendingRead { staleness: Staleness::Fresh, in_sweep });
        effects.reads.push_back(read);
    }

    fn apply_data(&mut self, path: &str, data: Bytes, stat: Stat, asked: PendingRead, effects: &mut Effects) {
        if let Some(parent) = self.missing_parent(path) {
            // The list of its parent's children will have it. A read of the parent that is under way may be too old.
            let parent = NodeRead { kind: ReadKind::Data, path: parent.to_owned() };
            if let Some(pending) = self.pending.get_mut(&parent) {
                pending.staleness = pending.staleness.max(Staleness::MaybeOld);
            }
            return;
        }
        let new = Arc::new(CachedNode { path: path.to_owned(), data, stat });
        let known = self.nodes.get(path).cloned();
        match known {
            // The cache never goes back to an older state.
            Some(old) if old.stat.mzxid > stat.mzxid => return,
            Some(old) if old.stat.czxid == stat.czxid => {
                self.nodes.insert(path.to_owned(), new.clone());
                // A version starts again in a new znode and overflows. A zxid only grows.
                if old.stat.mzxid != stat.mzxid {
                    effects.events.push(CacheEvent::Changed { old, new });
                }
                return;
            }
            // The znode was deleted and created again without an event.
            Some(_) => self.remove(path, effects),
            None => {}
        }
        self.nodes.insert(path.to_owned(), new.clone());
        effects.events.push(CacheEvent::Created(new));
        // A list that is under way may be that of the deleted znode with this path, or the answer that there is none.
        let list = NodeRead { kind: ReadKind::Children, path: path.to_owned() };
        if let Some(pending) = self.pending.get_mut(&list) {
            pending.staleness = Staleness::Void;
        }
        if self.covers_children_of(path) && self.needs_list(&stat, asked.staleness) {
            self.start_read(ReadKind::Children, path.to_owned(), asked.in_sweep, effects);
        }
    }

    /// The parent's path, if the cache must hold the parent and does not. Without the parent no event or list would
    /// report the deletion of this znode.
    fn missing_parent<'a>(&self, path: &'a str) -> Option<&'a str> {
        if path == self.root {
            return None;
        }
        paths::parent(path).filter(|parent| !self.nodes.contains_key(*parent))
    }

    /// Whether the list of a znode's children must be read. With a persistent watch each child that is created later
    /// has an event of its own. If the znode's data may be old, such an event may have come before the data did.
    fn needs_list(&self, stat: &Stat, staleness: Staleness) -> bool {
        // An ephemeral znode has no children.
        match self.watching {
            Watching::Persistent if staleness == Staleness::Fresh => stat.num_children > 0,
            Watching::Persistent | Watching::OneShot => stat.ephemeral_owner == 0,
        }
    }

    fn apply_children(
        &mut self,
        path: &str,
        names: &[String],
        stat: &Stat,
        PendingRead { in_sweep, .. }: PendingRead,
        effects: &mut Effects,
    ) {
        let Some(known) = self.nodes.get(path) else { return };
        if known.stat.czxid != stat.czxid {
            self.remove(path, effects);
            return self.start_read(ReadKind::Data, path.to_owned(), in_sweep, effects);
        }
        if known.stat.mzxid != stat.mzxid {
            self.start_read(ReadKind::Data, path.to_owned(), in_sweep, effects);
        }
        let listed: HashSet<&str> = names.iter().map(String::as_str).collect();
        let held: Vec<(String, bool)> = children(&self.nodes, path)
            .map(|node| (node.path.clone(), listed.contains(node.name()) || node.stat.czxid > stat.pzxid))
            .collect();
        for (child, _) in held.iter().filter(|(_, there)| !there) {
            self.remove(child, effects);
        }
        for name in names {
            let data = NodeRead { kind: ReadKind::Data, path: paths::join(path, name) };
            let (held, has_list) = (self.nodes.contains_key(&data.path), self.covers_children_of(&data.path));
            if held && in_sweep && has_list {
                self.start_read(ReadKind::Children, data.path.clone(), in_sweep, effects);
            }
            // An answer that is under way can be older than this list, and say that the znode does not exist.
            if !held || (in_sweep && !has_list) || self.pending.contains_key(&data) {
                self.start_read(ReadKind::Data, data.path, in_sweep, effects);
            }
        }
    }

    /// Removes a znode and all znodes below it.
    fn remove(&mut self, path: &str, effects: &mut Effects) {
        for (read, pending) in &mut self.pending {
            if read.path == path || is_below(&read.path, path) {
                pending.staleness = Staleness::Void;
                // A znode that is created at this path later is not one that the sweep waits for.
                self.sweep_reads -= usize::from(std::mem::take(&mut pending.in_sweep));
            }
        }
        let below: Vec<String> = below(&self.nodes, path).map(|(path, _)| path.clone()).collect();
        // A parent's path is a prefix of its children's paths, so in reverse order children come first.
        for path in below.iter().rev().map(String::as_str).chain([path]) {
            if let Some(node) = self.nodes.remove(path) {
                effects.events.push(CacheEvent::Deleted(node));
            }
        }
    }

    /// Whether the cache holds the znode at this path if it exists.
    fn covers(&self, path: &str) -> bool {
        match self.scope {
            Scope::Node => path == self.root,
            Scope::Children => path == self.root || paths::parent(path) == Some(&self.root),
            Scope::Tree => path == self.root || is_below(path, &self.root),
        }
    }

    /// Whether the cache holds the znode's children.
    fn covers_children_of(&self, path: &str) -> bool {
        match self.scope {
            Scope::Node => false,
            Scope::Children => path == self.root,
            Scope::Tree => true,
        }
    }
}

fn prefix(path: &str) -> String {
    if path == "/" { path.to_owned() } else { format!("{path}/") }
}

fn is_below(path: &str, above: &str) -> bool {
    above == "/" && path != "/"
        || path.strip_prefix(above).is_some_and(|rest| rest.starts_with('/') && above != "/")
}

fn below<'a>(
    nodes: &'a BTreeMap<String, Arc<CachedNode>>,
    path: &str,
) -> impl Iterator<Item = (&'a String, &'a Arc<CachedNode>)> {
    let prefix = prefix(path);
    let range = (std::ops::Bound::Excluded(prefix.clone()), std::ops::Bound::Unbounded);
    nodes.range(range).take_while(move |(path, _)| path.starts_with(&prefix))
}

/// The children of a znode, in the order of their names.
pub(crate) fn children<'a>(
    nodes: &'a BTreeMap<String, Arc<CachedNode>>,
    path: &str,
) -> impl Iterator<Item = &'a Arc<CachedNode>> {
    let depth = prefix(path).len();
    below(nodes, path).filter(move |(path, _)| !path[depth..].contains('/')).map(|(_, node)| node)
}

#[cfg(test)]
mod tests;
