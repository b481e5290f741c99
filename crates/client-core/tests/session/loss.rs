//! The connection lost after every single message of an exchange.

use crate::rig::{Rig, RigEvent, SESSION, config, get};
use ostler_client_core::{ConnectionState, Failure, Input};
use ostler_proto::id::SessionId;

/// Five requests, of which the server answers the first `answered`; then the connection is lost. Each request has one outcome: its reply, or a failure that says whether it may have been done.
#[test]
fn each_request_has_exactly_one_outcome() {
    for answered in 0..=5 {
        let mut rig = Rig::online();
        let ids: Vec<u64> = (0..5).map(|_| rig.get("/a")).collect();
        for xid in 1..=answered {
            rig.reply(xid, 1, 0);
        }
        rig.lose();
        let mut expected: Vec<RigEvent> = Vec::new();
        for (n, id) in ids.iter().enumerate() {
            expected.push(match n < answered as usize {
                true => RigEvent::Reply(*id, 0),
                false => RigEvent::Failed(*id, Failure::ConnectionLoss),
            });
        }
        expected.push(RigEvent::State(ConnectionState::Suspended, Some(SESSION)));
        assert_eq!(rig.take_events(), expected);
        rig.deadline();
        rig.attach();
        assert!(rig.sent().is_empty(), "nothing is sent twice");
    }
}

/// The connection is lost in each phase before it is online. A waiting request is finally sent, once.
#[test]
fn a_waiting_request_survives_every_failed_attempt() {
    for phase in 0..4 {
        let mut rig = Rig::new(config());
        let id = rig.get("/a");
        rig.deadline();
        match phase {
            0 => rig.lose(),
            1 => {
                rig.connect();
                rig.lose();
            }
            2 => {
                rig.connect();
                rig.frame(b"nonsense");
            }
            _ => {
                rig.connect();
                rig.grant(SessionId::NONE, std::time::Duration::ZERO, false);
            }
        }
        assert!(rig.take_events().is_empty(), "phase {phase}");
        rig.deadline();
        rig.attach();
        assert_eq!(rig.sent(), [(1, get("/a", false))], "phase {phase}");
        rig.reply(1, 1, 0);
        assert_eq!(rig.take_events()[1], RigEvent::Reply(id, 0));
    }
}

#[test]
fn after_loss_the_next_server_is_tried_at_once_and_then_with_waits() {
    let mut rig = Rig::online();
    rig.wait(std::time::Duration::from_secs(2));
    let first = rig.wanted.unwrap().1;
    rig.lose();
    let start = rig.now;
    let mut tried = Vec::new();
    for _ in 0..3 {
        rig.deadline();
        tried.push(rig.wanted.unwrap().1);
        rig.lose();
    }
    assert_eq!(rig.now, start);
    assert_ne!(tried[0], first);
    rig.deadline();
    assert!(rig.now > start, "after a round there is a pause");
}

#[test]
fn short_connections_do_not_reset_the_waits() {
    let mut rig = Rig::online();
    let start = rig.now;
    for _ in 0..20 {
        rig.lose();
        rig.deadline();
        rig.attach();
    }
    assert!(rig.now > start + std::time::Duration::from_secs(1));
}

#[test]
fn a_foreign_session_in_the_handshake_is_refused() {
    let mut rig = Rig::online();
    rig.lose();
    rig.deadline();
    rig.connect();
    rig.take_events();
    rig.grant(SessionId(999), crate::rig::TIMEOUT, false);
    assert!(rig.take_events().is_empty() && rig.wanted.is_none());
    rig.step(Input::Deadline);
    assert_eq!(rig.session.session_at(rig.now), Some(SESSION));
}
