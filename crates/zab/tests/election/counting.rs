//! Which votes count for what, one by one.

use crate::{hand::Hand, world::candidate};
use ostler_proto::{
    election::{
        Candidate, Notification,
        PeerState::{Following, Leading, Looking, Observing},
    },
    id::{Epoch, ServerId, Zxid},
};
use ostler_zab::{Election, ElectionOutput, ElectionTiming, Electorate, Mono, Quorum, election::Verdict};

fn is_elected(hand: &Hand) -> bool {
    hand.out.iter().any(|output| matches!(output, ElectionOutput::Elected { .. }))
}

fn is_mistaken(hand: &Hand) -> bool {
    hand.out.contains(&ElectionOutput::LookAgain)
}

fn of_five() -> Hand {
    let mut hand = Hand::looking();
    hand.electorate = Electorate::of(Quorum::majority([1, 2, 3, 4, 5].map(ServerId)));
    hand
}

/// An epoch with nothing in it is a history, and so is what a standalone server has written in none.
#[test]
fn an_epoch_or_a_transaction_alone_is_something() {
    for (epoch, zxid, is_something) in
        [(Epoch(1), Zxid::ZERO, true), (Epoch(0), Zxid(5), true), (Epoch(0), Zxid::ZERO, false)]
    {
        let mut hand = Hand::looking();
        hand.election.set_without_history(true);
        hand.election.look(Mono(2), Some(candidate(0, 0, 2)), &hand.electorate, &mut hand.out);
        let (candidate, config) = (Some(Candidate { epoch, zxid, id: ServerId(1) }), String::new());
        let vote = Notification { state: Looking, candidate, round: 2, version: 2, config };
        hand.election.notified(Mono(3), ServerId(1), &vote, &hand.electorate, &mut hand.out);
        assert_eq!(hand.election.has_no_vote(), is_something, "{epoch:?}, {zxid}");
    }
}

/// It has told others whom it backs, and takes that back.
#[test]
fn an_empty_observer_sends_a_vote_without_candidate_once() {
    let hand = Hand::looking();
    let mut election = Election::new(ServerId(5), true, ElectionTiming::default(), String::new());
    election.set_without_history(true);
    election.look(Mono(0), None, &hand.electorate, &mut Vec::new());
    let mut hand = Hand { election, ..hand };
    hand.hear(1, Looking, 1, (0, 0, 1));
    for told in [3, 0] {
        hand.hear(3, Looking, 1, (1, 9, 3));
        assert_eq!(hand.out.len(), told);
        assert_eq!(hand.sent(), [], "it names nobody");
    }
}

#[test]
fn a_vote_for_a_worse_candidate_does_not_count_for_the_better_one() {
    let mut hand = Hand::looking();
    assert_eq!(hand.hear(1, Looking, 1, (1, 4, 1)), Verdict::Worse);
    hand.look_until(2_000);
    assert!(hand.election.is_looking());
    assert_eq!(hand.hear(1, Looking, 1, (1, 5, 2)), Verdict::Counted);
    assert_eq!(hand.look_until(2_000), 201, "a quorum agrees, and nothing better has come");
    assert!(!hand.election.is_looking());
}

#[test]
fn a_leader_alone_is_no_quorum_for_who_backs_another() {
    let mut hand = Hand::looking();
    hand.hear(3, Leading, 1, (1, 4, 3));
    assert!(!is_elected(&hand), "this server backs itself");
    let mut hand = of_five();
    hand.hear(3, Looking, 1, (1, 9, 3));
    hand.hear(3, Leading, 1, (1, 9, 3));
    assert!(!is_elected(&hand), "two of five");
    hand.hear(1, Following, 1, (1, 9, 3));
    assert!(is_elected(&hand));
}

#[test]
fn a_voter_that_backs_another_in_this_round_does_not_count_for_its_earlier_leader() {
    let mut hand = Hand::looking();
    hand.hear(1, Looking, 1, (1, 4, 1));
    hand.hear(3, Leading, 1, (1, 4, 3));
    assert!(!is_elected(&hand), "1 backs itself");
    hand.hear(1, Looking, 1, (1, 4, 3));
    hand.hear(3, Leading, 1, (1, 4, 3));
    assert!(is_elected(&hand));
}

#[test]
fn a_candidate_of_a_quorum_in_this_round_is_joined_when_it_leads() {
    let mut hand = Hand::looking();
    hand.hear(3, Looking, 1, (1, 9, 3));
    hand.hear(1, Following, 1, (1, 9, 3));
    assert!(!is_elected(&hand), "3 may not have heard of it yet");
    hand.hear(3, Leading, 1, (1, 9, 3));
    assert!(is_elected(&hand));
}

#[test]
fn a_server_that_hears_of_another_leader_stays_in_its_round() {
    let mut hand = Hand::looking();
    hand.hear(1, Following, 7, (1, 9, 3));
    assert_eq!((hand.election.round(), hand.sent()), (1, vec![]));
    hand.hear(1, Following, 0, (1, 5, 2));
    assert_eq!((hand.election.round(), hand.sent()), (1, vec![]), "that was before this server looked");
}

/// It has seen the better one after all.
#[test]
fn a_voter_that_backs_the_elected_server_in_the_end_is_no_doubt() {
    let mut hand = of_five();
    for id in [1, 4] {
        hand.election.link_changed(Mono(1), ServerId(id), false, &hand.electorate, &mut hand.out);
    }
    hand.hear(3, Looking, 1, (1, 5, 5));
    hand.hear(5, Looking, 1, (1, 5, 5));
    assert!(is_elected(&hand));
    for (backed, left) in [((1, 6, 4), "2, 3 and 5"), ((1, 5, 5), "all but 4")] {
        hand.hear(1, Looking, 1, backed);
        hand.hear(4, Looking, 1, (1, 6, 4));
        assert!(!is_mistaken(&hand), "{left}");
    }
    hand.hear(3, Looking, 1, (1, 6, 4));
    assert!(!is_mistaken(&hand), "1, 2 and 5");
    hand.hear(1, Looking, 1, (1, 6, 4));
    assert!(is_mistaken(&hand), "2 and 5");
}

#[test]
fn a_vote_of_an_observer_is_no_doubt() {
    let mut hand = Hand::looking();
    hand.election.link_changed(Mono(1), ServerId(1), false, &hand.electorate, &mut hand.out);
    hand.hear(3, Looking, 1, (1, 5, 3));
    assert!(is_elected(&hand));
    hand.hear(1, Observing, 1, (1, 5, 1));
    hand.hear(3, Observing, 1, (1, 5, 1));
    assert!(!is_mistaken(&hand));
}

#[test]
fn only_who_has_elected_this_server_before_is_called_back() {
    let mut hand = Hand::looking();
    hand.hear(1, Following, 0, (1, 5, 3));
    assert!(!hand.election.has_elected_me_before(ServerId(1)), "it follows another");
    hand.hear(1, Following, 0, (1, 5, 2));
    assert!(hand.election.has_elected_me_before(ServerId(1)));
    assert!(!hand.election.has_elected_me_before(ServerId(3)), "it has said nothing");
    let mut hand = of_five();
    hand.hear(1, Following, 1, (1, 5, 2));
    assert!(!hand.election.has_elected_me_before(ServerId(1)), "it waits for this very election");
}

#[test]
fn a_vote_names_the_epoch_that_has_begun() {
    let mut hand = Hand::looking();
    hand.election.link_changed(Mono(1), ServerId(1), false, &hand.electorate, &mut hand.out);
    hand.hear(3, Looking, 1, (1, 5, 3));
    hand.election.established(Epoch(2));
    hand.hear(1, Looking, 1, (1, 5, 1));
    let told = hand.out.iter().find_map(|output| match output {
        ElectionOutput::Send { notification, .. } => notification.candidate,
        _ => None,
    });
    let candidate = candidate(1, 5, 3);
    assert_eq!(told, Some(Candidate { epoch: Epoch(2), ..candidate }));
}

#[test]
fn a_leader_answers_that_it_leads_even_without_a_vote() {
    for observer in [false, true] {
        let mut hand = Hand::looking();
        hand.election.link_changed(Mono(1), ServerId(3), false, &hand.electorate, &mut hand.out);
        hand.hear(1, Looking, 1, (1, 5, 2));
        hand.election.set_config(String::new(), observer);
        hand.hear(3, Looking, 1, (1, 4, 3));
        let states = hand.out.iter().filter_map(|output| match output {
            ElectionOutput::Send { notification, .. } => Some(notification.state),
            _ => None,
        });
        assert!(states.eq([Leading]));
    }
}

/// Nobody writes to it, so it may not wait longer each time.
#[test]
fn an_observer_asks_as_often_as_at_first() {
    let hand = Hand::looking();
    let mut election = Election::new(ServerId(5), true, ElectionTiming::default(), String::new());
    election.look(Mono(0), None, &hand.electorate, &mut Vec::new());
    assert!(!election.has_no_vote(), "it never had one");
    let mut hand = Hand { election, ..hand };
    let last = hand.look_until(100_000);
    assert_eq!(hand.election.next_deadline(), Some(Mono(last + ElectionTiming::default().resend_min)));
}

/// The later of the two is no reason to wait.
#[test]
fn an_election_is_due_when_the_first_of_its_times_comes() {
    let mut hand = Hand::looking();
    assert_eq!(hand.election.next_deadline(), Some(Mono(200)));
    hand.hear(1, Looking, 1, (1, 5, 2));
    assert_eq!(hand.election.next_deadline(), Some(Mono(200)), "the vote is told again");
    hand.out.clear();
    hand.election.deadline(Mono(200), &hand.electorate, &mut hand.out);
    assert_eq!(hand.sent(), [(1, 2), (3, 2)]);
    assert_eq!(hand.election.next_deadline(), Some(Mono(201)), "and then it is decided");
}

/// Settled on 3 in round 1, by the vote of 3 itself.
fn settled_on_three() -> Hand {
    let mut hand = Hand::looking();
    hand.election.link_changed(Mono(1), ServerId(1), false, &hand.electorate, &mut hand.out);
    hand.hear(3, Looking, 1, (1, 9, 3));
    assert!(!hand.election.is_looking());
    hand
}

#[test]
fn votes_of_observers_and_of_earlier_rounds_do_not_void_an_election() {
    let mut hand = settled_on_three();
    hand.hear(3, Observing, 2, (1, 9, 3));
    assert!(!is_mistaken(&hand), "an observer's word counts for nothing");
    // They have not heard of this round yet.
    hand.hear(1, Looking, 0, (1, 5, 1));
    hand.hear(3, Looking, 0, (1, 5, 1));
    assert!(!is_mistaken(&hand));
    hand.hear(1, Looking, 1, (2, 0, 1));
    hand.hear(3, Looking, 1, (2, 0, 1));
    assert!(is_mistaken(&hand), "both back another one in this round");
}

/// It may have counted for a candidate with less than that leader says it has.
#[test]
fn a_vote_of_one_that_looks_backs_a_leader_only_whole() {
    let mut hand = Hand::looking();
    hand.hear(1, Looking, 1, (1, 6, 3));
    hand.hear(3, Leading, 1, (1, 9, 3));
    assert!(hand.election.is_looking());
    hand.hear(1, Following, 1, (1, 9, 3));
    assert!(!hand.election.is_looking());
}

/// The votes that this server had before it took a false one still count.
#[test]
fn a_denied_candidate_takes_no_other_votes_with_it() {
    let mut hand = of_five();
    assert_eq!(hand.hear(4, Looking, 1, (1, 5, 2)), Verdict::Counted);
    hand.hear(3, Looking, 1, (9, 9, 1));
    hand.hear(1, Looking, 1, (1, 4, 1));
    assert_eq!(hand.sent().first(), Some(&(1, 2)), "1 does not have that: this server backs itself again");
    hand.hear(5, Looking, 1, (1, 5, 2));
    hand.look_until(2_000);
    assert!(is_elected(&hand), "2, 4 and 5 of five");
}
