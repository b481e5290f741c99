//! Sessions that one server knows, and those whose end is not known everywhere yet.

use crate::{
    follower::{Follower, TIMEOUT_MS, XID},
    member::{Member, SESSION, at, config},
};
use ostler_proto::{
    error::ErrorCode,
    id::SessionId,
    jute::Writer,
    op::{self, Op},
    quorum_packet::Packet,
    request::MultiHeader,
    stat::ExtendedTypes,
    txn::{Txn, TxnHeader, TxnRecord},
};
use ostler_server_core::{CloseReason, ConnId, Effect, Input, PeerMessage, PersistOp, quorum::LocalSessions};
use ostler_tree::Tree;
use ostler_zab::leading::LinkId;

/// `sync` of the members here.
const PATIENCE_MS: u64 = 5_000;

fn leader_with(local: LocalSessions, tree: Tree) -> Member {
    let ensemble = config(&[1, 2, 3], at(1, 0));
    let mut member = Member::start_with(&ensemble, None, tree, 1, |config| config.local_sessions = local);
    member.leads_with(&[2, 3], &ensemble, 2);
    member
}

fn leader(local: LocalSessions) -> Member {
    leader_with(local, Tree::fresh(ExtendedTypes::default()))
}

fn create(flags: i32) -> Vec<u8> {
    let mut body = Vec::new();
    body.string("/e");
    body.buffer(None);
    body.i32(1);
    body.i32(31);
    body.string("world");
    body.string("anyone");
    body.i32(flags);
    body
}

const EPHEMERAL: i32 = 1;

fn multi(op: Op, body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    MultiHeader { code: op.code(), done: false, error: op::ERROR }.write(&mut out);
    out.extend(body);
    MultiHeader::END.write(&mut out);
    out
}

fn write() -> Vec<u8> {
    let mut body = Vec::new();
    body.string("/");
    body.buffer(None);
    body.i32(-1);
    body
}

fn last_record(member: &Member) -> Vec<u8> {
    let last = member.effects.iter().rev().find_map(|effect| match effect {
        Effect::Persist { op: PersistOp::Append { record, .. }, .. } => Some(record.0.to_vec()),
        _ => None,
    });
    last.unwrap()
}

fn outcome(member: &Member) -> Result<(), ErrorCode> {
    match TxnRecord::read(&last_record(member)).unwrap().txn {
        Txn::Error(code) => Err(ErrorCode::from_code(code).unwrap()),
        _ => Ok(()),
    }
}

fn asked_by(member: &mut Member, follower: u64, session: SessionId, op: Op) -> Result<(), ErrorCode> {
    let body = match op {
        Op::CreateSession => TIMEOUT_MS.to_be_bytes().to_vec(),
        Op::SetData => write(),
        _ => Vec::new(),
    };
    let (cxid, code, body, ids) = (1, op.code(), body.into(), Vec::new());
    member.hears(LinkId(follower), Packet::Request { session, cxid, code, body, ids });
    outcome(member)
}

fn all_acknowledge(member: &mut Member, counter: u32) {
    [2, 3].into_iter().for_each(|link| member.hears(LinkId(link), Packet::Ack(at(2, counter))));
}

/// The followers live, and so do the sessions that are said to.
fn passes(member: &mut Member, ms: u64, touched: &[SessionId]) {
    for _ in 0..ms / 1_000 {
        let touched: Vec<_> = touched.iter().map(|session| (*session, TIMEOUT_MS)).collect();
        for link in [2, 3] {
            member.hears(LinkId(link), Packet::Ping { zxid: at(2, 1), touched: Some(touched.clone()) });
        }
        member.passes(1_000 - 2);
    }
}

#[test]
fn a_session_whose_end_is_proposed_writes_nothing() {
    let mut member = leader(LocalSessions::Off);
    assert_eq!(asked_by(&mut member, 2, SESSION, Op::CreateSession), Ok(()));
    all_acknowledge(&mut member, 1);
    assert_eq!(asked_by(&mut member, 2, SESSION, Op::SetData), Ok(()));
    assert_eq!(asked_by(&mut member, 2, SESSION, Op::CloseSession), Ok(()));
    assert_eq!(asked_by(&mut member, 2, SESSION, Op::SetData), Err(ErrorCode::SessionExpired));
}

#[test]
fn after_a_change_of_leaders_a_session_is_where_it_writes_first() {
    let mut tree = Tree::fresh(ExtendedTypes::default());
    let (zxid, txn) = (at(1, 1), Txn::CreateSession { timeout_ms: TIMEOUT_MS });
    let header = TxnHeader { session: SESSION, cxid: 0, zxid, time_ms: 0, code: txn.code() };
    tree.apply(&TxnRecord { header, txn, digest: None }, &mut Vec::new());
    let mut member = leader_with(LocalSessions::Off, tree);
    assert_eq!(asked_by(&mut member, 3, SESSION, Op::SetData), Ok(()));
    assert_eq!(asked_by(&mut member, 2, SESSION, Op::SetData), Err(ErrorCode::SessionMoved));
    assert_eq!(asked_by(&mut member, 3, SESSION, Op::SetData), Ok(()));
}

/// For as long as either side has patience with the other something of it may come. After that its number is like any
/// other, and nothing is kept of it.
#[test]
fn the_end_of_a_session_is_remembered_for_twice_the_patience() {
    let sessions = [11, 12, 13].map(SessionId);
    let mut member = leader(LocalSessions::Fixed);
    for session in sessions {
        assert_eq!(asked_by(&mut member, 2, session, Op::CreateSession), Ok(()));
    }
    all_acknowledge(&mut member, 3);
    let mut proposed = 3;
    let mut ends = |member: &mut Member, session| {
        assert_eq!(asked_by(member, 2, session, Op::CloseSession), Ok(()));
        proposed += 1;
        all_acknowledge(member, proposed);
        assert!(!member.server.tree().has_session(session));
    };
    ends(&mut member, sessions[0]);
    passes(&mut member, 2 * PATIENCE_MS - 2_000, &sessions[1..]);
    // Those that are over are forgotten whenever another one ends.
    ends(&mut member, sessions[1]);
    assert_eq!(asked_by(&mut member, 2, sessions[0], Op::SetData), Err(ErrorCode::SessionExpired));
    proposed += 1;
    all_acknowledge(&mut member, proposed);
    passes(&mut member, 3_000, &sessions[2..]);
    assert_eq!(asked_by(&mut member, 2, sessions[2], Op::CloseSession), Ok(()));
    proposed += 1;
    all_acknowledge(&mut member, proposed);
    assert_eq!(asked_by(&mut member, 2, sessions[1], Op::SetData), Err(ErrorCode::SessionExpired));
    assert_eq!(asked_by(&mut member, 2, sessions[0], Op::SetData), Ok(()), "it may be one of 2's own");
}

fn closed(member: &Member, conn: ConnId) -> Option<CloseReason> {
    member.effects.iter().find_map(|effect| match effect {
        Effect::Close { conn: of, reason } if *of == conn => Some(*reason),
        _ => None,
    })
}

#[test]
fn a_local_session_ends_by_expiry_or_by_an_operator() {
    for is_ended in [true, false] {
        let mut follower = Follower::start_with(|config| config.local_sessions = LocalSessions::Fixed);
        let conn = follower.connect_for_new_session(1);
        let member = &mut follower.member;
        assert_eq!(member.server.summary().local_sessions, 1);
        if is_ended {
            member.step(Input::ExpireSession(follower.session));
        } else {
            for _ in 0..TIMEOUT_MS / 1_000 + 3 {
                member.hears(follower.leader, Packet::Ping { zxid: at(2, 0), touched: None });
                member.passes(1_000);
            }
        }
        assert_eq!(closed(member, conn), Some(CloseReason::SessionExpired));
        let of = member.server.summary();
        assert_eq!((of.local_sessions, of.stats.stale_sessions_expired), (0, 1), "ended: {is_ended}");
    }
}

#[test]
fn the_leader_hears_of_sessions_that_it_knows_and_of_no_others() {
    for local in [false, true] {
        let mut follower = if local {
            Follower::start_with(|config| config.local_sessions = LocalSessions::Fixed)
        } else {
            Follower::start()
        };
        let conn = if local { follower.connect_for_new_session(1) } else { follower.reconnect(1) };
        let ping = Packet::Ping { zxid: at(2, 1), touched: None };
        follower.member.hears(follower.leader, ping.clone());
        follower.member.effects.clear();
        follower.request(conn, Op::Ping, &[]);
        follower.member.hears(follower.leader, ping);
        let touched = if local { vec![] } else { vec![(SESSION, TIMEOUT_MS)] };
        let pong = Packet::Ping { zxid: at(2, 1), touched: Some(touched) };
        assert!(follower.member.has_told(follower.leader.0 as i64, &pong), "local: {local}");
    }
}

/// The error that a request of a client of this server gets.
fn refusal(follower: &Follower, conn: ConnId) -> Option<ErrorCode> {
    follower.member.effects.iter().rev().find_map(|effect| match effect {
        Effect::Reply { conn: to, reply } if *to == conn => Some(reply.result.as_ref().err().copied()),
        _ => None,
    })?
}

/// A leader says to a client of its own why: a learner's it cannot tell.
#[test]
fn a_local_session_at_the_leader_has_no_ephemerals() {
    let multi_of = |flags| multi(Op::Create, &create(flags));
    for (op, body, expected) in [
        (Op::Create, create(EPHEMERAL), Err(ErrorCode::EphemeralOnLocalSession)),
        (Op::Create2, create(EPHEMERAL), Err(ErrorCode::EphemeralOnLocalSession)),
        // Upstream does not look at this one.
        (Op::CreateContainer, create(EPHEMERAL), Err(ErrorCode::SessionExpired)),
        (Op::Create, create(0), Ok(())),
        (Op::Multi, multi_of(EPHEMERAL), Ok(())),
        (Op::Multi, multi_of(0), Ok(())),
    ] {
        let member = leader(LocalSessions::Fixed);
        let mut leader = Follower { member, leader: LinkId(2), session: SESSION };
        let conn = leader.connect_for_new_session(1);
        leader.request(conn, op, &body);
        let is_refused = body == multi_of(EPHEMERAL);
        assert_eq!(outcome(&leader.member), expected, "{op:?}");
        let record = last_record(&leader.member);
        if let Txn::Multi(parts) = TxnRecord::read(&record).unwrap().txn {
            let text = format!("{parts:?}");
            let code = ErrorCode::EphemeralOnLocalSession.code().to_string();
            assert_eq!(text.contains(&code), is_refused, "{text}");
        }
    }
}

/// A multi is the leader's to refuse, operation by operation; a single create is refused for its reason.
#[test]
fn a_local_session_gets_an_error_for_an_ephemeral() {
    for (op, body, told) in [
        (Op::Create, create(EPHEMERAL), ErrorCode::EphemeralOnLocalSession),
        (Op::Multi, multi(Op::Create, &create(EPHEMERAL)), ErrorCode::SessionExpired),
    ] {
        let mut follower = Follower::start_with(|config| config.local_sessions = LocalSessions::Fixed);
        let conn = follower.connect_for_new_session(1);
        follower.request(conn, op, &body);
        follower.hears_of(at(2, 1), XID, Txn::Error(ErrorCode::SessionExpired.code()));
        follower.commits(at(2, 1));
        assert_eq!(refusal(&follower, conn), Some(told), "{op:?}");
    }
}

#[test]
fn a_local_session_becomes_known_for_a_multi_with_an_ephemeral() {
    for (flags, expected) in [(EPHEMERAL, &[Op::CreateSession, Op::Multi][..]), (0, &[Op::Multi])] {
        let mut follower = Follower::start_with(|config| config.local_sessions = LocalSessions::Upgradeable);
        let conn = follower.connect_for_new_session(1);
        follower.request(conn, Op::Multi, &multi(Op::Create, &create(flags)));
        let asked = follower.member.effects.iter().filter_map(|effect| match effect {
            Effect::ToPeer { message: PeerMessage::Packet(Packet::Request { code, .. }), .. } => {
                Op::from_code(*code)
            }
            _ => None,
        });
        assert_eq!(asked.collect::<Vec<_>>(), expected);
        if flags == EPHEMERAL {
            follower.hears_of(at(2, 1), 0, Txn::CreateSession { timeout_ms: TIMEOUT_MS });
            follower.commits(at(2, 1));
            assert_eq!(follower.answers(conn), [], "that is no answer to the multi");
        }
    }
}
