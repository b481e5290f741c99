//! Votes that are not the server's in whose name they come: anybody can send them until the port has a key.

use crate::{
    hand::Hand,
    world::{World, candidate},
};
use ostler_proto::{
    election::{Candidate, Notification, PeerState::Looking},
    id::{Epoch, ServerId, Zxid},
};
use ostler_zab::{
    Election, ElectionOutput, ElectionTiming, Electorate, Mono, Quorum,
    election::{IgnoreReason, Verdict},
};

fn nothing(id: i64) -> Option<Candidate> {
    Some(Candidate { epoch: Epoch(0), zxid: Zxid::ZERO, id: ServerId(id) })
}

fn start_fresh(world: &mut World, id: i64) {
    world.start(id, nothing(id));
    world.peers.get_mut(&id).unwrap().election.set_without_history(true);
}

fn of_data(counter: u32, id: i64) -> Option<Candidate> {
    Some(candidate(7, counter, id))
}

/// Each of them has heard of data, and then of nobody any more who has some.
#[test]
fn a_new_ensemble_elects_once_no_vote_claims_data_any_more() {
    let mut world = World::new(&[1, 2, 3], 5);
    // Nothing passes but the false votes.
    let links = [(1, 2), (2, 1), (1, 3), (3, 1), (2, 3), (3, 2)];
    world.cut.extend(links);
    (1..=3).for_each(|id| start_fresh(&mut world, id));
    for (to, from) in [(1, 3), (2, 3), (3, 2)] {
        world.hear(to, from, of_data(9, from), 40);
    }
    assert!(world.peers.values().all(|peer| peer.election.has_no_vote()), "somebody may have lost data");
    for (to, from) in [(1, 3), (2, 3), (3, 2)] {
        world.loses(to, from);
        world.finds(to, from);
    }
    links.iter().for_each(|link| assert!(world.cut.remove(link)));
    world.run(3_000);
    assert_eq!(world.leader(), Some(3));
}

#[test]
fn a_server_with_data_that_is_away_is_waited_for() {
    let mut world = World::new(&[1, 2, 3], 5);
    (1..=2).for_each(|id| start_fresh(&mut world, id));
    world.hear(1, 3, of_data(9, 3), 1);
    world.hear(2, 3, of_data(9, 3), 1);
    world.loses(1, 3);
    world.loses(2, 3);
    world.run(60_000);
    assert_eq!(world.leaders(), [(1, None), (2, None)]);
}

#[test]
fn a_vote_that_claims_more_data_for_this_server_is_ignored() {
    let mut hand = Hand::looking();
    assert_eq!(
        hand.hear(3, Looking, 1, (1, 6, 2)),
        Verdict::Ignored { why: IgnoreReason::SaysTooMuchOfThisServer }
    );
    assert_eq!(hand.sent(), [(3, 2)], "it is told what this server has");
    assert_eq!(hand.hear(3, Looking, 1, (1, 5, 2)), Verdict::Counted);
}

#[test]
fn a_vote_that_claims_data_for_a_server_without_a_vote_is_not_answered() {
    let mut hand = Hand::looking();
    hand.election.set_without_history(true);
    hand.election.look(Mono(0), Some(candidate(0, 0, 2)), &hand.electorate, &mut hand.out);
    hand.hear(3, Looking, 4, (1, 5, 3));
    assert!(hand.election.has_no_vote());
    assert_eq!(
        hand.hear(1, Looking, 4, (1, 5, 2)),
        Verdict::Ignored { why: IgnoreReason::SaysTooMuchOfThisServer }
    );
    assert_eq!(hand.out, []);
}

#[test]
fn a_vote_that_is_left_out_is_not_answered() {
    let mut hand = Hand::looking();
    // Server 3 upsets each election.
    let verdicts: Vec<Verdict> =
        (2..200).map(|round| hand.hear(3, Looking, u64::from(round), (9, round, 3))).collect();
    let is_left_out = |verdict: &Verdict| *verdict == Verdict::Ignored { why: IgnoreReason::LeftOut };
    assert!(verdicts.last().is_some_and(is_left_out), "{verdicts:?}");
    assert_eq!(hand.out, []);
}

#[test]
fn a_servers_vote_for_itself_overrules_votes_of_others_for_it() {
    let mut hand = Hand::looking();
    hand.hear(3, Looking, 1, (9, 9, 1));
    assert_eq!(hand.sent(), [(1, 1), (3, 1)]);
    hand.hear(1, Looking, 1, (1, 4, 1));
    assert_eq!(hand.sent(), [(1, 2), (3, 2)], "it is backed no more");
}

/// With five servers. A server may have backed the candidate because of a false vote.
#[test]
fn a_vote_for_a_candidate_that_denies_it_is_void() {
    let mut hand = Hand::looking();
    hand.electorate = Electorate::of(Quorum::majority([1, 2, 3, 4, 5].map(ServerId)));
    hand.hear(3, Looking, 1, (9, 9, 1));
    hand.hear(1, Looking, 1, (1, 4, 1));
    hand.hear(5, Looking, 1, (9, 9, 1));
    hand.look_until(1_000);
    assert!(hand.election.is_looking(), "2 and 5 of five: 3 would have to say it again");
    hand.hear(3, Looking, 1, (9, 9, 1));
    hand.look_until(2_000);
    assert!(!hand.election.is_looking());
}

/// Ever better candidates in ever later rounds: no election would come to an end.
#[test]
fn votes_that_upset_each_election_are_left_out_for_a_while() {
    for (zxids, rounds) in [(1, 0), (0, 1), (1, 1)] {
        let mut world = World::new(&[1, 2, 3], 5);
        world.start(1, Some(candidate(1, 5, 1)));
        world.start(2, Some(candidate(1, 5, 2)));
        let mut elected = None;
        for turn in 1..=100 {
            for to in [1, 2] {
                if world.peers[&to].leader.is_none() {
                    world.finds(to, 3);
                    world.hear(to, 3, of_data(turn * zxids, 3), 50 + u64::from(turn * rounds));
                }
                // Nobody is there to follow.
                if world.peers[&to].leader == Some(3) {
                    world.fails(to, 3);
                }
            }
            world.run(100);
            elected = elected.or(world.leader().filter(|leader| *leader != 3).map(|_| turn));
        }
        assert!(elected.is_some_and(|turn| turn < 100), "{zxids} {rounds}: {elected:?}");
    }
}

#[test]
fn an_elected_server_that_cannot_be_reached_twice_is_left_out() {
    let mut hand = Hand::looking();
    for (now, verdict) in [(0, None), (10, None), (20, Some(Verdict::Ignored { why: IgnoreReason::LeftOut }))]
    {
        hand.election.look(Mono(now), Some(candidate(1, 5, 2)), &hand.electorate, &mut hand.out);
        let round = hand.election.round();
        let heard = hand.hear(3, Looking, round, (7, 9, 3));
        let left_out = verdict.map_or(vec![], |_| vec![ServerId(3)]);
        assert_eq!(hand.election.left_out(Mono(now)), left_out, "a leader may end just when it is elected");
        if let Some(verdict) = verdict {
            assert_eq!(heard, verdict);
            assert_eq!(
                hand.hear(1, Looking, round, (7, 9, 3)),
                Verdict::Ignored { why: IgnoreReason::LeftOut },
                "by another"
            );
        }
        hand.election.leader_unreachable(Mono(now), ServerId(3));
    }
    // It comes for good.
    hand.election.forgive(ServerId(3));
    hand.election.look(Mono(30), Some(candidate(1, 5, 2)), &hand.electorate, &mut hand.out);
    let round = hand.election.round();
    assert!(matches!(hand.hear(3, Looking, round, (7, 9, 3)), Verdict::Adopted { .. }));
}

#[test]
fn an_election_does_not_wait_for_who_is_left_out() {
    let electorate = Electorate::of(Quorum::majority([1, 2, 3].map(ServerId)));
    let mut election = Election::new(ServerId(2), false, ElectionTiming::default(), String::new());
    let mut out = Vec::new();
    (0..2).for_each(|now| election.leader_unreachable(Mono(now), ServerId(3)));
    election.look(Mono(10), Some(candidate(1, 5, 2)), &electorate, &mut out);
    let vote = Notification {
        state: Looking,
        candidate: Some(candidate(1, 5, 2)),
        round: 1,
        version: 2,
        config: String::new(),
    };
    election.notified(Mono(11), ServerId(1), &vote, &electorate, &mut out);
    assert_eq!(out.last(), Some(&ElectionOutput::Elected { leader: ServerId(2) }));
    // In the end it is listened to again.
    election.look(Mono(20_000), Some(candidate(1, 5, 2)), &electorate, &mut out);
    out.clear();
    election.notified(Mono(20_001), ServerId(1), &Notification { round: 2, ..vote }, &electorate, &mut out);
    assert!(election.is_looking(), "3 may still say something");
}
