//! Servers that are cut off from their ensemble.

use crate::rig::{PASSWORD, Rig, RigEvent, SESSION, TIMEOUT, config, get};
use ostler_client_core::{Config, ConnectionState, Failure, Input, Mono};
use ostler_proto::{id::SessionId, request::Request};

fn read_only() -> Rig {
    Rig::read_only(config())
}

#[test]
fn a_read_write_server_found_by_a_probe_gets_a_new_session() {
    let mut rig = read_only();
    assert_eq!(rig.take_events(), [RigEvent::State(ConnectionState::ReadOnly, Some(SessionId(8)))]);
    let mut probes = Vec::new();
    let start = rig.now;
    while probes.len() < 3 {
        rig.deadline();
        assert!(rig.now > start, "not at once");
        probes.extend(rig.take_events());
    }
    assert!(rig.now.since(start) < TIMEOUT / 3);
    assert!(probes.iter().all(|heard| matches!(heard, RigEvent::Probe(_))), "{probes:?}");
    rig.step(Input::FoundReadWrite { host: 2 });
    rig.deadline();
    assert_eq!(rig.wanted.unwrap().1, 2);
    assert_eq!(rig.connect().0, SessionId::NONE, "no other server knows the session");
    rig.grant(SESSION, TIMEOUT, false);
    assert_eq!(rig.take_events().last(), Some(&RigEvent::State(ConnectionState::Reconnected, Some(SESSION))));
}

#[test]
fn a_client_with_one_server_does_not_look_for_another() {
    let mut rig = Rig::read_only(Config { hosts: 1, ..config() });
    rig.take_events();
    while rig.now.since(Mono::START) < TIMEOUT / 4 {
        rig.deadline();
    }
    assert_eq!(rig.take_events(), []);
}

/// A session that only the read-only server knows is of no use elsewhere.
#[test]
fn credentials_are_those_of_the_ensembles_session() {
    assert!(read_only().session.credentials().is_none());
    let credentials = Rig::online().session.credentials().unwrap();
    assert_eq!((credentials.session, credentials.password), (SESSION, PASSWORD));
    let shown = format!("{credentials:?}");
    assert!(shown.contains(&format!("{SESSION:?}")) && !shown.contains("7, 7"), "{shown}");
}

#[test]
fn a_session_of_the_ensemble_is_kept_at_a_read_only_server() {
    let mut rig = Rig::online_with(Config { read_only: true, ..config() });
    rig.lose();
    rig.deadline();
    assert_eq!(rig.connect().0, SESSION);
    rig.grant(SESSION, TIMEOUT, true);
    rig.lose();
    rig.deadline();
    assert_eq!(rig.connect().0, SESSION);
}

#[test]
fn an_error_instead_of_the_handshake_leads_to_the_next_server() {
    let mut rig = Rig::new(config());
    rig.deadline();
    let host = rig.wanted.unwrap().1;
    rig.connect();
    rig.frame(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, 0xff, 0xff, 0x89]);
    rig.deadline();
    assert_ne!(rig.wanted.unwrap().1, host);
}

#[test]
fn requests_bound_to_a_read_only_servers_session_fail_in_the_next_session() {
    let mut rig = read_only();
    rig.lose();
    rig.take_events();
    let bound = rig.ask_as(&get("/bound", false), Some(SessionId(8)), None);
    rig.get("/free");
    rig.deadline();
    rig.connect();
    rig.grant(SESSION, TIMEOUT, false);
    assert_eq!(rig.sent(), [(1, get("/free", false))]);
    assert!(rig.take_events().contains(&RigEvent::Failed(bound, Failure::SessionChanged)));
}

/// A server that is cut off knows a session by its password alone, and answers pings long after the ensemble has
/// expired it.
#[test]
fn a_read_only_server_does_not_prove_that_a_session_of_the_ensemble_lives() {
    let mut rig = Rig::online_with(Config { read_only: true, ..config() });
    let start = rig.now;
    rig.wait(TIMEOUT / 4);
    for _ in 0..2 {
        rig.lose();
        rig.deadline();
        assert_eq!(rig.connect().0, SESSION);
        rig.grant(SESSION, TIMEOUT, true);
        rig.get("/a");
        let (xid, _) = rig.sent()[0];
        rig.reply(xid, 0, 0);
    }
    while rig.session.session_at(rig.now).is_some() {
        for (xid, _) in rig.sent() {
            rig.reply(xid, 0, 0);
        }
        rig.deadline();
        assert!(rig.now.since(start) <= TIMEOUT, "it is never lost");
    }
    assert_eq!(rig.now.since(start), TIMEOUT);
    assert_eq!(rig.take_events().last(), Some(&RigEvent::State(ConnectionState::Lost, Some(SESSION))));
    assert_eq!(rig.connect().0, SessionId::NONE);
}

#[test]
fn a_session_that_returns_from_a_read_only_server_lives_on() {
    let mut rig = Rig::online_with(Config { read_only: true, ..config() });
    rig.lose();
    rig.deadline();
    rig.connect();
    rig.grant(SESSION, TIMEOUT, true);
    rig.wait(TIMEOUT / 4);
    rig.reattach();
    assert_eq!(rig.session.session_at(rig.now + TIMEOUT * 7 / 8), Some(SESSION));
}

#[test]
fn watches_of_a_read_only_servers_session_end_with_it() {
    let mut rig = read_only();
    rig.take_events();
    for (watch, session, path) in [(1, Some(SessionId(8)), "/bound"), (2, None, "/free")] {
        rig.ask_as(&get(path, true), session, Some(watch));
        let (xid, _) = rig.sent()[0];
        rig.reply(xid, 0, 0);
    }
    rig.take_events();
    rig.step(Input::FoundReadWrite { host: 2 });
    rig.deadline();
    rig.connect();
    rig.take_events();
    rig.grant(SESSION, TIMEOUT, false);
    let back = RigEvent::State(ConnectionState::Reconnected, Some(SESSION));
    assert_eq!(rig.take_events(), [RigEvent::WatchesEnded(vec![1]), back]);
    let sent = rig.sent();
    let [(_, Request::SetWatches(set))] = &sent[..] else { panic!("{sent:?}") };
    assert_eq!(set.data, ["/free"]);
}
