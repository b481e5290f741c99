//! When a member may begin a snapshot.

use crate::{
    configurations::tree_with,
    follower::Follower,
    member::{Member, at, config},
};
use ostler_proto::{quorum_packet::Packet, stat::ExtendedTypes};
use ostler_server_core::{Effect, Input, SnapshotTurn, quorum::MemberMode};
use ostler_tree::Tree;

/// An operator asks for a snapshot. Whether it begins.
fn begins(member: &mut Member) -> bool {
    member.effects.clear();
    member.step(Input::TakeSnapshot);
    member.effects.iter().any(|effect| matches!(effect, Effect::Snapshot(_)))
}

fn assert_not_serving(member: &mut Member) {
    assert_eq!(member.server.snapshot_turn(), SnapshotTurn::NotServing);
    assert!(!begins(member));
}

/// Its tree can have transactions that were never committed. In a snapshot they would come back after the next leader has
/// taken them from the log.
#[test]
fn a_member_without_a_leader_takes_no_snapshot() {
    let ensemble = config(&[1, 2, 3], at(1, 0));
    let mut member =
        Member::start_with(&ensemble, None, tree_with(&[&config(&[1, 2, 3], at(1, 5))]), 1, |config| {
            config.read_only_after_ms = Some(1_000);
        });
    assert_eq!(member.server.mode(), Some(MemberMode::Looking));
    assert_not_serving(&mut member);
    member.passes(1_000);
    assert_eq!(member.server.mode(), Some(MemberMode::ReadOnly));
    assert_not_serving(&mut member);
}

#[test]
fn a_learner_takes_no_snapshot_before_it_serves_its_leaders_history() {
    let ensemble = config(&[1, 2, 3], at(1, 0));
    let mut member = Member::start(&ensemble, None, tree_with(&[&config(&[1, 2, 3], at(1, 5))]), 1);
    let link = member.follows(&[2, 3], &ensemble, 2);
    assert_not_serving(&mut member);
    member.hears(link, Packet::Trunc(at(1, 2)));
    assert!(member.server.is_reloading(), "what was cut is still in the tree");
    assert_not_serving(&mut member);
}

#[test]
fn members_that_serve_take_one_snapshot_at_a_time() {
    let ensemble = config(&[1, 2, 3], at(1, 0));
    let mut leader = Member::start(&ensemble, None, Tree::fresh(ExtendedTypes::default()), 1);
    leader.leads_with(&[2, 3], &ensemble, 2);
    for mut member in [leader, Follower::start().member] {
        assert_eq!(member.server.snapshot_turn(), SnapshotTurn::Free);
        assert!(begins(&mut member));
        assert_eq!(member.server.snapshot_turn(), SnapshotTurn::Running);
        assert!(!begins(&mut member));
        member.step(Input::SnapshotDone);
        assert_eq!(member.server.snapshot_turn(), SnapshotTurn::Free);
    }
}
