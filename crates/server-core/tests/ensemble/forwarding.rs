//! Requests of learners' clients, on their way to the leader and at the leader.

use crate::{
    follower::{Follower, TIMEOUT_MS, XID},
    member::{Member, SESSION, at, config},
};
use ostler_proto::{
    acl::Id,
    error::ErrorCode,
    id::{Epoch, ServerId, SessionId, Zxid},
    jute::Writer,
    op::Op,
    quorum_packet::{LearnerInfo, PROTOCOL_VERSION, Packet},
    stat::ExtendedTypes,
    txn::{Txn, TxnRecord},
};
use ostler_server_core::{Effect, PeerMessage, PersistOp, quorum::LocalSessions};
use ostler_tree::Tree;
use ostler_zab::leading::LinkId;

/// A forwarded request: session, xid, operation, length of the body, and the number of identities.
type Asked = (SessionId, i32, Op, usize, Vec<Id>);

/// The requests that a follower has sent to its leader.
fn requests(follower: &Follower) -> Vec<Asked> {
    let asked = follower.member.effects.iter().filter_map(|effect| match effect {
        Effect::ToPeer {
            link,
            message: PeerMessage::Packet(Packet::Request { session, cxid, code, body, ids }),
        } if *link == follower.leader => {
            Some((*session, *cxid, Op::from_code(*code).unwrap(), body.len(), ids.clone()))
        }
        _ => None,
    });
    asked.collect()
}

/// A write of the root.
fn write() -> Vec<u8> {
    let mut body = Vec::new();
    body.string("/");
    body.buffer(None);
    body.i32(-1);
    body
}

#[test]
fn a_write_goes_to_the_leader_with_who_asks() {
    let mut follower = Follower::start();
    let conn = follower.reconnect(1);
    follower.request_write(conn);
    let ids = vec![Id::new("ip", "127.0.0.1")];
    assert_eq!(requests(&follower), [(SESSION, XID, Op::SetData, write().len(), ids)]);
}

#[test]
fn a_forwarded_new_session_has_no_identities_and_is_answered_with_its_commit() {
    let mut follower = Follower::start_with(|_| {});
    let conn = follower.connect_for_new_session(1);
    let [(session, 0, Op::CreateSession, 4, ids)] = &requests(&follower)[..] else { panic!("a session") };
    assert_eq!((ids, follower.session_of(conn)), (&vec![], None));
    follower.session = *session;
    follower.hears_of(at(2, 1), 0, Txn::CreateSession { timeout_ms: TIMEOUT_MS });
    assert_eq!(follower.session_of(conn), None, "no quorum has it");
    follower.commits(at(2, 1));
    assert_eq!(follower.session_of(conn), Some(follower.session));
}

/// The request needs a session that all know: that comes first.
#[test]
fn a_local_session_becomes_known_in_front_of_what_needs_that() {
    let mut follower = Follower::start_with(|config| config.local_sessions = LocalSessions::Upgradeable);
    let conn = follower.connect_for_new_session(1);
    assert_eq!(requests(&follower), []);
    let mut create = Vec::new();
    create.string("/e");
    create.buffer(None);
    create.i32(-1);
    create.i32(1);
    follower.request(conn, Op::Create, &create);
    let asked: Vec<(i32, Op)> = requests(&follower).iter().map(|asked| (asked.1, asked.2)).collect();
    assert_eq!(asked, [(0, Op::CreateSession), (XID, Op::Create)]);
}

/// A leader that has the session of a client of server 2.
fn leader(local: LocalSessions) -> Member {
    let ensemble = config(&[1, 2, 3], at(1, 0));
    let fresh = Tree::fresh(ExtendedTypes::default());
    let mut member = Member::start_with(&ensemble, None, fresh, 1, |config| config.local_sessions = local);
    member.leads_with(&[2, 3], &ensemble, 2);
    member.request(2, Op::CreateSession, &TIMEOUT_MS.to_be_bytes());
    member.hears(LinkId(2), Packet::Ack(at(2, 1)));
    member
}

/// The result of the last request.
fn outcome(member: &Member) -> Result<(), ErrorCode> {
    let last = member.effects.iter().rev().find_map(|effect| match effect {
        Effect::Persist { op: PersistOp::Append { record, .. }, .. } => Some(record.0.clone()),
        _ => None,
    });
    match TxnRecord::read(&last.unwrap()).unwrap().txn {
        Txn::Error(code) => Err(ErrorCode::from_code(code).unwrap()),
        _ => Ok(()),
    }
}

fn asked_by(member: &mut Member, follower: i64, session: SessionId) -> Result<(), ErrorCode> {
    let (cxid, code, body, ids) = (1, Op::SetData.code(), write().into(), Vec::new());
    member.hears(LinkId(follower as u64), Packet::Request { session, cxid, code, body, ids });
    outcome(member)
}

#[test]
fn a_moved_session_writes_only_through_its_new_server() {
    let mut member = leader(LocalSessions::Off);
    assert_eq!(asked_by(&mut member, 2, SESSION), Ok(()));
    assert_eq!(asked_by(&mut member, 3, SESSION), Err(ErrorCode::SessionMoved));
    member.hears(LinkId(3), Packet::Revalidate { session: SESSION, timeout_ms: TIMEOUT_MS });
    assert_eq!(asked_by(&mut member, 2, SESSION), Err(ErrorCode::SessionMoved));
    assert_eq!(asked_by(&mut member, 3, SESSION), Ok(()));
    assert_eq!(asked_by(&mut member, 3, SessionId(8)), Err(ErrorCode::SessionExpired), "nobody knows it");
}

/// An operation that only a server may ask for has no owner, and no ACL is checked. Java followers before 3.9.6 forward
/// it for any client (CVE-2026-79993).
#[test]
fn no_client_deletes_as_the_reaper_does() {
    let mut member = leader(LocalSessions::Off);
    let mut body = Vec::new();
    body.string("/zookeeper/quota");
    member.request(2, Op::DeleteContainer, &body);
    assert_eq!(outcome(&member), Err(ErrorCode::MarshallingError));
    member.hears(LinkId(2), Packet::Ack(at(2, 2)));
    assert!(member.server.tree().get("/zookeeper/quota").is_some());
}

/// Those of a learner's clients may live there and be unknown here, but not those that this server has given out.
#[test]
fn an_unknown_session_writes_where_it_may_be_a_learners_own() {
    let (own, learners) = (SessionId(0x0100_0000_0000_0007), SessionId(0x0200_0000_0000_0007));
    let mut member = leader(LocalSessions::Fixed);
    assert_eq!(asked_by(&mut member, 2, learners), Ok(()));
    assert_eq!(asked_by(&mut member, 2, own), Err(ErrorCode::SessionExpired));
    let mut member = leader(LocalSessions::Off);
    assert_eq!(asked_by(&mut member, 2, learners), Err(ErrorCode::SessionExpired));
}

/// Its learner hears of the end later than the leader, which could take it for a local one of that learner.
#[test]
fn a_session_that_has_ended_writes_nothing_for_as_long_as_something_of_it_may_be_on_its_way() {
    let mut member = leader(LocalSessions::Fixed);
    member.request(2, Op::CloseSession, &[]);
    member.hears(LinkId(2), Packet::Ack(at(2, 2)));
    assert_eq!(asked_by(&mut member, 2, SESSION), Err(ErrorCode::SessionExpired));
}

/// Any caller can connect, and claim any id.
#[test]
fn requests_of_a_learner_without_the_history_are_ignored() {
    let mut member = leader(LocalSessions::Off);
    let info = LearnerInfo {
        server: Some(ServerId(9)),
        protocol: PROTOCOL_VERSION,
        config_version: 0,
        knows_secrets: false,
        moves_in_place: false,
    };
    let logged = |member: &Member| {
        let is_record =
            |effect: &&Effect| matches!(effect, Effect::Persist { op: PersistOp::Append { .. }, .. });
        member.effects.iter().filter(is_record).count()
    };
    let before = logged(&member);
    for (link, says_who_it_is) in [(9, false), (10, true)] {
        if says_who_it_is {
            member.hears(LinkId(link as u64), Packet::ObserverInfo { accepted: Epoch(1), info });
        }
        member.request(link, Op::CreateSession, &TIMEOUT_MS.to_be_bytes());
        assert_eq!(logged(&member), before, "{link}");
    }
    member.request(3, Op::CreateSession, &TIMEOUT_MS.to_be_bytes());
    assert_eq!(logged(&member), before + 1);
}

#[test]
fn a_session_that_has_come_back_lives_from_then_on() {
    let mut member = leader(LocalSessions::Off);
    member.hears(LinkId(3), Packet::Ack(at(2, 1)));
    let passes = |member: &mut Member, ms: u64| {
        for _ in 0..ms / 1_000 {
            for follower in [2, 3] {
                member.hears(LinkId(follower), Packet::Ping { zxid: at(2, 1), touched: Some(Vec::new()) });
            }
            member.passes(1_000);
        }
    };
    passes(&mut member, 9_000);
    member.hears(LinkId(3), Packet::Revalidate { session: SESSION, timeout_ms: TIMEOUT_MS });
    assert!(member.has_told(3, &Packet::Revalidated { session: SESSION, valid: true }));
    passes(&mut member, 9_000);
    assert!(!member.has_given_up_the_session());
    let touched = Some(vec![(SESSION, TIMEOUT_MS)]);
    member.hears(LinkId(3), Packet::Ping { zxid: at(2, 1), touched });
    passes(&mut member, 9_000);
    assert!(!member.has_given_up_the_session(), "its server has heard of it");
    passes(&mut member, 4_000);
    assert!(member.has_given_up_the_session());
    member.hears(LinkId(3), Packet::Revalidate { session: SESSION, timeout_ms: TIMEOUT_MS });
    member.hears(LinkId(2), Packet::Ack(Zxid(at(2, 1).0 + 1)));
    assert!(member.has_told(3, &Packet::Revalidated { session: SESSION, valid: false }), "it has ended");
}
