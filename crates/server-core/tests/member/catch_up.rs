//! T4 across a lost connection: a client that comes back says what it watches and what it saw last.

use crate::{
    member::{Client, Member, TIMEOUT_MS},
    sight::Sight,
    wire::{WatchedPaths, create, delete, set, set_watches},
};

/// A client that left at the zxid that is returned, and what happened since.
fn away(m: &mut Member) -> (Client, Client, i64) {
    let (a, b) = (m.join(), m.join());
    for path in ["/same", "/changed", "/replaced", "/gone", "/parent", "/quiet"] {
        m.ask(a, create(path)).unwrap();
    }
    let seen = m.applied().to_wire();
    m.hang_up(b);
    m.ask(a, set("/changed", b"1")).unwrap();
    m.ask(a, delete("/replaced")).unwrap();
    m.ask(a, create("/replaced")).unwrap();
    m.ask(a, delete("/gone")).unwrap();
    m.ask(a, create("/parent/child")).unwrap();
    m.ask(a, create("/born")).unwrap();
    let b = m.rejoin(b, TIMEOUT_MS);
    m.forget();
    (a, b, seen)
}

const ALL: WatchedPaths<'_> = WatchedPaths {
    data: &["/same", "/changed", "/replaced", "/gone", "/parent"],
    exist: &["/born", "/unborn"],
    child: &["/parent", "/gone", "/quiet"],
    persistent: &["/same"],
    recursive: &["/parent"],
};

#[test]
fn t4_set_watches_tells_what_was_missed_and_watches_the_rest() {
    let mut m = Member::new();
    let (a, b, seen) = away(&mut m);
    m.send(b, set_watches(seen, &ALL));
    let catch_up_has_no_zxid =
        m.sights.iter().all(|(_, sight)| !matches!(sight, Sight::Event { zxid: Some(_), .. }));
    assert!(catch_up_has_no_zxid);
    let missed = ["changed /changed", "changed /replaced", "deleted /gone", "created /born"];
    let mut expected = missed.to_vec();
    expected.extend(["children of /parent", "deleted /gone", "-8: ok"]);
    assert_eq!(m.seen(b), expected, "events, then the reply");
    // A watch whose event was sent is gone.
    for path in ["/changed", "/replaced", "/born"] {
        m.ask(a, set(path, b"2")).unwrap();
    }
    assert_eq!(m.seen(b), [""; 0]);
    m.ask(a, set("/same", b"2")).unwrap();
    m.ask(a, set("/parent", b"2")).unwrap();
    m.ask(a, create("/unborn")).unwrap();
    m.ask(a, create("/quiet/child")).unwrap();
    m.ask(a, set("/same", b"3")).unwrap();
    m.ask(a, delete("/parent/child")).unwrap();
    let events = ["changed /same", "changed /parent", "created /unborn", "children of /quiet"];
    let mut expected = events.to_vec();
    expected.extend(["changed /same", "deleted /parent/child"]);
    assert_eq!(m.seen(b), expected);
}

#[test]
fn t4_set_watches_with_minus_one_takes_everything_for_missed() {
    let mut m = Member::new();
    let (_, b, _) = away(&mut m);
    let watched = WatchedPaths { data: &["/same", "/"], child: &["/quiet", "/"], ..WatchedPaths::default() };
    m.send(b, set_watches(-1, &watched));
    let expected = ["changed /same", "changed /", "children of /quiet", "children of /", "-8: ok"];
    assert_eq!(m.seen(b), expected, "a zxid is compared as a signed number");
    assert_eq!(m.server.summary().watch_count, 0);
}

#[test]
fn t4_set_watches_with_the_current_zxid_has_missed_nothing() {
    let mut m = Member::new();
    let (a, b, _) = away(&mut m);
    let watched =
        WatchedPaths { data: &["/same", "/changed"], child: &["/parent"], ..WatchedPaths::default() };
    m.send(b, set_watches(m.applied().to_wire(), &watched));
    assert_eq!(m.seen(b), ["-8: ok"]);
    m.ask(a, set("/changed", b"")).unwrap();
    m.ask(a, delete("/parent/child")).unwrap();
    assert_eq!(m.seen(b), ["changed /changed", "children of /parent"]);
}

#[test]
fn t4_set_watches_waits_for_the_writes_before_it() {
    let mut m = Member::new();
    let (a, b, _) = away(&mut m);
    let seen = m.applied().to_wire();
    m.send(b, set("/changed", b"mine"));
    let watched = WatchedPaths { data: &["/changed", "/same"], ..WatchedPaths::default() };
    m.send(b, set_watches(seen, &watched));
    m.send(a, set("/same", b"later"));
    assert_eq!(m.seen(b), [""; 0]);
    m.flush();
    assert_eq!(m.seen(b), ["1: v2", "changed /changed", "-8: ok", "changed /same"]);
}

#[test]
fn t4_set_watches_sent_with_the_handshake_is_held_until_it_is_answered() {
    let mut m = Member::new();
    let (a, _, _) = away(&mut m);
    let conn = m.dial();
    m.shake_hands(conn, TIMEOUT_MS, ostler_proto::id::SessionId::NONE, &[0; 16]);
    let watched = WatchedPaths { data: &["/same"], exist: &["/born"], ..WatchedPaths::default() };
    m.send(conn, set_watches(m.applied().to_wire(), &watched));
    assert_eq!(m.seen(conn), [""; 0]);
    m.flush();
    assert_eq!(m.seen(conn), ["connected for 10000", "created /born", "-8: ok"]);
    m.ask(a, set("/same", b"")).unwrap();
    assert_eq!(m.seen(conn), ["changed /same"]);
}
