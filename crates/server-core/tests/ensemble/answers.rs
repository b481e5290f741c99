//! The answers that a member of an ensemble sends, and when.

use crate::{
    configurations::leaving,
    follower::{Follower, TIMEOUT_MS},
    member::{Member, SESSION, at, config},
};
use ostler_proto::{
    error::ErrorCode, id::SessionId, jute::Writer, op::Op, quorum_packet::Packet, reply::Body,
    stat::ExtendedTypes,
};
use ostler_server_core::{Effect, PeerMessage};
use ostler_tree::Tree;
use ostler_zab::leading::LinkId;

const OTHER: SessionId = SessionId(8);

fn leader() -> Member {
    let ensemble = config(&[1, 2, 3], at(1, 0));
    let mut member = Member::start(&ensemble, None, Tree::fresh(ExtendedTypes::default()), 1);
    member.leads_with(&[2, 3], &ensemble, 2);
    member
}

fn all_acknowledge(member: &mut Member, counter: u32) {
    [2, 3].into_iter().for_each(|link| member.hears(LinkId(link), Packet::Ack(at(2, counter))));
}

fn asks(member: &mut Member, follower: u64, session: SessionId, op: Op) {
    let mut body = Vec::new();
    match op {
        Op::CreateSession => body.i32(TIMEOUT_MS),
        Op::Sync => body.string("/"),
        Op::SetData => {
            body.string("/");
            body.buffer(None);
            body.i32(-1);
        }
        _ => {}
    }
    let (cxid, code, body, ids) = (1, op.code(), body.into(), Vec::new());
    member.hears(LinkId(follower), Packet::Request { session, cxid, code, body, ids });
}

#[test]
fn a_client_hears_what_became_of_its_change_of_the_ensemble() {
    let ensemble = config(&[1, 2, 3], at(1, 0));
    for version in [-1, 1] {
        let mut leader = Follower { member: leader(), leader: LinkId(2), session: SESSION };
        let conn = leader.connect_for_new_session(1);
        all_acknowledge(&mut leader.member, 1);
        let mut body = leaving("3");
        let rest = body.len() - 8;
        body.truncate(rest);
        body.i64(version);
        leader.request(conn, Op::Reconfig, &body);
        all_acknowledge(&mut leader.member, 2);
        let answer = leader.member.effects.iter().rev().find_map(|effect| match effect {
            Effect::Reply { conn: to, reply } if *to == conn => Some(reply.result.clone()),
            _ => None,
        });
        match answer.unwrap() {
            Err(error) => assert_eq!((error, version), (ErrorCode::BadVersion, 1)),
            Ok(Body::Data(Some(text), stat)) => {
                assert_eq!((version, stat.mzxid), (-1, at(2, 2)));
                let expected = config(&[1, 2], at(2, 2)).to_string();
                assert_eq!(String::from_utf8_lossy(&text), expected);
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(leader.member.voters() == [1, 2], version == -1, "{ensemble}");
        // The tree became as prepare had foreseen.
        assert_eq!(leader.member.server.tree().digest_mismatches(), 0);
    }
}

#[test]
fn a_learners_sync_is_answered_after_what_was_proposed_before_it() {
    let mut member = leader();
    let syncs = |member: &Member| {
        let sync = |effect: &&Effect| {
            matches!(effect, Effect::ToPeer { link: LinkId(3), message: PeerMessage::Packet(Packet::Sync) })
        };
        member.effects.iter().filter(sync).count()
    };
    asks(&mut member, 3, SESSION, Op::Sync);
    assert_eq!(syncs(&member), 1, "nothing is under way");
    asks(&mut member, 2, SESSION, Op::CreateSession);
    asks(&mut member, 3, OTHER, Op::Sync);
    assert_eq!(syncs(&member), 1);
    all_acknowledge(&mut member, 1);
    assert_eq!(syncs(&member), 2);
    assert!(
        member.place_of(3, &Packet::Commit(at(2, 1)))
            < member.effects.iter().rposition(|effect| {
                matches!(
                    effect,
                    Effect::ToPeer { link: LinkId(3), message: PeerMessage::Packet(Packet::Sync) }
                )
            })
    );
}

#[test]
fn a_clients_sync_is_answered_when_the_leader_has_answered_it() {
    let mut follower = Follower::start();
    let conn = follower.reconnect(1);
    let mut body = Vec::new();
    body.string("/");
    follower.request(conn, Op::Sync, &body);
    follower.request_read(conn);
    assert_eq!(follower.answers(conn), []);
    follower.member.hears(follower.leader, Packet::Sync);
    assert_eq!(follower.answers(conn), [at(2, 1), at(2, 1)]);
}

/// Whether a session lives is said for the moment of the answer, which may be later than the question: not of one whose
/// end was proposed meanwhile, nor of one that was not there when it was asked for.
#[test]
fn a_session_lives_if_it_did_when_it_was_asked_for_and_does_when_that_is_answered() {
    let asked = |session| Packet::Revalidate { session, timeout_ms: TIMEOUT_MS };
    let answer = |session, valid| Packet::Revalidated { session, valid };
    let mut member = leader();
    asks(&mut member, 2, SESSION, Op::CreateSession);
    all_acknowledge(&mut member, 1);
    asks(&mut member, 2, SESSION, Op::SetData);
    member.hears(LinkId(3), asked(SESSION));
    member.hears(LinkId(3), asked(OTHER));
    asks(&mut member, 2, OTHER, Op::CreateSession);
    asks(&mut member, 3, SESSION, Op::CloseSession);
    for valid in [true, false] {
        assert!(!member.has_told(3, &answer(SESSION, valid)));
    }
    all_acknowledge(&mut member, 2);
    for session in [SESSION, OTHER] {
        assert!(member.has_told(3, &answer(session, false)), "{session}");
        assert!(!member.has_told(3, &answer(session, true)), "{session}");
    }
}

/// An observer's client asked for a session that is over: nothing is kept of it, and who has it next is not late.
#[test]
fn a_session_that_does_not_live_is_nobodys_at_a_follower() {
    let mut follower = Follower::start_with(|config| config.observing.masters = true);
    let links = [LinkId(54), LinkId(55)];
    for link in links {
        use ostler_proto::{
            id::{Epoch, ServerId},
            quorum_packet::{LearnerInfo, PROTOCOL_VERSION},
        };
        let member = &mut follower.member;
        member.step(ostler_server_core::Input::ObserverCalls { link });
        let config_version = config(&[1, 2, 3], at(1, 0)).version;
        let server = Some(ServerId(link.0 as i64 - 50));
        let info = LearnerInfo {
            server,
            protocol: PROTOCOL_VERSION,
            config_version,
            knows_secrets: false,
            moves_in_place: false,
        };
        member.hears(link, Packet::ObserverInfo { accepted: Epoch(2), info });
        member.hears(link, Packet::AckEpoch { last: at(0, 0), current: None });
        member.hears(link, Packet::Ack(at(2, 0)));
    }
    let [four, five] = links;
    follower.member.hears(four, Packet::Revalidate { session: OTHER, timeout_ms: TIMEOUT_MS });
    follower.member.hears(follower.leader, Packet::Revalidated { session: OTHER, valid: false });
    assert!(follower.member.has_told(four.0 as i64, &Packet::Revalidated { session: OTHER, valid: false }));
    asks(&mut follower.member, five.0, OTHER, Op::SetData);
    assert!(!follower.member.has_told(five.0 as i64, &Packet::SessionMoved(OTHER)));
    // Only what is a sync is answered as one.
    follower.member.hears(follower.leader, Packet::Sync);
    assert!(!follower.member.has_told(five.0 as i64, &Packet::Sync));
    asks(&mut follower.member, five.0, OTHER, Op::Sync);
    follower.member.hears(follower.leader, Packet::Sync);
    assert!(follower.member.has_told(five.0 as i64, &Packet::Sync));
}
