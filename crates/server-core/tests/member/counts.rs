//! The counts that `cons` and `mntr` show.

use crate::{
    member::{Client, Member, TIMEOUT_MS},
    wire::{children, create, delete, exists, get, ping, set},
};
use ostler_proto::{error::ErrorCode, op::Op};
use ostler_server_core::{report::ConnReport, stats::Summary};

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
    assert_eq!(of_a.writes, Summary { min: 5, max: 7, sum: 7 + 6 + 5 + 5, count: 4 });
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
