//! A follower with observers of its own, and an observer's way to one.

use crate::{
    follower::{Follower, TIMEOUT_MS},
    member::{Member, SESSION, at, config},
};
use ostler_proto::{
    id::{Epoch, ServerId},
    jute::Writer,
    membership::Membership,
    op::Op,
    quorum_packet::{LearnerInfo, PROTOCOL_VERSION, Packet},
    stat::ExtendedTypes,
};
use ostler_server_core::{DialTarget, Effect, Input, PeerMessage};
use ostler_tree::Tree;
use ostler_zab::leading::LinkId;

const FOUR: LinkId = LinkId(54);
const FIVE: LinkId = LinkId(55);

fn info(server: i64) -> LearnerInfo {
    let config_version = config(&[1, 2, 3], at(1, 0)).version;
    LearnerInfo {
        server: Some(ServerId(server)),
        protocol: PROTOCOL_VERSION,
        config_version,
        knows_secrets: false,
        moves_in_place: false,
    }
}

/// Both observers are up to date.
fn with_two() -> Follower {
    let mut follower = Follower::start_with(|config| config.observing.masters = true);
    for link in [FOUR, FIVE] {
        let (member, server) = (&mut follower.member, link.0 as i64 - 50);
        member.step(Input::ObserverCalls { link });
        member.hears(link, Packet::ObserverInfo { accepted: Epoch(2), info: info(server) });
        member.hears(link, Packet::AckEpoch { last: at(0, 0), current: None });
        member.hears(link, Packet::Ack(at(2, 0)));
        assert!(member.has_told(link.0 as i64, &Packet::UpToDate));
    }
    follower
}

/// A client of an observer's asks for something.
fn asks(follower: &mut Follower, observer: LinkId, op: Op) -> Packet<'static> {
    let mut body = Vec::new();
    match op {
        Op::CreateSession => body.i32(TIMEOUT_MS),
        Op::Sync => body.string("/"),
        _ => {
            body.string("/");
            body.buffer(None);
            body.i32(-1);
        }
    }
    let (session, cxid, code, ids) = (SESSION, 1, op.code(), Vec::new());
    let packet = Packet::Request { session, cxid, code, body: body.into(), ids };
    follower.member.hears(observer, packet.clone());
    packet
}

/// A server that is not in the ensemble yet follows, and gets its vote while it follows. Observers that only know this
/// one would find no server otherwise.
#[test]
fn a_follower_that_is_not_listed_yet_serves_observers() {
    let ensemble = config(&[2, 3], at(1, 0));
    let mut member =
        Member::start_with(&ensemble, None, Tree::fresh(ExtendedTypes::default()), 1, |config| {
            config.observing.masters = true
        });
    let leader = member.follows(&[2, 3], &ensemble, 2);
    member.hears(leader, Packet::Diff(at(0, 0)));
    member.hears_new_leader(leader, 2, &ensemble);
    member.hears(leader, Packet::UpToDate);
    member.step(Input::ObserverCalls { link: FOUR });
    assert!(!member.effects.iter().any(|effect| matches!(effect, Effect::HangUp(link) if *link == FOUR)));
    member.hears(FOUR, Packet::ObserverInfo { accepted: Epoch(2), info: info(4) });
    member.hears(FOUR, Packet::AckEpoch { last: at(0, 0), current: None });
    member.hears(FOUR, Packet::Ack(at(2, 0)));
    assert!(member.has_told(54, &Packet::UpToDate));
}

/// How often something was told.
fn times(follower: &Follower, link: LinkId, packet: &Packet<'_>) -> usize {
    let told = |effect: &&Effect| matches!(effect, Effect::ToPeer { link: to, message: PeerMessage::Packet(of) } if *to == link && of == packet);
    follower.member.effects.iter().filter(told).count()
}

#[test]
fn requests_of_an_observers_client_go_on_to_the_leader() {
    let mut follower = with_two();
    for op in [Op::CreateSession, Op::SetData, Op::Sync] {
        let packet = asks(&mut follower, FOUR, op);
        assert_eq!(times(&follower, follower.leader, &packet), 1, "{op:?}");
    }
    assert_eq!(times(&follower, FOUR, &Packet::Sync), 0);
    follower.member.hears(follower.leader, Packet::Sync);
    assert_eq!(times(&follower, FOUR, &Packet::Sync), 1, "it comes back to who asked");
    assert_eq!(times(&follower, FIVE, &Packet::Sync), 0);
}

/// The leader sees one learner, and would take what comes late from where the session was before.
#[test]
fn a_late_write_by_way_of_another_observer_is_stopped() {
    let mut follower = with_two();
    asks(&mut follower, FOUR, Op::CreateSession);
    let moved = Packet::SessionMoved(SESSION);
    let packet = asks(&mut follower, FIVE, Op::SetData);
    assert_eq!(times(&follower, follower.leader, &packet), 0);
    assert_eq!(times(&follower, FIVE, &moved), 1);
    asks(&mut follower, FIVE, Op::Sync);
    assert_eq!(times(&follower, FIVE, &moved), 1, "a sync does no harm");
    let asked = Packet::Revalidate { session: SESSION, timeout_ms: TIMEOUT_MS };
    follower.member.hears(FIVE, asked.clone());
    assert_eq!(times(&follower, follower.leader, &asked), 1);
    let lives = Packet::Revalidated { session: SESSION, valid: true };
    follower.member.hears(follower.leader, lives.clone());
    assert_eq!((times(&follower, FIVE, &lives), times(&follower, FOUR, &lives)), (1, 0));
    asks(&mut follower, FIVE, Op::SetData);
    assert_eq!(times(&follower, follower.leader, &packet), 1, "it has come there");
    asks(&mut follower, FOUR, Op::SetData);
    assert_eq!(times(&follower, follower.leader, &packet), 1);
    assert_eq!(times(&follower, FOUR, &moved), 1);
}

#[test]
fn a_client_that_goes_to_an_observer_leaves_its_connection_here() {
    let mut follower = with_two();
    follower.hears_of(at(2, 1), 0, ostler_proto::txn::Txn::CreateSession { timeout_ms: TIMEOUT_MS });
    follower.commits(at(2, 1));
    let conn = follower.reconnect(1);
    assert!(!follower.has_closed(conn));
    follower.member.hears(FOUR, Packet::Revalidate { session: SESSION, timeout_ms: TIMEOUT_MS });
    assert!(follower.has_closed(conn));
}

#[test]
fn the_leader_hears_of_the_sessions_of_observers() {
    let mut follower = with_two();
    let touched = |sessions: &[i64]| {
        let touched = sessions.iter().map(|id| (ostler_proto::id::SessionId(*id), TIMEOUT_MS));
        Some(touched.collect::<Vec<_>>())
    };
    for (link, session) in [(FOUR, 8), (FIVE, 9)] {
        follower.member.hears(link, Packet::Ping { zxid: at(2, 0), touched: touched(&[session]) });
    }
    let (ping, leader) = (Packet::Ping { zxid: at(2, 0), touched: None }, follower.leader);
    for expected in [&[8, 9][..], &[]] {
        follower.member.effects.clear();
        follower.member.hears(leader, ping.clone());
        let pong = Packet::Ping { zxid: at(2, 0), touched: touched(expected) };
        assert_eq!(times(&follower, leader, &pong), 1, "{expected:?}");
    }
}

#[test]
fn observers_are_asked_whether_they_live_and_hear_of_commits() {
    let mut follower = with_two();
    let (ping, leader) = (Packet::Ping { zxid: at(0, 0), touched: None }, follower.leader);
    follower.member.passes(2_000);
    assert!(times(&follower, FOUR, &ping) > 0);
    follower.hears_of_write(at(2, 1), 1);
    follower.commits(at(2, 1));
    let inform = |effect: &&Effect| matches!(effect, Effect::ToPeer { link: FOUR, message: PeerMessage::Inform(zxid, _) } if *zxid == at(2, 1));
    assert_eq!(follower.member.effects.iter().filter(inform).count(), 1);
    for _ in 0..5 {
        follower.member.hears(leader, Packet::Ping { zxid: at(2, 1), touched: None });
        follower.member.hears(FIVE, Packet::Ping { zxid: at(2, 1), touched: Some(Vec::new()) });
        follower.member.passes(1_500);
    }
    let away = [FOUR, FIVE, leader].map(|link| follower.member.has_hung_up(link));
    assert_eq!(away, [true, false, false], "4 is silent");
    follower.member.loses(leader);
    assert!(follower.member.has_hung_up(FIVE), "who follows nobody has nothing for it");
}

#[test]
fn only_observers_follow_a_follower_and_only_one_that_serves() {
    let mut follower = with_two();
    let late = LinkId(60);
    follower.member.step(Input::ObserverCalls { link: late });
    assert!(!follower.member.has_hung_up(late));
    follower.member.hears(late, Packet::FollowerInfo { accepted: Epoch(2), info: info(6) });
    assert!(follower.member.has_hung_up(late));
    let mut follower = Follower::start_with(|_| {});
    follower.member.step(Input::ObserverCalls { link: late });
    assert!(follower.member.has_hung_up(late), "it takes none in");
}

fn dialled(member: &Member) -> Vec<DialTarget> {
    let dialled = member.effects.iter().filter_map(|effect| match effect {
        Effect::Dial { to, .. } => Some(*to),
        _ => None,
    });
    dialled.collect()
}

/// The others vote; this one observes.
fn observing() -> Membership {
    let mut membership = config(&[2, 3, 4], at(1, 0));
    let mut me = membership.servers[&ServerId(2)].clone();
    me.observer = true;
    membership.servers.insert(ServerId(1), me);
    membership
}

fn elects(member: &mut Member, under: &Membership, leader: i64) {
    use ostler_proto::election::{Candidate, PeerState};
    let candidate = Candidate { epoch: Epoch(2), zxid: at(2, 0), id: ServerId(leader) };
    for server in [2, 3, 4] {
        let state = if server == leader { PeerState::Leading } else { PeerState::Following };
        member.hears_vote(server, state, candidate, under);
    }
}

#[test]
fn an_observer_tries_the_followers_in_turn_and_never_the_leader() {
    let ensemble = observing();
    let fresh = || Tree::fresh(ExtendedTypes::default());
    let mut member =
        Member::start_with(&ensemble, None, fresh(), 1, |config| config.observing.masters = true);
    for _ in 0..3 {
        elects(&mut member, &ensemble, 4);
        let search_id = member.effects.iter().rev().find_map(|effect| match effect {
            Effect::Dial { search_id, .. } => Some(*search_id),
            _ => None,
        });
        member.step(Input::LeaderUnreachable { search_id: search_id.unwrap() });
    }
    // Rotated by its own number.
    let masters = [3, 2, 3].map(|id| DialTarget::Follower(ServerId(id)));
    assert_eq!(dialled(&member), masters);
    elects(&mut member, &ensemble, 4);
    let master = |member: &Member| member.server.quorum().and_then(|report| report.master);
    assert_eq!(master(&member), Some(ServerId(2)), "the one that it tries to connect to");
    let mut member = Member::start(&ensemble, None, fresh(), 1);
    elects(&mut member, &ensemble, 4);
    assert_eq!(dialled(&member), [DialTarget::Leader(ServerId(4))], "the followers take none in");
}

/// Many that lose one follower do not come to the next all at once.
#[test]
fn an_observer_waits_for_a_time_of_its_own_before_it_comes_to_the_leader() {
    let (ensemble, fresh) = (observing(), Tree::fresh(ExtendedTypes::default()));
    let delay = 5_000;
    let mut member =
        Member::start_with(&ensemble, None, fresh, 1, |config| config.observing.reconnect_delay = delay);
    elects(&mut member, &ensemble, 4);
    assert_eq!(dialled(&member), []);
    member.passes(delay + 1);
    assert_eq!(dialled(&member), [DialTarget::Leader(ServerId(4))]);
    member.passes(delay * 2);
    assert_eq!(dialled(&member).len(), 1, "once");
}

#[test]
fn an_observer_that_has_lost_its_leader_waits_before_it_looks_for_one() {
    let (ensemble, fresh) = (observing(), Tree::fresh(ExtendedTypes::default()));
    let delay = 5_000;
    let mut member =
        Member::start_with(&ensemble, None, fresh, 1, |config| config.observing.election_delay = delay);
    assert!(member.server.elections().is_some());
    let asked = |member: &Member| {
        member.effects.iter().filter(|effect| matches!(effect, Effect::SendVote { .. })).count()
    };
    assert!(asked(&member) > 0, "not when it starts");
    let link = member.follows(&[2, 3, 4], &ensemble, 2);
    let before = asked(&member);
    member.loses(link);
    assert_eq!(asked(&member), before);
    member.passes(delay + 1);
    assert!(asked(&member) > before);
}
