//! A client that comes back to the same server, and what it had asked for on its connection before.

use crate::{
    follower::{Follower, XID},
    member::{Member, SESSION, at, config},
};
use ostler_proto::{
    acl::{Acl, Id, Perms, write_acls},
    error::ErrorCode,
    id::{SessionId, Xid},
    jute::Writer,
    op::Op,
    quorum_packet::Packet,
    reply::{Body, Reply},
    request::MultiHeader,
    stat::ExtendedTypes,
    txn::{CreateTxn, Txn, TxnCreateKind},
};
use ostler_server_core::{ConnId, Effect, Input, quorum::LocalSessions};
use ostler_tree::Tree;
use ostler_zab::leading::LinkId;

/// Its client has a session that no other server knows.
fn with_local_session() -> (Follower, ConnId) {
    let mut follower = Follower::start_with(|config| config.local_sessions = LocalSessions::Upgradeable);
    let conn = follower.connect_for_new_session(1);
    assert_ne!(follower.session, SessionId::NONE);
    (follower, conn)
}

/// The client comes back on a new connection, before or after its server has heard that the old one is gone.
fn comes_back(follower: &mut Follower, earlier: ConnId, ends_first: bool) -> ConnId {
    if ends_first {
        follower.member.step(Input::Disconnected { conn: earlier });
    }
    follower.ask_for_session(earlier.0 + 1)
}

#[test]
fn a_local_session_that_comes_back_reads_its_own_writes() {
    for ends_first in [true, false] {
        for refused in [false, true] {
            let (mut follower, earlier) = with_local_session();
            follower.request_write(earlier);
            let conn = comes_back(&mut follower, earlier, ends_first);
            follower.request_read(conn);
            assert_eq!(follower.answers(conn), [], "the write is on its way, an earlier end: {ends_first}");
            if refused {
                follower.hears_of(at(2, 1), XID, Txn::Error(ErrorCode::BadVersion.code()));
            } else {
                follower.hears_of_write(at(2, 1), 1);
            }
            assert_eq!(follower.answers(conn), [], "no quorum has it");
            follower.commits(at(2, 1));
            assert_eq!(follower.answers(conn), [at(2, 1)], "an earlier end: {ends_first}");
        }
    }
}

#[test]
fn a_local_session_that_comes_back_waits_for_all_its_writes() {
    let (mut follower, first) = with_local_session();
    follower.request_write(first);
    let second = comes_back(&mut follower, first, true);
    follower.request_write(second);
    let third = comes_back(&mut follower, second, true);
    follower.request_read(third);
    for (counter, version) in [(1, 1), (2, 2)] {
        assert_eq!(follower.answers(third), []);
        follower.hears_of_write(at(2, counter), version);
        follower.commits(at(2, counter));
    }
    assert_eq!(follower.answers(third), [at(2, 2)]);
}

/// Java's leaders answer for a session at once, whatever it has under way.
#[test]
fn a_global_session_that_comes_back_reads_its_own_writes() {
    let mut follower = Follower::start();
    let earlier = follower.reconnect(1);
    follower.request_write(earlier);
    let conn = comes_back(&mut follower, earlier, true);
    follower.hears_that_it_lives();
    follower.request_read(conn);
    assert_eq!(follower.answers(conn), []);
    follower.hears_of_write(at(2, 2), 1);
    follower.commits(at(2, 2));
    assert_eq!(follower.answers(conn), [at(2, 2)]);
}

#[test]
fn a_session_that_comes_back_with_decided_writes_is_served_at_once() {
    let (mut follower, earlier) = with_local_session();
    follower.request_write(earlier);
    follower.hears_of_write(at(2, 1), 1);
    follower.commits(at(2, 1));
    let conn = comes_back(&mut follower, earlier, true);
    assert_eq!(follower.session_of(conn), Some(follower.session), "no leader is asked for it");
    follower.request_read(conn);
    assert_eq!(follower.answers(conn), [at(2, 1)]);
}

#[test]
fn a_session_does_not_wait_for_writes_of_another_session() {
    let (mut follower, earlier) = with_local_session();
    follower.request_write(earlier);
    let other = follower.connect_for_new_session(9);
    follower.request_read(other);
    assert_eq!(follower.answers(other), [at(2, 0)]);
}

#[test]
fn a_session_that_comes_back_to_the_leader_reads_its_own_writes() {
    let ensemble = config(&[1, 2, 3], at(1, 0));
    for local_sessions in [LocalSessions::Off, LocalSessions::Fixed] {
        let fresh = Tree::fresh(ExtendedTypes::default());
        let mut member = Member::start_with(&ensemble, None, fresh, 1, |config| {
            config.local_sessions = local_sessions;
        });
        member.leads_with(&[2, 3], &ensemble, 2);
        let mut leader = Follower { member, leader: LinkId(2), session: SESSION };
        let earlier = leader.connect_for_new_session(1);
        let mut proposed = 0;
        if local_sessions == LocalSessions::Off {
            proposed = 1;
            leader.member.hears(LinkId(2), Packet::Ack(at(2, proposed)));
            leader.session = leader.session_of(earlier).unwrap();
        }
        leader.request_write(earlier);
        let conn = comes_back(&mut leader, earlier, true);
        leader.request_read(conn);
        assert_eq!(leader.answers(conn), [], "{local_sessions:?}");
        leader.member.hears(LinkId(2), Packet::Ack(at(2, proposed + 1)));
        assert_eq!(leader.answers(conn), [at(2, proposed + 1)]);
    }
}

pub(crate) fn many_reads(count: usize) -> Vec<u8> {
    let mut reads = Vec::new();
    for _ in 0..count {
        reads.i32(Op::GetData.code());
        reads.bool(false);
        reads.i32(-1);
        reads.string("/");
        reads.bool(false);
    }
    reads.i32(-1);
    reads.bool(true);
    reads.i32(-1);
    reads
}

/// Done in parts beside commits, it would show two moments.
#[test]
fn a_multi_read_that_is_under_way_is_done_before_the_leaders_next_commit() {
    let (mut follower, other) = with_local_session();
    let conn = follower.connect_for_new_session(9);
    for asked in [conn, other] {
        follower.request(asked, Op::MultiRead, &many_reads(10_000));
    }
    assert!(follower.member.server.has_backlog());
    assert_eq!((follower.answers(conn), follower.answers(other)), (vec![], vec![]));
    follower.hears_of_write(at(2, 1), 1);
    follower.commits(at(2, 1));
    assert_eq!((follower.answers(conn), follower.answers(other)), (vec![at(2, 0)], vec![]));
    follower.member.passes(100);
    assert_eq!(follower.answers(other), [at(2, 1)]);
}

/// The follower cannot let the leader's commit wait, whoever else is being answered.
#[test]
fn one_who_wrote_behind_a_multi_read_is_answered_though_another_is_under_way() {
    let (mut follower, other) = with_local_session();
    let conn = follower.connect_for_new_session(9);
    follower.request(other, Op::MultiRead, &many_reads(10_000));
    for _ in 0..2 {
        follower.request(conn, Op::MultiRead, &many_reads(10_000));
    }
    follower.request_write(conn);
    follower.hears_of_write(at(2, 1), 1);
    follower.commits(at(2, 1));
    assert_eq!(follower.answers(other), [at(2, 0)]);
    assert_eq!(follower.answers(conn), [at(2, 0), at(2, 0), at(2, 1)]);
}

/// The reads are answered in parts, because there are many, and a write behind them commits meanwhile.
#[test]
fn reads_between_two_writes_see_the_first_and_not_the_second() {
    let mut follower = Follower::start();
    let conn = follower.reconnect(1);
    let reads = many_reads(100);
    follower.request_write(conn);
    for _ in 0..100 {
        follower.request(conn, Op::MultiRead, &reads);
    }
    follower.request_write(conn);
    follower.hears_of_write(at(2, 2), 1);
    follower.hears_of_write(at(2, 3), 2);
    follower.commits(at(2, 2));
    let answered = follower.answers(conn).len();
    assert!((2..101).contains(&answered), "{answered}: some have their turn later");
    follower.commits(at(2, 3));
    follower.member.passes(100);
    let answers = follower.answers(conn);
    assert_eq!(answers.len(), 102);
    assert_eq!(answers.iter().filter(|zxid| **zxid == at(2, 2)).count(), 101);
    assert_eq!(answers.last(), Some(&at(2, 3)));
}

/// Before the leader has said that the session lives: clients come back while their old connection hangs.
#[test]
fn the_connection_before_is_closed_as_its_session_comes_back() {
    let mut follower = Follower::start();
    let earlier = follower.reconnect(1);
    let conn = follower.ask_for_session(2);
    assert!(follower.has_closed(earlier) && !follower.has_closed(conn));
}

/// The rest of a long multiRead is read before a transaction is applied, so that it shows one zxid.
#[test]
fn a_multi_read_under_way_is_whole_when_a_transaction_is_applied() {
    let mut follower = Follower::start();
    let conn = follower.reconnect(1);
    let count = 5_000;
    let mut body = Vec::new();
    for _ in 0..count {
        MultiHeader { code: Op::GetData.code(), done: false, error: -1 }.write(&mut body);
        body.string("/");
        body.bool(false);
    }
    MultiHeader::END.write(&mut body);
    follower.request(conn, Op::MultiRead, &body);
    assert_eq!(follower.answers(conn), [], "it takes more than one turn");
    follower.hears_of_write(at(2, 2), 1);
    follower.commits(at(2, 2));
    let results = follower.member.effects.iter().find_map(|effect| match effect {
        Effect::Reply { reply: Reply { result: Ok(Body::Multi(results)), .. }, .. } => Some(results.len()),
        _ => None,
    });
    assert_eq!(results, Some(count));
}

/// As upstream answers it, whatever number the client has given it.
#[test]
fn a_ping_is_answered_with_the_number_of_pings() {
    let mut follower = Follower::start();
    let conn = follower.reconnect(1);
    follower.request(conn, Op::Ping, &[]);
    let xid = follower.member.effects.iter().rev().find_map(|effect| match effect {
        Effect::Reply { reply, .. } => Some(reply.xid),
        _ => None,
    });
    assert_eq!(xid, Some(Xid::PING));
    assert!(follower.member.server.learns_sessions(), "the leader decides when sessions expire");
}

/// The session has moved, and its client has used the same number at the other server for a write of another kind.
#[test]
fn a_write_is_not_answered_by_a_transaction_of_another_operation() {
    let mut follower = Follower::start();
    let conn = follower.reconnect(1);
    follower.request_write(conn);
    follower.hears_of(at(2, 2), XID, Txn::Delete { reaped: false, path: "/none".into() });
    follower.commits(at(2, 2));
    assert_eq!(follower.answers(conn), []);
    // The leader refuses the own one.
    follower.hears_of(at(2, 3), XID, Txn::Error(ErrorCode::SessionMoved.code()));
    follower.commits(at(2, 3));
    assert_eq!(follower.answers(conn), []);
    assert!(follower.has_closed(conn));
}

fn created(path: &str) -> Txn<'static> {
    Txn::Create(CreateTxn {
        kind: TxnCreateKind::Create,
        path: path.to_owned().into(),
        data: None,
        acl: vec![Acl { perms: Perms::ALL, id: Id::new("world", "anyone") }].into(),
        ephemeral: false,
        parent_cversion: 1,
    })
}

fn request_create(follower: &mut Follower, conn: ConnId, path: &str, flags: i32) {
    let mut body = Vec::new();
    body.string(path);
    body.buffer(None);
    write_acls(&mut body, &[Acl { perms: Perms::ALL, id: Id::new("world", "anyone") }]);
    body.i32(flags);
    follower.request(conn, Op::Create, &body);
}

/// As before, for a write of the same kind to another znode.
#[test]
fn a_write_is_not_answered_by_a_transaction_of_another_path() {
    let mut follower = Follower::start();
    let conn = follower.reconnect(1);
    request_create(&mut follower, conn, "/own", 0);
    follower.hears_of(at(2, 2), XID, created("/owned"));
    follower.commits(at(2, 2));
    assert_eq!(follower.answers(conn), []);
    follower.hears_of(at(2, 3), XID, created("/own"));
    follower.commits(at(2, 3));
    assert_eq!(follower.answers(conn), [at(2, 3)]);
    // The own write is to the root.
    follower.request_write(conn);
    let elsewhere = Txn::SetData { reconfig: false, path: "/own".into(), data: None, version: 1 };
    follower.hears_of(at(2, 4), XID, elsewhere);
    follower.commits(at(2, 4));
    assert_eq!(follower.answers(conn), [at(2, 3)]);
    follower.hears_of_write(at(2, 5), 1);
    follower.commits(at(2, 5));
    assert_eq!(follower.answers(conn), [at(2, 3), at(2, 5)]);
}

#[test]
fn a_sequential_create_is_answered_by_the_transaction_with_its_number() {
    let mut follower = Follower::start();
    let conn = follower.reconnect(1);
    request_create(&mut follower, conn, "/s-", 2);
    for (counter, other) in [(2, "/s-"), (3, "/s-x0000000001"), (4, "/t-0000000001")] {
        follower.hears_of(at(2, counter), XID, created(other));
        follower.commits(at(2, counter));
        assert_eq!(follower.answers(conn), [], "{other}");
    }
    follower.hears_of(at(2, 5), XID, created("/s-0000000007"));
    follower.commits(at(2, 5));
    assert_eq!(follower.answers(conn), [at(2, 5)]);
}

/// The session has written elsewhere, with the number that its write here had before it moved.
#[test]
fn a_write_of_an_earlier_connection_stays_undecided_by_a_transaction_of_another_path() {
    let mut follower = Follower::start();
    let earlier = follower.reconnect(1);
    request_create(&mut follower, earlier, "/own", 0);
    let conn = comes_back(&mut follower, earlier, true);
    follower.hears_that_it_lives();
    follower.request_read(conn);
    follower.hears_of(at(2, 2), XID, created("/other"));
    follower.commits(at(2, 2));
    assert_eq!(follower.answers(conn), [], "the own write is on its way");
    follower.hears_of(at(2, 3), XID, created("/own"));
    follower.commits(at(2, 3));
    assert_eq!(follower.answers(conn), [at(2, 3)]);
}
