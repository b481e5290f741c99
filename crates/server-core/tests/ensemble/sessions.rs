//! A client of a follower, and its session at the leader.

use crate::{
    follower::{Follower, XID},
    member::{Member, SESSION, at, config},
};
use ostler_proto::{
    acl::Id, connect::ConnectRequest, id::SessionId, jute::Writer, op::Op, password::password_of,
    quorum_packet::Packet, stat::ExtendedTypes, txn::Txn,
};
use ostler_server_core::{
    ConnId, Effect, Input, Now, PeerMessage,
    sessions::ends::{ActingOperator, EndCause, EndedPart, EndsQuery, HostState},
};
use ostler_tree::Tree;
use ostler_zab::leading::LinkId;
use std::borrow::Cow;

const TIMEOUT_MS: i32 = 10_000;
const TICK_MS: u64 = 2_000;

/// Its client was told that it lives longer than it was made for, and says nothing for as long as that allows.
#[test]
fn a_session_that_comes_back_with_more_time_has_it_at_once() {
    let ensemble = config(&[1, 2, 3], at(1, 0));
    let mut member = Member::start(&ensemble, None, Tree::fresh(ExtendedTypes::default()), 1);
    member.leads_with(&[2], &ensemble, 2);
    member.request(2, Op::CreateSession, &4_000_i32.to_be_bytes());
    member.hears(LinkId(2), Packet::Ack(at(2, 1)));
    member.hears(LinkId(2), Packet::Revalidate { session: SESSION, timeout_ms: 40_000 });
    for _ in 0..6 {
        member.hears(LinkId(2), Packet::Ping { zxid: at(2, 1), touched: Some(Vec::new()) });
        member.passes(TICK_MS);
    }
    assert!(!member.has_given_up_the_session());
}

/// Nothing comes of a sync that is logged, and the follower tells of its clients when it is asked the next time. But the
/// leader has heard of this one.
#[test]
fn a_session_that_only_syncs_lives() {
    let ensemble = config(&[1, 2, 3], at(1, 0));
    let mut member = Member::start(&ensemble, None, Tree::fresh(ExtendedTypes::default()), 1);
    member.leads_with(&[2], &ensemble, 2);
    member.request(2, Op::CreateSession, &TIMEOUT_MS.to_be_bytes());
    member.hears(LinkId(2), Packet::Ack(at(2, 1)));
    let mut sync = Vec::new();
    sync.string("/");
    for _ in 0..10 {
        member.request(2, Op::Sync, &sync);
        member.passes(TICK_MS);
        assert!(!member.has_given_up_the_session());
    }
    for _ in 0..10 {
        member.hears(LinkId(2), Packet::Ping { zxid: at(2, 1), touched: Some(Vec::new()) });
        member.passes(TICK_MS);
    }
    assert!(member.has_given_up_the_session());
}

/// A client that went from an observer to another, and came back. Its earlier write is
/// stopped, and the notice of that comes while the leader is asked for its session.
#[test]
fn that_a_session_has_moved_is_no_answer_to_whether_it_lives() {
    let ensemble = config(&[1, 2, 3], at(1, 0));
    let mut member = Member::start(&ensemble, None, Tree::fresh(ExtendedTypes::default()), 1);
    let leader = member.follows(&[2, 3], &ensemble, 2);
    member.hears(leader, Packet::Diff(at(0, 0)));
    member.hears_new_leader(leader, 2, &ensemble);
    member.hears(leader, Packet::UpToDate);

    let conn = ConnId(1);
    member.step(Input::Accepted { conn, peer: ([127, 0, 0, 1], 5_000).into() });
    let password = password_of(SESSION);
    let request = ConnectRequest {
        protocol_version: 0,
        last_zxid_seen: 0,
        timeout_ms: TIMEOUT_MS,
        session: SESSION,
        password: Some(&password),
        read_only: Some(false),
    };
    member.step(Input::Connect { conn, request, chance: 7 });
    let opened = |member: &Member| -> Vec<SessionId> {
        let opened = |effect: &Effect| match effect {
            Effect::Connected { response, .. } => Some(response.session),
            _ => None,
        };
        member.effects.iter().filter_map(opened).collect()
    };
    member.hears(leader, Packet::SessionMoved(SESSION));
    assert_eq!(opened(&member), []);
    member.hears(leader, Packet::Revalidated { session: SESSION, valid: true });
    assert_eq!(opened(&member), [SESSION]);
}

/// Nobody tells a follower that a client of its own has gone to another one without a word. Java closes a connection that
/// has said nothing for as long as its session may be silent.
#[test]
fn a_follower_closes_a_connection_that_is_silent_for_longer_than_its_session_may_be() {
    for talks in [true, false] {
        let mut follower = Follower::start();
        let conn = follower.reconnect(1);
        for _ in 0..TIMEOUT_MS / 500 {
            if talks {
                follower.request(conn, Op::Ping, &[]);
            }
            follower.member.hears(follower.leader, Packet::Ping { zxid: at(2, 1), touched: None });
            follower.member.passes(1_000);
        }
        assert_eq!(follower.has_closed(conn), !talks, "it talks: {talks}");
    }
}

/// The shell knows it a moment after the close. The session may have ended meanwhile.
#[test]
fn both_records_of_a_silent_client_show_what_its_host_did() {
    let mut follower = Follower::start();
    let conn = follower.reconnect(1);
    for _ in 0..TIMEOUT_MS / 500 {
        follower.member.hears(follower.leader, Packet::Ping { zxid: at(2, 1), touched: None });
        follower.member.passes(1_000);
    }
    assert!(follower.has_closed(conn));
    follower.hears_of(at(2, 2), 0, Txn::CloseSession(None));
    follower.commits(at(2, 2));
    let (cause, host) = (EndCause::Lost, HostState::Silent);
    follower.member.step(Input::ConnectionLost { conn, cause, host });
    let all = EndsQuery { limit: 10, ..EndsQuery::default() };
    let report = follower.member.server.session_ends(Now::default(), &all);
    let hosts: Vec<_> = report.ends.iter().filter_map(|end| Some(end.connection.as_ref()?.host)).collect();
    assert_eq!(hosts, [HostState::Silent; 2], "{report:?}");
}

/// Many clients hang up as soon as they have asked for the end. The transaction comes later, and names their request.
#[test]
fn a_session_that_its_client_has_closed_is_recorded_so_also_if_the_client_is_gone_by_then() {
    for hangs_up in [false, true] {
        let mut follower = Follower::start();
        let conn = follower.reconnect(1);
        follower.request(conn, Op::CloseSession, &[]);
        if hangs_up {
            let (cause, host) = (EndCause::ConnectionClosed, HostState::Closed);
            follower.member.step(Input::ConnectionLost { conn, cause, host });
            follower.member.step(Input::Disconnected { conn });
        }
        follower.hears_of(at(2, 2), XID, Txn::CloseSession(None));
        follower.commits(at(2, 2));
        let all = EndsQuery { limit: 10, ..EndsQuery::default() };
        let ends = follower.member.server.session_ends(Now::default(), &all).ends;
        let of_session = ends.iter().filter(|end| end.part == EndedPart::Session);
        let causes: Vec<&EndCause> = of_session.map(|end| &end.cause).collect();
        assert_eq!(causes, [&EndCause::ClosedByClient], "the client hangs up: {hangs_up}");
    }
}

fn ann() -> ActingOperator {
    ActingOperator { name: "digest:ann".into(), address: [10, 0, 0, 9].into() }
}

/// An operator may ask any server. The leader ends the session, whichever learner its client is connected to, and knows who
/// has asked.
#[test]
fn a_follower_asks_its_leader_to_end_a_session_in_the_operators_name() {
    let mut follower = Follower::start();
    let end = Input::EndSession { session: SESSION, by: ann() };
    assert!(follower.member.server.can_end(SESSION));
    follower.member.effects.clear();
    follower.member.step(Input::EndSession { session: SessionId(78), by: ann() });
    assert!(follower.member.effects.is_empty(), "there is no such session");
    follower.member.step(end);
    let asked: Vec<&Packet<'_>> = follower
        .member
        .effects
        .iter()
        .filter_map(|effect| match effect {
            Effect::ToPeer { link, message: PeerMessage::Packet(packet) } if *link == follower.leader => {
                Some(packet)
            }
            _ => None,
        })
        .collect();
    let [Packet::Request { session, cxid, code, body, ids }] = asked[..] else { panic!("{asked:?}") };
    assert_eq!((*session, *cxid, *code, ids.len()), (SESSION, 0, Op::CloseSession.code(), 0));

    // The client is connected to server 3, and server 2 passes the wish on.
    let ensemble = config(&[1, 2, 3], at(1, 0));
    let mut leader = Member::start(&ensemble, None, Tree::fresh(ExtendedTypes::default()), 1);
    leader.leads_with(&[2, 3], &ensemble, 2);
    leader.request(3, Op::CreateSession, &TIMEOUT_MS.to_be_bytes());
    leader.hears(LinkId(2), Packet::Ack(at(2, 1)));
    assert!(leader.server.has_session(SESSION));
    leader.request(2, Op::CloseSession, body);
    leader.hears(LinkId(2), Packet::Ack(at(2, 2)));
    assert!(!leader.server.has_session(SESSION));
    let all = EndsQuery { limit: 10, ..EndsQuery::default() };
    let report = leader.server.session_ends(Now::default(), &all);
    let causes: Vec<&EndCause> = report.ends.iter().map(|end| &end.cause).collect();
    assert_eq!(causes, [&EndCause::ByOperator { by: Some(ann()) }]);

    // A closeSession without that body is a client's, and one of another server's client is late.
    let mut leader = Member::start(&ensemble, None, Tree::fresh(ExtendedTypes::default()), 1);
    leader.leads_with(&[2, 3], &ensemble, 2);
    leader.request(3, Op::CreateSession, &TIMEOUT_MS.to_be_bytes());
    leader.hears(LinkId(2), Packet::Ack(at(2, 1)));
    leader.request(2, Op::CloseSession, &[]);
    leader.hears(LinkId(2), Packet::Ack(at(2, 2)));
    assert!(leader.server.has_session(SESSION));

    // Clients choose their bodies. They always have an identity.
    let ids = vec![Id::new("ip", "10.0.0.1")];
    let (code, body) = (Op::CloseSession.code(), Cow::Borrowed(&**body));
    leader.hears(LinkId(3), Packet::Request { session: SESSION, cxid: 2, code, body, ids });
    leader.hears(LinkId(2), Packet::Ack(at(2, 3)));
    let report = leader.server.session_ends(Now::default(), &all);
    let causes: Vec<&EndCause> = report.ends.iter().map(|end| &end.cause).collect();
    assert_eq!(causes, [&EndCause::ClosedByClient]);
}

/// A leader lists all sessions, and the server of each as far as it knows.
#[test]
fn a_leader_lists_the_sessions_of_all_servers() {
    let ensemble = config(&[1, 2, 3], at(1, 0));
    let mut leader = Member::start(&ensemble, None, Tree::fresh(ExtendedTypes::default()), 1);
    leader.leads_with(&[2, 3], &ensemble, 2);
    leader.request(3, Op::CreateSession, &TIMEOUT_MS.to_be_bytes());
    leader.hears(LinkId(2), Packet::Ack(at(2, 1)));
    let part = leader.server.live_sessions_after(Now::default(), None, 10);
    let listed: Vec<_> = part
        .sessions
        .iter()
        .map(|of| (of.session, of.server.map(|server| server.0), of.conn.is_some()))
        .collect();
    assert_eq!((listed, part.next), (vec![(SESSION, Some(3), false)], None));

    let mut follower = Follower::start();
    let alone = |follower: &Follower| follower.member.server.live_sessions_after(Now::default(), None, 1);
    let part = alone(&follower);
    assert_eq!((part.sessions[0].silent_ms, part.next), (None, Some(SESSION)));
    follower.reconnect(1);
    let part = alone(&follower);
    let of = part.sessions[0].conn.as_ref().unwrap();
    assert_eq!((part.sessions[0].server.map(|server| server.0), of.outstanding), (Some(1), 0));
}
