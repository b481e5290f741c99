//! The watches of one server's connections, and the notifications that changes of the tree cause. They are not
//! replicated.

mod looks;

use crate::{
    apply::{Change, TreeEvent},
    prefixes::PathLengths,
};
use alloc::{
    collections::{BTreeMap, BTreeSet, VecDeque, btree_set},
    vec::Vec,
};
use arcstr::ArcStr;
use core::ops::Bound::{Excluded, Unbounded};
use hashbrown::HashMap;
pub use looks::Watched;
use ostler_planted::{self as planted, Bug};
use ostler_proto::{event::EventType, path};
use rustc_hash::FxBuildHasher;

/// The number of a connection that watches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WatcherId(pub u64);

/// The mode of a watch. Since ZooKeeper 3.9 a connection can watch a path in several modes at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WatchMode {
    /// The watch fires once.
    Standard,
    /// The watch stays after it fires.
    Persistent,
    /// The watch stays after it fires, and also fires for all znodes below the path.
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

/// The watches of a path to which `removeWatches` or `checkWatches` applies (`WatcherType`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WatcherKind {
    /// Watches of the list of children.
    Children,
    /// Watches of data and existence.
    Data,
    /// All watches.
    Any,
    /// Persistent watches.
    Persistent,
    /// Persistent recursive watches.
    PersistentRecursive,
}

impl WatcherKind {
    /// The kind with this number on the wire. `None` if the number is unknown.
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

    /// The bits of the matching modes in the data table, and in the child table.
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

/// The target of a standard watch, which decides the table that has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WatchTarget {
    /// The znode itself: a watch of getData or exists.
    Data,
    /// The list of the znode's children: a watch of getChildren.
    Children,
}

/// An event for a number of watchers.
#[derive(Debug, PartialEq, Eq)]
pub struct Notification {
    /// The type of the event.
    pub kind: EventType,
    /// The path in the event.
    pub path: ArcStr,
    /// The connections that get the event, if they may read the znode.
    pub watchers: Vec<WatcherId>,
    /// Whether the parent's ACL decides which connections get the event, and not the znode's own.
    pub by_parent_acl: bool,
}

#[derive(Debug, Default)]
struct Table {
    by_path: HashMap<ArcStr, BTreeMap<WatcherId, u8>, FxBuildHasher>,
    by_watcher: HashMap<WatcherId, BTreeSet<ArcStr>, FxBuildHasher>,
    /// The lengths of the paths of all recursive watches.
    recursive: PathLengths,
    /// The number of pairs of path and watcher.
    entries: usize,
    /// The watches of closed connections that are still to be removed.
    departed: VecDeque<(WatcherId, btree_set::IntoIter<ArcStr>)>,
}

/// The numbers of connections that watch one path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WatchCounts {
    /// Standard watches of data and existence.
    pub data: usize,
    /// Standard watches of the children.
    pub children: usize,
    /// Persistent watches, recursive or not.
    pub persistent: usize,
}

/// The number of watchers of a path at which a count ends.
const COUNTED_MAX: usize = 10_000;

/// The number of watches that are removed when a connection is closed, and with each later call.
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

    /// Removes some of the watches of closed connections. Returns their number.
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

    /// The watchers of a change at `path`, each once. Watches of `path` itself fire in any mode, and standard ones are
    /// removed. Of the watches above, only recursive ones fire.
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

/// The bits of the modes that are removed when a watch fires.
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
    /// Adds a one-shot watch.
    pub fn add_standard(&mut self, target: WatchTarget, path: &str, watcher: WatcherId) {
        match target {
            WatchTarget::Data => self.data.add(path, watcher, STANDARD),
            WatchTarget::Children => self.child.add(path, watcher, STANDARD),
        }
    }

    /// Adds a persistent watch (addWatch). A recursive one is in the data table alone, so it never fires for a changed
    /// list of children.
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

    /// Removes watches (removeWatches). Returns false if there were none.
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

    /// Whether there is such a watch (checkWatches).
    pub fn contains(&self, path: &str, watcher: WatcherId, kind: WatcherKind) -> bool {
        let (data, child) = kind.bits();
        self.data.modes(path, watcher) & data != 0 || self.child.modes(path, watcher) & child != 0
    }

    /// Removes the watches of a closed connection, and returns their number. If there are many, the rest stays until
    /// [`WatchTable::clear_departed`] removes it. Meanwhile these watches fire for a connection that does not exist.
    pub fn remove_watcher(&mut self, watcher: WatcherId) -> usize {
        self.data.remove_watcher(watcher) + self.child.remove_watcher(watcher)
    }

    /// Whether there are watches of closed connections.
    pub fn has_departed(&self) -> bool {
        !(self.data.departed.is_empty() && self.child.departed.is_empty())
    }

    /// Removes some of the watches of closed connections. Returns their number.
    pub fn clear_departed(&mut self) -> usize {
        self.data.clear_departed() + self.child.clear_departed()
    }

    /// The highest number of look-ups in a search for recursive watches above a path.
    pub fn lookups_above(&self) -> usize {
        self.data.recursive.len()
    }

    /// Fires the watches of a change, in upstream's order: the watches of the znode, then of its children, then of the
    /// parent's children. A watcher of both the znode and its children gets a deletion once.
    pub fn fire(&mut self, event: &TreeEvent, notifications: &mut Vec<Notification>) {
        if self.data.by_path.is_empty() && self.child.by_path.is_empty() {
            return;
        }
        let path = &event.path;
        let mut notify = |kind, path: &ArcStr, watchers: Vec<WatcherId>, by_parent_acl| {
            if !watchers.is_empty() {
                notifications.push(Notification { kind, path: path.clone(), watchers, by_parent_acl });
            }
        };
        let kind = match event.change {
            Change::Created => EventType::NodeCreated,
            Change::Deleted => EventType::NodeDeleted,
            Change::DataChanged => EventType::NodeDataChanged,
        };
        let watchers = self.data.fire(path);
        if event.change == Change::Deleted {
            let mut others = self.child.fire(path);
            others.retain(|watcher| watchers.binary_search(watcher).is_err());
            notify(kind, path, watchers, false);
            notify(kind, path, others, false);
        } else {
            notify(kind, path, watchers, false);
        }
        if event.change != Change::DataChanged
            && let Some(parent) = path::parent(path)
            && !self.child.by_path.is_empty()
        {
            let watchers = self.child.fire(parent);
            notify(EventType::NodeChildrenChanged, &ArcStr::from(parent), watchers, true);
        }
    }

    /// Whether anybody watches this path itself.
    pub fn is_watched(&self, path: &str) -> bool {
        self.data.by_path.contains_key(path) || self.child.by_path.contains_key(path)
    }

    /// The number of watchers of this path itself; one of both data and children counts twice.
    pub fn watchers_at(&self, path: &str) -> usize {
        let count = |table: &Table| table.by_path.get(path).map_or(0, BTreeMap::len);
        count(&self.data) + count(&self.child)
    }

    /// The numbers of watchers of this path itself, by kind.
    pub fn counts_at(&self, path: &str) -> WatchCounts {
        let modes = |table: &'_ Table| -> Vec<u8> {
            let watchers = table.by_path.get(path).into_iter().flat_map(BTreeMap::values);
            watchers.copied().take(COUNTED_MAX).collect()
        };
        let count = |modes: &[u8], bits: u8| modes.iter().filter(|mode| **mode & bits != 0).count();
        let (data, child) = (modes(&self.data), modes(&self.child));
        WatchCounts {
            data: count(&data, STANDARD),
            children: count(&child, STANDARD),
            persistent: count(&data, RECURSIVE | WatchMode::Persistent.bit()),
        }
    }

    /// The number of watches in both tables (`watch_count`).
    pub fn count(&self) -> usize {
        self.data.entries + self.child.entries
    }

    /// The connections with a watch in the data table. The four-letter words show this table only.
    pub fn data_watchers(&self) -> impl Iterator<Item = WatcherId> {
        self.data.by_watcher.keys().copied()
    }

    /// The paths of a watcher in the data table, in order; with `after` those that come after this one.
    pub fn data_paths_after(&self, watcher: WatcherId, after: Option<&str>) -> impl Iterator<Item = &ArcStr> {
        let from = after.map_or(Unbounded, Excluded);
        let paths = self.data.by_watcher.get(&watcher).into_iter();
        paths.flat_map(move |paths| paths.range::<str, _>((from, Unbounded)))
    }

    /// Of the data table: the number of connections with a watch, of watched paths, and of watches.
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

    #[test]
    fn watchers_of_a_path_are_counted_by_kind() {
        let mut table = WatchTable::default();
        table.add_standard(WatchTarget::Data, "/a", A);
        table.add_standard(WatchTarget::Data, "/a", B);
        table.add_standard(WatchTarget::Children, "/a", B);
        table.add_persistent("/a", A, false);
        table.add_persistent("/a", B, true);
        table.add_persistent("/a/b", B, false);
        assert_eq!(table.counts_at("/a"), WatchCounts { data: 2, children: 1, persistent: 2 });
        assert_eq!(table.counts_at("/"), WatchCounts::default());
        assert_eq!((table.watchers_at("/a"), table.watchers_at("/")), (4, 0));
        assert!(table.is_watched("/a/b") && !table.is_watched("/a/b/c"));
        (0..COUNTED_MAX as u64 + 5).for_each(|n| {
            table.add_standard(WatchTarget::Data, "/many", WatcherId(n));
        });
        assert_eq!(table.counts_at("/many").data, COUNTED_MAX);
    }

    /// A table with this number of watches of A in each table, and a recursive watch of B.
    fn leaver(data: usize, child: usize) -> WatchTable {
        let mut table = WatchTable::default();
        table.add_persistent("/r", B, true);
        table.add_standard(WatchTarget::Data, "/r", A);
        table.add_persistent("/r", A, true);
        for n in 1..data {
            // The first ones are as long as the path of the recursive watch.
            table.add_standard(WatchTarget::Data, &alloc::format!("/{}", n + 1), A);
        }
        for n in 0..child {
            table.add_standard(WatchTarget::Children, &alloc::format!("/c{n}"), A);
        }
        assert_eq!(table.count(), data + child + 1);
        table
    }

    #[test]
    fn many_watches_of_a_closed_connection_are_removed_in_parts() {
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
            // The watch of the other connection is still there.
            assert_eq!(
                fire(&mut table, "/r/x", Change::DataChanged),
                [(EventType::NodeDataChanged, vec![B])]
            );
            assert_eq!(table.remove_watcher(A), 0);
        }
    }

    #[test]
    fn watches_of_closed_connections_are_removed_in_the_order_of_closing() {
        let mut table = leaver(DEPART_AT_ONCE + 1, 0);
        table.add_standard(WatchTarget::Data, "/other", B);
        assert_eq!(table.remove_watcher(A), DEPART_AT_ONCE);
        assert_eq!(table.remove_watcher(B), 0);
        assert_eq!(table.clear_departed(), 3);
        assert!(!table.has_departed());
        assert_eq!(table.count(), 0);
    }

    #[test]
    fn removing_a_watch_keeps_the_recursive_watch_of_another_connection() {
        let mut table = WatchTable::default();
        table.add_persistent("/a", B, true);
        table.add_standard(WatchTarget::Data, "/a", A);
        assert!(table.remove("/a", A, WatcherKind::Any));
        assert_eq!(fire(&mut table, "/a/x", Change::DataChanged), [(EventType::NodeDataChanged, vec![B])]);
    }

    #[test]
    fn look_ups_above_a_path_are_as_many_as_the_lengths_of_recursive_watches() {
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
    fn a_recursive_watch_fires_for_znodes_below_but_not_for_lists_of_children() {
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
    fn a_fired_watch_of_several_modes_loses_the_standard_one() {
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

    #[test]
    fn without_recursive_watches_no_ancestor_is_looked_up() {
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
