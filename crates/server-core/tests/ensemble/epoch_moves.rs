//! The end of a leader's counter: it moves on to the next epoch in place.

use crate::{
    follower::Follower,
    member::{Member, SESSION, at, config},
    own_writes::many_reads,
};
use ostler_proto::{
    id::{Epoch, ServerId, Zxid},
    op::Op,
    quorum_packet::{LearnerInfo, PROTOCOL_VERSION, Packet},
    stat::ExtendedTypes,
    txn::Txn,
};
use ostler_server_core::{
    Effect, Input, PeerMessage, PersistOp, quorum::MemberMode, quorum::election_history::SearchReason,
};
use ostler_tree::Tree;
use ostler_zab::leading::LinkId;

const OBSERVER: LinkId = LinkId(54);
const THREE: Epoch = Epoch(3);

/// Servers 2 and 3 follow it in epoch 2, which moves on after two proposals.
fn leader() -> Member {
    let ensemble = config(&[1, 2, 3], at(1, 0));
    let fresh = Tree::fresh(ExtendedTypes::default());
    let mut member = Member::start_with(&ensemble, None, fresh, 1, |config| {
        (config.epoch.in_place, config.epoch.enough, config.epoch.most) = (Some(2), 4, 6);
    });
    member.leads_with(&[2, 3], &ensemble, 2);
    member
}

fn write(member: &mut Member) {
    member.request(2, Op::CreateSession, &4_000_i32.to_be_bytes());
}

fn leader_info(epoch: Epoch) -> Packet<'static> {
    Packet::LeaderInfo { epoch, protocol: PROTOCOL_VERSION }
}

/// The border that was sent to a learner: after how many other effects.
fn border_to(member: &Member, link: LinkId, epoch: Epoch) -> Option<usize> {
    member.effects.iter().position(|effect| {
        matches!(effect, Effect::ToPeer { link: to, message: PeerMessage::Packet(Packet::NewLeader { epoch: of, .. }) }
            if *to == link && *of == epoch)
    })
}

fn proposal_to(member: &Member, link: LinkId, zxid: Zxid) -> Option<usize> {
    member.effects.iter().position(|effect| {
        matches!(effect, Effect::ToPeer { link: to, message: PeerMessage::Proposal(of, _) } if *to == link && *of == zxid)
    })
}

fn saved(member: &Member) -> Vec<String> {
    let ops = member.effects.iter().filter_map(|effect| match effect {
        Effect::Persist { op: PersistOp::SaveAccepted(epoch), .. } => Some(format!("accepted {}", epoch.0)),
        Effect::Persist { op: PersistOp::SaveCurrent(epoch), .. } => Some(format!("current {}", epoch.0)),
        Effect::Persist { op: PersistOp::Append { zxid, .. }, .. } => Some(format!("{zxid}")),
        _ => None,
    });
    ops.collect()
}

fn promise(member: &mut Member, server: i64) {
    let packet = Packet::AckEpoch { last: at(2, 2), current: Some(Epoch(2)) };
    member.hears(LinkId(server as u64), packet);
}

#[test]
fn a_leader_numbers_nothing_in_the_next_epoch_before_a_quorum_has_promised_it() {
    let mut member = leader();
    write(&mut member);
    assert!(!member.has_told(2, &leader_info(THREE)), "it is not time yet");
    write(&mut member);
    assert!(member.has_told(2, &leader_info(THREE)) && member.has_told(3, &leader_info(THREE)));
    write(&mut member);
    assert!(proposal_to(&member, LinkId(2), at(2, 3)).is_some(), "the epoch goes on");
    promise(&mut member, 2);
    write(&mut member);
    let order = [
        proposal_to(&member, LinkId(3), at(2, 3)),
        border_to(&member, LinkId(3), THREE),
        proposal_to(&member, LinkId(3), at(3, 1)),
    ];
    assert!(order.iter().all(Option::is_some) && order.is_sorted(), "{order:?}");
    let on_disk = saved(&member);
    let end = [format!("{}", at(2, 3)), "current 3".into(), format!("{}", at(3, 1))];
    assert!(on_disk.ends_with(&end), "{on_disk:?}");
    assert_eq!(member.server.mode(), Some(MemberMode::Leader));
}

#[test]
fn the_move_ends_when_a_quorum_has_the_border_and_the_epoch_before_is_committed() {
    let mut member = leader();
    for _ in 0..2 {
        write(&mut member);
    }
    promise(&mut member, 2);
    write(&mut member);
    member.hears(LinkId(2), Packet::Ack(at(2, 2)));
    assert_eq!(member.server.tree().last_processed(), at(2, 2));
    let told = |member: &Member| {
        let up = |effect: &&Effect| {
            matches!(
                effect,
                Effect::ToPeer { link: LinkId(3), message: PeerMessage::Packet(Packet::UpToDate) }
            )
        };
        member.effects.iter().filter(up).count()
    };
    let before = told(&member);
    member.hears(LinkId(2), Packet::Ack(at(3, 0)));
    assert_eq!(told(&member), before + 1, "3 is told as well");
    member.hears(LinkId(2), Packet::Ack(at(3, 1)));
    assert_eq!(member.server.tree().last_processed(), at(3, 1));
    assert_eq!(member.server.elections().unwrap().searches.len(), 1, "no election");
}

/// It says that everything before the epoch is applied.
#[test]
fn a_leader_shows_the_epoch_before_until_the_move_is_over() {
    let mut member = leader();
    let shown = |member: &Member| member.server.member_report().unwrap().epoch;
    for _ in 0..2 {
        write(&mut member);
    }
    promise(&mut member, 2);
    assert_eq!(shown(&member), Epoch(2), "nothing is committed, and no other server has the border");
    member.hears(LinkId(2), Packet::Ack(at(2, 2)));
    assert_eq!((member.server.tree().last_processed(), shown(&member)), (at(2, 2), Epoch(2)));
    member.hears(LinkId(2), Packet::Ack(at(3, 0)));
    assert_eq!(shown(&member), THREE);
}

/// A quorum has everything before the border on disk. But here a long read is under way, and commits wait for its end.
#[test]
fn the_move_does_not_end_while_a_commit_before_the_border_waits_for_its_turn() {
    let mut leader = Follower { member: leader(), leader: LinkId(2), session: SESSION };
    let conn = leader.connect_for_new_session(1);
    leader.member.hears(LinkId(2), Packet::Ack(at(2, 1)));
    write(&mut leader.member);
    promise(&mut leader.member, 2);
    assert!(border_to(&leader.member, LinkId(3), THREE).is_some());
    leader.request(conn, Op::MultiRead, &many_reads(10_000));
    assert!(leader.member.server.has_backlog(), "the read is under way");
    for zxid in [at(2, 2), at(3, 0)] {
        leader.member.hears(LinkId(2), Packet::Ack(zxid));
    }
    let state = |leader: &Follower| {
        let server = &leader.member.server;
        (server.tree().last_processed(), server.member_report().unwrap().epoch)
    };
    assert_eq!(state(&leader), (at(2, 1), Epoch(2)));
    leader.member.passes(100);
    assert_eq!(state(&leader), (at(2, 2), THREE));
}

/// As today: an election follows.
#[test]
fn a_learner_that_cannot_move_ends_the_epoch_by_an_election() {
    let mut member = leader();
    let link = LinkId(9);
    let info = LearnerInfo {
        server: Some(ServerId(4)),
        protocol: PROTOCOL_VERSION,
        config_version: config(&[1, 2, 3], at(1, 0)).version,
        knows_secrets: false,
        moves_in_place: false,
    };
    member.hears(link, Packet::ObserverInfo { accepted: Epoch(2), info });
    member.hears(link, Packet::AckEpoch { last: at(0, 0), current: None });
    member.hears(link, Packet::Ack(at(2, 0)));
    for counter in 1..=4 {
        write(&mut member);
        member.hears(LinkId(2), Packet::Ack(at(2, counter)));
        assert!(!member.has_told(2, &leader_info(THREE)));
    }
    assert_eq!(member.server.mode(), Some(MemberMode::Looking));
    let searches = member.server.elections().unwrap().searches;
    assert_eq!(searches.last().map(|search| search.why), Some(SearchReason::CounterFull));
}

/// Else an election could begin while the quorum's promises are on their way.
#[test]
fn a_leader_whose_disk_stalls_during_the_move_still_ends_the_epoch() {
    let mut member = leader();
    write(&mut member);
    member.disk_waits = true;
    for _ in 2..=6 {
        write(&mut member);
    }
    assert!(!member.has_told(2, &leader_info(THREE)), "its own promise is not on disk");
    assert_eq!(member.server.mode(), Some(MemberMode::Looking));
}

/// Server 3 leads; the follower is an observer master with an observer that can move, and one that cannot.
fn master() -> Follower {
    let mut follower = Follower::start_with(|config| {
        config.observing.masters = true;
        config.epoch.in_place = Some(2);
    });
    for (link, moves_in_place) in [(OBSERVER, true), (LinkId(55), false)] {
        let (member, server) = (&mut follower.member, link.0 as i64 - 50);
        member.step(Input::ObserverCalls { link });
        let info = LearnerInfo {
            server: Some(ServerId(server)),
            protocol: PROTOCOL_VERSION,
            config_version: config(&[1, 2, 3], at(1, 0)).version,
            knows_secrets: false,
            moves_in_place,
        };
        member.hears(link, Packet::ObserverInfo { accepted: Epoch(2), info });
        member.hears(link, Packet::AckEpoch { last: at(0, 0), current: None });
        member.hears(link, Packet::Ack(at(2, 0)));
    }
    follower
}

#[test]
fn a_follower_moves_with_its_leader_and_takes_its_observers_along_once_all_before_is_committed() {
    let mut follower = master();
    let session = Txn::CreateSession { timeout_ms: 4_000 };
    follower.hears_of(at(2, 1), 0, session.clone());
    let leader = follower.leader;
    follower.member.hears(leader, leader_info(THREE));
    let promised = Packet::AckEpoch { last: at(2, 1), current: Some(Epoch(2)) };
    assert!(follower.member.has_told(leader.0 as i64, &promised));
    follower.member.hears_new_leader(leader, 3, &config(&[1, 2, 3], at(1, 0)));
    assert!(follower.member.has_told(leader.0 as i64, &Packet::Ack(at(3, 0))));
    follower.hears_of(at(3, 1), 0, session);
    assert_eq!(border_to(&follower.member, OBSERVER, THREE), None, "not before the commit");
    follower.commits(at(2, 1));
    follower.member.hears(leader, Packet::UpToDate);
    follower.commits(at(3, 1));
    let member = &follower.member;
    let inform = |zxid| {
        member.effects.iter().position(|effect| {
            matches!(effect, Effect::ToPeer { link: OBSERVER, message: PeerMessage::Inform(of, _) } if *of == zxid)
        })
    };
    let order = [inform(at(2, 1)), border_to(member, OBSERVER, THREE), inform(at(3, 1))];
    assert!(order.iter().all(Option::is_some) && order.is_sorted(), "{order:?}");
    assert!(member.has_hung_up(LinkId(55)) && !member.has_hung_up(OBSERVER));
    assert_eq!(member.server.mode(), Some(MemberMode::Follower));
    assert_eq!(
        saved(member)[2..],
        ["0x200000001", "accepted 3", "current 3", "0x300000001"],
        "the order on its disk"
    );
}

/// An observer has seen commits of the epoch before at another server. They come here, too.
#[test]
fn an_observer_that_is_ahead_of_a_moving_follower_waits_and_is_not_cut_back() {
    let mut follower = master();
    let leader = follower.leader;
    follower.hears_of(at(2, 1), 0, Txn::CreateSession { timeout_ms: 4_000 });
    follower.member.hears(leader, leader_info(THREE));
    follower.member.hears_new_leader(leader, 3, &config(&[1, 2, 3], at(1, 0)));
    let link = LinkId(56);
    follower.member.step(Input::ObserverCalls { link });
    let info = LearnerInfo {
        server: Some(ServerId(6)),
        protocol: PROTOCOL_VERSION,
        config_version: config(&[1, 2, 3], at(1, 0)).version,
        knows_secrets: false,
        moves_in_place: true,
    };
    follower.member.hears(link, Packet::ObserverInfo { accepted: Epoch(2), info });
    follower.member.hears(link, Packet::AckEpoch { last: at(2, 1), current: None });
    assert!(!follower.member.has_told(56, &Packet::Trunc(at(0, 0))));
    assert_eq!(border_to(&follower.member, link, Epoch(2)), None, "it waits");
    follower.commits(at(2, 1));
    assert!(border_to(&follower.member, link, Epoch(2)).is_some(), "it is level now");
}
