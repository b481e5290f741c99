//! Records of several servers as one list.

use super::*;
use ostler_server_core::sessions::ends::{ActingOperator, EndedEphemerals, HostState};

fn end(session: i64, ended_ms: i64, part: EndedPart, cause: EndCause) -> SessionEnd {
    SessionEnd {
        number: 1,
        session: SessionId(session),
        part,
        ended_ms,
        cause,
        led: false,
        timeout_ms: 10_000,
        connection: None,
        earlier: None,
        served_by: None,
        server_left: false,
        ephemerals: EndedEphemerals::default(),
        returns: Vec::new(),
    }
}

fn connection(last_heard_ms: i64) -> Option<EndedConnection> {
    Some(EndedConnection {
        number: 7,
        address: ([10, 0, 0, 5], 4000).into(),
        established_ms: 1,
        last_heard_ms,
        gaps_ms: vec![30, 40],
        longest_gap_ms: 40,
        requests: 3,
        unanswered: 0,
        host: HostState::Acknowledged,
    })
}

fn records(server: i64, ends: Vec<SessionEnd>, next: Option<Place>) -> EndedRecords {
    let report = EndsReport { server: ServerId(server), ends, ..EndsReport::default() };
    EndedRecords { report, next: next.map(cursor) }
}

const EXPIRED: EndCause = EndCause::Expired { timeout_ms: 10_000, silent_ms: 10_000 };

/// The leader has let the session expire, and the follower has seen the silence.
#[test]
fn the_records_of_all_servers_are_judged_together() {
    let at_leader = SessionEnd {
        led: true,
        served_by: Some(ServerId(2)),
        ..end(9, 220_000, EndedPart::Session, EXPIRED)
    };
    let silent = EndCause::Silent { timeout_ms: 10_000, silent_ms: 10_000 };
    let at_follower =
        SessionEnd { connection: connection(209_000), ..end(9, 219_500, EndedPart::Connection, silent) };
    let parts =
        || vec![records(1, vec![at_leader.clone()], None), records(2, vec![at_follower.clone()], None)];
    let (items, next) = merge(parts(), 10);
    assert_eq!((items.len(), next), (1, None));
    let item = &items[0];
    assert_eq!((&*item.id, item.server, item.ended_ms, &*item.cause), ("0x9", 2, 220_000, "expired"));
    assert_eq!((item.verdict, &*item.gaps_ms), (Some("client"), &[30, 40, 11_000][..]));
    assert_eq!(item.address.as_deref(), Some("10.0.0.5:4000"));
    assert!(item.sentence.starts_with("The client was paused: "), "{}", item.sentence);
    // Without the follower the leader's record says that it is missing.
    let (alone, _) = merge(parts()[..1].to_vec(), 10);
    assert_eq!(alone[0].verdict, None);
    assert!(alone[0].sentence.contains("server 2"), "{}", alone[0].sentence);
}

#[test]
fn the_list_goes_on_where_each_part_is_complete() {
    let closed = |id, ms| end(id, ms, EndedPart::Session, EndCause::ClosedByClient);
    let ids = |items: &[EndedItem]| items.iter().map(|item| item.id.clone()).collect::<Vec<_>>();
    // The second server tells nothing of what is before 300.
    let parts = || {
        vec![
            records(1, vec![closed(1, 500), closed(2, 200)], None),
            records(2, vec![closed(3, 400), closed(4, 300)], Some((300, SessionId(4)))),
        ]
    };
    let (items, next) = merge(parts(), 10);
    assert_eq!(
        (ids(&items), next.as_deref()),
        (vec!["0x1".into(), "0x3".into(), "0x4".into()], Some("300.0x4"))
    );
    let (items, next) = merge(parts(), 1);
    assert_eq!((ids(&items), next.as_deref()), (vec!["0x1".to_owned()], Some("500.0x1")));
    assert_eq!(place_of(next.as_deref().unwrap()), Some((500, SessionId(1))));
    for wrong in ["", "1", "x.0x1", "1.1", "1.0x", "1.0x1.0x1"] {
        assert_eq!(place_of(wrong), None, "{wrong}");
    }
}

#[test]
fn one_session_has_one_place() {
    let key = |number, session, ended_ms, part| EndKey {
        number,
        session: SessionId(session),
        ended_ms,
        part,
        address: Some(([10, 0, 0, 5], 4000).into()),
    };
    let keys = [
        key(1, 1, 100, EndedPart::Connection),
        key(2, 2, 200, EndedPart::Connection),
        key(3, 1, 300, EndedPart::Session),
        key(4, 2, 400, EndedPart::Connection),
        key(5, 1, 500, EndedPart::Connection),
    ];
    let all = EndedQuery { limit: 10, ..EndedQuery::default() };
    assert_eq!(places(&keys, &all), [(400, SessionId(2)), (300, SessionId(1))]);
    let before = EndedQuery { before: Some((400, SessionId(2))), ..all.clone() };
    assert_eq!(places(&keys, &before), [(300, SessionId(1))]);
    let elsewhere = EndedQuery { address: Some("10.0.0.6".into()), ..all };
    assert_eq!(places(&keys, &elsewhere), []);
}

#[test]
fn an_operator_is_named() {
    let by = ActingOperator { name: "digest:ann".into(), address: [10, 0, 0, 9].into() };
    let ended =
        SessionEnd { led: true, ..end(5, 1, EndedPart::Session, EndCause::ByOperator { by: Some(by) }) };
    let (items, _) = merge(vec![records(1, vec![ended], None)], 10);
    assert_eq!((&*items[0].cause, items[0].verdict), ("by_operator", None));
    assert!(items[0].sentence.contains("(digest:ann from 10.0.0.9)"), "{}", items[0].sentence);
}
