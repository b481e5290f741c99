//! The ways out that a member's messages name, at the others or at the next start.

use crate::{
    configurations::tree_with,
    member::{Member, at, config, tree_at},
    said,
};
use ostler_proto::{
    election::{Candidate, PeerState},
    id::{Epoch, ServerId, Zxid},
    membership::Membership,
    quorum_packet::{LearnerInfo, PROTOCOL_VERSION, Packet},
};
use ostler_server_core::quorum::MemberMode;
use ostler_zab::leading::LinkId;

/// Its folder was empty, and what came since did not come to its end. The file `initialize` may be there.
fn emptied(last: Zxid, incomplete: bool, initialize: bool) -> Member {
    Member::start_with(&config(&[1, 2, 3], at(1, 0)), None, tree_at(last), 0, |config| {
        config.may_start_empty = initialize;
        config.incomplete = incomplete;
    })
}

#[test]
fn an_emptied_server_votes_again_once_initialize_says_that_it_is_new() {
    let mut member = emptied(Zxid::ZERO, false, false);
    let said = said::during(|| member.hears_of_data());
    assert!(
        said.has(&["server=2", "stop it, create an empty file named `initialize` in dataLogDir"]),
        "{said:?}"
    );
    assert_eq!(member.vote().candidate, None);

    let mut member = emptied(Zxid::ZERO, false, true);
    let said = said::during(|| member.hears_of_data());
    assert!(!said.has(&["initialize"]), "{said:?}");
    assert!(member.vote().candidate.is_some());
}

#[test]
fn a_partly_copied_history_counts_once_the_operator_creates_initialize() {
    for initialize in [false, true] {
        let mut member = None;
        let said = said::during(|| member = Some(emptied(at(1, 3), true, initialize)));
        let words = ["create an empty file named `initialize`", "what it has copied counts"];
        assert_eq!(said.has(&words), !initialize, "{said:?}");
        let voted = member.unwrap().vote().candidate.map(|voted| voted.zxid);
        assert_eq!(voted, initialize.then_some(at(1, 3)));
    }
}

/// This server has promised an epoch of which the two others know nothing.
#[test]
fn a_server_outside_an_epoch_of_an_earlier_epoch_serves_when_the_one_that_leads_is_restarted() {
    let ensemble = config(&[1, 2, 3], at(1, 0));
    let mut member =
        Member::start_with(&ensemble, None, tree_at(at(1, 3)), 1, |config| config.accepted = Epoch(3));
    let said = said::during(|| {
        member.follows(&[2, 3], &ensemble, 2);
    });
    assert!(said.has(&["proposed=2", "promised=3", "restart the server that leads"]), "{said:?}");
    assert_eq!(member.server.mode(), Some(MemberMode::Looking));

    // Each epoch is later than the one before. A refused learner does not connect again at once.
    let leader = Candidate { epoch: Epoch(3), zxid: at(1, 3), id: ServerId(3) };
    member.hears_vote(2, PeerState::Following, leader, &ensemble);
    member.hears_vote(3, PeerState::Leading, leader, &ensemble);
    member.passes(1_000);
    let link = member.follows(&[2, 3], &ensemble, 3);
    member.hears(link, Packet::Diff(at(1, 3)));
    member.hears_new_leader(link, 3, &ensemble);
    member.hears(link, Packet::UpToDate);
    assert_eq!(member.server.mode(), Some(MemberMode::Follower));
}

/// Is elected by the second, which had data once and has now what it is said to have. The third is lost.
fn is_joined_by_the_second(
    member: &mut Member,
    ensemble: &Membership,
    link: LinkId,
    last: Zxid,
    current: u32,
) {
    if member.vote().state != PeerState::Leading {
        let own = member.vote().candidate.unwrap();
        member.hears_vote(2, PeerState::Looking, own, ensemble);
        member.passes(1_000);
    }
    assert_eq!(member.vote().state, PeerState::Leading);
    let info = LearnerInfo {
        server: Some(ServerId(2)),
        protocol: PROTOCOL_VERSION,
        config_version: ensemble.version,
        knows_secrets: false,
        moves_in_place: false,
    };
    member.hears(link, Packet::FollowerInfo { accepted: Epoch(current), info });
    member.hears(link, Packet::AckEpoch { last, current: Some(Epoch(current)) });
    member.hears(link, Packet::Ack(at(2, 0)));
}

#[test]
fn a_leader_beside_one_that_lost_its_data_leads_when_its_folder_is_copied_there_or_it_is_restarted() {
    for is_copied in [true, false] {
        let ensemble = config(&[1, 2, 3], at(1, 0));
        let mut member = Member::start(&ensemble, None, tree_at(at(1, 3)), 1);
        let its_own = Candidate { epoch: Epoch(1), zxid: at(1, 2), id: ServerId(2) };
        member.hears_vote(2, PeerState::Looking, its_own, &ensemble);
        let link = LinkId(2);
        let comes_back_empty = |member: &mut Member| {
            is_joined_by_the_second(member, &ensemble, link, Zxid::ZERO, 0);
        };
        let said = said::during(|| comes_back_empty(&mut member));
        assert!(said.has(&["server=2", "had data and has none now", "restart this leader"]), "{said:?}");
        assert_ne!(member.server.mode(), Some(MemberMode::Leader));

        if is_copied {
            // It is stopped for that.
            member.loses(link);
            is_joined_by_the_second(&mut member, &ensemble, LinkId(3), at(1, 3), 1);
        } else {
            member = Member::start_with(&ensemble, None, tree_at(at(1, 3)), 1, |config| {
                // It has proposed one.
                config.accepted = Epoch(2);
            });
            let own = member.vote().candidate.unwrap();
            member.hears_vote(2, PeerState::Looking, own, &ensemble);
            member.passes(1_000);
            let said = said::during(|| {
                is_joined_by_the_second(&mut member, &ensemble, link, Zxid::ZERO, 0);
                member.hears(link, Packet::Ack(at(3, 0)));
            });
            assert!(!said.has(&["had data"]), "{said:?}");
        }
        assert_eq!(member.server.mode(), Some(MemberMode::Leader), "copied: {is_copied}");
    }
}

/// All other voters that this server knows were replaced while it was away.
#[test]
fn a_server_takes_the_newer_configuration_when_its_lines_are_in_its_own_file() {
    let own = config(&[1, 2, 3], at(1, 1));
    let newer = config(&[1, 4, 5], at(1, 4));
    let voted = Candidate { epoch: Epoch(1), zxid: at(1, 4), id: ServerId(5) };
    let mut member = Member::start(&own, None, tree_with(&[&own]), 1);
    let said = said::during(|| member.hears_vote(4, PeerState::Looking, voted, &newer));
    assert!(said.has(&["server=4", "version=100000004", "in the place of its own server lines"]), "{said:?}");
    assert_eq!((&member.saved, member.voters()), (&None, vec![1, 2, 3]));

    // The file's name, which has the version, stays.
    let written = Membership { version: own.version, ..newer.clone() };
    let mut member = Member::start(&written, None, tree_with(&[&own]), 1);
    member.hears_vote(4, PeerState::Looking, voted, &newer);
    assert_eq!(member.saved, Some(newer.clone()));
    let link = member.follows(&[4, 5], &newer, 2);
    member.hears(link, Packet::Diff(at(1, 1)));
    member.hears_new_leader(link, 2, &newer);
    member.hears(link, Packet::UpToDate);
    assert_eq!((member.server.mode(), member.voters()), (Some(MemberMode::Follower), vec![1, 4, 5]));

    // The next start has it by itself.
    let mut member = Member::start(&member.saved.unwrap(), None, tree_with(&[&own, &newer]), 2);
    let said = said::during(|| member.hears_vote(4, PeerState::Looking, voted, &newer));
    assert!(!said.has(&["is not taken"]), "{said:?}");
}
