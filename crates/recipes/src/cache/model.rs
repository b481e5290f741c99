//! The model of a cache: its znodes, and how events and answers change them. It uses no clock and no socket.
//!
//! The caller must give the model all events that the server has sent before an answer, and then that answer. A server
//! sends the event of a change before any answer that shows the change. So an event about a znode is never older than
//! the model's content. If an event comes while a read of the same znode is under way, the read's answer may be older
//! than the event, and the model asks again. It uses that answer all the same: the answer is newer than its content,
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
    Missed(u64),
}

/// Which znodes a cache holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Scope {
    /// One.
    Node,
    /// One, and its children.
    Children,
    /// One, and all below it.
    Tree,
}

/// How the cache hears of changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Watching {
    /// A persistent watch, set before anything is read, that tells of each znode by its path.
    Persistent,
    /// Each read leaves a watch that fires once.
    OneShot,
}

/// What can be asked of a znode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum What {
    Data,
    Children,
}

/// A question to a server. Each is under way once at most.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Ask {
    pub(crate) what: What,
    pub(crate) path: String,
}

/// A server's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    Data(Bytes, Stat),
    Children(Vec<String>, Stat),
    NoNode,
    Refused(ErrorCode),
}

/// What comes of a step, in order.
#[derive(Debug, Default)]
pub(crate) struct Effects {
    pub(crate) asks: VecDeque<Ask>,
    pub(crate) told: Vec<CacheEvent>,
}

/// Whether an answer has to be asked for again when it has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Again {
    No,
    /// It may be older than something that was heard meanwhile, and is newer than what is held.
    Older,
    /// It may be of a znode that was deleted meanwhile, or be from before a gap.
    Void,
}

/// What is asked and not yet answered.
#[derive(Debug, Clone, Copy)]
struct UnderWay {
    again: Again,
    /// It is one of those that the sweep waits for.
    swept: bool,
}

#[derive(Debug)]
pub(crate) struct Model {
    root: String,
    scope: Scope,
    watching: Watching,
    nodes: BTreeMap<String, Arc<CachedNode>>,
    under_way: HashMap<Ask, UnderWay>,
    /// After a gap everything that is there is looked at, from the root on: the number of these reads without an
    /// answer. What is asked because something has changed is not among them, or the sweep would not end before the
    /// changes do.
    sweeping: usize,
    initialized: bool,
}

impl Model {
    pub(crate) fn new(root: &str, scope: Scope, watching: Watching) -> Model {
        Model {
            root: root.to_owned(),
            scope,
            watching,
            nodes: BTreeMap::new(),
            under_way: HashMap::new(),
            sweeping: 0,
            initialized: false,
        }
    }

    pub(crate) fn nodes(&self) -> &BTreeMap<String, Arc<CachedNode>> {
        &self.nodes
    }

    pub(crate) fn is_initialized(&self) -> bool {
        self.initialized
    }

    /// Changes may have gone unreported, which is so at the start as well.
    pub(crate) fn gap(&mut self, effects: &mut Effects) {
        for under_way in self.under_way.values_mut() {
            under_way.again = Again::Void;
        }
        let known = self.nodes.contains_key(&self.root);
        let what = if known && self.scope != Scope::Node { What::Children } else { What::Data };
        self.ask(what, self.root.clone(), true, effects);
    }

    /// A watch has told of a change.
    pub(crate) fn changed(&mut self, kind: EventKind, path: &str, effects: &mut Effects) {
        if kind == EventKind::Gap {
            return self.gap(effects);
        }
        if !self.holds(path) {
            return;
        }
        match kind {
            EventKind::NodeCreated | EventKind::NodeDataChanged => {
                self.ask(What::Data, path.to_owned(), false, effects);
            }
            EventKind::NodeDeleted => {
                self.gone(path, effects);
                // All others are found by a watch of the znode above.
                if self.watching == Watching::OneShot && path == self.root {
                    self.ask(What::Data, path.to_owned(), false, effects);
                }
            }
            EventKind::NodeChildrenChanged if self.lists(path) && self.nodes.contains_key(path) => {
                self.ask(What::Children, path.to_owned(), false, effects);
            }
            EventKind::NodeChildrenChanged | EventKind::Gap => {}
        }
        self.settle(effects);
    }

    /// A server has answered. False if the answer may be too old; it is asked for again.
    pub(crate) fn answered(&mut self, ask: &Ask, answer: Answer, effects: &mut Effects) -> bool {
        let unasked = UnderWay { again: Again::Void, swept: false };
        let UnderWay { again, swept } = self.under_way.remove(ask).unwrap_or(unasked);
        self.sweeping -= usize::from(swept);
        if again != Again::Void {
            self.take_in(ask, answer, UnderWay { again, swept }, effects);
        }
        if again != Again::No {
            self.ask(ask.what, ask.path.clone(), swept && again == Again::Void, effects);
        }
        self.settle(effects);
        again == Again::No
    }

    fn take_in(&mut self, ask: &Ask, answer: Answer, asked: UnderWay, effects: &mut Effects) {
        match answer {
            Answer::Data(data, stat) => self.read(&ask.path, data, stat, asked, effects),
            Answer::Children(names, stat) => self.listed(&ask.path, &names, &stat, asked, effects),
            Answer::NoNode => self.gone(&ask.path, effects),
            Answer::Refused(code) => {
                self.gone(&ask.path, effects);
                effects.told.push(CacheEvent::Unreadable { path: ask.path.clone(), code });
            }
        }
    }

    fn settle(&mut self, effects: &mut Effects) {
        if self.sweeping == 0 && !self.initialized {
            self.initialized = true;
            effects.told.push(CacheEvent::Initialized);
        }
    }

    /// Asks, or has what is under way asked again: its answer may be too old.
    fn ask(&mut self, what: What, path: String, swept: bool, effects: &mut Effects) {
        let ask = Ask { what, path };
        if let Some(under_way) = self.under_way.get_mut(&ask) {
            under_way.again = under_way.again.max(Again::Older);
            self.sweeping += usize::from(swept && !under_way.swept);
            under_way.swept |= swept;
            return;
        }
        self.sweeping += usize::from(swept);
        self.under_way.insert(ask.clone(), UnderWay { again: Again::No, swept });
        effects.asks.push_back(ask);
    }

    fn read(&mut self, path: &str, data: Bytes, stat: Stat, asked: UnderWay, effects: &mut Effects) {
        if let Some(parent) = self.missing_parent(path) {
            // It is listed once its parent is held; the read of that may be too old to know of it.
            let parent = Ask { what: What::Data, path: parent.to_owned() };
            if let Some(under_way) = self.under_way.get_mut(&parent) {
                under_way.again = under_way.again.max(Again::Older);
            }
            return;
        }
        let new = Arc::new(CachedNode { path: path.to_owned(), data, stat });
        let known = self.nodes.get(path).cloned();
        match known {
            // Nothing that is held goes back in time.
            Some(old) if old.stat.mzxid > stat.mzxid => return,
            Some(old) if old.stat.czxid == stat.czxid => {
                self.nodes.insert(path.to_owned(), new.clone());
                // Versions begin anew in a new znode, and overflow; transactions only grow.
                if old.stat.mzxid != stat.mzxid {
                    effects.told.push(CacheEvent::Changed { old, new });
                }
                return;
            }
            // Deleted and created again, and nobody said so.
            Some(_) => self.gone(path, effects),
            None => {}
        }
        self.nodes.insert(path.to_owned(), new.clone());
        effects.told.push(CacheEvent::Created(new));
        // The list that is asked for can be one of the znode's predecessor, or say that there is none.
        let list = Ask { what: What::Children, path: path.to_owned() };
        if let Some(under_way) = self.under_way.get_mut(&list) {
            under_way.again = Again::Void;
        }
        if self.lists(path) && self.may_have_children(&stat, asked.again) {
            self.ask(What::Children, path.to_owned(), asked.swept, effects);
        }
    }

    /// The znode above, if it should be held and is not. Without it nobody could tell later what became of this one.
    fn missing_parent<'a>(&self, path: &'a str) -> Option<&'a str> {
        if path == self.root {
            return None;
        }
        paths::parent(path).filter(|parent| !self.nodes.contains_key(*parent))
    }

    /// With a persistent watch, children that are created later tell of themselves; but those have told already that
    /// came before an answer without them.
    fn may_have_children(&self, stat: &Stat, again: Again) -> bool {
        // Ephemeral znodes have none.
        match self.watching {
            Watching::Persistent if again == Again::No => stat.num_children > 0,
            Watching::Persistent | Watching::OneShot => stat.ephemeral_owner == 0,
        }
    }

    fn listed(
        &mut self,
        path: &str,
        names: &[String],
        stat: &Stat,
        UnderWay { swept, .. }: UnderWay,
        effects: &mut Effects,
    ) {
        let Some(known) = self.nodes.get(path) else { return };
        if known.stat.czxid != stat.czxid {
            self.gone(path, effects);
            return self.ask(What::Data, path.to_owned(), swept, effects);
        }
        if known.stat.mzxid != stat.mzxid {
            self.ask(What::Data, path.to_owned(), swept, effects);
        }
        let listed: HashSet<&str> = names.iter().map(String::as_str).collect();
        let held: Vec<(String, bool)> = children(&self.nodes, path)
            .map(|node| (node.path.clone(), listed.contains(node.name()) || node.stat.czxid > stat.pzxid))
            .collect();
        for (child, _) in held.iter().filter(|(_, there)| !there) {
            self.gone(child, effects);
        }
        for name in names {
            let data = Ask { what: What::Data, path: paths::join(path, name) };
            let (there, lists) = (self.nodes.contains_key(&data.path), self.lists(&data.path));
            if there && swept && lists {
                self.ask(What::Children, data.path.clone(), swept, effects);
            }
            // An answer that is still to come can be older than this list, and say that there is none.
            if !there || (swept && !lists) || self.under_way.contains_key(&data) {
                self.ask(What::Data, data.path, swept, effects);
            }
        }
    }

    /// A znode is not there, and so nothing below it.
    fn gone(&mut self, path: &str, effects: &mut Effects) {
        for (ask, under_way) in &mut self.under_way {
            if ask.path == path || is_below(&ask.path, path) {
                under_way.again = Again::Void;
                // What was to be found is gone; what comes in its place is new.
                self.sweeping -= usize::from(std::mem::take(&mut under_way.swept));
            }
        }
        let below: Vec<String> = below(&self.nodes, path).map(|(path, _)| path.clone()).collect();
        // A parent's path is a prefix of its children's, so backwards the deepest come first.
        for path in below.iter().rev().map(String::as_str).chain([path]) {
            if let Some(node) = self.nodes.remove(path) {
                effects.told.push(CacheEvent::Deleted(node));
            }
        }
    }

    /// Whether a znode is one that the cache holds if it is there.
    fn holds(&self, path: &str) -> bool {
        match self.scope {
            Scope::Node => path == self.root,
            Scope::Children => path == self.root || paths::parent(path) == Some(&self.root),
            Scope::Tree => path == self.root || is_below(path, &self.root),
        }
    }

    /// Whether a znode's children are held as well.
    fn lists(&self, path: &str) -> bool {
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

/// The children of a znode, by name.
pub(crate) fn children<'a>(
    nodes: &'a BTreeMap<String, Arc<CachedNode>>,
    path: &str,
) -> impl Iterator<Item = &'a Arc<CachedNode>> {
    let depth = prefix(path).len();
    below(nodes, path).filter(move |(path, _)| !path[depth..].contains('/')).map(|(_, node)| node)
}

#[cfg(test)]
mod tests;
