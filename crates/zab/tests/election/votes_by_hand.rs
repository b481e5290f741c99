//! One server, and the votes that it is handed.

use crate::{hand::Hand, world::candidate};
use ostler_proto::{
    election::{Notification, PeerState},
    id::{Epoch, ServerId},
};
use ostler_zab::{
    Election, ElectionOutput, ElectionTiming, Electorate, Mono, Quorum,
    election::{ElectionEvent, IgnoreReason, Rule, Verdict},
};

use PeerState::{Following, Leading, Looking};

/// The votes that come to a decided server, and its answers, are on its record, too.
#[test]
fn a_server_that_has_decided_goes_on_with_its_record() {
    let mut hand = Hand::looking();
    hand.election.link_changed(Mono(1), ServerId(3), false, &hand.electorate, &mut hand.out);
    hand.hear(1, Looking, 1, (1, 5, 2));
    assert!(!hand.election.is_looking());
    let decided = Verdict::Ignored { why: IgnoreReason::Decided };
    assert_eq!(hand.hear(3, Looking, 1, (1, 5, 3)), decided);
    assert_eq!(hand.sent(), [(3, 2)]);
    let told_one = ElectionEvent::SentToOne {
        to: ServerId(3),
        state: Leading,
        candidate: Some(candidate(1, 5, 2)),
        round: 1,
    };
    assert_eq!(hand.election.record().entries.last().unwrap().event, told_one);
    assert_eq!(hand.hear(1, Following, 1, (1, 5, 3)), Verdict::ElectionVoid, "both others back another");
}

#[test]
fn a_vote_from_another_ensemble_is_on_the_record_alone() {
    let mut hand = Hand::looking();
    let vote = Notification {
        state: Looking,
        candidate: Some(candidate(9, 9, 1)),
        round: 7,
        version: 2,
        config: String::new(),
    };
    let before = hand.election.next_deadline();
    hand.election.refused_other_ensemble(Mono(1), ServerId(1), &vote);
    let why = Verdict::Ignored { why: IgnoreReason::AnotherEnsemble };
    let ElectionEvent::Received { from, verdict, .. } = hand.election.record().entries.last().unwrap().event
    else {
        panic!("a vote")
    };
    assert_eq!((from, verdict), (ServerId(1), why));
    assert_eq!((hand.election.round(), hand.election.next_deadline()), (1, before));
    hand.out.clear();
    hand.election.deadline(Mono(250), &hand.electorate, &mut hand.out);
    assert_eq!(hand.sent(), [(1, 2), (3, 2)], "its own vote, as before");
}

#[test]
fn e6_the_rules_of_a_ballot() {
    let adopted = |rule| Verdict::Adopted { rule, later_round: false };
    for (round, for_whom, verdict, told) in [
        (1, (2, 0, 1), adopted(Rule::LaterEpoch), vec![(1, 1), (3, 1)]),
        (1, (1, 6, 1), adopted(Rule::LaterZxid), vec![(1, 1), (3, 1)]),
        (1, (1, 5, 3), adopted(Rule::LargerId), vec![(1, 3), (3, 3)]),
        (1, (1, 5, 1), Verdict::Worse, vec![(1, 2)]),
        (1, (1, 4, 3), Verdict::Worse, vec![(1, 2)]),
        (1, (0, 9, 3), Verdict::Worse, vec![(1, 2)]),
        (1, (1, 5, 2), Verdict::Counted, vec![]),
        (0, (9, 9, 3), Verdict::Ignored { why: IgnoreReason::EarlierRound }, vec![(1, 2)]),
        (4, (1, 4, 1), Verdict::LaterRound, vec![(1, 2), (3, 2)]),
        (4, (1, 6, 1), Verdict::Adopted { rule: Rule::LaterZxid, later_round: true }, vec![(1, 1), (3, 1)]),
        (1, (1, 9, 8), Verdict::Ignored { why: IgnoreReason::CandidateDoesNotVote }, vec![]),
    ] {
        let mut hand = Hand::looking();
        let found = hand.hear(1, Looking, round, for_whom);
        assert_eq!((found, hand.sent()), (verdict, told), "round {round}, {for_whom:?}");
        assert_eq!(hand.election.round(), round.max(1));
    }
}

#[test]
fn e6_a_later_round_empties_the_ballot_box() {
    let mut hand = Hand::looking();
    hand.hear(1, Looking, 1, (1, 5, 2));
    assert!(hand.election.next_deadline() <= Some(Mono(201)), "1 and 2 agree; 3 may still come");
    hand.hear(3, Looking, 2, (1, 4, 3));
    hand.out.clear();
    hand.election.deadline(Mono(250), &hand.electorate, &mut hand.out);
    assert!(hand.election.is_looking(), "1 has not voted in this round");
}

#[test]
fn a_server_elected_by_the_others_counts_its_own_vote() {
    let mut hand = Hand::looking();
    hand.hear(1, Following, 1, (1, 5, 2));
    assert_eq!(hand.out, [ElectionOutput::Elected { leader: ServerId(2) }], "2 and 1 of three");
}

#[test]
fn the_leader_named_by_a_leaving_one_is_taken_without_an_election() {
    for (leader, state) in [(3, Following), (2, Leading)] {
        let mut hand = Hand::looking();
        hand.hear(1, Leading, 1, (1, 4, 1));
        hand.hear(3, Following, 1, (1, 4, 1));
        hand.out.clear();
        hand.election.accept_suggested(Mono(9), candidate(1, 7, leader), &hand.electorate, &mut hand.out);
        assert_eq!(hand.sent(), [(1, leader), (3, leader)]);
        let ElectionOutput::Send { notification, .. } = &hand.out[0] else { panic!("a vote") };
        assert_eq!((notification.state, notification.round), (state, 2));
        assert_eq!(hand.out.last(), Some(&ElectionOutput::Elected { leader: ServerId(leader) }));
        assert!(!hand.election.is_looking());
    }
}

#[test]
fn a_leader_is_joined_only_if_it_says_itself_that_it_leads() {
    let mut hand = Hand::looking();
    hand.hear(1, Following, 7, (1, 9, 3));
    hand.hear(3, Following, 7, (1, 9, 3));
    assert!(hand.election.is_looking(), "a quorum follows 3, which does not lead");
    hand.hear(3, Leading, 7, (1, 9, 3));
    assert_eq!(hand.out.last(), Some(&ElectionOutput::Elected { leader: ServerId(3) }));
}

/// It may be the only one that has logged the change: the others go on without it, and those whom the change gives a vote
/// have none yet.
#[test]
fn a_server_with_a_logged_change_that_no_other_knows_joins_the_leader() {
    let mut hand = Hand::looking();
    hand.electorate.next = Some(Quorum::majority([1, 2, 3, 4, 5].map(ServerId)));
    hand.hear(1, Following, 7, (2, 0, 3));
    hand.hear(3, Leading, 7, (2, 0, 3));
    assert_eq!(hand.out.last(), Some(&ElectionOutput::Elected { leader: ServerId(3) }));
}

#[test]
fn an_elected_server_looks_again_when_the_others_follow_another_leader() {
    let elected = || {
        let mut hand = Hand::looking();
        hand.election.link_changed(Mono(1), ServerId(3), false, &hand.electorate, &mut hand.out);
        hand.hear(1, Looking, 1, (1, 5, 2));
        assert_eq!(hand.out.last(), Some(&ElectionOutput::Elected { leader: ServerId(2) }));
        hand
    };
    let mut hand = elected();
    // The vote of 3 came too late for this server, but not for 1.
    hand.hear(1, Following, 1, (1, 5, 3));
    assert_eq!(hand.out, [], "no quorum, and 3 has not said that it leads");
    hand.hear(3, Leading, 1, (1, 5, 3));
    assert_eq!(hand.out, [ElectionOutput::LookAgain]);
    // They may have gone back to a leader of before.
    let mut hand = elected();
    hand.hear(1, Following, 0, (1, 5, 3));
    hand.hear(3, Leading, 0, (1, 5, 3));
    assert_eq!(hand.out, [ElectionOutput::LookAgain]);
    // Once the epoch has begun, it says nothing.
    let mut hand = elected();
    hand.election.established(Epoch(2));
    hand.hear(1, Following, 1, (1, 5, 3));
    hand.hear(3, Leading, 1, (1, 5, 3));
    assert_eq!(hand.out, []);
}

#[test]
fn a_follower_looks_again_when_its_leader_has_lost_its_data() {
    let mut hand = Hand::looking();
    hand.election.link_changed(Mono(1), ServerId(1), false, &hand.electorate, &mut hand.out);
    hand.hear(3, Looking, 1, (1, 5, 3));
    assert_eq!(hand.out.last(), Some(&ElectionOutput::Elected { leader: ServerId(3) }));
    let mut backs_nobody = |from: i64| {
        let (candidate, config) = (None, String::new());
        let vote = Notification { state: Looking, candidate, round: 1, version: 2, config };
        hand.out.clear();
        hand.election.notified(Mono(1), ServerId(from), &vote, &hand.electorate, &mut hand.out);
        hand.out.contains(&ElectionOutput::LookAgain)
    };
    assert!(!backs_nobody(1), "who has no data has no voice, and will have them from the leader");
    assert!(backs_nobody(3));
}

/// Of four. Two have elected the third, which has heard of the fourth since: neither of those has three voices then.
#[test]
fn a_follower_looks_again_when_its_leader_backs_another() {
    let mut hand = Hand::looking();
    hand.electorate = Electorate::of(Quorum::majority([1, 2, 3, 4].map(ServerId)));
    hand.election.link_changed(Mono(1), ServerId(4), false, &hand.electorate, &mut hand.out);
    hand.hear(1, Looking, 1, (1, 5, 3));
    hand.hear(3, Looking, 1, (1, 5, 3));
    assert_eq!(hand.out.last(), Some(&ElectionOutput::Elected { leader: ServerId(3) }));
    hand.hear(3, Looking, 1, (1, 5, 4));
    assert!(!hand.out.contains(&ElectionOutput::LookAgain), "the others may elect it even so");
    hand.hear(4, Looking, 1, (1, 5, 4));
    assert_eq!(hand.out.last(), Some(&ElectionOutput::LookAgain));
}

/// Of four. A Java server's answer of before may come behind its vote in this round; another server has just started.
#[test]
fn a_vote_for_a_worse_candidate_in_this_round_is_no_doubt() {
    let mut hand = Hand::looking();
    hand.electorate = Electorate::of(Quorum::majority([1, 2, 3, 4].map(ServerId)));
    hand.election.link_changed(Mono(1), ServerId(3), false, &hand.electorate, &mut hand.out);
    hand.hear(1, Looking, 1, (1, 5, 4));
    hand.hear(4, Looking, 1, (1, 5, 4));
    assert_eq!(hand.out.last(), Some(&ElectionOutput::Elected { leader: ServerId(4) }));
    hand.hear(4, Following, 0, (1, 5, 3));
    hand.hear(3, Looking, 1, (1, 5, 3));
    assert!(!hand.out.contains(&ElectionOutput::LookAgain), "3 is to hear of 4 yet");
    hand.hear(3, Looking, 2, (1, 5, 3));
    assert_eq!(hand.out.last(), Some(&ElectionOutput::LookAgain));
}

/// Java's servers do not tell that they have come back to a leader.
#[test]
fn votes_from_before_the_promises_of_a_quorum_are_no_doubt() {
    let elected = || {
        let mut hand = Hand::looking();
        hand.election.link_changed(Mono(1), ServerId(1), false, &hand.electorate, &mut hand.out);
        hand.hear(3, Looking, 1, (1, 5, 3));
        assert_eq!(hand.out.last(), Some(&ElectionOutput::Elected { leader: ServerId(3) }));
        hand
    };
    let mistaken = |hand: &Hand| hand.out.contains(&ElectionOutput::LookAgain);
    let mut hand = elected();
    hand.electorate = Electorate::of(Quorum::majority([1, 2, 3, 4, 5].map(ServerId)));
    for id in [1, 4] {
        hand.hear(id, Looking, 1, (1, 5, id));
        assert!(!mistaken(&hand), "2, 3 and 5 are enough");
    }
    hand.election.history_arrives();
    hand.hear(5, Looking, 1, (1, 5, 5));
    assert!(!mistaken(&hand), "the leader knows best who has left it");

    let mut hand = Hand::looking();
    hand.election.link_changed(Mono(1), ServerId(3), false, &hand.electorate, &mut hand.out);
    hand.hear(1, Looking, 1, (1, 5, 2));
    assert_eq!(hand.out.last(), Some(&ElectionOutput::Elected { leader: ServerId(2) }));
    hand.hear(3, Looking, 1, (1, 5, 3));
    hand.election.voter_follows(ServerId(3));
    hand.hear(1, Looking, 2, (1, 5, 1));
    assert!(!mistaken(&hand), "3 is here, whatever it said");
}

#[test]
fn a_server_that_elected_this_one_earlier_is_known_until_it_looks_again() {
    let mut hand = Hand::looking();
    assert!(!hand.election.has_elected_me_before(ServerId(1)));
    hand.hear(1, Following, 1, (1, 5, 2));
    assert!(!hand.election.has_elected_me_before(ServerId(1)), "this round may end so");
    let mut hand = Hand::looking();
    hand.hear(1, Following, 3, (1, 5, 2));
    assert!(hand.election.has_elected_me_before(ServerId(1)));
    hand.hear(1, Looking, 4, (1, 5, 2));
    assert!(!hand.election.has_elected_me_before(ServerId(1)), "it has heard");
}

/// The connection on which it gave up may have been cut without a word.
#[test]
fn a_follower_looks_again_when_its_leader_leads_in_a_later_round() {
    let mut hand = Hand::looking();
    hand.hear(3, Leading, 5, (1, 5, 3));
    hand.hear(1, Following, 4, (1, 5, 3));
    assert_eq!(hand.out.last(), Some(&ElectionOutput::Elected { leader: ServerId(3) }));
    hand.hear(3, Leading, 5, (2, 5, 3));
    assert_eq!(
        hand.out,
        [],
        "it is the epoch that was joined: the leader's own count is the one that matters"
    );
    hand.hear(3, Leading, 6, (3, 5, 3));
    assert_eq!(hand.out.last(), Some(&ElectionOutput::LookAgain));
}

#[test]
fn a_follower_looks_again_when_no_quorum_backs_its_leader() {
    let mut hand = Hand::looking();
    hand.electorate = Electorate::of(Quorum::majority([1, 2, 3, 4, 5].map(ServerId)));
    for id in [1, 4] {
        hand.election.link_changed(Mono(1), ServerId(id), false, &hand.electorate, &mut hand.out);
    }
    hand.hear(3, Looking, 1, (1, 5, 5));
    hand.hear(5, Looking, 1, (1, 5, 5));
    assert_eq!(hand.out.last(), Some(&ElectionOutput::Elected { leader: ServerId(5) }));
    hand.hear(1, Looking, 2, (1, 5, 4));
    hand.hear(4, Looking, 2, (1, 5, 4));
    assert!(!hand.out.contains(&ElectionOutput::LookAgain), "2, 3 and 5 are enough");
    hand.hear(3, Looking, 2, (1, 5, 4));
    assert_eq!(hand.out.last(), Some(&ElectionOutput::LookAgain), "5 may be dead");
    hand.election.established(Epoch(2));
    hand.hear(3, Looking, 2, (1, 5, 4));
    assert!(!hand.out.contains(&ElectionOutput::LookAgain), "an epoch that has begun ends by itself");
}

#[test]
fn an_elected_server_looks_again_when_its_voters_back_others() {
    let mut hand = Hand::looking();
    hand.electorate = Electorate::of(Quorum::majority([1, 2, 3, 4, 5].map(ServerId)));
    for id in [4, 5] {
        hand.election.link_changed(Mono(1), ServerId(id), false, &hand.electorate, &mut hand.out);
    }
    hand.hear(1, Looking, 3, (1, 5, 2));
    hand.hear(3, Looking, 3, (1, 5, 2));
    assert_eq!(hand.out.last(), Some(&ElectionOutput::Elected { leader: ServerId(2) }));
    hand.hear(4, Looking, 3, (1, 5, 5));
    hand.hear(5, Looking, 3, (1, 5, 5));
    assert_eq!(hand.sent(), [(5, 2)], "1, 2 and 3 are enough");
    hand.hear(1, Looking, 2, (1, 5, 1));
    assert_eq!(hand.sent(), [(1, 2)], "it has said this before it heard of the round");
    hand.hear(5, Following, 3, (1, 5, 2));
    hand.hear(1, Following, 2, (1, 5, 4));
    assert_eq!(hand.out, [], "2, 3 and 5 are enough");
    hand.hear(3, Looking, 3, (1, 5, 5));
    assert_eq!(hand.out.last(), Some(&ElectionOutput::LookAgain), "2 and 5 are not");
}

#[test]
fn a_voter_that_looks_again_does_not_count_for_its_earlier_leader() {
    let mut hand = Hand::looking();
    hand.hear(1, Following, 7, (1, 9, 3));
    hand.hear(1, Looking, 8, (1, 4, 1));
    hand.hear(3, Leading, 7, (1, 9, 3));
    assert!(hand.election.is_looking(), "nobody follows 3");
    hand.hear(1, Following, 7, (1, 9, 3));
    assert_eq!(
        hand.out.last(),
        Some(&ElectionOutput::Elected { leader: ServerId(3) }),
        "1 has gone back to it"
    );
}

#[test]
fn a_server_that_joins_a_leader_sends_its_changed_vote() {
    let mut hand = Hand::looking();
    hand.hear(1, Following, 7, (1, 9, 3));
    hand.hear(3, Leading, 7, (1, 9, 3));
    assert_eq!(hand.sent(), [(1, 3), (3, 3)]);
    // They know already what it says.
    let mut hand = Hand::looking();
    hand.hear(3, Looking, 1, (1, 9, 3));
    hand.hear(3, Leading, 1, (1, 9, 3));
    assert_eq!(hand.out, [ElectionOutput::Elected { leader: ServerId(3) }]);
}

#[test]
fn an_election_takes_the_quorums_of_a_change_that_is_logged() {
    let mut hand = Hand::looking();
    hand.electorate.next = Some(Quorum::majority([1, 2, 3, 4, 5].map(ServerId)));
    hand.hear(1, Looking, 1, (1, 5, 2));
    hand.election.deadline(Mono(1_000), &hand.electorate, &mut hand.out);
    assert!(hand.election.is_looking(), "two of three, but not three of five");
    hand.hear(4, Looking, 1, (1, 5, 2));
    hand.election.deadline(Mono(2_000), &hand.electorate, &mut hand.out);
    assert!(!hand.election.is_looking());
}

/// Two that have lost their votes, and hear of each other by what was under way.
#[test]
fn votes_without_effect_are_not_answered_without_end() {
    let mut hand = Hand::looking();
    hand.hear(4, Looking, 1, (1, 9, 4));
    assert_eq!(hand.sent(), [(4, 2)], "it asks one that votes");
    hand.hear(1, Following, 7, (2, 0, 3));
    hand.hear(3, Leading, 7, (2, 0, 3));
    hand.hear(4, PeerState::Observing, 7, (2, 0, 3));
    assert_eq!(hand.sent(), []);
    hand.hear(4, Looking, 1, (1, 9, 4));
    assert_eq!(hand.sent(), [(4, 3)]);
    let mut election = Election::new(ServerId(5), true, ElectionTiming::default(), String::new());
    election.look(Mono(0), None, &hand.electorate, &mut Vec::new());
    let mut hand = Hand { election, ..hand };
    hand.hear(4, Looking, 1, (1, 9, 4));
    assert!(hand.out.is_empty(), "it has nothing to say");
}

/// Voters answer each vote of a server that does not vote.
#[test]
fn an_empty_observer_does_not_repeat_a_vote_without_candidate() {
    let hand = Hand::looking();
    let mut election = Election::new(ServerId(5), true, ElectionTiming::default(), String::new());
    election.set_without_history(true);
    election.look(Mono(0), None, &hand.electorate, &mut Vec::new());
    let mut hand = Hand { election, ..hand };
    hand.hear(1, Looking, 1, (1, 9, 1));
    hand.hear(1, Looking, 1, (1, 9, 1));
    assert!(hand.out.is_empty(), "it has said so before: {:?}", hand.out);
}

/// Others count what it says from then on: two of three may be all there are to tell the third whom to follow.
#[test]
fn a_follower_answers_a_vote_as_a_follower() {
    let hand = Hand::looking();
    let mut election = Election::new(ServerId(2), true, ElectionTiming::default(), String::new());
    election.look(Mono(0), None, &hand.electorate, &mut Vec::new());
    let mut hand = Hand { election, ..hand };
    hand.hear(3, Leading, 7, (2, 0, 3));
    hand.hear(1, Following, 7, (2, 0, 3));
    let says = |hand: &mut Hand| {
        hand.out.clear();
        hand.hear(1, Looking, 8, (1, 0, 1));
        hand.out.iter().find_map(|out| match out {
            ElectionOutput::Send { notification, .. } => Some(notification.state),
            _ => None,
        })
    };
    assert_eq!(says(&mut hand), Some(PeerState::Observing));
    hand.election.set_config(String::new(), false);
    assert_eq!(says(&mut hand), Some(Following));
}

/// Voters answer each vote of an observer: they would go on as long as there is no quorum.
#[test]
fn an_observer_that_looks_answers_no_vote() {
    let hand = Hand::looking();
    let mut election = Election::new(ServerId(5), true, ElectionTiming::default(), String::new());
    election.look(Mono(0), None, &hand.electorate, &mut Vec::new());
    let mut hand = Hand { election, ..hand };
    assert!(matches!(hand.hear(3, Looking, 2, (1, 9, 3)), Verdict::Adopted { .. }));
    hand.out.clear();
    assert_eq!(hand.hear(1, Looking, 1, (1, 9, 1)), Verdict::Ignored { why: IgnoreReason::EarlierRound });
    assert_eq!(hand.hear(1, Looking, 2, (1, 9, 1)), Verdict::Worse);
    assert!(hand.out.is_empty(), "{:?}", hand.out);
}

#[test]
fn settled_servers_must_name_the_same_epoch() {
    let mut hand = Hand::looking();
    hand.hear(3, Leading, 7, (2, 0, 3));
    hand.hear(1, Following, 7, (1, 9, 3));
    assert!(hand.election.is_looking(), "1 follows an earlier epoch of 3");
    hand.hear(1, Following, 7, (2, 0, 3));
    assert!(!hand.election.is_looking());
}

#[test]
fn a_candidate_without_weight_is_never_backed() {
    let mut hand = Hand::looking();
    let groups = [1, 2, 3].map(|id| (ServerId(id), 1)).into();
    let current = Quorum::Groups { groups, weights: [(ServerId(3), 0)].into() };
    hand.electorate = Electorate::of(current);
    assert_eq!(hand.hear(3, Looking, 1, (5, 5, 3)), Verdict::Worse);
}

/// Upstream lets it vote: what it has acknowledged and lost may then be lost for all.
#[test]
fn a_server_with_nothing_has_no_voice_where_others_have_something() {
    let mut hand = Hand::looking();
    hand.election.set_without_history(true);
    hand.election.look(Mono(2), Some(candidate(0, 0, 2)), &hand.electorate, &mut hand.out);
    assert_eq!(hand.hear(1, Looking, 2, (0, 0, 1)), Verdict::Worse, "1 has nothing either");
    assert!(!hand.election.has_no_vote());
    hand.election.link_changed(Mono(3), ServerId(1), false, &hand.electorate, &mut hand.out);
    hand.out.clear();
    assert_eq!(hand.hear(3, Looking, 2, (1, 5, 3)), Verdict::Ignored { why: IgnoreReason::Untrusted });
    assert!(hand.election.has_no_vote() && hand.election.is_looking());
    let nobody = |output: &ElectionOutput| matches!(output, ElectionOutput::Send { notification, .. } if notification.candidate.is_none());
    assert!(hand.out.len() == 2 && hand.out.iter().all(nobody));
    hand.hear(1, Following, 2, (1, 5, 3));
    hand.hear(3, Leading, 2, (1, 5, 3));
    assert!(!hand.election.is_looking(), "it joins a leader");
}

/// Data that none of them has is lost already, so they may elect a leader.
#[test]
fn a_server_without_a_voice_backs_the_best_once_all_others_look_too() {
    let mut hand = Hand::looking();
    hand.election.set_without_history(true);
    hand.election.look(Mono(2), Some(candidate(0, 0, 2)), &hand.electorate, &mut hand.out);
    hand.hear(3, Looking, 4, (1, 5, 3));
    assert!(hand.election.has_no_vote());
    let nobody = |output: &ElectionOutput| matches!(output, ElectionOutput::Send { notification, .. } if notification.candidate.is_none());
    assert!(hand.out.iter().all(nobody), "nothing is known of 1: {:?}", hand.out);
    hand.out.clear();
    hand.hear(1, Looking, 2, (0, 0, 1));
    let backs = |output: &ElectionOutput| {
        matches!(output, ElectionOutput::Send { notification, .. }
        if notification.candidate == Some(candidate(1, 5, 3)) && notification.round == 4)
    };
    assert!(hand.out.len() == 2 && hand.out.iter().all(backs), "{:?}", hand.out);
    // One of them is gone, or has a leader: it may have what they lack.
    hand.out.clear();
    hand.election.link_changed(Mono(3), ServerId(1), false, &hand.electorate, &mut hand.out);
    let nobody = |output: &ElectionOutput| matches!(output, ElectionOutput::Send { notification, .. } if notification.candidate.is_none());
    assert!(hand.out.len() == 2 && hand.out.iter().all(nobody), "{:?}", hand.out);
    // Its vote may come before this server knows of its new connection.
    hand.hear(1, Looking, 4, (0, 0, 1));
    hand.election.link_changed(Mono(4), ServerId(1), true, &hand.electorate, &mut hand.out);
    hand.hear(3, Looking, 4, (1, 5, 3));
    assert!(!hand.out.is_empty() && hand.out.iter().all(backs), "{:?}", hand.out);
    hand.out.clear();
    hand.hear(1, Looking, 4, (1, 5, 3));
    assert!(!hand.election.is_looking(), "all back it");
}

#[test]
fn a_server_without_a_vote_backs_no_candidate_but_joins_a_leader() {
    let mut hand = Hand::looking();
    hand.election.look(Mono(2), None, &hand.electorate, &mut hand.out);
    assert_eq!(hand.hear(1, Looking, 2, (1, 5, 1)), Verdict::Ignored { why: IgnoreReason::Untrusted });
    hand.hear(1, Following, 2, (1, 5, 3));
    hand.hear(3, Leading, 2, (1, 5, 3));
    assert!(!hand.election.is_looking());
}

/// A server without weight may have the longest log, and holds on to its own vote.
#[test]
fn two_that_take_each_others_vote_for_worse_do_not_go_on_telling() {
    let quorum = Quorum::Groups {
        groups: [1, 2, 3].map(|id| (ServerId(id), 1)).into(),
        weights: [(ServerId(1), 0)].into(),
    };
    let electorate = Electorate::of(quorum);
    let mut servers = [(1, 9), (2, 5)].map(|(id, counter)| {
        let mut election = Election::new(ServerId(id), false, ElectionTiming::default(), String::new());
        let mut out = Vec::new();
        election.look(Mono(0), Some(candidate(1, counter, id)), &electorate, &mut out);
        (election, out)
    });
    for _ in 0..20 {
        let sent = servers.each_mut().map(|(_, out)| std::mem::take(out));
        for (output, from) in
            sent.into_iter().zip(1..).flat_map(|(out, from)| out.into_iter().map(move |one| (one, from)))
        {
            let ElectionOutput::Send { to, notification } = output else {
                panic!("nobody is elected by one")
            };
            if let Some((election, out)) = servers.get_mut(to.0 as usize - 1) {
                election.notified(Mono(1), ServerId(from), &notification, &electorate, out);
            }
        }
    }
    assert!(servers.iter().all(|(_, out)| out.is_empty()), "votes go to and fro until the next deadline");
}

#[test]
fn a_server_that_cannot_be_reached_is_called_every_second_however_long_it_takes() {
    let mut hand = Hand::looking();
    let others_are = |hand: &mut Hand, now: u64, up: bool| {
        for id in [1, 3] {
            hand.election.link_changed(Mono(now), ServerId(id), up, &hand.electorate, &mut hand.out);
        }
    };
    // As long as they can be reached they need not hear the same again so often.
    let mut last = hand.look_until(600_000);
    let pause = hand.election.next_deadline().unwrap().0 - last;
    assert_eq!(pause, ElectionTiming::default().resend_max);
    // A vote that was on its way may be lost with its connection.
    others_are(&mut hand, last + 1, false);
    assert!(hand.election.next_deadline() <= Some(Mono(last + 1_001)));
    last = hand.look_until(last + 600_000);
    assert_eq!(hand.election.next_deadline(), Some(Mono(last + 1_000)));
    assert_eq!(hand.sent(), [(1, 2), (3, 2)]);
    // Once they can be, pauses begin to grow again: an answer may be lost as well.
    others_are(&mut hand, last + 1, true);
    assert_eq!(hand.election.next_deadline(), Some(Mono(last + 201)));
    last = hand.look_until(last + 600_000);
    assert!(hand.election.next_deadline() > Some(Mono(last + 1_000)));
}

#[test]
fn a_connection_that_takes_the_place_of_another_is_told_the_vote_again() {
    let mut hand = Hand::looking();
    for now in [10, 20] {
        hand.out.clear();
        hand.election.link_changed(Mono(now), ServerId(3), true, &hand.electorate, &mut hand.out);
        assert_eq!(hand.sent(), [(3, 2)]);
    }
}
