//! Pings, silence, and the moment from which a session must be taken for lost.

use crate::rig::{Heard, PING, Rig, SESSION, TIMEOUT, config};
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
fn a_connection_that_only_asks_is_pinged_too() {
    let mut rig = Rig::online();
    // The server takes each second a request, and answers none of them.
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
fn a_silent_connection_is_given_up_and_then_the_session() {
    let mut rig = Rig::online();
    let start = rig.now;
    while rig.wanted.is_some() {
        rig.deadline();
    }
    assert_eq!(rig.now.since(start), SILENT_AFTER);
    assert_eq!(rig.heard(), [Heard::State(ConnectionState::Suspended, Some(SESSION))]);
    let waiting = rig.get("/a");
    while rig.heard.is_empty() {
        rig.deadline();
    }
    assert_eq!(rig.now.since(start), TIMEOUT);
    let lost = Heard::State(ConnectionState::Lost, Some(SESSION));
    assert_eq!(rig.heard(), [lost, Heard::Failed(waiting, Failure::SessionExpired)]);
    assert_eq!(rig.session.session_at(rig.now), None);
}

#[test]
fn the_session_lives_from_what_a_leader_must_have_heard_of() {
    let mut rig = Rig::online();
    let start = rig.now;
    assert!(lives_until(&rig, start, 30), "the leader has made the session");
    rig.wait(Duration::from_secs(4));
    rig.get("/a");
    // The answer takes long; that it came so late proves nothing more.
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
fn what_only_a_server_says_proves_nothing_for_a_holder() {
    let mut rig = holding();
    let start = rig.now;
    while rig.session.session_at(rig.now).is_some() {
        if rig.session.state().state == ConnectionState::Suspended {
            rig.deadline();
            rig.attach();
            rig.heard();
        }
        for (xid, request) in rig.sent() {
            if request == Request::Ping {
                rig.reply(xid, 0, 0);
            }
        }
        rig.deadline();
    }
    assert_eq!(rig.now.since(start), TIMEOUT);
    assert!(rig.heard().contains(&Heard::State(ConnectionState::Lost, Some(SESSION))));
}

#[test]
fn writes_prove_that_a_holders_session_lives() {
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
    assert_eq!(rig.heard(), [], "neither lost nor suspended");
    let apart: Vec<_> = proofs.windows(2).map(|two| two[1] - two[0]).collect();
    assert!(apart.len() >= 10 && apart.iter().all(|apart| *apart == TIMEOUT / 4), "{proofs:?}");
}

/// The leader has heard of what was answered half a tick before the write was sent.
#[test]
fn a_write_proves_what_the_follower_reported_before() {
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

/// Failing writes come often enough to put off what is to prove something, if they counted.
#[test]
fn a_holder_is_not_lost_because_its_own_writes_fail() {
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
    assert!(rig.heard().iter().all(|heard| matches!(heard, Heard::Reply(..))), "neither lost nor suspended");
}

/// There is time for another server, if this one is cut off.
#[test]
fn a_server_that_answers_no_writes_is_given_up_by_a_holder() {
    let mut rig = holding();
    let start = rig.now;
    while rig.heard().is_empty() {
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

/// Servers that are set up differently grant different timeouts. Which of them counts, only a write shows.
#[test]
fn a_new_timeout_counts_for_a_holder_once_a_write_is_done() {
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

/// Its new server can be one that is cut off.
#[test]
fn a_holder_proves_its_session_anew_at_once_on_a_new_connection() {
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
fn whoever_holds_after_a_long_wait_is_sure_with_the_next_write() {
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
    assert!(rig.session.session_at(rig.now).is_some(), "it lives as far as others are concerned");
    rig.ask(&proof());
    let xid = rig.sent()[0].0;
    rig.reply(xid, 1, 0);
    assert!(rig.session.is_proven(SESSION));
    rig.step(Input::Release(SESSION));
    assert!(!rig.session.is_proven(SESSION));
}

#[test]
fn holders_are_not_proven_where_that_is_not_wanted() {
    let mut rig = Rig::online_with(Config { prove_holding: false, ..config() });
    rig.step(Input::Hold(SESSION));
    assert!(rig.session.is_proven(SESSION), "nobody waits for what does not come");
    rig.deadline();
    assert_eq!(rig.sent(), [(PING, Request::Ping)]);
}

/// Whether the session is taken to live until so long after `start`, and no longer.
fn lives_until(rig: &Rig, start: Mono, seconds: u64) -> bool {
    let end = start + Duration::from_secs(seconds);
    rig.session.session_at(end - Duration::from_nanos(1)).is_some() && rig.session.session_at(end).is_none()
}

/// Something is held by a session that was made just now.
fn holding() -> Rig {
    let mut rig = Rig::online();
    rig.step(Input::Hold(SESSION));
    assert!(rig.session.is_proven(SESSION), "a quorum has agreed on it");
    // The first write is that of what is held.
    rig.ask(&proof());
    rig.reply(1, 1, 0);
    rig.sent();
    rig.heard();
    rig
}

fn proof() -> Request<'static> {
    Request::Multi(vec![MultiOp::Check(PathVersion { path: "/".into(), version: -1 })])
}

#[test]
fn a_process_that_was_stopped_knows_at_once() {
    let mut rig = Rig::online();
    rig.wait(TIMEOUT);
    assert_eq!(rig.session.session_at(rig.now), None, "before anybody was woken");
    let id = rig.ask_as(&crate::rig::get("/a", false), Some(SESSION), None);
    assert!(rig.sent().is_empty(), "nothing goes out for a session that may be gone");
    let heard = rig.heard();
    assert!(heard.contains(&Heard::State(ConnectionState::Lost, Some(SESSION))));
    assert_eq!(heard.last(), Some(&Heard::Failed(id, Failure::SessionChanged)));
}

#[test]
fn a_late_reply_can_still_prove_that_the_session_lived() {
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
fn who_was_told_that_the_session_is_over_can_rely_on_it() {
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
fn after_a_loss_there_is_a_new_session_if_that_is_wanted() {
    let mut rig = Rig::online();
    rig.wait(TIMEOUT);
    rig.step(Input::Deadline);
    rig.heard();
    let (asked, _, password) = rig.connect();
    assert_eq!((asked, password), (SessionId::NONE, vec![0; 16]));
    rig.grant(SessionId(5), TIMEOUT, false);
    assert_eq!(rig.heard(), [Heard::State(ConnectionState::Reconnected, Some(SessionId(5)))]);

    let mut rig = Rig::online_with(Config { new_session_after_loss: false, ..config() });
    rig.wait(TIMEOUT);
    rig.step(Input::Deadline);
    let states = [ConnectionState::Suspended, ConnectionState::Lost, ConnectionState::Closed];
    let expected = states.map(|state| Heard::State(state, Some(SESSION)));
    assert_eq!(rig.heard(), [&expected[..], &[Heard::Ended]].concat());
    let id = rig.get("/a");
    assert_eq!(rig.heard(), [Heard::Failed(id, Failure::SessionExpired)]);
}

#[test]
fn a_server_that_has_expired_the_session_is_believed() {
    let mut rig = Rig::online();
    rig.lose();
    let waiting = rig.get("/a");
    rig.deadline();
    assert_eq!(rig.connect().0, SESSION);
    rig.heard();
    rig.grant(SessionId::NONE, Duration::ZERO, false);
    let lost = Heard::State(ConnectionState::Lost, Some(SESSION));
    assert_eq!(rig.heard(), [lost, Heard::Failed(waiting, Failure::SessionExpired)]);
    let before = rig.now;
    rig.deadline();
    assert_eq!(rig.now, before, "the next attempt is not put off");
    assert_eq!(rig.connect().0, SessionId::NONE);
}

#[test]
fn an_attempt_that_takes_long_gives_way_to_the_next_server() {
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

/// One of them takes connections and never answers.
#[test]
fn all_servers_are_tried_before_anybody_has_waited_long_enough() {
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
fn what_comes_of_an_attempt_that_was_given_up_changes_nothing() {
    let mut rig = Rig::online();
    let old = rig.attempt();
    rig.lose();
    rig.deadline();
    rig.heard();
    rig.step(Input::Disconnected(old));
    rig.step(Input::Connected(old));
    rig.step(Input::Frame { attempt: old, payload: &[0; 16] });
    assert!(rig.heard().is_empty() && rig.sent().is_empty() && rig.wanted.is_some());
}
