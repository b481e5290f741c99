//! A standalone server gets other data while it runs.

use crate::{
    disk,
    member::{Member, TIMEOUT_MS},
    sight::Sight,
    wire::{create, exists, get},
};
use ostler_proto::error::ErrorCode;
use ostler_server_core::{CloseReason, Input, PersistOp};
use ostler_tree::Tree;

/// The tree of this moment, as a snapshot has it.
fn tree_of(m: &Member) -> Box<Tree> {
    Box::new(disk::restore(&m.server.tree().freeze(), m.config.types))
}

#[test]
fn a_restored_server_has_the_data_and_sessions_of_the_snapshot() {
    let mut m = Member::new();
    let a = m.join();
    m.ask(a, create("/kept")).unwrap();
    let snapshot = tree_of(&m);
    let at = snapshot.last_processed();
    let late = m.join();
    m.ask(late, create("/undone")).unwrap();
    m.step(Input::Restore { tree: snapshot });
    for client in [a, late] {
        let closed = m.sights.iter().any(|(conn, seen)| {
            *conn == client.conn && matches!(seen, Sight::Closed(CloseReason::NotServing))
        });
        assert!(closed, "{client:?} is disconnected");
    }
    assert!(matches!(m.disk.acts().last(), Some(PersistOp::Install(frozen)) if frozen.zxid == at));
    assert_eq!(m.server.restorations(), 0, "it is not on disk yet");
    m.flush();
    assert_eq!(m.server.restorations(), 1);
    let a = m.rejoin(a, TIMEOUT_MS);
    m.ask(a, exists("/kept")).unwrap();
    assert_eq!(m.ask(a, exists("/undone")), Err(ErrorCode::NoNode));
    let conn = m.dial();
    m.shake_hands(conn, TIMEOUT_MS, late.session, &ostler_proto::password::password_of(late.session));
    assert!(m.connected(conn).is_none(), "a session of after the snapshot is gone");
    m.ask(a, create("/new")).unwrap();
    assert_eq!(m.disk.last(), at.next(), "zxids go on from the snapshot's");
}

/// The acknowledgement of the disk for a proposal of before must not count for a new one with the same zxid.
#[test]
fn a_write_after_a_restoration_waits_for_its_own_record() {
    let mut m = Member::new();
    let a = m.join();
    m.ask(a, create("/kept")).unwrap();
    let snapshot = tree_of(&m);
    m.send(a, create("/undone"));
    m.send(a, create("/undone-too"));
    let of_before = m.disk.waiting();
    m.step(Input::Restore { tree: snapshot });
    let a = m.rejoin(a, TIMEOUT_MS);
    m.sights.clear();
    m.send(a, create("/new"));
    m.disk_does(of_before);
    m.disk_does(1);
    assert_eq!(m.server.restorations(), 1);
    assert!(m.sights.is_empty(), "the new write is not on disk: {:?}", m.sights);
    m.flush();
    m.ask(a, get("/new")).unwrap();
    assert_eq!(m.ask(a, exists("/undone")), Err(ErrorCode::NoNode));
}

/// The data of the first are not this server's any more, and those of the second are not on disk yet.
#[test]
fn a_restoration_is_done_when_the_one_that_took_its_place_is_on_disk() {
    let mut m = Member::new();
    let a = m.join();
    m.ask(a, create("/kept")).unwrap();
    let (first, second) = (tree_of(&m), tree_of(&m));
    m.step(Input::Restore { tree: first });
    let of_the_first = m.disk.waiting();
    m.step(Input::Restore { tree: second });
    m.disk_does(of_the_first);
    assert_eq!(m.server.restorations(), 0);
    m.flush();
    assert_eq!(m.server.restorations(), 2);
}

#[test]
fn a_restoration_by_a_later_snapshot_goes_forward() {
    let mut other = Member::new();
    let client = other.join();
    for at in 0..50 {
        other.ask(client, create(&format!("/n{at}"))).unwrap();
    }
    let mut m = Member::new();
    let a = m.join();
    m.ask(a, create("/old")).unwrap();
    let later = tree_of(&other);
    let at = later.last_processed();
    m.step(Input::Restore { tree: later });
    m.flush();
    let a = m.join();
    assert_eq!(m.ask(a, exists("/old")), Err(ErrorCode::NoNode));
    m.ask(a, exists("/n49")).unwrap();
    assert!(m.disk.last() > at);
}
