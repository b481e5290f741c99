//! The connections between a leader and its learners, as each shows them.

use crate::{
    follower::Follower,
    member::{Member, at, config},
};
use ostler_proto::{id::ServerId, quorum_packet::Packet, stat::ExtendedTypes};
use ostler_tree::Tree;
use ostler_zab::leading::LinkId;

const TICK_MS: u64 = 2_000;

#[test]
fn a_leader_measures_how_long_a_ping_takes_there_and_back() {
    let ensemble = config(&[1, 2, 3], at(1, 0));
    let mut member = Member::start(&ensemble, None, Tree::fresh(ExtendedTypes::default()), 1);
    member.leads_with(&[2], &ensemble, 2);
    member.passes(TICK_MS);
    let links = |member: &Member| -> Vec<(ServerId, Option<u64>)> {
        member.server.quorum_links().iter().map(|link| (link.peer, link.round_trip_us)).collect()
    };
    assert_eq!(links(&member), [(ServerId(2), None)], "it was asked, and has not answered");
    let pong = || Packet::Ping { zxid: at(2, 0), touched: Some(Vec::new()) };
    member.hears(LinkId(2), pong());
    let slow = links(&member)[0].1.unwrap();
    assert!(slow > 0, "{slow}");
    // The next ping is sent in half a tick, and is answered a little later.
    member.passes(TICK_MS / 2 + 3);
    member.hears(LinkId(2), pong());
    let quick = links(&member)[0].1.unwrap();
    assert!(quick <= TICK_MS * 1000 / 2, "{quick}");
    member.hears(LinkId(2), pong());
    assert_eq!(links(&member)[0].1, Some(quick), "an answer that was not asked for says nothing");
    member.loses(LinkId(2));
    assert_eq!(links(&member), []);
}

#[test]
fn a_follower_shows_the_connection_to_its_leader() {
    let follower = Follower::start();
    let links = follower.member.server.quorum_links();
    assert_eq!((links.len(), links[0].peer, links[0].round_trip_us), (1, ServerId(3), None));
}
