//! A model of one client's watches, and of the events that the client must get.
//!
//! The rules are those of ZooKeeper 3.9. A server has two tables, one for znodes and one for lists of children. A
//! persistent watch is in both, a recursive one only in the first. A path can have watches of several modes. A change
//! fires one event for each table in which it finds a watch.

use crate::{
    model::parent,
    reference::{ReferenceHistory, ZnodeChange},
};
use ostler_proto::{event::EventType, id::Zxid};
use ostler_tree::Change;
use std::collections::{BTreeSet, VecDeque};

/// A one-shot watch.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Watch {
    pub(crate) path: String,
    pub(crate) of_children: bool,
    /// The znode did not exist: the watch waits for its creation.
    pub(crate) for_creation: bool,
}

/// The mode of a watch that stays after it has fired.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum WatchMode {
    /// Watches a znode and the list of its children.
    Persistent,
    /// Watches a znode and all znodes below it, but no list of children.
    Recursive,
}

/// The kind of watch that `removeWatches` and `checkWatches` name, by its number in the protocol.
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

/// An event that the client must get.
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
    /// The number of changes that were looked through for events.
    looked_at: usize,
    /// Events of these changes that the client has not got yet.
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

    /// The connection has ended: events that did not come on it come only as missed ones.
    pub(crate) fn loses_connection(&mut self) {
        self.due.clear();
        self.looked_at = 0;
    }

    /// Expects events only for changes after this zxid.
    pub(crate) fn begins_at(&mut self, reference: &ReferenceHistory, zxid: Zxid) {
        self.looked_at = reference.changes_upto(zxid);
        self.due.clear();
    }

    /// The first event up to this transaction that the client has not got.
    pub(crate) fn first_due(&mut self, reference: &ReferenceHistory, zxid: Zxid) -> Option<&DueEvent> {
        self.look_through(reference, zxid);
        self.due.front()
    }

    /// The first event of an earlier transaction that the client has not got.
    pub(crate) fn first_due_before(&mut self, reference: &ReferenceHistory, zxid: Zxid) -> Option<&DueEvent> {
        self.first_due(reference, zxid).filter(|due| due.zxid < zxid)
    }

    /// Takes out an event that the client gets. Returns its place among the due events of its transaction, or `None` if
    /// the event is not due.
    pub(crate) fn take_due(&mut self, reference: &ReferenceHistory, due: &DueEvent) -> Option<usize> {
        self.look_through(reference, due.zxid);
        let at = self.due.iter().position(|of| of == due)?;
        let begins = self.due.iter().position(|of| of.zxid == due.zxid)?;
        self.due.remove(at);
        Some(at - begins)
    }

    fn look_through(&mut self, reference: &ReferenceHistory, zxid: Zxid) {
        let upto = reference.changes_upto(zxid);
        if !self.is_empty() {
            reference.changes(self.looked_at, upto).iter().for_each(|changed| self.fire(changed));
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
        // A deletion fires one event even if both tables have a watch.
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

    /// Removes the one-shot watches that fire. Returns whether there were any.
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

    /// The paths of the one-shot watches for which `of` is true, each once.
    pub(crate) fn paths(&self, of: impl Fn(&Watch) -> bool) -> BTreeSet<&str> {
        self.once.iter().filter(|watch| of(watch)).map(|watch| &*watch.path).collect()
    }

    /// The paths of the watches with this mode.
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

    /// The same cases as in `crates/tree/src/watch.rs` and in ZooKeeper's own tests.
    #[test]
    fn a_change_fires_one_event_for_each_table() {
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
