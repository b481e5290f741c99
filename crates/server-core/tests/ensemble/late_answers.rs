//! A session that comes back on a new connection, and numbers its requests anew on it, as kazoo does. Writes of its
//! earlier connection commit while the new one waits for a write with the same number.

use crate::{
    follower::{Follower, TIMEOUT_MS, XID},
    member::{Member, SESSION, at, config},
};
use ostler_proto::{
    error::ErrorCode, id::SessionId, jute::Writer, op::Op, quorum_packet::Packet, stat::ExtendedTypes,
    txn::Txn,
};
use ostler_server_core::Input;
use ostler_tree::Tree;
use ostler_zab::leading::LinkId;

#[test]
fn a_write_of_an_earlier_connection_here_is_no_answer_to_one_of_the_next() {
    for ends_first in [true, false] {
        let mut follower = Follower::start();
        let earlier = follower.reconnect(1);
        follower.request_write(earlier);
        if ends_first {
            follower.member.step(Input::Disconnected { conn: earlier });
        }
        let next = follower.reconnect(2);
        assert!(ends_first || follower.has_closed(earlier));
        follower.request_write(next);
        for (counter, version) in [(2, 1), (3, 2)] {
            follower.hears_of_write(at(2, counter), version);
            follower.commits(at(2, counter));
        }
        assert_eq!(follower.answers(earlier), []);
        assert_eq!(follower.answers(next), [at(2, 3)], "an earlier end: {ends_first}");
    }
}

#[test]
fn a_write_by_way_of_another_server_that_is_on_its_way_here_is_no_answer() {
    let mut follower = Follower::start();
    follower.hears_of_write(at(2, 2), 1);
    let conn = follower.reconnect(1);
    follower.request_write(conn);
    follower.commits(at(2, 2));
    assert_eq!(follower.answers(conn), []);
    follower.hears_of_write(at(2, 3), 2);
    follower.commits(at(2, 3));
    assert_eq!(follower.answers(conn), [at(2, 3)]);
}

/// Either that is the word on this connection's write, and its session is elsewhere, or that on one which came to the
/// leader too late, by way of another server, and this connection's still happens.
#[test]
fn a_session_moved_error_closes_the_connection_without_an_answer() {
    for ends_its_session in [false, true] {
        let mut follower = Follower::start();
        let conn = follower.reconnect(1);
        if ends_its_session {
            follower.request(conn, Op::CloseSession, &[]);
        } else {
            follower.request_write(conn);
        }
        follower.hears_of(at(2, 2), XID, Txn::Error(ErrorCode::SessionMoved.code()));
        follower.commits(at(2, 2));
        assert_eq!(follower.answers(conn), [], "the end of the session: {ends_its_session}");
        assert!(follower.has_closed(conn));
    }
}

/// An observer master stops what comes from an observer when the session is at another one.
#[test]
fn a_write_that_was_stopped_on_its_way_is_not_waited_for() {
    for ends_first in [true, false] {
        let mut observer = Follower::start();
        let earlier = observer.reconnect(1);
        observer.request_write(earlier);
        if ends_first {
            observer.member.step(Input::Disconnected { conn: earlier });
        }
        observer.member.hears(observer.leader, Packet::SessionMoved(SESSION));
        let next = observer.reconnect(2);
        observer.request_write(next);
        observer.hears_of_write(at(2, 2), 1);
        observer.commits(at(2, 2));
        assert_eq!(observer.answers(next), [at(2, 2)], "an earlier end: {ends_first}");
    }
}

#[test]
fn of_two_connections_that_ask_for_a_session_at_once_the_second_has_it() {
    let mut follower = Follower::start();
    let first = follower.ask_for_session(1);
    let second = follower.ask_for_session(2);
    follower.hears_that_it_lives();
    follower.hears_that_it_lives();
    assert!(follower.has_closed(first));
    assert!(!follower.has_closed(second));
}

/// Observers hear of a transaction when it commits, and Java's followers know their clients' writes by their numbers alone.
#[test]
fn a_leader_answers_for_a_session_after_what_that_has_under_way() {
    let ensemble = config(&[1, 2, 3], at(1, 0));
    let mut member = Member::start(&ensemble, None, Tree::fresh(ExtendedTypes::default()), 1);
    member.leads_with(&[2, 3], &ensemble, 2);
    member.request(2, Op::CreateSession, &TIMEOUT_MS.to_be_bytes());
    member.hears(LinkId(2), Packet::Ack(at(2, 1)));

    let mut body = Vec::new();
    body.string("/");
    body.buffer(None);
    body.i32(-1);
    member.request(2, Op::SetData, &body);
    let (asked, alive) = (
        Packet::Revalidate { session: SESSION, timeout_ms: TIMEOUT_MS },
        Packet::Revalidated { session: SESSION, valid: true },
    );
    let other = SessionId(8);
    member.hears(LinkId(3), asked);
    member.hears(LinkId(3), Packet::Revalidate { session: other, timeout_ms: TIMEOUT_MS });
    let unknown = Packet::Revalidated { session: other, valid: false };
    assert!(!member.has_told(3, &alive));
    member.hears(LinkId(2), Packet::Ack(at(2, 2)));
    let told = |packet: &Packet<'_>| member.place_of(3, packet).unwrap();
    assert!(told(&Packet::Commit(at(2, 2))) < told(&alive));
    // Java's observer masters know one asker at a time, and drop what comes out of turn.
    assert!(told(&alive) < told(&unknown));
}

/// Many clients come back at once when a server ends, while others write. None waits for the writes of others.
#[test]
fn a_leader_answers_at_once_for_a_session_that_has_nothing_under_way() {
    let ensemble = config(&[1, 2, 3], at(1, 0));
    let mut member = Member::start(&ensemble, None, Tree::fresh(ExtendedTypes::default()), 1);
    member.leads_with(&[2, 3], &ensemble, 2);
    let creates = |member: &mut Member, session: SessionId| {
        let (code, body, ids) = (Op::CreateSession.code(), TIMEOUT_MS.to_be_bytes(), Vec::new());
        let body = body.as_slice().into();
        member.hears(LinkId(2), Packet::Request { session, cxid: 1, code, body, ids });
    };
    let answered_at_once = |member: &mut Member, session: SessionId, valid: bool| {
        member.effects.clear();
        member.hears(LinkId(3), Packet::Revalidate { session, timeout_ms: TIMEOUT_MS });
        member.has_told(3, &Packet::Revalidated { session, valid })
    };
    let (other, unknown) = (SessionId(8), SessionId(9));
    creates(&mut member, SESSION);
    member.hears(LinkId(2), Packet::Ack(at(2, 1)));
    creates(&mut member, other);
    assert!(answered_at_once(&mut member, SESSION, true), "its last write is done");
    assert!(!answered_at_once(&mut member, other, true));
    assert!(!answered_at_once(&mut member, unknown, false), "the answers keep the order of the questions");
    member.hears(LinkId(2), Packet::Ack(at(2, 2)));
    assert!(member.has_told(3, &Packet::Revalidated { session: unknown, valid: false }));
    creates(&mut member, SessionId(10));
    assert!(answered_at_once(&mut member, unknown, false), "the earlier questions are answered");
}
