//! The counts that `cons` and `mntr` show.

use crate::{
    member::{Client, Member, TIMEOUT_MS},
    sight::Sight,
    wire::{WireRequest, auth, children, create, delete, exists, get, multi, ping, set},
};
use ostler_proto::{
    error::ErrorCode,
    jute::{Reader, Writer},
    op::Op,
    reply::Body,
};
use ostler_server_core::{CloseReason, Input, report::ConnReport, stats::Summary};

fn line(m: &Member, of: Client) -> ConnReport {
    m.server.connections().into_iter().find(|report| report.conn == of.conn).expect("it has a line")
}

/// (the last operation, the last number, requests, replies)
fn shown(m: &Member, of: Client) -> (Option<i32>, i32, u64, u64) {
    let stats = line(m, of).stats;
    (stats.last_op, stats.last_cxid, stats.received, stats.sent)
}

#[test]
fn reads_and_changes_count_for_the_first_name_of_their_paths() {
    let mut m = Member::new();
    let a = m.join();
    m.ask(a, create("/a").data(b"12345")).unwrap();
    m.ask(a, create("/a/bc").data(b"1")).unwrap();
    m.ask(a, set("/a", b"123")).unwrap();
    m.ask(a, delete("/a/bc")).unwrap();
    m.ask(a, create("/d")).unwrap();
    m.ask(a, get("/a")).unwrap();
    m.ask(a, exists("/d")).unwrap();
    m.ask(a, children("/")).unwrap();
    assert_eq!(m.ask(a, get("/none")), Err(ErrorCode::NoNode));
    let stats = m.server.summary().stats;
    let all = stats.namespaces.sorted();
    assert_eq!(all.iter().map(|(name, _)| *name).collect::<Vec<_>>(), ["a", "d"]);
    let (of_a, of_d) = (all[0].1, all[1].1);
    assert_eq!(of_a.writes, Summary { min: 5, max: 7, sum: 7 + 6 + 5 + 5, count: 4, median: 5 });
    assert_eq!((of_a.reads, of_d.reads), (Summary::of(2 + 3 + 68), Summary::of(2 + 68)));
}

/// A create changes two znodes, and so does a delete.
#[test]
fn changes_are_noted_before_they_are_made() {
    let mut m = Member::new();
    let a = m.join();
    m.send(a, create("/a"));
    m.send(a, set("/a", b"1"));
    m.send(a, delete("/none"));
    let counts = |m: &Member| {
        let writes = m.server.summary().stats.writes;
        (writes.changes_noted, writes.changes_made)
    };
    assert_eq!(counts(&m), (3, 0));
    m.flush();
    assert_eq!(counts(&m), (3, 3));
}

/// However long it is.
#[test]
fn a_long_request_that_has_to_wait_is_answered() {
    let mut m = Member::new();
    let a = m.join();
    m.send(a, create("/a"));
    m.send(a, exists(&format!("/{}", "a".repeat(100_000))));
    m.flush();
    assert_eq!(shown(&m, a), (Some(Op::Exists.code()), 2, 3, 3));
}

#[test]
fn a_new_session_is_the_first_request_of_its_connection() {
    let mut m = Member::new();
    let a = m.join();
    assert_eq!(shown(&m, a), (Some(Op::CreateSession.code()), 0, 1, 1));
    assert_eq!(line(&m, a).stats.last_zxid, m.applied().to_wire());
    assert_eq!(m.server.summary().stats.update_latency_ms.summary.count, 1);
}

#[test]
fn a_refused_write_is_no_operation_and_a_ping_has_no_number() {
    let mut m = Member::new();
    let a = m.join();
    m.ask(a, create("/a")).unwrap();
    assert_eq!(shown(&m, a), (Some(Op::Create.code()), 1, 2, 2));
    m.ask(a, create("/a")).unwrap_err();
    assert_eq!(shown(&m, a), (None, 2, 3, 3));
    m.ask(a, get("/none")).unwrap_err();
    assert_eq!(shown(&m, a), (Some(Op::GetData.code()), 3, 4, 4));
    m.ask(a, ping()).unwrap();
    assert_eq!(shown(&m, a), (Some(Op::Ping.code()), 3, 5, 5));
    m.server.reset_conn_stats();
    assert_eq!((shown(&m, a), line(&m, a).stats.last_zxid), ((None, -1, 0, 0), -1));
}

#[test]
fn a_connection_whose_session_went_elsewhere_is_shown_no_more() {
    let mut m = Member::new();
    let before = m.join();
    let now = m.rejoin(before, TIMEOUT_MS);
    let conns: Vec<_> = m.server.connections().into_iter().map(|report| report.conn).collect();
    assert_eq!((conns, m.server.summary().connections), (vec![now.conn], 1));
    assert_eq!(shown(&m, now), (None, 0, 1, 1));
}

#[test]
fn auth_requests_count_whether_they_succeed_or_fail() {
    let mut m = Member::new();
    let a = m.join();
    let counts = |m: &Member| {
        let stats = m.server.summary().stats;
        (stats.packets_received, stats.packets_sent, stats.auth_failed)
    };
    let before = counts(&m);
    m.ask(a, auth("digest", b"bob:pw")).unwrap();
    assert_eq!(counts(&m), (before.0 + 1, before.1 + 1, 0));
    assert_eq!((line(&m, a).stats.received, line(&m, a).stats.sent), (2, 2), "with the handshake");
    m.ask(a, auth("nope", b"bob:pw")).unwrap_err();
    assert_eq!(counts(&m), (before.0 + 2, before.1 + 2, 1));
}

#[test]
fn a_refused_multi_still_counts_as_received() {
    let mut m = Member::new();
    let a = m.join();
    let before = m.server.summary().stats.writes.to_prepare;
    for _ in 0..2 {
        m.ask(a, multi(&[delete("/none")])).unwrap();
    }
    assert_eq!(m.server.summary().stats.writes.to_prepare, before + 2);
}

#[test]
fn four_letter_words_count_as_packets_of_their_connection() {
    let mut m = Member::new();
    let a = m.join();
    let (packets, own) = (m.server.summary().stats, line(&m, a).stats);
    m.server.count_word(a.conn);
    m.server.count_word(a.conn);
    m.server.count_word_answered(a.conn, 3);
    let after = m.server.summary().stats;
    assert_eq!(after.packets_received, packets.packets_received + 2);
    assert_eq!(after.packets_sent, packets.packets_sent + 3);
    let now = line(&m, a).stats;
    assert_eq!((now.received, now.sent), (own.received + 2, own.sent + 3));
}

#[test]
fn connections_that_are_closed_do_not_count() {
    let mut m = Member::new();
    let (a, _, _) = (m.join(), m.join(), m.join());
    assert_eq!(m.server.summary().connections, 3);
    m.step(Input::CloseConnection(a.conn));
    assert_eq!(m.server.summary().connections, 2);
}

#[test]
fn sessions_that_expire_count_whether_time_or_an_operator_ends_them() {
    let mut m = Member::new();
    let (a, _) = (m.join_for(4_000), m.join_for(4_000));
    m.step(Input::ExpireSession(a.session));
    m.flush();
    assert_eq!(m.server.summary().stats.stale_sessions_expired, 1);
    m.pass(20_000);
    m.flush();
    assert_eq!(m.server.summary().stats.stale_sessions_expired, 2);
    assert!(!m.server.learns_sessions(), "a standalone server decides itself");
}

#[test]
fn the_time_of_a_read_behind_a_write_counts() {
    let mut m = Member::new();
    let a = m.join();
    let before = m.server.summary().stats.read_latency_ms.summary.sum;
    m.send(a, create("/a"));
    m.send(a, get("/a"));
    m.pause(250);
    m.flush();
    assert_eq!(m.server.summary().stats.read_latency_ms.summary.sum - before, 250);
}

/// Expiry closes the connection that the session has now.
#[test]
fn a_connection_that_a_session_has_left_takes_nothing_with_it() {
    let mut m = Member::new();
    let before = m.join_for(4_000);
    let now = m.rejoin(before, 4_000);
    m.hang_up(before);
    m.step(Input::ExpireSession(now.session));
    m.flush();
    let is_closed = |(conn, sight): &(_, Sight)| {
        *conn == now.conn && *sight == Sight::Closed(CloseReason::SessionExpired)
    };
    assert!(m.sights.iter().any(is_closed), "{:?}", m.sights);
}

#[test]
fn ephemerals_are_those_below_the_prefix() {
    let mut m = Member::new();
    let a = m.join();
    for path in ["/a1", "/a2", "/b"] {
        m.ask(a, create(path).ephemeral()).unwrap();
    }
    let mut count = |prefix: &str| {
        let ask = WireRequest::new(Op::GetEphemerals, |out| out.string(prefix));
        let Ok(Body::Paths(paths)) = m.ask(a, ask) else { panic!("it is answered") };
        let mut bytes = Vec::new();
        paths.write(&mut bytes);
        Reader::new(&bytes).i32().unwrap()
    };
    assert_eq!(["/", "", " ", "/a", "/b", "/c"].map(&mut count), [3, 3, 3, 2, 1, 0]);
}

/// A connection whose answers would take all memory is closed.
#[test]
fn a_connection_is_closed_when_too_much_is_answered_at_once() {
    let mut m = Member::new();
    let a = m.join();
    m.ask(a, create("/a").data(&vec![0; 1 << 20])).unwrap();
    m.send(a, create("/b"));
    let read = || WireRequest { code: Op::MultiRead.code(), ..multi(&[get("/a")]) };
    for _ in 0..140 {
        m.send(a, read());
    }
    m.forget();
    m.flush();
    let replies = m.sights.iter().filter(|(_, sight)| matches!(sight, Sight::Reply(_))).count();
    assert_eq!(replies, 1 + 129, "the last one passes the limit of 128 MiB");
    assert!(m.sights.iter().any(|(_, sight)| *sight == Sight::Closed(CloseReason::Protocol)));
}
