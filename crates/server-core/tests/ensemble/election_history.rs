//! The election history of a member.

use crate::{
    configurations::tree_with,
    follower::Follower,
    member::{Member, at, config},
};
use ostler_proto::{
    election::PeerState,
    id::{Epoch, ServerId, Zxid},
    quorum_packet::{PROTOCOL_VERSION, Packet},
    stat::ExtendedTypes,
};
use ostler_server_core::{
    Input,
    input::Mono,
    quorum::{
        MemberMode,
        election_history::{Search, SearchReason, Takeover},
    },
};
use ostler_tree::Tree;
use std::collections::BTreeSet;

fn searches(member: &Member) -> Vec<Search> {
    member.server.elections().unwrap().searches
}

#[test]
fn each_phase_of_a_followers_way_has_its_time() {
    let ensemble = config(&[1, 2, 3], at(1, 0));
    let mut member = Member::start(&ensemble, None, Tree::fresh(ExtendedTypes::default()), 1);
    let link = member.follows(&[2, 3], &ensemble, 2);
    // The link has come just before the epoch.
    let (connected, discovered) = (Mono(member.ms - 1), Mono(member.ms));
    member.hears(link, Packet::Diff(at(0, 0)));
    assert_eq!(searches(&member)[0].synchronised, None);
    assert_eq!(member.server.mode(), Some(MemberMode::Looking), "no client is served");
    assert_eq!(member.server.quorum().unwrap().serves_since, None);
    member.hears_new_leader(link, 2, &ensemble);
    member.hears(link, Packet::UpToDate);
    let served = Mono(member.ms);
    let search = &searches(&member)[0];
    assert_eq!((search.why, search.last_word, search.takeover), (SearchReason::Started, None, None));
    assert_eq!((search.connected, search.discovered), (Some(connected), Some((discovered, Epoch(2)))));
    assert_eq!(search.synchronised, Some(served));
    assert_eq!(member.server.quorum().unwrap().serves_since, Some(served));
}

#[test]
fn a_search_says_when_the_leader_before_was_last_heard_of() {
    let mut follower = Follower::start();
    follower.member.passes(700);
    follower.member.hears(follower.leader, Packet::Ping { zxid: at(2, 1), touched: None });
    let heard = Mono(follower.member.ms);
    follower.member.passes(300);
    follower.member.loses(follower.leader);
    let searches = searches(&follower.member);
    assert_eq!((searches[1].why, searches[1].last_word), (SearchReason::LeaderGone, Some(heard)));
    assert_eq!(follower.member.server.quorum().unwrap().serves_since, None);
}

#[test]
fn a_search_says_what_was_taken_over_and_how() {
    let ensemble = config(&[1, 2, 3], at(1, 1));
    let mut member = Member::start(&ensemble, None, tree_with(&[&ensemble]), 1);
    let link = member.follows(&[2, 3], &ensemble, 2);
    member.step(Input::Snap { link, tree: Box::new(tree_with(&[&config(&[1, 2, 3], at(1, 5))])) });
    let taken = searches(&member)[0].takeover;
    assert_eq!(taken, Some((Mono(member.ms), Takeover::Snapshot(at(1, 5)))));
    member.loses(link);
    let link = member.follows(&[2, 3], &ensemble, 3);
    member.hears(link, Packet::Trunc(at(1, 5)));
    let taken = searches(&member)[1].takeover;
    assert_eq!(taken, Some((Mono(member.ms), Takeover::Truncated(at(1, 5)))));
    assert_eq!(searches(&member)[1].last, Zxid(at(1, 5).0));
}

/// Its search shows how its leader came to lead, long after that.
#[test]
fn a_promise_to_a_leader_that_moves_on_in_place_is_no_part_of_its_election() {
    let mut follower = Follower::start_with(|config| config.epoch.in_place = Some(2));
    let (leader, before) = (follower.leader, searches(&follower.member));
    follower.member.passes(700);
    follower.member.hears(leader, Packet::LeaderInfo { epoch: Epoch(3), protocol: PROTOCOL_VERSION });
    let promised = Packet::AckEpoch { last: at(0, 0), current: Some(Epoch(2)) };
    assert!(follower.member.has_told(leader.0 as i64, &promised), "it has promised the next epoch");
    follower.member.hears_new_leader(leader, 3, &config(&[1, 2, 3], at(1, 0)));
    follower.member.hears(leader, Packet::UpToDate);
    assert_eq!(searches(&follower.member), before);
    let epochs: Vec<Epoch> = follower.member.server.epoch_times().iter().map(|time| time.epoch).collect();
    assert_eq!(epochs, [Epoch(3)], "the last one of this leader");
}

/// Whoever shows elections may look seldom, and must not take a later state for the one that it has.
#[test]
fn the_progress_of_elections_never_has_an_earlier_value() {
    let ensemble = config(&[1, 2, 3], at(1, 0));
    let mut member = Member::start(&ensemble, None, Tree::fresh(ExtendedTypes::default()), 1);
    let mut seen = BTreeSet::from([member.server.election_progress()]);
    for epoch in [2, 3] {
        // An election has more events than are kept, and so has the time after it.
        for event in 0..1_200 {
            member.step(Input::ElectionLink { peer: ServerId(3), up: event % 2 == 1 });
            assert!(seen.insert(member.server.election_progress()), "event {event}, epoch {epoch}");
        }
        let link = member.follows(&[2, 3], &ensemble, epoch);
        assert!(seen.insert(member.server.election_progress()), "the promise of epoch {epoch}");
        member.hears(link, Packet::Diff(at(0, 0)));
        member.hears_new_leader(link, epoch, &ensemble);
        member.hears(link, Packet::UpToDate);
        assert!(seen.insert(member.server.election_progress()), "following in epoch {epoch}");
        let mut vote = member.vote();
        vote.state = PeerState::Looking;
        for event in 0..300 {
            member.step(Input::Vote { from: ServerId(2), notification: vote.clone() });
            assert!(seen.insert(member.server.election_progress()), "vote {event}, epoch {epoch}");
        }
        member.loses(link);
        assert!(seen.insert(member.server.election_progress()), "the search after epoch {epoch}");
    }
}
