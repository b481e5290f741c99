//! A caller that knows the id of another client's session and not its password, at every kind of member.

use crate::{
    follower::{Follower, TIMEOUT_MS},
    member::{ME, Member, SESSION, at, config},
    said,
};
use ostler_proto::{
    acl::Id,
    connect::ConnectRequest,
    id::{Epoch, ServerId, SessionId},
    jute::Writer,
    membership::Membership,
    op::Op,
    password::password_of,
    quorum_packet::{LearnerInfo, PROTOCOL_VERSION, Packet},
    stat::ExtendedTypes,
};
use ostler_server_core::{
    ClientRequest, CloseReason, ConnId, CoreConfig, Effect, Input, PeerMessage,
    passwords::{NewPasswords, Passwords, Secret},
    quorum::{LocalSessions, MemberMode},
};
use ostler_tree::Tree;
use ostler_zab::leading::LinkId;

const OWNER: ConnId = ConnId(101);

/// A handshake on a new connection.
fn calls(
    member: &mut Member,
    conn: ConnId,
    session: SessionId,
    password: Option<&[u8]>,
    read_only: Option<bool>,
) {
    member.step(Input::Accepted { conn, peer: ([127, 0, 0, 1], 5_000).into() });
    let request = ConnectRequest {
        protocol_version: 0,
        last_zxid_seen: 0,
        timeout_ms: TIMEOUT_MS,
        session,
        password,
        read_only,
    };
    member.step(Input::Connect { conn, request, chance: conn.0 });
}

/// The session that a connection was told of last.
fn session_of(member: &Member, conn: ConnId) -> Option<SessionId> {
    member.effects.iter().rev().find_map(|effect| match effect {
        Effect::Connected { conn: to, response } if *to == conn => Some(response.session),
        _ => None,
    })
}

/// Whether the owner is answered.
fn reads(member: &mut Member) -> bool {
    let mut payload = Vec::new();
    payload.i32(1);
    payload.i32(Op::GetData.code());
    payload.string("/");
    payload.bool(false);
    let before = member.effects.len();
    let request = ClientRequest::decode(&payload).unwrap();
    member.step(Input::Request { conn: OWNER, request });
    member.effects[before..].iter().any(|of| matches!(of, Effect::Reply { conn: OWNER, .. }))
}

/// Callers without the password try every form. Each gets the answer that the session has expired, and nothing else
/// happens.
fn assert_left_alone(kind: &str, member: &mut Member, session: SessionId, read_only: Option<bool>) {
    assert!(reads(member), "{kind}: the owner is served");
    let right = password_of(session);
    let mut almost = right;
    almost[15] ^= 1;
    let longer = [&right[..], &[0]].concat();
    let wrong: [Option<&[u8]>; 6] =
        [None, Some(&[]), Some(&[0; 16]), Some(&almost), Some(&right[..15]), Some(&longer)];
    for (n, password) in wrong.into_iter().enumerate() {
        let conn = ConnId(200 + n as u64);
        let before = member.effects.len();
        calls(member, conn, session, password, read_only);
        member.step(Input::Disconnected { conn });
        for effect in &member.effects[before..] {
            match effect {
                Effect::Connected { conn: to, response } if *to == conn => {
                    assert_eq!(response.session, SessionId::NONE, "{kind}");
                }
                Effect::Close { conn: of, reason } if *of == conn => {
                    assert!(matches!(reason, CloseReason::SessionExpired | CloseReason::ReadOnly), "{kind}");
                }
                other => panic!("{kind}: a wrong password {password:?} leads to {other:?}"),
            }
        }
        assert!(reads(member), "{kind}: the owner is served after {password:?}");
    }
    let conn = ConnId(300);
    calls(member, conn, session, Some(&right), read_only);
    let asked = Packet::Revalidate { session, timeout_ms: TIMEOUT_MS };
    let asks = member.effects.iter().any(
        |of| matches!(of, Effect::ToPeer { message: PeerMessage::Packet(packet), .. } if *packet == asked),
    );
    let refused = member
        .effects
        .iter()
        .any(|of| matches!(of, Effect::Close { conn: of, reason: CloseReason::ReadOnly } if *of == conn));
    assert!(
        refused || asks || session_of(member, conn) == Some(session),
        "{kind}: the right password is believed"
    );
}

fn voters() -> Membership {
    config(&[1, 2, 3], at(1, 0))
}

#[test]
fn at_a_leader() {
    for local in [LocalSessions::Off, LocalSessions::Upgradeable] {
        let ensemble = voters();
        let fresh = Tree::fresh(ExtendedTypes::default());
        let mut member =
            Member::start_with(&ensemble, None, fresh, 1, |config| config.local_sessions = local);
        member.leads_with(&[2], &ensemble, 2);
        calls(&mut member, OWNER, SessionId::NONE, None, Some(false));
        member.hears(LinkId(2), Packet::Ack(at(2, 1)));
        let session = session_of(&member, OWNER).unwrap();
        assert_left_alone(&format!("a leader, local sessions {local:?}"), &mut member, session, Some(false));
    }
}

/// The owner has come back, so the follower knows of the session by its leader.
#[test]
fn at_a_follower() {
    let mut follower = Follower::start();
    follower.reconnect(OWNER.0);
    assert_left_alone("a follower", &mut follower.member, SESSION, Some(false));
}

#[test]
fn at_a_follower_with_observers() {
    let mut follower = Follower::start_with(|config| config.observing.masters = true);
    let session = SESSION;
    follower.hears_of(at(2, 1), 0, ostler_proto::txn::Txn::CreateSession { timeout_ms: TIMEOUT_MS });
    follower.commits(at(2, 1));
    follower.reconnect(OWNER.0);
    assert_left_alone("an observer master", &mut follower.member, session, Some(false));
}

#[test]
fn at_a_follower_with_a_local_session() {
    let mut follower = Follower::start_with(|config| config.local_sessions = LocalSessions::Upgradeable);
    follower.connect_for_new_session(OWNER.0);
    let session = follower.session;
    assert_left_alone("a follower, a local session", &mut follower.member, session, Some(false));
}

#[test]
fn at_an_observer() {
    let lines = "server.1=h1:1:2:observer;h1:3\nserver.2=h2:1:2:participant;h2:3\n\
                 server.3=h3:1:2:participant;h3:3\n";
    let ensemble = Membership { version: at(1, 0).0, ..Membership::parse(lines).unwrap() };
    let mut member = Member::start(&ensemble, None, Tree::fresh(ExtendedTypes::default()), 1);
    assert!(!member.voters().contains(&ME));
    let leader = member.follows(&[2, 3], &ensemble, 2);
    member.hears(leader, Packet::Diff(at(0, 0)));
    member.hears_new_leader(leader, 2, &ensemble);
    member.hears(leader, Packet::UpToDate);
    calls(&mut member, OWNER, SESSION, Some(&password_of(SESSION)), Some(false));
    member.hears(leader, Packet::Revalidated { session: SESSION, valid: true });
    assert_left_alone("an observer", &mut member, SESSION, Some(false));
}

/// While its owner is asked for, the session is nobody's to disturb either.
#[test]
fn at_a_follower_that_asks_its_leader() {
    let mut follower = Follower::start();
    follower.ask_for_session(OWNER.0);
    let before = follower.member.effects.len();
    calls(&mut follower.member, ConnId(200), SESSION, Some(&[1; 16]), Some(false));
    let told = &follower.member.effects[before..];
    assert!(told.iter().all(|of| !matches!(of, Effect::ToPeer { .. } | Effect::Close { conn: OWNER, .. })));
    follower.hears_that_it_lives();
    assert_eq!(follower.session_of(OWNER), Some(SESSION));
    assert!(reads(&mut follower.member));
}

#[test]
fn at_a_server_without_a_leader() {
    let ensemble = voters();
    for local in [LocalSessions::Fixed, LocalSessions::Off] {
        let fresh = Tree::fresh(ExtendedTypes::default());
        let mut member = Member::start_with(&ensemble, None, fresh, 1, |config| {
            config.read_only_after_ms = Some(1_000);
            config.local_sessions = local;
        });
        member.passes(1_010);
        let session = if local == LocalSessions::Off {
            // It believes who brings one.
            calls(&mut member, OWNER, SESSION, Some(&password_of(SESSION)), Some(true));
            SESSION
        } else {
            calls(&mut member, OWNER, SessionId::NONE, None, Some(true));
            session_of(&member, OWNER).unwrap()
        };
        let kind = format!("a server without a leader, local sessions {local:?}");
        assert_left_alone(&kind, &mut member, session, Some(true));
    }
}

/// Its own client says who it is by an address alone.
#[test]
fn a_caller_without_the_password_writes_nothing_in_a_session() {
    let mut follower = Follower::start();
    follower.reconnect(OWNER.0);
    calls(&mut follower.member, ConnId(200), SESSION, Some(&[1; 16]), Some(false));
    let before = follower.member.effects.len();
    follower.request_write(ConnId(200));
    assert_eq!(follower.member.effects.len(), before, "nothing is taken from it");
    follower.request_write(OWNER);
    let sent = follower.member.effects[before..].iter().find_map(|of| match of {
        Effect::ToPeer { message: PeerMessage::Packet(Packet::Request { session, ids, .. }), .. } => {
            Some((*session, ids.clone()))
        }
        _ => None,
    });
    assert_eq!(sent, Some((SESSION, vec![Id::new("ip", "127.0.0.1")])));
}

fn keeps(new: NewPasswords) -> CoreConfig {
    let secrets = vec![Secret::new(b"a secret of this ensemble").unwrap()];
    CoreConfig { passwords: Passwords { new, secrets }, ..CoreConfig::default() }
}

/// A learner of another make would tell clients that come to it that their sessions are gone. It is not needed, so it stays
/// outside until the others have made passwords that it can judge.
#[test]
fn a_learner_that_cannot_judge_passwords_stays_outside() {
    use NewPasswords::{Derived, Leaving, Secret};
    for (new, knows_secrets, stays_outside) in
        [(Secret, false, true), (Secret, true, false), (Leaving, false, false), (Derived, false, false)]
    {
        for observes in [false, true] {
            let lines = "server.1=h1:1:2:participant;h1:3\nserver.2=h2:1:2:participant;h2:3\n\
                         server.3=h3:1:2:participant;h3:3\nserver.4=h4:1:2:observer;h4:3\n";
            let ensemble = Membership { version: at(1, 0).0, ..Membership::parse(lines).unwrap() };
            let fresh = Tree::fresh(ExtendedTypes::default());
            let mut member = Member::start_as(keeps(new), &ensemble, None, fresh, 1, |_| {});
            // Without the second server there is no quorum, so that one is taken as it is.
            member.leads_with(&[2], &ensemble, 2);
            assert_eq!(member.server.mode(), Some(MemberMode::Leader));
            let number = if observes { 4 } else { 3 };
            let info = LearnerInfo {
                server: Some(ServerId(number)),
                protocol: PROTOCOL_VERSION,
                config_version: ensemble.version,
                knows_secrets,
                moves_in_place: false,
            };
            let (accepted, link) = (Epoch(1), LinkId(number as u64));
            let packet = if observes {
                Packet::ObserverInfo { accepted, info }
            } else {
                Packet::FollowerInfo { accepted, info }
            };
            let said = said::during(|| member.hears(link, packet));
            assert_eq!(member.has_hung_up(link), stays_outside, "{new:?}, it knows secrets: {knows_secrets}");
            let of_server = format!("server={number}");
            // Both are what the other cases do.
            let words = [&*of_server, "set sessionSecrets there", "first set sessionPasswords=leaving"];
            assert_eq!(said.has(&words), stays_outside, "{said:?}");
        }
    }
}

#[test]
fn a_learner_says_that_it_knows_secrets() {
    for (config, says) in [(keeps(NewPasswords::Derived), true), (CoreConfig::default(), false)] {
        let ensemble = voters();
        let fresh = Tree::fresh(ExtendedTypes::default());
        let mut member = Member::start_as(config, &ensemble, None, fresh, 1, |_| {});
        member.follows(&[2, 3], &ensemble, 2);
        let said = member.effects.iter().find_map(|of| match of {
            Effect::ToPeer { message: PeerMessage::Packet(Packet::FollowerInfo { info, .. }), .. } => {
                Some(info.knows_secrets)
            }
            _ => None,
        });
        assert_eq!(said, Some(says));
    }
}
