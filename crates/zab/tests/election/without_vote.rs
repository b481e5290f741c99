//! A server that may have lost what it had acknowledged.

use crate::{hand::Hand, world::candidate};
use ostler_proto::{
    election::{Candidate, Notification, PeerState::Looking},
    id::{Epoch, ServerId, Zxid},
};
use ostler_zab::Mono;

/// Server 2 of three, which has nothing, and has heard that 3 has something.
fn without_a_voice() -> Hand {
    let mut hand = Hand::looking();
    hand.election.set_without_history(true);
    hand.election.look(Mono(0), Some(candidate(0, 0, 2)), &hand.electorate, &mut hand.out);
    hand.hear(3, Looking, 4, (1, 5, 3));
    assert!(hand.election.has_no_vote());
    hand
}

/// An epoch without a transaction is a history, and so is a transaction of none.
#[test]
fn an_empty_server_has_a_vote_again_once_all_voters_claim_no_data() {
    for (epoch, zxid, is_something) in
        [(Epoch(0), Zxid::ZERO, false), (Epoch(1), Zxid::ZERO, true), (Epoch(0), Zxid(5), true)]
    {
        let mut hand = without_a_voice();
        hand.hear(3, Looking, 4, (0, 0, 3));
        assert!(hand.election.has_no_vote(), "nothing is known of 1");
        let (candidate, config) = (Some(Candidate { epoch, zxid, id: ServerId(1) }), String::new());
        let vote = Notification { state: Looking, candidate, round: 4, version: 2, config };
        hand.out.clear();
        hand.election.notified(Mono(3), ServerId(1), &vote, &hand.electorate, &mut hand.out);
        assert_eq!(hand.election.has_no_vote(), is_something, "{epoch:?}, {zxid}");
    }
}

#[test]
fn its_first_vote_with_a_voice_is_for_the_best_of_the_latest_round() {
    let mut hand = without_a_voice();
    hand.hear(1, Looking, 2, (0, 0, 1));
    hand.hear(3, Looking, 5, (0, 0, 3));
    assert!(!hand.election.has_no_vote());
    assert_eq!(hand.election.round(), 5);
    assert_eq!(hand.sent().first(), Some(&(1, 3)));
    hand.look_until(2_000);
    assert!(!hand.election.is_looking(), "2 and 3 of three");
}

/// It backs the best of all, and that is not itself: it is not known what it has.
#[test]
fn a_server_without_a_vote_backs_no_candidate_that_cannot_lead() {
    // A server without a vote cannot lead.
    for candidate_of_one in [2, 8] {
        let mut hand = Hand::looking();
        hand.election.look(Mono(2), None, &hand.electorate, &mut hand.out);
        hand.hear(3, Looking, 2, (1, 5, 3));
        hand.hear(1, Looking, 2, (1, 9, candidate_of_one));
        hand.hear(3, Looking, 2, (1, 5, 3));
        hand.look_until(2_000);
        assert!(!hand.sent().is_empty());
        assert!(hand.sent().iter().all(|(_, backed)| *backed == 3), "{:?}", hand.sent());
    }
}
