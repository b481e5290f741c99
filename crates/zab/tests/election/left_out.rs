//! Voters whose votes keep an election from its end: when they are left out, for how long, and what is heard of them then.

use crate::{hand::Hand, world::candidate};
use ostler_proto::{
    election::PeerState::{Following, Leading, Looking},
    id::ServerId,
};
use ostler_zab::{
    ElectionOutput, Electorate, Mono, Quorum,
    election::{IgnoreReason, Verdict},
};

const IGNORED: Verdict = Verdict::Ignored { why: IgnoreReason::LeftOut };

/// Looks again, with the vote that it has had from the start.
fn look(hand: &mut Hand) {
    hand.out.clear();
    hand.election.look(hand.now, Some(candidate(1, 5, 2)), &hand.electorate, &mut hand.out);
}

fn is_left_out(hand: &Hand, now: u64) -> bool {
    hand.election.left_out(Mono(now)) == [ServerId(3)]
}

/// 3 says of `whom` that it has ever more, until it is left out; how many of these votes were taken up before.
fn upset_with(hand: &mut Hand, whom: i64) -> u32 {
    let round = hand.election.round();
    let heard = (1..100).find(|turn| {
        hand.hear(3, Looking, round, (7, *turn, whom));
        is_left_out(hand, hand.now.0)
    });
    heard.expect("it is left out some time") - 1
}

#[test]
fn a_disruptive_voter_is_left_out_after_some_votes_for_each_voter() {
    // Of who passes on what another has said, twice as many are taken up: that other is to be left out first.
    for (voters, whom, taken_up) in [(3, 3, 16), (3, 1, 32), (5, 3, 20), (5, 1, 40)] {
        let mut hand = Hand::looking();
        hand.electorate = Electorate::of(Quorum::majority((1..=voters).map(ServerId)));
        assert_eq!(upset_with(&mut hand, whom), taken_up, "{whom} of {voters}");
    }
}

/// Those who agreed on what it has made up have to agree on something else, in a round that is new to them all.
#[test]
fn an_election_begins_anew_without_who_has_upset_it() {
    let mut hand = Hand::looking();
    upset_with(&mut hand, 3);
    assert_eq!(hand.sent(), [(1, 2), (3, 2)], "each votes for itself again");
    assert_eq!(hand.election.round(), 2);
    assert_eq!(hand.hear(1, Looking, 1, (7, 16, 3)), IGNORED, "nor is it heard through others");
    hand.hear(1, Looking, 2, (1, 5, 2));
    assert_eq!(
        hand.out.last(),
        Some(&ElectionOutput::Elected { leader: ServerId(2) }),
        "nobody waits for it"
    );
}

#[test]
fn votes_of_an_earlier_search_are_forgotten() {
    let mut hand = Hand::looking();
    for _ in 0..3 {
        let round = hand.election.round();
        (1..=16).for_each(|turn| _ = hand.hear(3, Looking, round, (7, turn, 3)));
        assert!(!is_left_out(&hand, 1));
        look(&mut hand);
    }
}

#[test]
fn a_voter_left_out_again_is_left_out_for_longer() {
    let mut hand = Hand::looking();
    for time in [2_000, 4_000, 8_000, 8_000, 8_000] {
        upset_with(&mut hand, 3);
        let until = hand.now.0 + time;
        assert!(is_left_out(&hand, until - 1), "{time}");
        assert!(!is_left_out(&hand, until), "{time}");
        hand.now = Mono(until);
        look(&mut hand);
    }
}

#[test]
fn a_left_out_voter_counts_only_for_an_epoch_that_has_begun() {
    let mut hand = Hand::looking();
    upset_with(&mut hand, 3);
    let round = hand.election.round();
    assert_eq!(hand.hear(3, Looking, round, (1, 9, 1)), IGNORED, "whomever it backs");
    assert_eq!(hand.hear(3, Following, round + 5, (1, 5, 2)), IGNORED, "it would be called back for ever");
    assert_eq!(hand.election.round(), round);
    // An epoch that has begun has a quorum, and needs no vote.
    assert_eq!(hand.hear(3, Following, 1, (2, 0, 1)), Verdict::Counted);
    assert_eq!(hand.hear(1, Leading, 1, (2, 0, 1)), Verdict::Counted);
    assert_eq!(hand.out.last(), Some(&ElectionOutput::Elected { leader: ServerId(1) }));
}

/// In ever later rounds, and each time this server calls it back.
#[test]
fn a_voter_that_always_claims_to_follow_this_server_is_left_out() {
    let mut hand = Hand::looking();
    hand.hear(1, Leading, 1, (2, 0, 1));
    for turn in 1..=32 {
        assert_eq!(hand.hear(3, Following, 10 * turn, (1, 5, 2)), Verdict::Counted);
        assert_eq!(hand.election.round(), 10 * turn + 1, "it is called to a new election");
    }
    assert!(hand.election.has_elected_me_before(ServerId(3)));
    hand.hear(3, Following, 330, (1, 5, 2));
    assert!(is_left_out(&hand, 1));
    assert_eq!(hand.election.round(), 322, "the others are called, and it is not followed any further");
    assert_eq!(hand.sent(), [(1, 2), (3, 2)]);
    assert!(!hand.election.has_elected_me_before(ServerId(3)), "what it has said is forgotten");
    // Votes of others are not.
    hand.hear(3, Following, 1, (2, 0, 1));
    assert_eq!(hand.out.last(), Some(&ElectionOutput::Elected { leader: ServerId(1) }));
}

/// A server that may have lost data waits for all, and one that is left out is as good as away.
#[test]
fn a_left_out_voter_is_missing_for_a_server_without_a_vote() {
    for is_upset in [false, true] {
        let mut hand = Hand::looking();
        hand.election.set_without_history(true);
        hand.election.look(hand.now, Some(candidate(0, 0, 2)), &hand.electorate, &mut hand.out);
        (0..16).for_each(|turn| _ = hand.hear(3, Looking, 10 + turn, (0, 0, 3)));
        if is_upset {
            hand.hear(3, Looking, 50, (0, 0, 3));
        }
        assert_eq!(is_left_out(&hand, 1), is_upset);
        let round = hand.election.round();
        hand.hear(1, Looking, round, (1, 5, 1));
        assert!(hand.election.has_no_vote());
        let backed = if is_upset { vec![] } else { vec![(1, 1), (3, 1)] };
        assert_eq!(hand.sent(), backed);
    }
}
