//! Pings, silence, and the time from which a session must be taken for lost.

use crate::rig::{PING, Rig, RigEvent, SESSION, TIMEOUT, config};
use ostler_client_core::{Config, ConnectionState, Failure, Input, Mono};
use ostler_proto::{
    error::ErrorCode,
    id::SessionId,
    request::{MultiOp, PathVersion, Request},
};
use std::time::Duration;

const PING_AFTER: Duration = Duration::from_millis(3750);
const SILENT_AFTER: Duration = Duration::from_secs(15);

#[test]
fn an_idle_connection_is_pinged() {
    let mut rig = Rig::online();
    let start = rig.now;
    rig.deadline();
    assert_eq!((rig.now.since(start), rig.sent()), (PING_AFTER, vec![(PING, Request::Ping)]));
    rig.reply(PING, 0, 0);
    let start = rig.now;
    rig.deadline();
    assert_eq!((rig.now.since(start), rig.sent().len()), (PING_AFTER, 1));
}

#[test]
fn a_connection_with_unanswered_requests_is_pinged() {
    let mut rig = Rig::online();
    // The client sends a request each second. The server answers none.
    let mut pinged = Vec::new();
    for second in 1..15 {
        rig.wait(Duration::from_secs(1));
        rig.step(Input::Deadline);
        rig.get("/a");
        pinged.extend(rig.sent().contains(&(PING, Request::Ping)).then_some(second));
    }
    assert_eq!(pinged, [8]);
}

#[test]
fn a_silent_connection_is_suspended_and_then_lost() {
    let mut rig = Rig::online();
    let start = rig.now;
    while rig.wanted.is_some() {
        rig.deadline();
    }
    assert_eq!(rig.now.since(start), SILENT_AFTER);
    assert_eq!(rig.take_events(), [RigEvent::State(ConnectionState::Suspended, Some(SESSION))]);
    let waiting = rig.get("/a");
    while rig.heard.is_empty() {
        rig.deadline();
    }
    assert_eq!(rig.now.since(start), TIMEOUT);
    let lost = RigEvent::State(ConnectionState::Lost, Some(SESSION));
    assert_eq!(rig.take_events(), [lost, RigEvent::Failed(waiting, Failure::SessionExpired)]);
    assert_eq!(rig.session.session_at(rig.now), None);
}

#[test]
fn the_session_time_counts_from_a_request_that_the_leader_has_heard_of() {
    let mut rig = Rig::online();
    let start = rig.now;
    assert!(lives_until(&rig, start, 30), "the leader has made the session");
    rig.wait(Duration::from_secs(4));
    rig.get("/a");
    // The time of the late answer proves nothing more than the time of the request.
    rig.wait(Duration::from_secs(5));
    rig.reply(1, 1, 0);
    assert!(lives_until(&rig, start, 30), "a follower has answered, and can die before it reports");
    rig.wait(Duration::from_millis(999));
    rig.get("/a");
    rig.reply(2, 1, 0);
    assert!(lives_until(&rig, start, 30), "its last report can be from before the first answer");
    rig.wait(Duration::from_millis(1));
    rig.get("/a");
    rig.reply(3, 1, 0);
    assert!(lives_until(&rig, start, 34), "it has lived for half a tick since then");
}

/// A follower that is cut off from its leader answers pings and reads, and no writes.
#[test]
fn pings_and_reads_prove_nothing_while_something_is_held() {
    let mut rig = holding();
    let start = rig.now;
    while rig.session.session_at(rig.now).is_some() {
        if rig.session.state().state == ConnectionState::Suspended {
            rig.deadline();
            rig.attach();
            rig.take_events();
        }
        for (xid, request) in rig.sent() {
            if request == Request::Ping {
                rig.reply(xid, 0, 0);
            }
        }
        rig.deadline();
    }
    assert_eq!(rig.now.since(start), TIMEOUT);
    assert!(rig.take_events().contains(&RigEvent::State(ConnectionState::Lost, Some(SESSION))));
}

#[test]
fn writes_keep_a_held_session_alive() {
    let mut rig = holding();
    let start = rig.now;
    let mut proofs = Vec::new();
    while rig.now.since(start) < 3 * TIMEOUT {
        for (xid, request) in rig.sent() {
            rig.reply(xid, 0, 0);
            proofs.extend((request == proof()).then(|| rig.now.since(start)));
        }
        rig.deadline();
    }
    assert_eq!(rig.take_events(), [], "the session is neither lost nor suspended");
    let apart: Vec<_> = proofs.windows(2).map(|two| two[1] - two[0]).collect();
    assert!(apart.len() >= 10 && apart.iter().all(|apart| *apart == TIMEOUT / 4), "{proofs:?}");
}

/// The leader has heard of what was answered half a tick before the write was sent.
#[test]
fn a_write_proves_the_answers_half_a_tick_before_it() {
    let mut rig = holding();
    let start = rig.now;
    rig.wait(Duration::from_secs(4));
    rig.get("/a");
    rig.reply(2, 1, 0);
    rig.wait(Duration::from_secs(1));
    rig.get("/a");
    rig.reply(3, 1, 0);
    assert!(lives_until(&rig, start, 30), "no write yet");
    rig.ask(&proof());
    rig.get("/a");
    rig.reply(4, 1, 0);
    assert!(lives_until(&rig, start, 34), "what was answered a second before it");
    rig.reply(5, 1, 0);
    assert!(lives_until(&rig, start, 34), "and not what came after it");
}

#[test]
fn a_refused_write_proves_nothing() {
    let mut rig = holding();
    let start = rig.now;
    for second in 1..30 {
        rig.wait(Duration::from_secs(1));
        rig.ask(&proof());
        rig.reply(1 + second, 1, ErrorCode::NotReadOnly.code());
    }
    rig.wait(Duration::from_secs(1));
    assert_eq!((rig.now.since(start), rig.session.session_at(rig.now)), (TIMEOUT, None));
}

/// The failing writes come so often that they would delay the proof, if they counted.
#[test]
fn failing_writes_of_a_holder_do_not_delay_the_proof() {
    let mut rig = holding();
    let (start, create) = (rig.now, Request::Delete(PathVersion { path: "/a".into(), version: 7 }));
    while rig.now.since(start) < 3 * TIMEOUT {
        let until = rig.now + Duration::from_secs(1);
        rig.ask(&create);
        while rig.now < until {
            for (xid, request) in rig.sent() {
                let failed = request == create;
                rig.reply(xid, 1, if failed { ErrorCode::BadVersion.code() } else { 0 });
            }
            rig.now = rig.session.next_deadline().unwrap().min(until);
            rig.step(Input::Deadline);
        }
    }
    assert!(rig.session.session_at(rig.now).is_some());
    assert!(
        rig.take_events().iter().all(|heard| matches!(heard, RigEvent::Reply(..))),
        "the session is neither lost nor suspended"
    );
}

/// The server may be cut off. There must be time for another one.
#[test]
fn a_holder_leaves_a_server_that_answers_no_writes() {
    let mut rig = holding();
    let start = rig.now;
    while rig.take_events().is_empty() {
        for (xid, request) in rig.sent() {
            if request == Request::Ping {
                rig.reply(xid, 0, 0);
            }
        }
        rig.deadline();
    }
    assert_eq!(rig.now.since(start), TIMEOUT / 4 + TIMEOUT * 3 / 8);
    assert_eq!(rig.session.state().state, ConnectionState::Suspended);
}

/// Servers with different settings grant different timeouts. Only a write proves which one counts.
#[test]
fn a_new_timeout_counts_for_a_holder_after_a_write() {
    for (granted, before_the_write, after_it) in [(10, 20, 20), (60, 30, 70)] {
        let mut rig = holding();
        let start = rig.now;
        rig.wait(Duration::from_secs(10));
        rig.lose();
        rig.deadline();
        rig.connect();
        rig.grant(SESSION, Duration::from_secs(granted), false);
        assert!(lives_until(&rig, start, before_the_write), "{granted} s are granted");
        rig.deadline();
        let xid = rig.sent()[0].0;
        rig.reply(xid, 1, 0);
        assert!(lives_until(&rig, start, after_it), "{granted} s are granted, and there is a proof");
    }
}

/// The new server may be cut off.
#[test]
fn a_holder_sends_a_proof_at_once_on_a_new_connection() {
    let mut rig = holding();
    let start = rig.now;
    rig.wait(Duration::from_secs(10));
    rig.reattach();
    rig.deadline();
    let sent = rig.sent();
    assert_eq!((rig.now.since(start), sent.len()), (Duration::from_secs(10), 1));
    assert_eq!(sent[0].1, proof());
    assert!(rig.session.session_at(start + TIMEOUT).is_none(), "the handshake is no proof");
    rig.reply(sent[0].0, 1, 0);
    let end = rig.now + TIMEOUT;
    assert!(rig.session.session_at(end - Duration::from_nanos(1)).is_some(), "the leader has heard of that");
    assert!(rig.session.session_at(end).is_none());
}

#[test]
fn a_hold_after_a_long_wait_is_proven_by_the_next_write() {
    let mut rig = Rig::online();
    let start = rig.now;
    while rig.now.since(start) < 2 * TIMEOUT {
        for (xid, _) in rig.sent() {
            rig.reply(xid, 0, 0);
        }
        rig.deadline();
    }
    rig.sent();
    rig.step(Input::Hold(SESSION));
    assert!(!rig.session.is_proven(SESSION), "the last write was long ago");
    assert!(rig.session.session_at(rig.now).is_some(), "without holds it counts as alive");
    rig.ask(&proof());
    let xid = rig.sent()[0].0;
    rig.reply(xid, 1, 0);
    assert!(rig.session.is_proven(SESSION));
    rig.step(Input::Release(SESSION));
    assert!(!rig.session.is_proven(SESSION));
}

#[test]
fn a_hold_sends_no_proof_if_proving_is_off() {
    let mut rig = Rig::online_with(Config { prove_holding: false, ..config() });
    rig.step(Input::Hold(SESSION));
    assert!(rig.session.is_proven(SESSION), "the caller must not wait for a proof that never comes");
    rig.deadline();
    assert_eq!(rig.sent(), [(PING, Request::Ping)]);
}

/// Whether the session is taken to live until `seconds` after `start`, and no longer.
fn lives_until(rig: &Rig, start: Mono, seconds: u64) -> bool {
    let end = start + Duration::from_secs(seconds);
    rig.session.session_at(end - Duration::from_nanos(1)).is_some() && rig.session.session_at(end).is_none()
}

/// A new session in which something is held.
fn holding() -> Rig {
    let mut rig = Rig::online();
    rig.step(Input::Hold(SESSION));
    assert!(rig.session.is_proven(SESSION), "a quorum has agreed on it");
    // The first write creates the znode of the holder.
    rig.ask(&proof());
    rig.reply(1, 1, 0);
    rig.sent();
    rig.take_events();
    rig
}

fn proof() -> Request<'static> {
    Request::Multi(vec![MultiOp::Check(PathVersion { path: "/".into(), version: -1 })])
}

#[test]
fn a_stopped_process_reports_the_loss_at_its_next_step() {
    let mut rig = Rig::online();
    rig.wait(TIMEOUT);
    assert_eq!(rig.session.session_at(rig.now), None, "before anybody was woken");
    let id = rig.ask_as(&crate::rig::get("/a", false), Some(SESSION), None);
    assert!(rig.sent().is_empty(), "nothing goes out for a session that may be gone");
    let heard = rig.take_events();
    assert!(heard.contains(&RigEvent::State(ConnectionState::Lost, Some(SESSION))));
    assert_eq!(heard.last(), Some(&RigEvent::Failed(id, Failure::SessionChanged)));
}

#[test]
fn a_late_reply_can_prove_that_the_session_lives() {
    let mut rig = Rig::online();
    rig.wait(Duration::from_secs(20));
    rig.get("/a");
    rig.reply(1, 1, 0);
    rig.wait(Duration::from_secs(5));
    rig.get("/a");
    rig.wait(Duration::from_secs(6));
    assert_eq!(rig.session.session_at(rig.now), None);
    rig.reply(2, 1, 0);
    assert_eq!(rig.session.session_at(rig.now), Some(SESSION));
}

#[test]
fn a_session_reported_lost_stays_lost_after_a_late_reply() {
    let mut rig = Rig::online();
    let attempt = rig.attempt();
    rig.get("/a");
    rig.wait(TIMEOUT);
    assert!(rig.session.is_overdue(rig.now));
    rig.step(Input::Deadline);
    assert!(!rig.session.is_overdue(rig.now));
    let reply = [0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0];
    rig.step(Input::Frame { attempt, payload: &reply });
    assert_eq!(rig.session.session_at(rig.now), None, "a reply that comes now proves nothing");
}

#[test]
fn a_loss_is_followed_by_a_new_session_or_the_end_as_configured() {
    let mut rig = Rig::online();
    rig.wait(TIMEOUT);
    rig.step(Input::Deadline);
    rig.take_events();
    let (asked, _, password) = rig.connect();
    assert_eq!((asked, password), (SessionId::NONE, vec![0; 16]));
    rig.grant(SessionId(5), TIMEOUT, false);
    assert_eq!(rig.take_events(), [RigEvent::State(ConnectionState::Reconnected, Some(SessionId(5)))]);

    let mut rig = Rig::online_with(Config { new_session_after_loss: false, ..config() });
    rig.wait(TIMEOUT);
    rig.step(Input::Deadline);
    let states = [ConnectionState::Suspended, ConnectionState::Lost, ConnectionState::Closed];
    let expected = states.map(|state| RigEvent::State(state, Some(SESSION)));
    assert_eq!(rig.take_events(), [&expected[..], &[RigEvent::Ended]].concat());
    let id = rig.get("/a");
    assert_eq!(rig.take_events(), [RigEvent::Failed(id, Failure::SessionExpired)]);
}

#[test]
fn a_handshake_without_the_session_means_lost() {
    let mut rig = Rig::online();
    rig.lose();
    let waiting = rig.get("/a");
    rig.deadline();
    assert_eq!(rig.connect().0, SESSION);
    rig.take_events();
    rig.grant(SessionId::NONE, Duration::ZERO, false);
    let lost = RigEvent::State(ConnectionState::Lost, Some(SESSION));
    assert_eq!(rig.take_events(), [lost, RigEvent::Failed(waiting, Failure::SessionExpired)]);
    let before = rig.now;
    rig.deadline();
    assert_eq!(rig.now, before, "the next attempt is not delayed");
    assert_eq!(rig.connect().0, SessionId::NONE);
}

#[test]
fn a_slow_attempt_is_followed_by_the_next_server() {
    let mut rig = Rig::new(config());
    let mut hosts = Vec::new();
    for _ in 0..3 {
        rig.deadline();
        let start = rig.now;
        hosts.push(rig.wanted.unwrap().1);
        rig.deadline();
        assert_eq!(rig.now.since(start), config().connection_timeout / 3);
    }
    hosts.sort_unstable();
    assert_eq!(hosts, [0, 1, 2]);
}

/// One of the servers accepts connections and never answers.
#[test]
fn all_servers_are_tried_within_the_connection_timeout() {
    for hosts in 1..=5 {
        let config = Config { session_timeout: Duration::from_secs(40), ..Config::new(hosts, 1) };
        let limit = config.connection_timeout;
        let mut rig = Rig::new(config);
        let (begun, mut tried) = (rig.now, std::collections::BTreeSet::new());
        while rig.now.since(begun) < limit {
            rig.deadline();
            tried.extend(rig.wanted.map(|(_, host)| host));
        }
        assert_eq!(tried.len(), hosts, "of {hosts}");
    }
}

#[test]
fn results_of_an_abandoned_attempt_are_ignored() {
    let mut rig = Rig::online();
    let old = rig.attempt();
    rig.lose();
    rig.deadline();
    rig.take_events();
    rig.step(Input::Disconnected(old));
    rig.step(Input::Connected(old));
    rig.step(Input::Frame { attempt: old, payload: &[0; 16] });
    assert!(rig.take_events().is_empty() && rig.sent().is_empty() && rig.wanted.is_some());
}
