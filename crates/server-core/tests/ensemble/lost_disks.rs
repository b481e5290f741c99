//! Servers that have lost their disks, and what they have on them since.

use crate::member::{Member, at, config};
use ostler_proto::{
    election::{Candidate, PeerState},
    id::{Epoch, ServerId, Zxid},
    quorum_packet::Packet,
    stat::ExtendedTypes,
};
use ostler_tree::Tree;

fn tree_at(last: Zxid) -> Tree {
    let mut tree = Tree::fresh(ExtendedTypes::default());
    if last > Zxid::ZERO {
        tree.begin_epoch(last);
    }
    tree
}

/// A server that nobody has said is new, with this on its disk.
fn started_with(accepted: u32, current: u32, last: Zxid) -> Member {
    Member::start_with(&config(&[1, 2, 3], at(1, 0)), None, tree_at(last), 0, |config| {
        config.may_start_empty = false;
        (config.accepted, config.current) = (Epoch(accepted), Epoch(current));
    })
}

/// Another one that looks for a leader has something. Whether this one still backs somebody then.
fn has_a_voice(member: &mut Member) -> bool {
    let other = Candidate { epoch: Epoch(1), zxid: at(1, 3), id: ServerId(2) };
    member.hears_vote(2, PeerState::Looking, other, &config(&[1, 2, 3], at(1, 0)));
    member.vote().candidate.is_some()
}

/// To accept an epoch is the first that it does for a leader. What it has acknowledged before is still lost.
#[test]
fn a_server_without_history_has_no_voice_whatever_epoch_it_has_accepted() {
    for accepted in [0, 1, 3] {
        let mut member = started_with(accepted, 0, Zxid::ZERO);
        assert!(!has_a_voice(&mut member), "accepted epoch {accepted}");
    }
}

#[test]
fn a_server_whose_tree_did_not_come_has_no_voice_in_the_next_election() {
    let ensemble = config(&[1, 2, 3], at(1, 0));
    let mut member = started_with(0, 0, Zxid::ZERO);
    let leader = member.follows(&[2, 3], &ensemble, 3);
    member.loses(leader);
    assert!(!has_a_voice(&mut member), "it has promised the epoch");
    let leader = member.follows(&[2, 3], &ensemble, 4);
    member.step(ostler_server_core::Input::SnapBegins { link: leader });
    member.loses(leader);
    assert!(!has_a_voice(&mut member), "its tree was on the way");
}

#[test]
fn a_server_with_a_history_has_a_voice() {
    for (accepted, current, last) in [
        (0, 0, at(0, 4)),
        (3, 1, at(1, 3)),
        (3, 3, at(1, 3)),
        (3, 3, at(3, 1)),
        // A reign over nothing.
        (1, 1, Zxid::ZERO),
        // The leader's whole tree is there, and nothing of its own reign.
        (3, 0, at(2, 9)),
    ] {
        let mut member = started_with(accepted, current, last);
        assert!(has_a_voice(&mut member), "{accepted}, {current}, {last}");
    }
}

/// The first reign of a new ensemble may have ended before it began.
#[test]
fn servers_of_which_none_has_a_history_elect_one_of_them() {
    for accepted in [0, 1, 3] {
        let mut member = started_with(accepted, 0, Zxid::ZERO);
        assert!(member.is_elected_by(&[2], &config(&[1, 2, 3], at(1, 0))), "accepted epoch {accepted}");
    }
}

#[test]
fn who_is_said_to_be_new_has_a_voice() {
    let ensemble = config(&[1, 2, 3], at(1, 0));
    let mut member = Member::start(&ensemble, None, tree_at(Zxid::ZERO), 0);
    assert!(has_a_voice(&mut member));
    let leader = member.follows(&[2, 3], &ensemble, 3);
    member.hears(leader, Packet::Diff(Zxid::ZERO));
    member.loses(leader);
    assert!(has_a_voice(&mut member));
}
