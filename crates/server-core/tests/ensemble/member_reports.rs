//! A member's place in its ensemble, as it reports it.

use crate::{
    follower::Follower,
    member::{Member, at, config},
};
use ostler_proto::{
    election::{Candidate, PeerState},
    id::{Epoch, ServerId},
    stat::ExtendedTypes,
};
use ostler_server_core::quorum::{MemberReport, ZabStage};
use ostler_tree::Tree;
use ostler_zab::leading::LinkId;

fn start() -> Member {
    Member::start(&config(&[1, 2, 3], at(1, 0)), None, Tree::fresh(ExtendedTypes::default()), 1)
}

fn report(member: &Member) -> MemberReport {
    member.server.member_report().unwrap()
}

/// Stage, leader, and the servers that have its history.
fn place(member: &Member) -> (ZabStage, Option<i64>, Vec<i64>) {
    let report = report(member);
    let synced = report.synced.iter().map(|id| id.0).collect();
    (report.stage, report.leader.map(|id| id.0), synced)
}

#[test]
fn a_leader_is_in_broadcast_once_a_quorum_has_its_history() {
    let ensemble = config(&[1, 2, 3], at(1, 0));
    let mut member = start();
    assert_eq!(place(&member), (ZabStage::Election, None, vec![]));
    assert!(member.get_elected_by(&[2], &ensemble));
    assert_eq!(place(&member), (ZabStage::Discovery, Some(1), vec![]));
    let mut member = start();
    member.leads_with(&[2, 3], &ensemble, 2);
    assert_eq!(place(&member), (ZabStage::Broadcast, Some(1), vec![2, 3]));
    member.loses(LinkId(3));
    assert_eq!(place(&member), (ZabStage::Broadcast, Some(1), vec![2]));
    let MemberReport { me, epoch, membership, .. } = report(&member);
    assert_eq!((me, epoch, membership), (ServerId(1), Epoch(2), ensemble));
}

#[test]
fn a_learner_is_in_broadcast_once_it_serves() {
    let mut member = start();
    let candidate = Candidate { epoch: Epoch(2), zxid: at(2, 0), id: ServerId(3) };
    for (server, state) in [(2, PeerState::Following), (3, PeerState::Leading)] {
        member.hears_vote(server, state, candidate, &config(&[1, 2, 3], at(1, 0)));
    }
    assert_eq!(place(&member), (ZabStage::Discovery, Some(3), vec![]), "it has no connection");
    let mut member = start();
    member.follows(&[2, 3], &config(&[1, 2, 3], at(1, 0)), 2);
    assert_eq!(place(&member), (ZabStage::Discovery, Some(3), vec![]), "it lacks the history");
    let mut follower = Follower::start();
    assert_eq!(place(&follower.member), (ZabStage::Broadcast, Some(3), vec![]));
    follower.member.loses(follower.leader);
    assert_eq!(place(&follower.member), (ZabStage::Election, None, vec![]));
}

#[test]
fn only_a_participant_of_the_configuration_votes() {
    let mut observed = config(&[1, 2, 3], at(1, 0));
    observed.servers.get_mut(&ServerId(1)).unwrap().observer = true;
    for (ensemble, votes) in
        [(config(&[1, 2], at(1, 0)), true), (observed, false), (config(&[2, 3], at(1, 0)), false)]
    {
        let member = Member::start(&ensemble, None, Tree::fresh(ExtendedTypes::default()), 1);
        assert_eq!(report(&member).votes(), votes, "{ensemble}");
    }
}

/// Programs read them.
#[test]
fn the_stages_have_upstreams_names() {
    let names = [ZabStage::Election, ZabStage::Discovery, ZabStage::Broadcast].map(ZabStage::name);
    assert_eq!(names, ["election", "discovery", "broadcast"]);
}
