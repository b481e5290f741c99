//! The election history of a member.

use crate::{
    configurations::tree_with,
    follower::Follower,
    member::{Member, at, config},
};
use ostler_proto::{
    id::{Epoch, Zxid},
    quorum_packet::Packet,
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
