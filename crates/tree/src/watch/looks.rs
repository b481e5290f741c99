//! Looks at the watches for reports, in parts: each look has an end that the caller sets.

use super::{RECURSIVE, STANDARD, Table, WatchMode, WatchTable, WatchTarget, WatcherId};
use alloc::vec::Vec;
use arcstr::ArcStr;
use core::ops::Bound::{Excluded, Unbounded};

/// The modes in which a connection watches a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Watched {
    /// Its data, or whether it exists, once.
    pub data: bool,
    /// Its children, once.
    pub children: bool,
    /// Both, until the watch is removed.
    pub persistent: bool,
    /// Everything at and below the path, until the watch is removed.
    pub recursive: bool,
}

impl Watched {
    fn of(data: u8, child: u8) -> Watched {
        Watched {
            data: data & STANDARD != 0,
            children: child & STANDARD != 0,
            persistent: (data | child) & WatchMode::Persistent.bit() != 0,
            recursive: data & RECURSIVE != 0,
        }
    }

    /// The number of watches.
    pub fn count(self) -> usize {
        [self.data, self.children, self.persistent, self.recursive].into_iter().filter(|has| *has).count()
    }
}

impl WatchTable {
    /// The number of watched paths of a connection; a path whose data and whose children it watches counts twice.
    pub fn count_of(&self, watcher: WatcherId) -> usize {
        let count = |table: &Table| table.by_watcher.get(&watcher).map_or(0, |paths| paths.len());
        count(&self.data) + count(&self.child)
    }

    /// The paths of a connection after this one in one of the tables, in order. Each comes with all its modes, but in the table
    /// of children without any if it is in the other table, too.
    pub fn paths_after(
        &self,
        watcher: WatcherId,
        target: WatchTarget,
        after: Option<&str>,
    ) -> impl Iterator<Item = (&ArcStr, Watched)> {
        let is_data = target == WatchTarget::Data;
        let table = if is_data { &self.data } else { &self.child };
        let from = after.map_or(Unbounded, Excluded);
        let paths = table.by_watcher.get(&watcher).into_iter();
        paths.flat_map(move |paths| paths.range::<str, _>((from, Unbounded))).map(move |path| {
            let (data, child) = (self.data.modes(path, watcher), self.child.modes(path, watcher));
            let is_known = !is_data && data != 0;
            (path, if is_known { Watched::default() } else { Watched::of(data, child) })
        })
    }

    /// The connections that watch this path itself, those after this one, in order; at most `max`.
    pub fn watchers_after(
        &self,
        path: &str,
        after: Option<WatcherId>,
        max: usize,
    ) -> Vec<(WatcherId, Watched)> {
        let from = (after.map_or(Unbounded, Excluded), Unbounded);
        let watchers = |table: &'_ Table| -> Vec<WatcherId> {
            let all = table.by_path.get(path).into_iter().flat_map(|all| all.range(from));
            all.take(max).map(|(watcher, _)| *watcher).collect()
        };
        let mut all = watchers(&self.data);
        all.extend(watchers(&self.child));
        all.sort_unstable();
        all.dedup();
        all.truncate(max);
        let modes = |watcher| Watched::of(self.data.modes(path, watcher), self.child.modes(path, watcher));
        all.into_iter().map(|watcher| (watcher, modes(watcher))).collect()
    }

    /// The paths above this one that have recursive watches, or are as long as one that has some.
    pub fn watched_above<'p>(&self, path: &'p str) -> Vec<&'p str> {
        let above = self.data.recursive.above(path);
        above.filter(|above| self.data.by_path.contains_key(*above)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;

    const A: WatcherId = WatcherId(1);
    const B: WatcherId = WatcherId(2);

    fn modes(watched: Watched) -> [bool; 4] {
        [watched.data, watched.children, watched.persistent, watched.recursive]
    }

    #[test]
    fn each_path_of_a_connection_comes_with_its_modes_once() {
        let mut table = WatchTable::default();
        table.add_standard(WatchTarget::Data, "/a", A);
        table.add_standard(WatchTarget::Children, "/a", A);
        table.add_persistent("/b", A, false);
        table.add_persistent("/c", A, true);
        table.add_standard(WatchTarget::Children, "/d", A);
        table.add_standard(WatchTarget::Data, "/d", B);
        let told = |target, after| -> Vec<(&str, [bool; 4])> {
            let told = table.paths_after(A, target, after);
            told.map(|(path, watched)| (&**path, modes(watched))).collect()
        };
        let data = [
            ("/a", [true, true, false, false]),
            ("/b", [false, false, true, false]),
            ("/c", [false, false, false, true]),
        ];
        assert_eq!(told(WatchTarget::Data, None), data);
        assert_eq!(told(WatchTarget::Data, Some("/a")), data[1..]);
        let none = [false; 4];
        assert_eq!(
            told(WatchTarget::Children, None),
            [("/a", none), ("/b", none), ("/d", [false, true, false, false])]
        );
        assert_eq!((table.count_of(A), table.count_of(B), table.count_of(WatcherId(9))), (6, 1, 0));
    }

    #[test]
    fn the_watchers_of_a_path_are_told_in_parts() {
        let mut table = WatchTable::default();
        for n in 0..10 {
            let target = if n % 3 == 0 { WatchTarget::Children } else { WatchTarget::Data };
            table.add_standard(target, "/a", WatcherId(n));
            table.add_persistent("/a", WatcherId(n), n == 4);
        }
        let (mut all, mut after) = (Vec::new(), None);
        loop {
            let part = table.watchers_after("/a", after, 3);
            let Some((last, _)) = part.last() else { break };
            after = Some(*last);
            all.extend(part);
        }
        assert_eq!(all.len(), 10);
        assert_eq!(modes(all[3].1), [false, true, true, false]);
        assert_eq!(modes(all[4].1), [true, false, false, true]);
        assert!(table.watchers_after("/b", None, 3).is_empty());
    }

    #[test]
    fn recursive_watches_above_are_found() {
        let mut table = WatchTable::default();
        table.add_persistent("/a", A, true);
        table.add_persistent("/a/b", A, false);
        assert_eq!(table.watched_above("/a/b/c"), ["/a"]);
        assert!(table.watched_above("/x/b").is_empty(), "as long as /a, and not watched");
        for n in 0..3 {
            table.add_persistent(&format!("/a/b/{n}"), A, true);
        }
        assert_eq!(table.watched_above("/a/b/1/c").len(), 2);
    }
}
