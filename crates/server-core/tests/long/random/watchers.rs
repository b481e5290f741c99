//! A simple model of watches: those of all connections as a plain set, and the events that are due.

use super::model::{Event, Model};
use ostler_proto::{event::EventType, id::Zxid, path::is_within};
use ostler_server_core::ConnId;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Data,
    Child,
    Persistent,
    Recursive,
}

/// An event that a connection must see next; without a zxid it catches up what was missed.
pub(super) type Due = (Option<Zxid>, EventType, String);

#[derive(Debug, Default)]
pub(super) struct Watchers {
    watches: BTreeSet<(ConnId, Kind, String)>,
    due: BTreeMap<ConnId, VecDeque<Due>>,
}

impl Watchers {
    pub(super) fn add(&mut self, conn: ConnId, kind: Kind, path: &str) {
        self.watches.insert((conn, kind, path.into()));
    }

    pub(super) fn remove(&mut self, conn: ConnId, kinds: &[Kind], path: &str) -> bool {
        let before = self.watches.len();
        self.watches.retain(|(of, kind, at)| !(*of == conn && kinds.contains(kind) && at == path));
        self.watches.len() < before
    }

    /// A connection is closed or gone.
    pub(super) fn leave(&mut self, conn: ConnId) {
        self.watches.retain(|(of, ..)| *of != conn);
        self.due.remove(&conn);
    }

    pub(super) fn clear(&mut self) {
        *self = Watchers::default();
    }

    fn take(&mut self, one_shot: Kind, hits: impl Fn(Kind, &str) -> bool, path: &str) -> BTreeSet<ConnId> {
        let conns = self.watches.iter().filter(|(_, kind, at)| hits(*kind, at)).map(|(conn, ..)| *conn);
        let conns = conns.collect();
        self.watches.retain(|(_, kind, at)| !(*kind == one_shot && at == path));
        conns
    }

    fn tell(&mut self, conns: BTreeSet<ConnId>, zxid: Zxid, kind: EventType, path: &str) {
        for conn in conns {
            self.due.entry(conn).or_default().push_back((Some(zxid), kind, path.into()));
        }
    }

    /// A committed change.
    pub(super) fn fire(&mut self, zxid: Zxid, (what, path): &Event) {
        let at_path = |kind: Kind, at: &str| match kind {
            Kind::Data | Kind::Persistent => at == path,
            Kind::Recursive => is_within(path, at),
            Kind::Child => false,
        };
        let told = self.take(Kind::Data, at_path, path);
        if *what == EventType::NodeDeleted {
            let children = |kind, at: &str| matches!(kind, Kind::Child | Kind::Persistent) && at == path;
            let mut others = self.take(Kind::Child, children, path);
            others.retain(|conn| !told.contains(conn));
            self.tell(others, zxid, *what, path);
        }
        self.tell(told, zxid, *what, path);
        if *what != EventType::NodeDataChanged {
            let parent =
                path.rsplit_once('/').map_or("/", |(parent, _)| if parent.is_empty() { "/" } else { parent });
            let siblings = |kind, at: &str| matches!(kind, Kind::Child | Kind::Persistent) && at == parent;
            let conns = self.take(Kind::Child, siblings, parent);
            self.tell(conns, zxid, EventType::NodeChildrenChanged, parent);
        }
    }

    /// setWatches: what was missed is due at once, the rest is watched.
    pub(super) fn set(
        &mut self,
        conn: ConnId,
        model: &Model,
        seen: i64,
        [data, exist, child]: [&[String]; 3],
    ) {
        let mut missed: Vec<Due> = Vec::new();
        for path in data {
            match model.missed(path, false, seen) {
                Some(kind) => missed.push((None, kind, path.clone())),
                None => self.add(conn, Kind::Data, path),
            }
        }
        for path in exist {
            match model.stat(path) {
                Some(_) => missed.push((None, EventType::NodeCreated, path.clone())),
                None => self.add(conn, Kind::Data, path),
            }
        }
        for path in child {
            match model.missed(path, true, seen) {
                Some(kind) => missed.push((None, kind, path.clone())),
                None => self.add(conn, Kind::Child, path),
            }
        }
        self.due.entry(conn).or_default().extend(missed);
    }

    /// A connection sees an event: it must be the one that is due.
    pub(super) fn seen(&mut self, conn: ConnId, event: Due) {
        let due = self.due.get_mut(&conn).and_then(VecDeque::pop_front);
        assert_eq!(Some(event), due, "the event that {conn:?} sees is the one that is due");
    }

    pub(super) fn assert_all_told(&self, conn: ConnId) {
        let due = self.due.get(&conn).and_then(VecDeque::front);
        assert_eq!(due, None, "{conn:?} has not been told");
    }

    pub(super) fn assert_nobody_waits(&self) {
        let late: Vec<_> = self.due.iter().filter(|(_, due)| !due.is_empty()).collect();
        assert!(late.is_empty(), "events were not sent: {late:?}");
    }
}
