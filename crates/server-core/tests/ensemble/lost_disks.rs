//! Servers that have lost their disks, and what they have on them since.

use crate::member::{ME, Member, at, config, tree_at};
use ostler_proto::{
    election::{Candidate, PeerState},
    id::{Epoch, ServerId, Zxid},
    quorum_packet::{LearnerInfo, PROTOCOL_VERSION, Packet},
};
use ostler_zab::leading::LinkId;

/// A server that nobody has said is new, with this on its disk.
fn started_with(accepted: u32, current: u32, last: Zxid) -> Member {
    Member::start_with(&config(&[1, 2, 3], at(1, 0)), None, tree_at(last), 0, |config| {
        config.may_start_empty = false;
        (config.accepted, config.current) = (Epoch(accepted), Epoch(current));
    })
}

/// Another server that looks for a leader has data. Returns whether this one still backs a candidate then.
fn has_a_voice(member: &mut Member) -> bool {
    member.hears_of_data();
    member.vote().candidate.is_some()
}

/// A learner accepts an epoch first. The transactions that it had acknowledged are still lost.
#[test]
fn a_server_without_history_has_no_voice_whatever_epoch_it_has_accepted() {
    for accepted in [0, 1, 3] {
        let mut member = started_with(accepted, 0, Zxid::ZERO);
        assert!(!has_a_voice(&mut member), "accepted epoch {accepted}");
    }
}

#[test]
fn a_server_has_no_vote_in_the_next_election_if_its_tree_did_not_come() {
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
        // An epoch over nothing.
        (1, 1, Zxid::ZERO),
        // The leader's whole tree is there, and nothing of its own epoch.
        (3, 0, at(2, 9)),
    ] {
        let mut member = started_with(accepted, current, last);
        assert!(has_a_voice(&mut member), "{accepted}, {current}, {last}");
    }
}

/// The first epoch of a new ensemble may have ended before it began.
#[test]
fn servers_of_which_none_has_a_history_elect_one_of_them() {
    for accepted in [0, 1, 3] {
        let mut member = started_with(accepted, 0, Zxid::ZERO);
        assert!(member.get_elected_by(&[2], &config(&[1, 2, 3], at(1, 0))), "accepted epoch {accepted}");
    }
}

#[test]
fn a_server_stopped_during_a_first_history_has_no_vote() {
    for incomplete in [true, false] {
        let ensemble = config(&[1, 2, 3], at(1, 0));
        let member = Member::start_with(&ensemble, None, tree_at(at(1, 3)), 1, |config| {
            config.may_start_empty = false;
            config.incomplete = incomplete;
        });
        assert_eq!(member.vote().candidate.is_none(), incomplete);
    }
}

#[test]
fn a_server_declared_new_has_a_vote() {
    let ensemble = config(&[1, 2, 3], at(1, 0));
    let mut member = Member::start(&ensemble, None, tree_at(Zxid::ZERO), 0);
    assert!(has_a_voice(&mut member));
    let leader = member.follows(&[2, 3], &ensemble, 3);
    member.hears(leader, Packet::Diff(Zxid::ZERO));
    member.loses(leader);
    assert!(has_a_voice(&mut member));
}

/// The first leader of a new ensemble has said how it brings its history, which is empty, and was lost then. Nothing has
/// come, so this server has as much as before.
#[test]
fn a_server_to_which_nothing_has_come_yet_elects_with_others_that_have_nothing() {
    let ensemble = config(&[1, 2, 3], at(1, 0));
    let mut member = started_with(0, 0, Zxid::ZERO);
    let leader = member.follows(&[2, 3], &ensemble, 1);
    member.hears(leader, Packet::Diff(Zxid::ZERO));
    member.loses(leader);
    let nothing = Candidate { epoch: Epoch(0), zxid: Zxid::ZERO, id: ServerId(ME) };
    assert_eq!(member.vote().candidate, Some(nothing));
    assert!(member.get_elected_by(&[2], &ensemble));
}

/// It has the promises of a quorum, and ends before anybody has its history: of a new ensemble it alone has an epoch,
/// and the others, who have nothing, give up their votes when they hear of it.
#[test]
fn the_first_leader_of_a_new_ensemble_keeps_the_votes_of_the_others_if_its_epoch_does_not_begin() {
    let ensemble = config(&[1, 2, 3], at(1, 0));
    let mut leader = started_with(0, 0, Zxid::ZERO);
    assert!(leader.get_elected_by(&[2], &ensemble));
    let info = LearnerInfo {
        server: Some(ServerId(2)),
        protocol: PROTOCOL_VERSION,
        config_version: ensemble.version,
        knows_secrets: false,
        moves_in_place: false,
    };
    let link = LinkId(2);
    leader.hears(link, Packet::FollowerInfo { accepted: Epoch(0), info });
    leader.hears(link, Packet::AckEpoch { last: Zxid::ZERO, current: Some(Epoch(0)) });
    leader.loses(link);
    leader.passes(20_000);
    let said = leader.vote();
    assert_eq!(said.state, PeerState::Looking);
    // The other two, who have promised its epoch. All are there.
    let mut other = started_with(1, 0, Zxid::ZERO);
    let nothing = Candidate { epoch: Epoch(0), zxid: Zxid::ZERO, id: ServerId(2) };
    other.hears_vote(2, PeerState::Looking, nothing, &ensemble);
    other.hears_vote(
        3,
        PeerState::Looking,
        Candidate { id: ServerId(3), ..said.candidate.unwrap() },
        &ensemble,
    );
    assert!(other.vote().candidate.is_some(), "it has heard of {:?}", said.candidate);
}
