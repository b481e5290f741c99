//! T3: a multi succeeds or fails as a whole.

use crate::{
    member::Member,
    wire::{check, children_and_watch, create, delete, exists_and_watch, get, multi, set, set_at},
};
use ostler_proto::id::Zxid;

#[test]
fn t3_a_multi_succeeds_or_fails_as_a_whole() {
    let mut m = Member::new();
    let (a, b) = (m.join(), m.join());
    m.ask(a, create("/kept").data(b"0")).unwrap();
    m.send(b, exists_and_watch("/new"));
    m.send(b, children_and_watch("/"));
    m.forget();
    let before = m.contents();
    let good = [create("/new").into(), set("/kept", b"1"), delete("/kept"), create("/kept/../x").into()];
    m.send(a, multi(&good));
    m.flush();
    assert_eq!(m.seen(a), ["2: (undone, undone, undone, NoNode)"]);
    assert_eq!(m.contents(), before);
    assert_eq!(m.seen(b), [""; 0], "what did not happen is told to nobody");
    m.send(a, multi(&good[..3]));
    m.flush();
    assert_eq!(m.seen(a), ["3: (/new, v1, ok)"]);
    assert_eq!(m.seen(b), ["created /new", "children of /"]);
    assert!(m.has("/new") && !m.has("/kept"));
}

#[test]
fn t3_operations_after_the_one_that_fails_are_not_tried() {
    let mut m = Member::new();
    let a = m.join();
    let ops = [check("/", 0), check("/", 7), check("/", 9), create("/x").into()];
    m.send(a, multi(&ops));
    m.flush();
    assert_eq!(m.seen(a), ["1: (undone, BadVersion, RuntimeInconsistency, RuntimeInconsistency)"]);
}

#[test]
fn t3_a_multi_sees_its_own_earlier_operations() {
    let mut m = Member::new();
    let a = m.join();
    let ops = [
        create("/p").into(),
        create("/p/n-").sequential().into(),
        create("/p/n-").sequential().with_stat().into(),
        set_at("/p", Some(b"x"), 0),
        check("/p", 1),
        delete("/p/n-0000000000"),
        create("/p/n-0000000000").into(),
    ];
    m.send(a, multi(&ops));
    m.flush();
    assert_eq!(m.seen(a), ["1: (/p, /p/n-0000000000, /p/n-0000000001, v1, ok, ok, /p/n-0000000000)"]);
    let stat = m.server.tree().get("/p").unwrap().stat;
    assert_eq!((stat.czxid, stat.pzxid, stat.cversion), (Zxid(2), Zxid(2), 3), "all have one zxid");
}

#[test]
fn t3_a_multi_sees_the_writes_before_it_that_are_not_on_disk() {
    let mut m = Member::new();
    let (a, b) = (m.join(), m.join());
    m.send(a, create("/p"));
    m.send(b, multi(&[create("/p/x").into(), set_at("/p", None, 0)]));
    m.send(a, create("/p/x"));
    m.send(a, set_at("/p", Some(b"late"), 0));
    m.flush();
    assert_eq!(m.seen(a), ["1: /p", "2: NodeExists", "3: BadVersion"]);
    assert_eq!(m.seen(b), ["1: (/p/x, v1)"]);
    assert_eq!(m.data("/p"), None, "null data stays null");
}

#[test]
fn t3_a_failed_multi_leaves_pending_writes_as_they_were() {
    let mut m = Member::new();
    let (a, b) = (m.join(), m.join());
    m.ask(a, create("/p").data(b"0")).unwrap();
    m.ask(a, create("/p/old")).unwrap();
    // On its way to the disk: /p is set, /p/old is deleted, /p/new is created.
    m.send(a, set("/p", b"1"));
    m.send(a, delete("/p/old"));
    m.send(a, create("/p/new"));
    let failing = [
        set("/p", b"2"),
        delete("/p/new"),
        create("/p/old").into(),
        create("/p/n-").sequential().into(),
        check("/missing", 0),
    ];
    m.send(b, multi(&failing));
    // Each of these depends on what the multi touched.
    m.send(a, set_at("/p", Some(b"3"), 1));
    m.send(a, create("/p/n-").sequential());
    m.send(a, delete("/p/new"));
    m.send(a, create("/p/old"));
    m.flush();
    assert_eq!(m.seen(b), ["1: (undone, undone, undone, undone, NoNode)"]);
    let seen = m.seen(a);
    assert_eq!(seen, ["3: v1", "4: ok", "5: /p/new", "6: v2", "7: /p/n-0000000002", "8: ok", "9: /p/old"]);
}

#[test]
fn t3_an_empty_multi_and_a_failed_one_take_a_zxid_each() {
    let mut m = Member::new();
    let a = m.join();
    let (empty, failed) = (m.send(a, multi(&[])), m.send(a, multi(&[delete("/missing")])));
    m.send(a, get("/"));
    m.flush();
    assert_eq!(m.reply(a, empty).zxid, Some(Zxid(2)));
    assert_eq!(m.reply(a, failed).zxid, Some(Zxid(3)));
}

#[test]
fn t3_a_multi_is_in_the_tree_as_a_whole_or_not_at_all_after_a_crash() {
    for unreported in 0..=1 {
        let mut m = Member::new();
        let a = m.join();
        m.send(a, multi(&[create("/one").into(), create("/two").into()]));
        m.crash(unreported);
        assert_eq!((m.has("/one"), m.has("/two")), (unreported == 1, unreported == 1));
    }
}
