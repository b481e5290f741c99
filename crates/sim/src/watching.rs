//! What a client watches, as its server is to have it, and what it is to be told of.
//!
//! The rules are those of ZooKeeper 3.9: a server has two tables, of which a persistent watch is in both and a
//! recursive one in that of znodes alone; modes of one path add up, and a change is told once for each table that it
//! fires.

use crate::{
    model::parent,
    truth::{Truth, ZnodeChange},
};
use ostler_proto::{event::EventType, id::Zxid};
use ostler_tree::Change;
use std::collections::{BTreeSet, VecDeque};

/// A one-shot watch.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Watch {
    pub(crate) path: String,
    pub(crate) of_children: bool,
    /// The znode was not there: its creation is waited for.
    pub(crate) for_creation: bool,
}

/// One that stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum WatchMode {
    /// Of a znode and the list of its children.
    Persistent,
    /// Of a znode and all below it, but of no list.
    Recursive,
}

/// What `removeWatches` and `checkWatches` ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WatchKind {
    Children = 1,
    Data = 2,
    Any = 3,
    Persistent = 4,
    Recursive = 5,
}

impl WatchKind {
    pub(crate) const ALL: [WatchKind; 5] =
        [WatchKind::Children, WatchKind::Data, WatchKind::Any, WatchKind::Persistent, WatchKind::Recursive];

    fn is_of(self, watch: &Watch) -> bool {
        match self {
            WatchKind::Children => watch.of_children,
            WatchKind::Data => !watch.of_children,
            WatchKind::Any => true,
            WatchKind::Persistent | WatchKind::Recursive => false,
        }
    }

    fn is_of_lasting(self, mode: WatchMode) -> bool {
        match self {
            WatchKind::Children | WatchKind::Data => false,
            WatchKind::Any => true,
            WatchKind::Persistent => mode == WatchMode::Persistent,
            WatchKind::Recursive => mode == WatchMode::Recursive,
        }
    }
}

/// One event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DueEvent {
    pub(crate) zxid: Zxid,
    pub(crate) kind: EventType,
    pub(crate) path: String,
}

#[derive(Debug, Default)]
pub(crate) struct ClientWatches {
    pub(crate) once: Vec<Watch>,
    pub(crate) lasting: BTreeSet<(String, WatchMode)>,
    /// So many of all changes are looked through.
    looked_at: usize,
    /// What the client is to be told of these, and was not yet.
    due: VecDeque<DueEvent>,
}

impl ClientWatches {
    pub(crate) fn is_empty(&self) -> bool {
        self.once.is_empty() && self.lasting.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        self.once.clear();
        self.lasting.clear();
        self.due.clear();
    }

    /// A connection is over: what was not told on it is not told in this way any more.
    pub(crate) fn loses_connection(&mut self) {
        self.due.clear();
        self.looked_at = 0;
    }

    /// What is watched from here on.
    pub(crate) fn begins_at(&mut self, truth: &Truth, zxid: Zxid) {
        self.looked_at = truth.changes_upto(zxid);
        self.due.clear();
    }

    /// The first that the client has not been told of, though it is shown this transaction.
    pub(crate) fn first_due(&mut self, truth: &Truth, zxid: Zxid) -> Option<&DueEvent> {
        self.look_through(truth, zxid);
        self.due.front()
    }

    /// The first of an earlier transaction that the client has not been told of.
    pub(crate) fn first_due_before(&mut self, truth: &Truth, zxid: Zxid) -> Option<&DueEvent> {
        self.first_due(truth, zxid).filter(|due| due.zxid < zxid)
    }

    /// The client is told of something: where that is among what is due of the same transaction.
    pub(crate) fn take_due(&mut self, truth: &Truth, due: &DueEvent) -> Option<usize> {
        self.look_through(truth, due.zxid);
        let at = self.due.iter().position(|of| of == due)?;
        let begins = self.due.iter().position(|of| of.zxid == due.zxid)?;
        self.due.remove(at);
        Some(at - begins)
    }

    fn look_through(&mut self, truth: &Truth, zxid: Zxid) {
        let upto = truth.changes_upto(zxid);
        if !self.is_empty() {
            truth.changes(self.looked_at, upto).iter().for_each(|changed| self.fire(changed));
        }
        self.looked_at = self.looked_at.max(upto);
    }

    fn fire(&mut self, changed: &ZnodeChange) {
        let ZnodeChange { zxid, path, change } = changed;
        let kind = match change {
            Change::Created => EventType::NodeCreated,
            Change::Deleted => EventType::NodeDeleted,
            Change::DataChanged => EventType::NodeDataChanged,
        };
        let mut told = self.uses_up(path, false);
        told |= self.lasting.iter().any(|(at, mode)| match mode {
            WatchMode::Persistent => at == path,
            WatchMode::Recursive => covers(at, path),
        });
        // Who hears of a deletion by either table hears of it once.
        if *change == Change::Deleted {
            told |= self.uses_up(path, true);
        }
        if told {
            self.due.push_back(DueEvent { zxid: *zxid, kind, path: path.clone() });
        }
        if *change == Change::DataChanged {
            return;
        }
        let parent = parent(path);
        let mut told = self.uses_up(parent, true);
        told |= self.lasting.iter().any(|(at, mode)| *mode == WatchMode::Persistent && at == parent);
        if told {
            let kind = EventType::NodeChildrenChanged;
            self.due.push_back(DueEvent { zxid: *zxid, kind, path: parent.to_owned() });
        }
    }

    /// Takes out the one-shot watches that fire, if there are any.
    fn uses_up(&mut self, path: &str, of_children: bool) -> bool {
        let before = self.once.len();
        self.once.retain(|watch| watch.path != path || watch.of_children != of_children);
        self.once.len() < before
    }

    pub(crate) fn has(&self, path: &str, kind: WatchKind) -> bool {
        self.once.iter().any(|watch| watch.path == path && kind.is_of(watch))
            || self.lasting.iter().any(|(at, mode)| at == path && kind.is_of_lasting(*mode))
    }

    pub(crate) fn remove(&mut self, path: &str, kind: WatchKind) {
        self.once.retain(|watch| watch.path != path || !kind.is_of(watch));
        self.lasting.retain(|(at, mode)| at != path || !kind.is_of_lasting(*mode));
    }

    /// Paths of one-shot watches, each once.
    pub(crate) fn paths(&self, of: impl Fn(&Watch) -> bool) -> BTreeSet<&str> {
        self.once.iter().filter(|watch| of(watch)).map(|watch| &*watch.path).collect()
    }

    /// Paths of watches that stay.
    pub(crate) fn lasting_paths(&self, of: WatchMode) -> Vec<&str> {
        self.lasting.iter().filter(|(_, mode)| *mode == of).map(|(path, _)| &**path).collect()
    }
}

/// Whether a path is this one or below it.
fn covers(at: &str, path: &str) -> bool {
    at == "/" || path.strip_prefix(at).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(watching: &mut ClientWatches, path: &str, change: Change) -> Vec<(EventType, String)> {
        watching.fire(&ZnodeChange { zxid: Zxid(1), path: path.into(), change });
        watching.due.drain(..).map(|due| (due.kind, due.path)).collect()
    }

    fn once(path: &str, of_children: bool) -> Watch {
        Watch { path: path.into(), of_children, for_creation: false }
    }

    /// As `crates/tree/src/watch.rs` has it for a server, and the tests of ZooKeeper for both.
    #[test]
    fn a_change_is_told_once_for_each_table() {
        let mut both =
            ClientWatches { once: vec![once("/a", false), once("/a", true)], ..ClientWatches::default() };
        both.lasting.insert(("/a".into(), WatchMode::Persistent));
        both.lasting.insert(("/".into(), WatchMode::Recursive));
        let told = |kind, path: &str| (kind, path.to_owned());
        let below = events(&mut both, "/a/b", Change::Created);
        assert_eq!(below, [told(EventType::NodeCreated, "/a/b"), told(EventType::NodeChildrenChanged, "/a")]);
        assert_eq!(both.once, [once("/a", false)]);
        assert_eq!(events(&mut both, "/a", Change::DataChanged), [told(EventType::NodeDataChanged, "/a")]);
        assert_eq!((both.once.len(), both.lasting.len()), (0, 2));
        both.remove("/a", WatchKind::Persistent);
        assert_eq!(events(&mut both, "/a", Change::Deleted), [told(EventType::NodeDeleted, "/a")]);
        assert!(
            both.has("/", WatchKind::Any)
                && !both.has("/", WatchKind::Data)
                && !both.has("/a", WatchKind::Any)
        );
    }

    #[test]
    fn a_name_that_begins_alike_is_not_below() {
        assert!(covers("/a", "/a") && covers("/a", "/a/b") && covers("/", "/ab") && !covers("/a", "/ab"));
    }
}
