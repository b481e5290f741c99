//! T1: persistent znodes stay, ephemeral ones go with their session.

use crate::{
    member::{Client, Member, TIMEOUT_MS},
    wire::{close_session, create, delete, multi, set},
};
use ostler_proto::{error::ErrorCode, id::Zxid, stat::EphemeralOwner};
use ostler_server_core::CoreConfig;

#[test]
fn t1_persistent_znodes_survive_every_restart() {
    let mut m = Member::new();
    let a = m.join();
    m.ask(a, create("/kept").data(b"one")).unwrap();
    m.ask(a, create("/kept/child").no_data()).unwrap();
    m.ask(a, create("/gone")).unwrap();
    m.ask(a, delete("/gone")).unwrap();
    let before = m.contents();
    for round in 1..=3 {
        m.crash(0);
        assert!(m.has("/kept/child") && !m.has("/gone"));
        if round == 1 {
            assert_eq!(m.contents(), before);
        }
        let b = m.join();
        m.ask(b, set("/kept", round.to_string().as_bytes())).unwrap();
        assert_eq!(m.ask(b, close_session()), Ok(ostler_proto::reply::Body::None));
        m.pass(100_000);
        m.flush();
    }
    assert_eq!(m.data("/kept").as_deref(), Some("3"));
    assert_eq!(m.server.tree().get("/kept").unwrap().stat.version, 3);
}

/// A session with an ephemeral that is committed and one that is only proposed.
fn with_ephemerals(m: &mut Member) -> Client {
    let a = m.join();
    m.ask(a, create("/e").ephemeral()).unwrap();
    m.send(a, create("/late").ephemeral());
    a
}

fn assert_gone(m: &Member) {
    assert!(!m.has("/e") && !m.has("/late"));
    assert_eq!(m.server.summary().ephemerals_count, 0);
    assert_eq!(m.server.tree().sessions().count(), m.server.summary().sessions);
}

#[test]
fn t1_ephemerals_vanish_with_their_session_when_it_is_closed() {
    let mut m = Member::new();
    let a = with_ephemerals(&mut m);
    m.send(a, close_session());
    m.flush();
    assert_eq!(m.seen(a), ["2: /late", "3: ok", "closed: ClosedByClient"]);
    assert_gone(&m);
}

/// No packet would hold a record that names them all, and no follower would get anything after it.
#[test]
fn the_end_of_a_session_with_very_many_ephemerals_is_a_small_record() {
    let mut m = Member::new();
    let (a, b) = (m.join(), m.join());
    m.ask(a, create(&format!("/{}", "x".repeat(700_000))).ephemeral()).unwrap();
    m.ask(a, create(&format!("/{}", "y".repeat(700_000))).ephemeral()).unwrap();
    m.ask(b, create("/others").ephemeral()).unwrap();
    m.send(a, close_session());
    m.flush();
    assert!(m.disk.records().last().unwrap().1.0.len() < 1000);
    assert_eq!(m.server.summary().ephemerals_count, 1);
    assert!(m.has("/others"));
}

#[test]
fn t1_ephemerals_vanish_with_their_session_when_it_expires() {
    let mut m = Member::new();
    let a = with_ephemerals(&mut m);
    m.hang_up(a);
    m.flush();
    m.pass(TIMEOUT_MS as u64 - 1);
    m.flush();
    assert!(m.has("/e") && m.has("/late"), "a lost connection does not end the session");
    m.pass(2002);
    m.flush();
    assert_gone(&m);
}

#[test]
fn t1_ephemerals_vanish_with_their_session_after_a_restart() {
    let mut m = Member::new();
    with_ephemerals(&mut m);
    m.crash(1);
    assert!(m.has("/e") && m.has("/late"), "the session is given its time to come back");
    m.pass(TIMEOUT_MS as u64 + 2000);
    m.flush();
    assert_gone(&m);
    m.crash(0);
    assert_gone(&m);
}

#[test]
fn t1_ephemerals_vanish_at_the_restart_after_a_close_that_reached_the_disk() {
    for close_session_paths in [true, false] {
        let mut m = Member::with(CoreConfig { close_session_paths, ..CoreConfig::default() });
        let a = with_ephemerals(&mut m);
        m.send(a, close_session());
        m.crash(usize::MAX);
        assert_gone(&m);
    }
}

#[test]
fn t1_the_ephemerals_of_a_closing_session_are_those_at_its_place_in_the_order() {
    for close_session_paths in [true, false] {
        let mut m = Member::with(CoreConfig { close_session_paths, ..CoreConfig::default() });
        let (a, b) = (m.join(), m.join());
        m.ask(a, create("/deleted").ephemeral()).unwrap();
        m.ask(a, create("/stolen").ephemeral()).unwrap();
        // All of this is still on its way to the disk when the session ends.
        m.send(a, create("/new").ephemeral());
        m.send(a, delete("/deleted"));
        m.send(b, multi(&[delete("/stolen"), create("/stolen").ephemeral().into()]));
        m.send(a, close_session());
        m.send(b, create("/new"));
        m.flush();
        assert_eq!(m.seen(b), ["1: (ok, /stolen)", "2: /new"]);
        assert!(m.has("/new") && m.has("/stolen") && !m.has("/deleted"));
        assert_eq!(m.server.ephemerals(), [(b.session, vec!["/stolen".to_string()])]);
        assert_eq!({ m.server.tree().get("/new").unwrap().stat.ephemeral_owner }, EphemeralOwner::NONE);
    }
}

#[test]
fn t1_an_ephemeral_has_an_owner_and_no_children() {
    let mut m = Member::new();
    let (a, b) = (m.join(), m.join());
    m.send(a, create("/e").ephemeral().with_stat());
    assert_eq!(m.ask(b, create("/e/x")), Err(ErrorCode::NoChildrenForEphemerals));
    assert_eq!({ m.server.tree().get("/e").unwrap().stat.ephemeral_owner }, EphemeralOwner(a.session.0));
    m.ask(b, delete("/e")).unwrap();
    m.ask(b, create("/e")).unwrap();
    m.ask(a, close_session()).unwrap();
    assert!(m.has("/e"), "it is another znode, which has no owner");
}

#[test]
fn t1_only_the_session_that_ends_loses_its_ephemerals() {
    let mut m = Member::new();
    let (a, b) = (m.join_for(5000), m.join_for(20_000));
    m.ask(a, create("/of-a").ephemeral()).unwrap();
    m.ask(b, create("/of-b").ephemeral()).unwrap();
    m.pass(7000);
    m.flush();
    assert!(!m.has("/of-a") && m.has("/of-b"));
    assert_eq!(m.seen(a), ["closed: SessionExpired"], "nothing is sent, the connection ends");
    assert_eq!(m.seen(b), [""; 0]);
}

#[test]
fn t1_a_restart_with_an_empty_log_is_a_fresh_member() {
    let mut m = Member::new();
    m.crash(0);
    assert_eq!(m.applied(), Zxid::ZERO);
    let a = m.join();
    assert_eq!(m.applied(), Zxid(1));
    m.ask(a, create("/a")).unwrap();
    assert_eq!(m.applied(), Zxid(2));
}
