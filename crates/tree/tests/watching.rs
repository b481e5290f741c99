//! The watchers that get each event, and the watches that are left afterwards.

use ostler_proto::{event::EventType, id::Zxid};
use ostler_tree::{
    Change, TreeEvent, WatchTable, WatcherId,
    watch::{Notification, WatchTarget, WatcherKind},
};

const A: WatcherId = WatcherId(1);
const B: WatcherId = WatcherId(2);
const KINDS: [WatcherKind; 5] = [
    WatcherKind::Children,
    WatcherKind::Data,
    WatcherKind::Any,
    WatcherKind::Persistent,
    WatcherKind::PersistentRecursive,
];

fn fire(table: &mut WatchTable, path: &str, change: Change) -> Vec<Notification> {
    let event =
        TreeEvent { path: path.into(), change, acl: None, parent_acl: None, zxid: Zxid(1), data_len: 0 };
    let mut out = Vec::new();
    table.fire(&event, &mut out);
    out
}

/// The events of a change: type, path and watchers.
fn events(table: &mut WatchTable, path: &str, change: Change) -> Vec<(EventType, String, Vec<u64>)> {
    let fired = fire(table, path, change).into_iter();
    fired.map(|of| (of.kind, of.path.to_string(), of.watchers.iter().map(|id| id.0).collect())).collect()
}

type Add = fn(&mut WatchTable, WatcherId);

/// Every kind of watch of `/a`, and for each of `KINDS` whether it finds the watch.
fn watches() -> [(Add, [bool; 5]); 4] {
    [
        (
            |table, who| table.add_standard(WatchTarget::Children, "/a", who),
            [true, false, true, false, false],
        ),
        (|table, who| table.add_standard(WatchTarget::Data, "/a", who), [false, true, true, false, false]),
        (|table, who| table.add_persistent("/a", who, false), [false, false, true, true, false]),
        (|table, who| table.add_persistent("/a", who, true), [false, false, true, false, true]),
    ]
}

#[test]
fn a_watch_is_found_and_removed_by_its_kind() {
    for (add, found_by) in watches() {
        for (kind, is_found) in KINDS.into_iter().zip(found_by) {
            let mut table = WatchTable::default();
            add(&mut table, A);
            assert_eq!(table.contains("/a", A, kind), is_found, "{kind:?}");
            assert!(!table.contains("/a", B, kind) && !table.contains("/b", A, kind));
            assert!(!table.remove("/a", B, kind) && !table.remove("/b", A, kind));
            let before = table.count();
            assert_eq!(table.remove("/a", A, kind), is_found, "{kind:?}");
            assert!(!table.remove("/a", A, kind), "it is removed, or there was none");
            assert_eq!(table.count(), if is_found { 0 } else { before });
            let changes = [Change::DataChanged, Change::Created, Change::Deleted];
            let fires = changes.into_iter().any(|change| !fire(&mut table, "/a", change).is_empty());
            let fires = fires || !fire(&mut table, "/a/b", Change::Created).is_empty();
            assert_eq!(fires, !is_found, "{kind:?}");
        }
    }
}

#[test]
fn each_kind_has_its_number_on_the_wire_and_other_numbers_have_none() {
    let kinds = (1..=5).map(WatcherKind::from_code);
    assert!(kinds.eq(KINDS.map(Some)));
    assert_eq!([0, 6, -1].map(WatcherKind::from_code), [None; 3]);
}

#[test]
fn each_change_fires_the_watches_of_the_znode_its_parent_and_above() {
    let mut table = WatchTable::default();
    table.add_standard(WatchTarget::Data, "/a/b", WatcherId(1));
    table.add_standard(WatchTarget::Children, "/a/b", WatcherId(2));
    table.add_standard(WatchTarget::Children, "/a", WatcherId(3));
    table.add_standard(WatchTarget::Data, "/a", WatcherId(4));
    table.add_persistent("/", WatcherId(5), true);
    let changed = (EventType::NodeDataChanged, "/a/b".to_owned(), vec![1, 5]);
    assert_eq!(events(&mut table, "/a/b", Change::DataChanged), [changed]);
    let created = (EventType::NodeCreated, "/a/c".to_owned(), vec![5]);
    let list = (EventType::NodeChildrenChanged, "/a".to_owned(), vec![3]);
    assert_eq!(events(&mut table, "/a/c", Change::Created), [created.clone(), list]);
    assert_eq!(
        events(&mut table, "/a/c", Change::Created),
        [created],
        "the watch of the list has fired already"
    );
    let deleted = |who| (EventType::NodeDeleted, "/a/b".to_owned(), vec![who]);
    assert_eq!(events(&mut table, "/a/b", Change::Deleted), [deleted(5), deleted(2)]);
    assert_eq!(table.count(), 2);
}

#[test]
fn the_parents_acl_decides_for_a_changed_list_of_children_and_the_znodes_own_otherwise() {
    let mut table = WatchTable::default();
    table.add_standard(WatchTarget::Data, "/a/b", A);
    table.add_standard(WatchTarget::Children, "/a/b", B);
    table.add_standard(WatchTarget::Children, "/a", A);
    let fired = fire(&mut table, "/a/b", Change::Deleted);
    assert_eq!(fired.iter().map(|of| of.by_parent_acl).collect::<Vec<_>>(), [false, false, true]);
}

#[test]
fn a_persistent_watch_stays_and_fires_for_lists_of_children() {
    let mut table = WatchTable::default();
    table.add_persistent("/a", A, false);
    assert_eq!(table.count(), 2, "in both tables");
    for _ in 0..2 {
        let list = (EventType::NodeChildrenChanged, "/a".to_owned(), vec![1]);
        assert_eq!(events(&mut table, "/a/b", Change::Created), [list]);
        let deleted = (EventType::NodeDeleted, "/a".to_owned(), vec![1]);
        assert_eq!(events(&mut table, "/a", Change::Deleted), [deleted], "once");
    }
    assert_eq!(events(&mut table, "/a/b/c", Change::Created), []);
}

/// To add the same watch twice is the same as once. After the last recursive watch no ancestor is looked up.
#[test]
fn a_recursive_watch_added_twice_is_removed_by_one_removal() {
    let mut table = WatchTable::default();
    for _ in 0..2 {
        table.add_persistent("/a", A, true);
    }
    table.add_persistent("/a", B, true);
    table.add_persistent("/a", A, false);
    assert!(table.remove("/a", A, WatcherKind::PersistentRecursive));
    let changes = |table: &mut WatchTable| events(table, "/a/b/c", Change::DataChanged);
    let changed = |who: &[u64]| (EventType::NodeDataChanged, "/a/b/c".to_owned(), who.to_vec());
    assert_eq!(changes(&mut table), [changed(&[2])]);
    table.remove_watcher(B);
    assert_eq!(changes(&mut table), []);
    assert!(table.contains("/a", A, WatcherKind::Persistent));
    table.add_persistent("/", A, true);
    table.add_persistent("/a/b", B, true);
    assert_eq!(changes(&mut table), [changed(&[1, 2])], "watches at paths of different lengths");
    table.remove_watcher(A);
    assert_eq!(changes(&mut table), [changed(&[2])]);
}

#[test]
fn counts_and_summaries_follow_added_fired_and_removed_watches() {
    let mut table = WatchTable::default();
    assert_eq!((table.count(), table.data_summary()), (0, (0, 0, 0)));
    table.add_standard(WatchTarget::Data, "/a", A);
    table.add_standard(WatchTarget::Data, "/b", A);
    table.add_standard(WatchTarget::Data, "/b", B);
    table.add_standard(WatchTarget::Children, "/b", B);
    assert_eq!((table.count(), table.data_summary()), (4, (2, 2, 3)));
    let paths = |table: &WatchTable, watcher, after| {
        table.data_paths_after(watcher, after).map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(paths(&table, A, None), ["/a", "/b"]);
    assert_eq!(paths(&table, A, Some("/a")), ["/b"]);
    assert_eq!(paths(&table, A, Some("/a/gone meanwhile")), ["/b"]);
    assert_eq!(paths(&table, B, None), ["/b"]);
    assert_eq!(paths(&table, B, Some("/b")), [""; 0]);
    let mut watchers: Vec<_> = table.data_watchers().collect();
    watchers.sort();
    assert_eq!(watchers, [A, B]);
    fire(&mut table, "/b", Change::DataChanged);
    assert_eq!((table.count(), table.data_summary()), (2, (1, 1, 1)));
    table.remove_watcher(A);
    assert_eq!((table.count(), table.data_summary()), (1, (0, 0, 0)));
    assert_eq!(table.data_watchers().count(), 0);
    assert!(table.remove("/b", B, WatcherKind::Children));
    assert_eq!(table.count(), 0);
}

#[test]
fn a_path_has_its_own_watchers_counted() {
    let mut table = WatchTable::default();
    table.add_standard(WatchTarget::Data, "/data", A);
    table.add_standard(WatchTarget::Children, "/list", A);
    table.add_standard(WatchTarget::Data, "/both", A);
    table.add_standard(WatchTarget::Children, "/both", A);
    table.add_standard(WatchTarget::Children, "/both", B);
    table.add_persistent("/both", B, true);
    let looks =
        ["/data", "/list", "/both", "/none"].map(|path| (table.is_watched(path), table.watchers_at(path)));
    assert_eq!(looks, [(true, 1), (true, 1), (true, 4), (false, 0)]);
    let counts = table.counts_at("/both");
    assert_eq!((counts.data, counts.children, counts.persistent), (1, 2, 1));
}
