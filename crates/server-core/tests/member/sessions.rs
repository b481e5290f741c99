//! The handshake, sessions that come back, and how long they live.

use crate::{
    member::{Client, Member, TIMEOUT_MS},
    wire::{close_session, create, exists, get, get_and_watch, ping, set},
};
use ostler_proto::{
    connect::ConnectRequest,
    id::{SessionId, Zxid},
    password::password_of,
    request::{MultiReadOp, PathWatch, Request},
};
use ostler_server_core::{CoreConfig, Input, report::clients::CutTimeout};

const TICK_MS: u64 = 2000;

fn request(session: SessionId) -> ConnectRequest<'static> {
    ConnectRequest {
        protocol_version: 0,
        last_zxid_seen: 0,
        timeout_ms: TIMEOUT_MS,
        session,
        password: Some(&[0; 16]),
        read_only: Some(false),
    }
}

#[test]
fn a_timeout_is_negotiated_within_the_limits() {
    let mut m = Member::new();
    for (asked, granted) in [
        (10_000, 10_000),
        (1, 4000),
        (-5, 4000),
        (0, 4000),
        (4000, 4000),
        (40_000, 40_000),
        (i32::MAX, 40_000),
    ] {
        let conn = m.dial();
        m.shake_hands(conn, asked, SessionId::NONE, &[0; 16]);
        m.flush();
        let response = m.connected(conn).unwrap();
        assert_eq!(response.timeout_ms, granted);
        assert_eq!(response.password, password_of(response.session));
        let again = m.rejoin(Client { conn, session: response.session }, asked);
        assert!(m.server.is_open(again.conn));
    }
}

/// A client that gets more than it wanted, or just that, has nothing to complain of.
#[test]
fn the_timeouts_that_were_cut_down_are_noted_and_no_others() {
    for (asked_ms, cut_to) in
        [(1, None), (10_000, None), (40_000, None), (40_001, Some(40_000)), (i32::MAX, Some(40_000))]
    {
        let mut m = Member::new();
        m.join_for(asked_ms);
        let expected = cut_to.map(|got_ms| CutTimeout { address: [10, 0, 0, 1].into(), asked_ms, got_ms });
        assert_eq!(m.server.client_notes(10).cut, Vec::from_iter(expected), "{asked_ms}");
    }
}

#[test]
fn every_session_has_an_id_of_its_own_across_restarts() {
    let mut m = Member::new();
    let mut ids = std::collections::BTreeSet::new();
    for _ in 0..5 {
        for _ in 0..5 {
            let client = m.join();
            assert!(ids.insert(client.session));
            if ids.len() % 2 == 0 {
                m.ask(client, close_session()).unwrap();
            }
        }
        m.crash(0);
    }
}

/// A client's own id says nothing of other sessions' ids: each has what was drawn for it, behind the server's number.
#[test]
fn ids_are_what_was_drawn_for_them() {
    let mut m = Member::new();
    let mut joins = |chance: u64| {
        let conn = m.dial();
        m.step(Input::Connect { conn, request: request(SessionId::NONE), chance });
        m.flush();
        m.connected(conn).unwrap().session.0
    };
    assert_eq!(joins(0x9912_3456_789a_bcde), 0x0112_3456_789a_bcde);
    assert_eq!(joins(0x00fe_ffff_ffff_ffff), 0x01fe_ffff_ffff_ffff);
    // Chance that repeats itself repeats no id of a living session.
    let again: std::collections::BTreeSet<i64> = (0..3).map(|_| joins(u64::MAX >> 16)).collect();
    assert_eq!(again.len(), 3);
    assert!(again.iter().all(|id| id >> 56 == 1));
    // Nor that of one that is about to begin.
    let conns = [m.dial(), m.dial()];
    for conn in conns {
        m.step(Input::Connect { conn, request: request(SessionId::NONE), chance: 77 });
    }
    m.flush();
    let [one, other] = conns.map(|conn| m.connected(conn).unwrap().session);
    assert_ne!(one, other);
}

#[test]
fn old_clients_get_no_read_only_byte() {
    let mut m = Member::new();
    for (sent, answered) in [(None, None), (Some(false), Some(false)), (Some(true), Some(false))] {
        let conn = m.dial();
        let request = ConnectRequest { read_only: sent, ..request(SessionId::NONE) };
        m.shake_hands_as(conn, request);
        m.flush();
        assert_eq!(m.connected(conn).unwrap().read_only, answered);
    }
}

#[test]
fn t3_a_client_that_has_seen_more_is_not_served() {
    let mut m = Member::new();
    let a = m.join();
    m.ask(a, create("/a")).unwrap();
    for (ahead, served) in [(0, true), (1, false), (i64::MIN, true)] {
        let conn = m.dial();
        let last_zxid_seen = m.applied().to_wire() + ahead;
        m.shake_hands_as(conn, ConnectRequest { last_zxid_seen, ..request(SessionId::NONE) });
        m.flush();
        let expected = if served { "connected for 10000" } else { "closed: ClientAhead" };
        assert_eq!(m.seen(conn), [expected]);
    }
}

#[test]
fn requests_sent_with_the_handshake_are_held_and_served_in_order() {
    let mut m = Member::new();
    let conn = m.dial();
    m.shake_hands(conn, TIMEOUT_MS, SessionId::NONE, &[0; 16]);
    m.send(conn, exists("/a"));
    m.send(conn, create("/a").data(b"x"));
    m.send(conn, get("/a"));
    m.send(conn, ping());
    assert_eq!(m.disk.waiting(), 1, "the session alone");
    m.disk_does(1);
    assert_eq!(m.seen(conn), ["connected for 10000", "1: NoNode"]);
    m.flush();
    assert_eq!(m.seen(conn), ["2: /a", "3: x v0", "-2: ok"]);
}

#[test]
fn a_connection_that_is_lost_during_the_handshake_leaves_its_session_to_expire() {
    let mut m = Member::new();
    let conn = m.dial();
    m.shake_hands(conn, TIMEOUT_MS, SessionId::NONE, &[0; 16]);
    m.send(conn, create("/a"));
    m.hang_up(Client { conn, session: SessionId::NONE });
    m.flush();
    assert_eq!(m.seen(conn), [""; 0]);
    assert_eq!((m.has("/a"), m.server.summary().sessions), (false, 1));
    m.pass(TIMEOUT_MS as u64 + TICK_MS);
    m.flush();
    assert_eq!((m.server.summary().sessions, m.server.tree().sessions().count()), (0, 0));
}

#[test]
fn a_session_comes_back_with_its_password_and_goes_on() {
    let mut m = Member::new();
    let a = m.join();
    m.ask(a, create("/e").ephemeral()).unwrap();
    m.hang_up(a);
    m.pass(5000);
    let zxid = m.applied();
    let a = m.rejoin(a, TIMEOUT_MS);
    assert_eq!(m.disk.last(), zxid, "coming back is no transaction");
    m.pass(9000);
    m.flush();
    assert!(m.has("/e"));
    m.ask(a, set("/e", b"mine")).unwrap();
    m.crash(0);
    m.rejoin(a, TIMEOUT_MS);
    assert_eq!(m.data("/e").as_deref(), Some("mine"));
}

#[test]
fn a_session_does_not_open_with_a_wrong_password() {
    let mut m = Member::new();
    let a = m.join();
    let conn = m.dial();
    m.shake_hands(conn, TIMEOUT_MS, a.session, &[7; 16]);
    assert_eq!(m.seen(conn), ["session is gone", "closed: SessionExpired"]);
    let conn = m.dial();
    m.shake_hands_as(conn, ConnectRequest { password: None, ..request(a.session) });
    assert_eq!(m.seen(conn), ["session is gone", "closed: SessionExpired"]);
    m.ask(a, create("/a")).unwrap();
    assert_eq!(m.seen(a), [""; 0], "its owner does not notice");
    m.rejoin(a, TIMEOUT_MS);
}

/// A caller that names a session again and again neither keeps it alive nor ends it.
#[test]
fn a_wrong_password_is_no_sign_of_life() {
    let mut m = Member::new();
    let a = m.join();
    m.hang_up(a);
    let start = m.now.mono.0;
    while m.server.tree().sessions().any(|(id, _)| id == a.session) {
        let conn = m.dial();
        m.shake_hands(conn, TIMEOUT_MS, a.session, &[7; 16]);
        m.pass(500);
        m.flush();
    }
    assert_within(m.now.mono.0 - start, TIMEOUT_MS as u64 + 500);
}

#[test]
fn a_session_that_is_gone_or_going_does_not_come_back() {
    let mut m = Member::new();
    let (closed, closing, expired) = (m.join(), m.join(), m.join());
    m.ask(closed, close_session()).unwrap();
    m.forget();
    let refused = |m: &mut Member, session| {
        let conn = m.dial();
        m.shake_hands(conn, TIMEOUT_MS, session, &password_of(session));
        assert_eq!(m.seen(conn), ["session is gone", "closed: SessionExpired"]);
    };
    refused(&mut m, closed.session);
    refused(&mut m, SessionId(12345));
    m.send(closing, close_session());
    refused(&mut m, closing.session);
    m.flush();
    m.pass(TIMEOUT_MS as u64 + TICK_MS);
    // The end of the session is proposed, not committed.
    refused(&mut m, expired.session);
    m.flush();
    refused(&mut m, expired.session);
}

#[test]
fn a_session_that_comes_back_closes_its_old_connection() {
    let mut m = Member::new();
    let (old, other) = (m.join(), m.join());
    m.ask(old, create("/a")).unwrap();
    m.send(old, get_and_watch("/a"));
    m.send(old, create("/sent-before"));
    m.forget();
    let new = m.rejoin(old, TIMEOUT_MS);
    assert_eq!(m.seen(old), ["closed: SessionMoved"]);
    let before = m.disk.last();
    m.send(old, create("/sent-after"));
    assert_eq!(m.disk.last(), before, "nothing more is taken from it");
    m.flush();
    m.send(new, exists("/sent-before"));
    m.send(new, exists("/sent-after"));
    assert_eq!(m.seen(new), ["1: v0", "2: NoNode"]);
    m.ask(other, set("/a", b"")).unwrap();
    assert_eq!(m.seen(new), [""; 0], "watches did not move");
    // The end of the old connection is not the end of the session's new one.
    m.hang_up(old);
    m.pass(TIMEOUT_MS as u64 - 1);
    m.send(new, ping());
    m.pass(TIMEOUT_MS as u64 - 1);
    m.flush();
    assert!(m.server.is_open(new.conn));
}

/// A client that has lost its connection looks whether a write was done.
#[test]
fn a_session_that_comes_back_does_not_read_past_its_own_writes() {
    let mut m = Member::new();
    let old = m.join();
    m.send(old, create("/a"));
    m.hang_up(old);
    let new = m.rejoin(old, TIMEOUT_MS);
    m.send(new, exists("/a"));
    m.send(new, create("/b"));
    m.send(new, exists("/b"));
    assert_eq!(m.seen(new), [""; 0]);
    m.flush();
    assert_eq!(m.seen(new), ["1: v0", "2: /b", "3: v0"]);
    let again = m.rejoin(new, TIMEOUT_MS);
    m.send(again, exists("/a"));
    assert_eq!(m.seen(again), ["1: v0"], "nothing is under way");
}

/// How long a session lives after its last sign of life.
fn life_of(m: &mut Member, session: SessionId) -> u64 {
    let start = m.now.mono.0;
    for _ in 0..100_000 {
        if !m.server.tree().sessions().any(|(id, _)| id == session) {
            return m.now.mono.0 - start;
        }
        m.pass(10);
        m.flush();
    }
    panic!("session {session} lives for ever");
}

fn assert_within(life: u64, timeout_ms: u64) {
    assert!((timeout_ms..=timeout_ms + TICK_MS + 10).contains(&life), "{life} ms of {timeout_ms}");
}

#[test]
fn a_session_expires_between_its_timeout_and_a_tick_later() {
    for (offset, timeout_ms) in [(0, 4000), (1, 4000), (1999, 5000), (777, 10_000), (1500, 39_999)] {
        let mut m = Member::new();
        m.pass(offset);
        let a = m.join_for(timeout_ms);
        assert_within(life_of(&mut m, a.session), timeout_ms as u64);
        assert_eq!(m.seen(a), ["closed: SessionExpired"]);
    }
}

#[test]
fn a_session_can_be_ended_before_its_time() {
    let mut m = Member::new();
    let (a, b) = (m.join(), m.join());
    m.send(a, create("/a").ephemeral());
    m.flush();
    m.seen(a);
    let before = m.disk.last();
    m.step(Input::ExpireSession(a.session));
    // Twice is once, and nobody is nothing.
    m.step(Input::ExpireSession(a.session));
    m.step(Input::ExpireSession(SessionId(77)));
    m.send(a, create("/late"));
    m.flush();
    assert_eq!(m.disk.last().0, before.0 + 1, "one transaction");
    assert_eq!(m.seen(a), ["closed: SessionExpired"]);
    assert!(!m.has("/a") && !m.has("/late"));
    m.send(b, exists("/"));
    assert_eq!(m.seen(b).len(), 1);
    let conn = m.dial();
    m.shake_hands(conn, TIMEOUT_MS, a.session, &password_of(a.session));
    assert_eq!(m.seen(conn), ["session is gone", "closed: SessionExpired"]);
}

#[test]
fn a_connection_can_be_closed_and_its_session_comes_back() {
    let mut m = Member::new();
    let a = m.join();
    m.send(a, create("/a").ephemeral());
    m.step(Input::CloseConnection(a.conn));
    m.flush();
    assert_eq!(m.seen(a), ["closed: ClosedByOperator"], "what was under way is not answered");
    let a = m.rejoin(a, TIMEOUT_MS);
    m.send(a, exists("/a"));
    assert!(m.has("/a"));
}

#[test]
fn every_request_is_a_sign_of_life() {
    let mut m = Member::new();
    let a = m.join();
    for ask in [ping(), get("/missing"), create("/a").into(), create("/a").into()] {
        m.pass(TIMEOUT_MS as u64 - 1);
        m.send(a, ask);
        m.flush();
    }
    assert_within(life_of(&mut m, a.session), TIMEOUT_MS as u64);
}

#[test]
fn coming_back_is_a_sign_of_life_and_brings_the_new_timeout() {
    for (first, then) in [(10_000, 30_000), (10_000, 10_000)] {
        let mut m = Member::new();
        let a = m.join_for(first);
        m.hang_up(a);
        m.pass(7000);
        m.rejoin(a, then);
        assert_within(life_of(&mut m, a.session), then as u64);
    }
}

#[test]
fn coming_back_with_a_shorter_timeout_shortens_the_session() {
    let mut m = Member::new();
    let a = m.join_for(40_000);
    m.pass(1000);
    let a = m.rejoin(a, 4000);
    m.hang_up(a);
    assert_within(life_of(&mut m, a.session), 4000);
}

#[test]
fn after_a_restart_sessions_have_the_whole_timeout_that_they_were_created_with() {
    let mut m = Member::new();
    let a = m.join_for(10_000);
    m.pass(3000);
    m.rejoin(a, 30_000);
    m.pass(7000);
    m.crash(0);
    assert_within(life_of(&mut m, a.session), 10_000);
}

#[test]
fn requests_of_a_session_that_expires_are_dropped() {
    let mut m = Member::new();
    let a = m.join();
    m.send(a, create("/in-time"));
    m.pass(TIMEOUT_MS as u64 + TICK_MS);
    let ending = m.disk.last();
    m.send(a, create("/late"));
    m.send(a, get("/in-time"));
    assert_eq!(m.disk.last(), ending);
    m.flush();
    assert_eq!(m.seen(a), ["1: /in-time", "closed: SessionExpired"]);
    assert!(m.has("/in-time") && !m.has("/late"));
}

#[test]
fn a_slow_disk_does_not_expire_a_session_that_pings() {
    let mut m = Member::new();
    let a = m.join();
    m.send(a, create("/slow"));
    for _ in 0..10 {
        m.pass(5000);
        m.send(a, ping());
    }
    assert_eq!(m.seen(a), [""; 0]);
    m.flush();
    let mut expected = vec!["1: /slow".to_string()];
    expected.extend(vec!["-2: ok".to_string(); 10]);
    assert_eq!(m.seen(a), expected);
}

#[test]
fn many_sessions_expire_at_once() {
    let mut m = Member::with(CoreConfig::default());
    let clients: Vec<_> = (0..50).map(|_| m.join()).collect();
    for (n, client) in clients.iter().enumerate() {
        m.send(*client, create(&format!("/e{n}")).ephemeral());
    }
    m.flush();
    let zxid = m.applied();
    m.pass(TIMEOUT_MS as u64 + TICK_MS);
    m.flush();
    assert_eq!(m.applied(), Zxid(zxid.0 + 50), "one transaction each");
    assert_eq!(m.server.tree().node_count(), 4);
}

/// A process that runs again finds its timer and what has come meanwhile, in any order.
#[test]
fn requests_that_came_during_a_pause_are_read_before_sessions_expire() {
    let mut m = Member::new();
    let (there, gone) = (m.join(), m.join());
    m.pass(100);
    m.pause(60_000);
    m.step(Input::Deadline);
    m.send(there, ping());
    m.flush();
    assert!(m.server.tree().has_session(gone.session), "it may speak yet");
    m.pass(TICK_MS);
    m.flush();
    assert!(!m.server.tree().has_session(gone.session));
    assert!(m.server.tree().has_session(there.session));
}

#[test]
fn a_server_that_is_always_woken_late_gives_sessions_up_all_the_same() {
    let mut m = Member::new();
    let client = m.join();
    for _ in 0..3 {
        m.pause(20_000);
        m.step(Input::Deadline);
    }
    m.flush();
    assert!(!m.server.tree().has_session(client.session));
}

/// Requests that the shell has not read yet are a sign of life, as those that it has read are.
#[test]
fn a_request_that_waits_to_be_read_keeps_its_session_alive() {
    let mut m = Member::new();
    let (slow, silent) = (m.join_for(4000), m.join_for(4000));
    for _ in 0..10 {
        m.pass(2000);
        m.step(Input::Alive { conn: slow.conn });
        m.flush();
    }
    assert!(m.server.is_open(slow.conn) && !m.server.is_open(silent.conn));
    let fresh = m.dial();
    m.step(Input::Alive { conn: fresh });
    m.pass(10_000);
    m.flush();
    assert!(!m.server.is_open(slow.conn), "then it ends like any other");
    m.step(Input::Alive { conn: slow.conn });
}

/// Bytes of the data, the names or the lists, without what is beside them.
#[test]
fn it_is_known_how_long_an_answer_will_be() {
    let mut m = Member::new();
    let a = m.join();
    for path in ["/p", "/p/one", "/p/two"] {
        m.ask(a, create(path).data(b"12345")).unwrap();
    }
    m.ask(a, create("/e").data(b"").ephemeral()).unwrap();
    let size = |request: &Request<'_>| m.server.answer_size(a.conn, request);
    let read = |path: &str| PathWatch { path: path.to_owned().into(), watch: false };
    assert_eq!(size(&Request::GetData(read("/p"))), 5);
    assert_eq!(size(&Request::GetData(read("/none"))), 0);
    let names = 4 + 2 * (4 + 3);
    assert_eq!(size(&Request::GetChildren2(read("/p"))), names);
    assert_eq!(size(&Request::GetEphemerals { prefix: None }), 4 + 2);
    assert_eq!(size(&Request::Exists(read("/p"))), 0);
    let many = |times: usize| {
        let pair = [MultiReadOp::GetData("/p".into()), MultiReadOp::GetChildren("/p".into())];
        Request::MultiRead { ops: pair.iter().cycle().take(times).cloned().collect(), broken: false }
    };
    assert_eq!(size(&many(4)), 2 * (5 + names));
    assert_eq!(size(&many(512)), 256 * (5 + names));
    assert!(size(&many(513)) > 1 << 20, "as long as it may be");
}

/// Requests that wait behind writes count before they are answered, for their connection and for all of them.
#[test]
fn large_data_behind_a_write_is_promised() {
    let mut m = Member::new();
    let (a, b) = (m.join(), m.join());
    m.ask(a, create("/large").data(&[7; 100_000])).unwrap();
    for client in [a, b] {
        m.send(client, set("/large", &[7; 100_000]));
        m.send(client, get("/large"));
        m.send(client, get("/large"));
    }
    assert!(m.server.reserved_bytes(a.conn) >= 200_000);
    assert_eq!(m.server.reserved_bytes_of_all(), 400_000);
    m.hang_up(b);
    assert_eq!(m.server.reserved_bytes_of_all(), 200_000);
    m.flush();
    assert_eq!((m.server.reserved_bytes(a.conn), m.server.reserved_bytes_of_all()), (0, 0));
}
