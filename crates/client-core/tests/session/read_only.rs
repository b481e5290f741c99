//! Servers that are cut off from their ensemble.

use crate::rig::{Heard, Rig, SESSION, TIMEOUT, config, get};
use ostler_client_core::{Config, ConnectionState, Failure, Input};
use ostler_proto::id::SessionId;

fn read_only() -> Rig {
    let mut rig = Rig::new(Config { read_only: true, ..config() });
    rig.deadline();
    rig.connect();
    rig.grant(SessionId(8), TIMEOUT, true);
    rig
}

#[test]
fn a_server_that_can_write_is_looked_for_and_gets_a_new_session() {
    let mut rig = read_only();
    assert_eq!(rig.heard(), [Heard::State(ConnectionState::ReadOnly, Some(SessionId(8)))]);
    let mut probes = Vec::new();
    let start = rig.now;
    while probes.len() < 3 {
        rig.deadline();
        probes.extend(rig.heard());
    }
    assert!(rig.now.since(start) < TIMEOUT / 3);
    assert!(probes.iter().all(|heard| matches!(heard, Heard::Probe(_))), "{probes:?}");
    rig.step(Input::FoundReadWrite { host: 2 });
    rig.deadline();
    assert_eq!(rig.wanted.unwrap().1, 2);
    assert_eq!(rig.connect().0, SessionId::NONE, "no other server knows the session");
    rig.grant(SESSION, TIMEOUT, false);
    assert_eq!(rig.heard().last(), Some(&Heard::State(ConnectionState::Reconnected, Some(SESSION))));
}

#[test]
fn a_session_that_others_know_is_kept_while_read_only() {
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
fn an_error_in_place_of_the_handshake_is_another_servers_turn() {
    let mut rig = Rig::new(config());
    rig.deadline();
    let host = rig.wanted.unwrap().1;
    rig.connect();
    rig.frame(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, 0xff, 0xff, 0x89]);
    rig.deadline();
    assert_ne!(rig.wanted.unwrap().1, host);
}

#[test]
fn what_is_bound_to_a_read_only_servers_session_does_not_reach_the_next() {
    let mut rig = read_only();
    rig.lose();
    rig.heard();
    let bound = rig.ask_as(&get("/bound", false), Some(SessionId(8)), None);
    rig.get("/free");
    rig.deadline();
    rig.connect();
    rig.grant(SESSION, TIMEOUT, false);
    assert_eq!(rig.sent(), [(1, get("/free", false))]);
    assert!(rig.heard().contains(&Heard::Failed(bound, Failure::SessionChanged)));
}
