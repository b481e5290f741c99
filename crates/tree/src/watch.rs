//! Who watches what. Local to a server and never replicated; a watch belongs to a connection.

use crate::{
    apply::{Change, TreeEvent},
    prefixes::Lengths,
};
use alloc::{
    collections::{BTreeMap, BTreeSet, VecDeque, btree_set},
    vec::Vec,
};
use arcstr::ArcStr;
use core::ops::Bound::{Excluded, Unbounded};
use hashbrown::HashMap;
use ostler_proto::{
    event::EventType,
    path,
    planted::{self, Bug},
};
use rustc_hash::FxBuildHasher;

/// Whoever is told: the number of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WatcherId(pub u64);

/// How long and how far a watch reaches. Since 3.9 the modes of a path add up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WatchMode {
    /// Fires once.
    Standard,
    /// Stays.
    Persistent,
    /// Stays, and covers all that is below.
    Recursive,
}

impl WatchMode {
    fn bit(self) -> u8 {
        match self {
            WatchMode::Standard => 1,
            WatchMode::Persistent => 2,
            WatchMode::Recursive => 4,
        }
    }
}

const STANDARD: u8 = 1;
const RECURSIVE: u8 = 4;

/// What `removeWatches` and `checkWatches` ask for (`WatcherType`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WatcherKind {
    Children,
    Data,
    Any,
    Persistent,
    PersistentRecursive,
}

impl WatcherKind {
    /// From its number on the wire.
    pub fn from_code(code: i32) -> Option<WatcherKind> {
        Some(match code {
            1 => WatcherKind::Children,
            2 => WatcherKind::Data,
            3 => WatcherKind::Any,
            4 => WatcherKind::Persistent,
            5 => WatcherKind::PersistentRecursive,
            _ => return None,
        })
    }

    /// Mode bits that it covers in the data and in the child table.
    fn bits(self) -> (u8, u8) {
        match self {
            WatcherKind::Children => (0, WatchMode::Standard.bit()),
            WatcherKind::Data => (WatchMode::Standard.bit(), 0),
            WatcherKind::Any => (u8::MAX, u8::MAX),
            WatcherKind::Persistent => (WatchMode::Persistent.bit(), WatchMode::Persistent.bit()),
            WatcherKind::PersistentRecursive => (RECURSIVE, RECURSIVE),
        }
    }
}

/// Which of the two tables a standard watch is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WatchTarget {
    /// The znode itself: getData and exists.
    Data,
    /// Its children: getChildren.
    Children,
}

/// One event for one set of watchers.
#[derive(Debug, PartialEq, Eq)]
pub struct Notification {
    /// The kind of change.
    pub kind: EventType,
    /// The path of the watched znode.
    pub path: ArcStr,
    /// The watchers to notify.
    pub watchers: Vec<WatcherId>,
    /// Whether the parent's ACL decides who may know, not the znode's own.
    pub by_parent_acl: bool,
}

#[derive(Debug, Default)]
struct Table {
    by_path: HashMap<ArcStr, BTreeMap<WatcherId, u8>, FxBuildHasher>,
    by_watcher: HashMap<WatcherId, BTreeSet<ArcStr>, FxBuildHasher>,
    /// Of the paths of recursive watches, each as often as there are some.
    recursive: Lengths,
    entries: usize,
    /// What is left of the watches of connections that are gone.
    departed: VecDeque<(WatcherId, btree_set::IntoIter<ArcStr>)>,
}

/// Watches of a connection that is gone which are taken out at once, and with each call later.
const DEPART_AT_ONCE: usize = 512;

impl Table {
    fn add(&mut self, path: &str, watcher: WatcherId, bits: u8) {
        let (key, _) = match self.by_path.get_key_value(path) {
            Some((key, _)) => (key.clone(), ()),
            None => (ArcStr::from(path), ()),
        };
        let modes = self.by_path.entry(key.clone()).or_default().entry(watcher).or_default();
        if *modes == 0 {
            self.entries += 1;
            self.by_watcher.entry(watcher).or_default().insert(key);
        }
        if bits & RECURSIVE & !*modes != 0 {
            self.recursive.add(path);
        }
        if planted::is(Bug::ModesReplaced) {
            if *modes & RECURSIVE & !bits != 0 {
                self.recursive.remove(path);
            }
            *modes = 0;
        }
        *modes |= bits;
    }

    fn modes(&self, path: &str, watcher: WatcherId) -> u8 {
        self.by_path.get(path).and_then(|watchers| watchers.get(&watcher)).copied().unwrap_or(0)
    }

    fn remove(&mut self, path: &str, watcher: WatcherId, bits: u8) -> bool {
        let Some(watchers) = self.by_path.get_mut(path) else { return false };
        let Some(modes) = watchers.get_mut(&watcher) else { return false };
        let removed = *modes & bits;
        *modes &= !bits;
        if removed & RECURSIVE != 0 {
            self.recursive.remove(path);
        }
        if *modes == 0 {
            watchers.remove(&watcher);
            self.entries -= 1;
            if watchers.is_empty() {
                self.by_path.remove(path);
            }
            self.unlist(watcher, path);
        }
        removed != 0
    }

    fn unlist(&mut self, watcher: WatcherId, path: &str) {
        if let Some(paths) = self.by_watcher.get_mut(&watcher) {
            paths.remove(path);
            if paths.is_empty() {
                self.by_watcher.remove(&watcher);
            }
        }
    }

    fn remove_watcher(&mut self, watcher: WatcherId) -> usize {
        let Some(paths) = self.by_watcher.remove(&watcher) else { return 0 };
        self.departed.push_back((watcher, paths.into_iter()));
        if self.departed.len() == 1 { self.clear_departed() } else { 0 }
    }

    /// Takes out some of the watches of connections that are gone; how many.
    fn clear_departed(&mut self) -> usize {
        let mut cleared = 0;
        while let Some((watcher, paths)) = self.departed.front_mut() {
            let watcher = *watcher;
            while cleared < DEPART_AT_ONCE {
                let Some(path) = paths.next() else { break };
                cleared += 1;
                let Some(watchers) = self.by_path.get_mut(&path) else { continue };
                let modes = watchers.remove(&watcher).unwrap_or(0);
                if modes & RECURSIVE != 0 {
                    self.recursive.remove(&path);
                }
                self.entries -= usize::from(modes != 0);
                if watchers.is_empty() {
                    self.by_path.remove(&path);
                }
            }
            if paths.len() > 0 {
                break;
            }
            self.departed.pop_front();
        }
        cleared
    }

    /// Entries on `path` itself fire in any mode, and standard ones are used up; above it only recursive
    /// ones fire. Each watcher is listed once.
    fn fire(&mut self, path: &str) -> Vec<WatcherId> {
        let mut fired: Vec<WatcherId> = Vec::new();
        if let Some(watchers) = self.by_path.get_mut(path) {
            fired.extend(watchers.keys().copied());
            if planted::is(Bug::ToldForEachMode) {
                let several = watchers.iter().filter(|(_, modes)| modes.count_ones() > 1);
                fired.extend(several.map(|(watcher, _)| *watcher));
                fired.sort_unstable();
            }
            let mut spent = Vec::new();
            watchers.retain(|watcher, modes| {
                *modes &= !used_up();
                if *modes == 0 {
                    spent.push(*watcher);
                }
                *modes != 0
            });
            self.entries -= spent.len();
            if watchers.is_empty() {
                self.by_path.remove(path);
            }
            for watcher in spent {
                self.unlist(watcher, path);
            }
        }
        if !self.recursive.is_empty() {
            let direct = fired.len();
            let is_reached = |above: &&str| {
                !planted::is(Bug::GrandchildrenUnwatched) || path::parent(path) == Some(*above)
            };
            for ancestor in self.recursive.above(path).filter(is_reached) {
                let Some(watchers) = self.by_path.get(ancestor) else { continue };
                fired.extend(
                    watchers
                        .iter()
                        .filter(|(_, modes)| **modes & RECURSIVE != 0)
                        .map(|(watcher, _)| *watcher),
                );
            }
            if fired.len() > direct {
                fired.sort_unstable();
                fired.dedup();
            }
        }
        fired
    }
}

/// Modes that a watch loses when it fires.
fn used_up() -> u8 {
    if planted::is(Bug::WatchFiresTwice) {
        return 0;
    }
    if planted::is(Bug::PersistentFiresOnce) {
        return STANDARD | WatchMode::Persistent.bit();
    }
    STANDARD
}

/// All watches of a server.
#[derive(Debug, Default)]
pub struct WatchTable {
    data: Table,
    child: Table,
}

impl WatchTable {
    /// Leaves a one-shot watch.
    pub fn add_standard(&mut self, target: WatchTarget, path: &str, watcher: WatcherId) {
        match target {
            WatchTarget::Data => self.data.add(path, watcher, STANDARD),
            WatchTarget::Children => self.child.add(path, watcher, STANDARD),
        }
    }

    /// addWatch. A recursive watch is in the data table alone, so it never sees changes of children lists.
    pub fn add_persistent(&mut self, path: &str, watcher: WatcherId, recursive: bool) {
        if recursive {
            self.data.add(path, watcher, RECURSIVE);
            if planted::is(Bug::RecursiveSeesLists) {
                self.child.add(path, watcher, RECURSIVE);
            }
        } else {
            self.data.add(path, watcher, WatchMode::Persistent.bit());
            self.child.add(path, watcher, WatchMode::Persistent.bit());
        }
    }

    /// removeWatches; whether there was any.
    pub fn remove(&mut self, path: &str, watcher: WatcherId, kind: WatcherKind) -> bool {
        let (mut data, mut child) = kind.bits();
        if planted::is(Bug::OtherWatchRemoved) && data & child != 0 {
            let lasting = RECURSIVE | WatchMode::Persistent.bit();
            (data, child) = (data | lasting, child | lasting);
        }
        let removed_data = self.data.remove(path, watcher, data);
        let removed_child = self.child.remove(path, watcher, child);
        removed_data || removed_child
    }

    /// checkWatches.
    pub fn contains(&self, path: &str, watcher: WatcherId, kind: WatcherKind) -> bool {
        let (data, child) = kind.bits();
        self.data.modes(path, watcher) & data != 0 || self.child.modes(path, watcher) & child != 0
    }

    /// A connection is gone, and its watches with it. Of many some stay until [`WatchTable::clear_departed`] has taken
    /// them out; meanwhile they fire for a watcher that nobody knows any more. Gives how many were taken out at once.
    pub fn remove_watcher(&mut self, watcher: WatcherId) -> usize {
        self.data.remove_watcher(watcher) + self.child.remove_watcher(watcher)
    }

    /// Whether watches of connections that are gone are left.
    pub fn has_departed(&self) -> bool {
        !(self.data.departed.is_empty() && self.child.departed.is_empty())
    }

    /// Takes out some of them; how many.
    pub fn clear_departed(&mut self) -> usize {
        self.data.clear_departed() + self.child.clear_departed()
    }

    /// How many look-ups the search for recursive watches above a path is, at most.
    pub fn lookups_above(&self) -> usize {
        self.data.recursive.len()
    }

    /// Fires what a change fires, in upstream's order: the znode's own watchers, those of its children
    /// (who hear of a deletion once), then those of the parent's children.
    pub fn fire(&mut self, event: &TreeEvent, notifications: &mut Vec<Notification>) {
        if self.data.by_path.is_empty() && self.child.by_path.is_empty() {
            return;
        }
        let path = &event.path;
        let mut tell = |kind, path: &ArcStr, watchers: Vec<WatcherId>, by_parent_acl| {
            if !watchers.is_empty() {
                notifications.push(Notification { kind, path: path.clone(), watchers, by_parent_acl });
            }
        };
        let kind = match event.change {
            Change::Created => EventType::NodeCreated,
            Change::Deleted => EventType::NodeDeleted,
            Change::DataChanged => EventType::NodeDataChanged,
        };
        let told = self.data.fire(path);
        if event.change == Change::Deleted {
            let mut others = self.child.fire(path);
            others.retain(|watcher| told.binary_search(watcher).is_err());
            tell(kind, path, told, false);
            tell(kind, path, others, false);
        } else {
            tell(kind, path, told, false);
        }
        if event.change != Change::DataChanged
            && let Some(parent) = path::parent(path)
            && !self.child.by_path.is_empty()
        {
            let watchers = self.child.fire(parent);
            tell(EventType::NodeChildrenChanged, &ArcStr::from(parent), watchers, true);
        }
    }

    /// Entries in both tables (`watch_count`).
    pub fn count(&self) -> usize {
        self.data.entries + self.child.entries
    }

    /// Who is in the data table, which is what the four-letter words show.
    pub fn data_watchers(&self) -> impl Iterator<Item = WatcherId> {
        self.data.by_watcher.keys().copied()
    }

    /// The paths of a watcher in the data table, in order, and those alone that come after this one.
    pub fn data_paths_after(&self, watcher: WatcherId, after: Option<&str>) -> impl Iterator<Item = &ArcStr> {
        let from = after.map_or(Unbounded, Excluded);
        let paths = self.data.by_watcher.get(&watcher).into_iter();
        paths.flat_map(move |paths| paths.range::<str, _>((from, Unbounded)))
    }

    /// Connections with a watch in the data table, paths watched there, and entries there.
    pub fn data_summary(&self) -> (usize, usize, usize) {
        (self.data.by_watcher.len(), self.data.by_path.len(), self.data.entries)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use ostler_proto::id::Zxid;

    const A: WatcherId = WatcherId(1);
    const B: WatcherId = WatcherId(2);

    fn fire(table: &mut WatchTable, path: &str, change: Change) -> Vec<(EventType, Vec<WatcherId>)> {
        let event =
            TreeEvent { path: path.into(), change, acl: None, parent_acl: None, zxid: Zxid(1), data_len: 0 };
        let mut out = Vec::new();
        table.fire(&event, &mut out);
        out.into_iter().map(|n| (n.kind, n.watchers)).collect()
    }

    #[test]
    fn a_standard_watch_fires_once() {
        let mut table = WatchTable::default();
        table.add_standard(WatchTarget::Data, "/a", A);
        table.add_standard(WatchTarget::Data, "/a", A);
        assert_eq!(fire(&mut table, "/a", Change::DataChanged), [(EventType::NodeDataChanged, vec![A])]);
        assert_eq!(fire(&mut table, "/a", Change::DataChanged), []);
        assert_eq!(table.count(), 0);
    }

    /// With more watches of each table than are taken out at once, and one that is left to others.
    fn leaver(data: usize, child: usize) -> WatchTable {
        let mut table = WatchTable::default();
        table.add_persistent("/r", B, true);
        table.add_standard(WatchTarget::Data, "/r", A);
        table.add_persistent("/r", A, true);
        for n in 1..data {
            // As long as the path of a recursive one, at first.
            table.add_standard(WatchTarget::Data, &alloc::format!("/{}", n + 1), A);
        }
        for n in 0..child {
            table.add_standard(WatchTarget::Children, &alloc::format!("/c{n}"), A);
        }
        assert_eq!(table.count(), data + child + 1);
        table
    }

    #[test]
    fn many_watches_of_a_connection_that_is_gone_are_taken_out_in_parts() {
        let at_once = DEPART_AT_ONCE;
        for (data, child, parts) in [
            (1, 0, vec![1]),
            (at_once, at_once, vec![2 * at_once]),
            (at_once + 1, at_once, vec![2 * at_once, 1]),
            (at_once, at_once + 1, vec![2 * at_once, 1]),
            (2 * at_once + 3, 5, vec![at_once + 5, at_once, 3]),
        ] {
            let mut table = leaver(data, child);
            assert!(!table.has_departed() && table.clear_departed() == 0);
            let mut taken = vec![table.remove_watcher(A)];
            while table.has_departed() {
                let left = data + child - taken.iter().sum::<usize>();
                assert_eq!(table.count(), left + 1);
                taken.push(table.clear_departed());
            }
            assert_eq!((taken, table.count()), (parts, 1), "{data} {child}");
            // Whoever watches there still does.
            assert_eq!(
                fire(&mut table, "/r/x", Change::DataChanged),
                [(EventType::NodeDataChanged, vec![B])]
            );
            assert_eq!(table.remove_watcher(A), 0);
        }
    }

    /// Of several that leave at a time the later ones wait for the first.
    #[test]
    fn connections_that_are_gone_lose_their_watches_one_after_the_other() {
        let mut table = leaver(DEPART_AT_ONCE + 1, 0);
        table.add_standard(WatchTarget::Data, "/other", B);
        assert_eq!(table.remove_watcher(A), DEPART_AT_ONCE);
        assert_eq!(table.remove_watcher(B), 0);
        assert_eq!(table.clear_departed(), 3);
        assert!(!table.has_departed());
        assert_eq!(table.count(), 0);
    }

    #[test]
    fn a_watch_that_is_removed_takes_no_other_away() {
        let mut table = WatchTable::default();
        table.add_persistent("/a", B, true);
        table.add_standard(WatchTarget::Data, "/a", A);
        assert!(table.remove("/a", A, WatcherKind::Any));
        assert_eq!(fire(&mut table, "/a/x", Change::DataChanged), [(EventType::NodeDataChanged, vec![B])]);
    }

    /// Each length of a path at which there is one is looked up.
    #[test]
    fn look_ups_above_a_path_are_as_many_as_there_are_lengths() {
        let mut table = WatchTable::default();
        for (path, lookups) in [("/a", 1), ("/b", 1), ("/a/b", 2), ("/a/b/c", 3)] {
            table.add_persistent(path, A, true);
            table.add_persistent("/only/this/one", A, false);
            assert_eq!(table.lookups_above(), lookups, "{path}");
        }
    }

    #[test]
    fn one_deletion_is_one_event_for_data_and_child_watchers() {
        let mut table = WatchTable::default();
        table.add_standard(WatchTarget::Data, "/a", A);
        table.add_standard(WatchTarget::Children, "/a", A);
        table.add_standard(WatchTarget::Children, "/a", B);
        table.add_standard(WatchTarget::Children, "/", B);
        let seen = fire(&mut table, "/a", Change::Deleted);
        assert_eq!(
            seen,
            [
                (EventType::NodeDeleted, vec![A]),
                (EventType::NodeDeleted, vec![B]),
                (EventType::NodeChildrenChanged, vec![B])
            ]
        );
        assert_eq!(table.count(), 0);
    }

    #[test]
    fn recursive_watches_see_descendants_but_no_lists() {
        let mut table = WatchTable::default();
        table.add_persistent("/a", A, true);
        table.add_persistent("/a/b", A, false);
        assert_eq!(
            fire(&mut table, "/a/b", Change::Created),
            [(EventType::NodeCreated, vec![A])],
            "one event though two entries match"
        );
        assert_eq!(fire(&mut table, "/a/b/c", Change::Created).len(), 2);
        assert_eq!(fire(&mut table, "/ab", Change::Created), []);
        assert!(table.remove("/a", A, WatcherKind::PersistentRecursive));
        assert!(!table.remove("/a", A, WatcherKind::Any));
        assert!(table.data.recursive.is_empty());
    }

    #[test]
    fn modes_add_up_and_the_standard_one_goes_first() {
        let mut table = WatchTable::default();
        table.add_persistent("/a", A, false);
        table.add_standard(WatchTarget::Data, "/a", A);
        assert!(table.contains("/a", A, WatcherKind::Data));
        fire(&mut table, "/a", Change::DataChanged);
        assert!(!table.contains("/a", A, WatcherKind::Data));
        assert!(table.contains("/a", A, WatcherKind::Persistent));
        table.remove_watcher(A);
        assert_eq!((table.count(), table.data.by_path.len(), table.child.by_path.len()), (0, 0, 0));
    }

    /// What is not there is not looked for at every change.
    #[test]
    fn nobody_looks_upwards_once_the_last_recursive_watcher_is_gone() {
        let mut table = WatchTable::default();
        table.add_persistent("/a", A, true);
        table.add_persistent("/b", A, true);
        table.add_persistent("/a", B, false);
        assert_eq!(table.data.recursive.len(), 1);
        table.remove_watcher(B);
        assert_eq!(table.data.recursive.len(), 1);
        table.remove_watcher(A);
        assert!(table.data.recursive.is_empty());
    }
}
