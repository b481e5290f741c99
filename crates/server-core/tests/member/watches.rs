//! T4: every read can leave a watch; it is told once, in order, and before the change can be seen.

use crate::{
    member::{Client, Member},
    wire::{
        check_watches, children_and_watch, children2, close_session, create, delete, exists_and_watch, get,
        get_and_watch, multi, remove_watches, set, set_acl, unknown, watch_always,
    },
};
use ostler_proto::{
    acl::{Acl, Perms},
    id::Zxid,
};

/// A writer and a watcher; /a, /a/x exist.
fn two(m: &mut Member) -> (Client, Client) {
    let (a, b) = (m.join(), m.join());
    m.ask(a, create("/a").data(b"0")).unwrap();
    m.ask(a, create("/a/x")).unwrap();
    (a, b)
}

/// Very many are taken out bit by bit. Meanwhile whoever is there hears of changes, and nothing goes to whoever is gone.
#[test]
fn t4_watches_of_a_connection_that_is_gone_keep_no_other_from_its_events() {
    let mut m = Member::new();
    let (gone, stays, writer) = (m.join(), m.join(), m.join());
    let paths: Vec<String> = (0..1500).map(|n| format!("/w{n:04}")).collect();
    for path in &paths {
        m.send(gone, exists_and_watch(path));
    }
    let last = &paths[1499];
    m.send(stays, exists_and_watch(last));
    m.forget();
    m.hang_up(gone);
    assert!(m.server.has_backlog(), "some are left");
    m.send(writer, create(last));
    m.disk_does(usize::MAX);
    assert_eq!(m.seen(stays), [format!("created {last}")]);
    assert!(m.sights.iter().all(|(conn, _)| *conn != gone.conn));
}

#[test]
fn t4_a_watch_fires_once() {
    let mut m = Member::new();
    let (a, b) = two(&mut m);
    m.send(b, get_and_watch("/a"));
    m.send(b, get_and_watch("/a"));
    m.send(b, exists_and_watch("/a"));
    m.forget();
    m.ask(a, set("/a", b"1")).unwrap();
    assert_eq!(m.seen(b), ["changed /a"]);
    m.ask(a, set("/a", b"2")).unwrap();
    m.ask(a, delete("/a/x")).unwrap();
    m.ask(a, delete("/a")).unwrap();
    assert_eq!(m.seen(b), [""; 0]);
    assert_eq!(m.server.summary().watch_count, 0);
}

#[test]
fn t4_every_read_can_leave_a_watch() {
    let mut m = Member::new();
    let (a, b) = two(&mut m);
    for (read, change, event) in [
        (get_and_watch("/a"), set("/a", b"1"), "changed /a"),
        (exists_and_watch("/a"), set("/a", b"1"), "changed /a"),
        (exists_and_watch("/new"), create("/new").into(), "created /new"),
        (children_and_watch("/a"), create("/a/y").into(), "children of /a"),
        (children2("/a", true), delete("/a/y"), "children of /a"),
        (children_and_watch("/new"), delete("/new"), "deleted /new"),
        (get_and_watch("/a/x"), delete("/a/x"), "deleted /a/x"),
        (children_and_watch("/"), create("/new").into(), "children of /"),
        (get_and_watch("/"), set("/", b"1"), "changed /"),
    ] {
        m.send(b, read);
        m.forget();
        m.ask(a, change).unwrap();
        assert_eq!(m.seen(b), [event]);
    }
}

#[test]
fn t4_a_read_that_finds_nothing_leaves_no_watch_but_exists_does() {
    let mut m = Member::new();
    let (a, b) = two(&mut m);
    m.send(b, get_and_watch("/new"));
    m.send(b, children_and_watch("/new"));
    assert_eq!(m.server.summary().watch_count, 0);
    m.send(b, exists_and_watch("/new"));
    m.forget();
    m.ask(a, create("/new")).unwrap();
    assert_eq!(m.seen(b), ["created /new"]);
}

#[test]
fn t4_a_write_that_does_not_change_the_znode_fires_no_watch() {
    let mut m = Member::new();
    let (a, b) = two(&mut m);
    m.send(b, get_and_watch("/a"));
    m.forget();
    m.ask(a, create("/a/y")).unwrap();
    m.ask(a, set_acl("/a", &[Acl::world(Perms::ALL)], -1)).unwrap();
    m.ask(a, set("/a/x", b"")).unwrap();
    m.ask(a, create("/a")).unwrap_err();
    assert_eq!(m.seen(b), [""; 0]);
    m.send(b, children_and_watch("/a"));
    m.forget();
    m.ask(a, set("/a/x", b"")).unwrap();
    m.ask(a, create("/a/y/z")).unwrap();
    assert_eq!(m.seen(b), [""; 0]);
}

#[test]
fn t4_the_event_comes_before_the_reply_that_shows_the_change() {
    let mut m = Member::new();
    let (a, b) = two(&mut m);
    // The watcher's own write.
    m.send(b, get_and_watch("/a"));
    m.send(b, set("/a", b"1"));
    m.send(b, get("/a"));
    m.flush();
    assert_eq!(m.seen(b), ["1: 0 v0", "changed /a", "2: v1", "3: 1 v1"]);
    // Another's write, and a read that waited behind a write of the watcher's own: all commit at once.
    m.send(b, get_and_watch("/a"));
    m.send(b, create("/b"));
    m.send(b, get("/b"));
    m.send(a, set("/a", b"2"));
    m.send(b, create("/c"));
    m.send(b, get("/a"));
    m.flush();
    let seen = m.seen(b);
    assert_eq!(seen, ["4: 1 v1", "5: /b", "6:  v0", "changed /a", "7: /c", "8: 2 v2"]);
}

#[test]
fn t4_a_watch_left_by_a_waiting_read_misses_nothing() {
    let mut m = Member::new();
    let (a, b) = two(&mut m);
    m.send(b, create("/b"));
    m.send(b, get_and_watch("/a"));
    m.send(a, set("/a", b"1"));
    m.send(a, set("/a", b"2"));
    m.flush();
    assert_eq!(
        m.seen(b),
        ["1: /b", "2: 0 v0", "changed /a"],
        "the read comes first, then what it did not see"
    );
}

#[test]
fn t4_events_come_in_the_order_of_the_changes() {
    let mut m = Member::new();
    let (a, b) = two(&mut m);
    for path in ["/a", "/a/x", "/n1", "/n2"] {
        m.send(b, exists_and_watch(path));
    }
    m.send(b, children_and_watch("/"));
    m.send(b, children_and_watch("/a"));
    m.forget();
    m.send(a, create("/n2"));
    m.send(a, set("/a", b"1"));
    m.send(a, create("/n1"));
    m.send(a, delete("/a/x"));
    m.flush();
    let events =
        ["created /n2", "children of /", "changed /a", "created /n1", "deleted /a/x", "children of /a"];
    assert_eq!(m.seen(b), events);
}

#[test]
fn t4_events_of_a_multi_come_in_the_order_of_its_operations() {
    let mut m = Member::new();
    let (a, b) = two(&mut m);
    m.send(b, watch_always("/", true));
    m.send(b, children_and_watch("/a"));
    m.forget();
    m.ask(a, multi(&[delete("/a/x"), set("/a", b"1"), delete("/a"), create("/a").into()])).unwrap();
    let events = ["deleted /a/x", "children of /a", "changed /a", "deleted /a", "created /a"];
    assert_eq!(m.seen(b), events);
}

#[test]
fn t4_an_event_carries_the_zxid_of_its_change() {
    let mut m = Member::new();
    let (a, b) = two(&mut m);
    m.send(b, get_and_watch("/a"));
    m.forget();
    m.send(a, create("/other"));
    m.send(a, set("/a", b"1"));
    m.flush();
    let mut zxids = m.sights.iter().filter_map(|(to, sight)| match sight {
        crate::sight::Sight::Event { zxid, .. } if *to == b.conn => Some(*zxid),
        _ => None,
    });
    assert_eq!(zxids.next(), Some(Some(Zxid(m.applied().0))));
}

#[test]
fn t4_one_deletion_is_one_event_however_often_it_is_watched() {
    let mut m = Member::new();
    let (a, b) = two(&mut m);
    m.send(b, get_and_watch("/a/x"));
    m.send(b, children_and_watch("/a/x"));
    m.send(b, watch_always("/a/x", false));
    m.send(b, watch_always("/a", true));
    m.send(b, watch_always("/", true));
    m.forget();
    m.ask(a, delete("/a/x")).unwrap();
    assert_eq!(m.seen(b), ["deleted /a/x"]);
}

#[test]
fn t4_ephemerals_that_go_with_their_session_are_told() {
    let mut m = Member::new();
    let (a, b) = two(&mut m);
    m.ask(a, create("/e1").ephemeral()).unwrap();
    m.ask(a, create("/e2").ephemeral()).unwrap();
    m.send(b, exists_and_watch("/e1"));
    m.send(b, exists_and_watch("/e2"));
    m.send(b, children_and_watch("/"));
    m.forget();
    m.send(a, close_session());
    assert_eq!(m.seen(b), [""; 0]);
    m.flush();
    assert_eq!(m.seen(b), ["deleted /e1", "children of /", "deleted /e2"]);
}

#[test]
fn t4_persistent_watches_stay_and_recursive_ones_reach_below() {
    let mut m = Member::new();
    let (a, b) = two(&mut m);
    m.send(b, watch_always("/a", false));
    let c = m.join();
    m.send(c, watch_always("/a", true));
    m.forget();
    for _ in 0..2 {
        m.ask(a, set("/a", b"1")).unwrap();
        m.ask(a, set("/a/x", b"1")).unwrap();
        m.ask(a, create("/a/x/deep")).unwrap();
        m.ask(a, create("/a/y")).unwrap();
        m.ask(a, delete("/a/y")).unwrap();
        m.ask(a, delete("/a/x/deep")).unwrap();
        m.ask(a, create("/ab")).unwrap();
        m.ask(a, delete("/ab")).unwrap();
        assert_eq!(m.seen(b), ["changed /a", "children of /a", "children of /a"]);
        let below = ["changed /a", "changed /a/x", "created /a/x/deep", "created /a/y", "deleted /a/y"];
        let mut expected = below.to_vec();
        expected.push("deleted /a/x/deep");
        assert_eq!(m.seen(c), expected);
    }
}

#[test]
fn t4_removed_watches_are_silent() {
    let mut m = Member::new();
    let (a, b) = two(&mut m);
    m.send(b, get_and_watch("/a"));
    m.send(b, children_and_watch("/a"));
    m.send(b, check_watches("/a", 2));
    m.send(b, remove_watches("/a", 2));
    m.send(b, check_watches("/a", 2));
    m.send(b, remove_watches("/a", 4));
    m.ask(a, set("/a", b"1")).unwrap();
    m.ask(a, create("/a/y")).unwrap();
    let seen = m.seen(b);
    let expected = ["1: 0 v0", "2: [x]", "3: ok", "4: ok", "5: NoWatcher", "6: NoWatcher", "children of /a"];
    assert_eq!(seen, expected);
}

#[test]
fn t4_watches_go_with_their_connection_not_with_their_session() {
    let mut m = Member::new();
    let (a, b) = two(&mut m);
    m.send(b, get_and_watch("/a"));
    m.send(b, watch_always("/", true));
    m.hang_up(b);
    assert_eq!(m.server.summary().watch_count, 0);
    let b = m.rejoin(b, 10_000);
    m.ask(a, set("/a", b"1")).unwrap();
    assert_eq!(m.seen(b), [""; 0]);
}

#[test]
fn t4_a_failed_write_fires_nothing() {
    let mut m = Member::new();
    let (a, b) = two(&mut m);
    m.send(b, watch_always("/", true));
    m.forget();
    m.ask(a, create("/a")).unwrap_err();
    m.ask(a, delete("/a")).unwrap_err();
    m.ask(a, multi(&[set("/a", b"1"), delete("/missing")])).unwrap();
    assert_eq!(m.seen(b), [""; 0]);
}

#[test]
fn t4_a_connection_that_is_closed_hears_nothing_more() {
    // Its watches are gone at the close, so a later answer would show a change that was never told.
    let mut m = Member::new();
    let (a, b) = two(&mut m);
    m.send(b, get_and_watch("/a"));
    m.send(b, create("/b"));
    m.send(b, unknown());
    m.send(b, create("/c"));
    m.send(b, get("/a"));
    m.send(a, set("/a", b"1"));
    m.send(b, create("/d"));
    m.send(b, get("/a"));
    m.flush();
    let seen = m.seen(b);
    assert_eq!(seen, ["1: 0 v0", "2: /b", "3: Unimplemented", "closed: Protocol"]);
}
