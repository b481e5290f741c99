//! How a learner takes over a history and goes along with its leader.

use ostler_proto::id::{Epoch, Zxid};
use ostler_zab::{
    Record,
    leading::DurableState,
    learning::{FromLeader as From, HangUp, Learning, LearningOutput as Out},
};
use std::sync::Arc;

const OWN: DurableState = DurableState { accepted: Epoch(4), current: Epoch(3), last: Zxid(0x3_0000_0009) };

fn at(epoch: u32, counter: u32) -> Zxid {
    Zxid::new(Epoch(epoch), counter)
}

fn record() -> Record {
    Record(Arc::from(&b"record"[..]))
}

fn proposal(zxid: Zxid) -> From {
    From::Proposal(zxid, record())
}

fn append(zxid: Zxid) -> Out {
    Out::Append(zxid, record())
}

fn hear(learning: &mut Learning, words: impl IntoIterator<Item = From>) -> Vec<Out> {
    let mut out = Vec::new();
    words.into_iter().for_each(|word| learning.heard(word, &mut out));
    out
}

fn following() -> Learning {
    let mut learning = Learning::new(OWN, false);
    hear(&mut learning, [From::LeaderInfo(Epoch(5)), From::Diff, From::NewLeader(Epoch(5)), From::UpToDate]);
    assert!(learning.is_following());
    learning
}

#[test]
fn the_epoch_is_saved_before_it_is_promised() {
    let mut learning = Learning::new(OWN, false);
    assert_eq!(
        hear(&mut learning, [From::LeaderInfo(Epoch(5))]),
        [Out::SaveAccepted(Epoch(5)), Out::AckEpoch { last: OWN.last, current: Some(Epoch(3)) }]
    );
    let mut learning = Learning::new(OWN, false);
    let again = hear(&mut learning, [From::LeaderInfo(Epoch(4))]);
    assert_eq!(again, [Out::AckEpoch { last: OWN.last, current: None }], "a promise counts once");
    let mut learning = Learning::new(OWN, false);
    let stale = HangUp::StaleEpoch { proposed: Epoch(3), accepted: Epoch(4) };
    assert_eq!(hear(&mut learning, [From::LeaderInfo(Epoch(3))]), [Out::HangUp(stale)]);
    assert_eq!(hear(&mut learning, [From::LeaderInfo(Epoch(9))]), [], "it is gone");
}

#[test]
fn clients_are_served_from_the_leaders_word_on() {
    let mut learning = Learning::new(OWN, false);
    let words =
        [From::LeaderInfo(Epoch(5)), From::Diff, From::NewLeader(Epoch(5)), From::UpToDate, From::UpToDate];
    for (word, follows) in words.into_iter().zip([false, false, false, true, false]) {
        assert_eq!(hear(&mut learning, [word.clone()]).is_empty(), word == From::Diff);
        assert_eq!(learning.is_following(), follows, "{word:?}");
    }
}

#[test]
fn an_observer_acknowledges_no_proposals() {
    for observer in [true, false] {
        let mut learning = Learning::new(OWN, observer);
        assert_eq!(learning.observes(), observer);
        let words = [From::LeaderInfo(Epoch(5)), From::Diff, proposal(at(4, 1)), From::NewLeader(Epoch(5))];
        let out = hear(&mut learning, words);
        assert_eq!(out.contains(&Out::Ack(at(4, 1))), !observer);
        assert!(out.contains(&Out::Ack(at(5, 0))));
    }
}

#[test]
fn the_last_epoch_but_one_is_promised() {
    let mut learning = Learning::new(OWN, false);
    let out = hear(&mut learning, [From::LeaderInfo(Epoch::LAST)]);
    assert_eq!(out[0], Out::SaveAccepted(Epoch::LAST));
}

#[test]
fn the_last_epoch_is_not_promised() {
    let mut learning = Learning::new(OWN, false);
    assert_eq!(hear(&mut learning, [From::LeaderInfo(Epoch(u32::MAX))]), [Out::HangUp(HangUp::OutOfTurn)]);
}

#[test]
fn all_that_precedes_newleader_is_saved_before_it_is_acknowledged() {
    let mut learning = Learning::new(OWN, false);
    hear(&mut learning, [From::LeaderInfo(Epoch(5))]);
    let history = [
        From::Diff,
        proposal(at(3, 10)),
        From::Commit(at(3, 10)),
        proposal(at(4, 1)),
        From::Ping(at(5, 0)),
        From::NewLeader(Epoch(5)),
        From::Ping(at(5, 0)),
    ];
    assert_eq!(
        hear(&mut learning, history),
        [
            append(at(3, 10)),
            Out::Commit(at(3, 10)),
            append(at(4, 1)),
            Out::SaveCurrent(Epoch(5)),
            Out::Ack(at(5, 0)),
            Out::Ack(at(4, 1)),
        ]
    );
    assert_eq!(
        hear(&mut learning, [proposal(at(5, 1)), From::Commit(at(4, 1)), From::UpToDate]),
        [
            append(at(5, 1)),
            Out::Ack(at(5, 1)),
            Out::Commit(at(4, 1)),
            Out::Ack(at(5, 0)),
            Out::Serve(Epoch(5)),
        ]
    );
}

#[test]
fn e10_transactions_that_never_committed_are_cut_from_the_log() {
    let mut learning = Learning::new(OWN, false);
    let words = [From::LeaderInfo(Epoch(5)), From::Trunc(at(3, 7)), proposal(at(4, 1))];
    let out = hear(&mut learning, words);
    assert_eq!(out[2..], [Out::Truncate(at(3, 7)), append(at(4, 1))]);
    let mut learning = Learning::new(OWN, false);
    let words = [From::LeaderInfo(Epoch(5)), From::Snap(at(4, 70)), proposal(at(4, 71))];
    let out = hear(&mut learning, words);
    assert_eq!(out[2..], [Out::Install(at(4, 70)), append(at(4, 71))]);
}

/// A leader would cut back or go on with what it takes this server to have.
#[test]
fn a_learner_that_asked_for_a_tree_hangs_up_on_anything_else() {
    let wanting = || Learning::new(OWN, false).wanting_tree();
    let asked = Out::AckEpoch { last: at(6, 0), current: Some(OWN.current) };
    let out = hear(&mut wanting(), [From::LeaderInfo(Epoch(5)), From::Snap(at(4, 70)), proposal(at(4, 71))]);
    assert_eq!(out[1..], [asked.clone(), Out::Install(at(4, 70)), append(at(4, 71))]);
    for word in [From::Diff, From::Trunc(at(3, 7))] {
        let out = hear(&mut wanting(), [From::LeaderInfo(Epoch(5)), word]);
        assert_eq!(out[1..], [asked.clone(), Out::HangUp(HangUp::OutOfTurn)]);
    }
}

#[test]
fn proposals_are_logged_acknowledged_and_committed_in_order() {
    let mut learning = following();
    let words = [proposal(at(5, 1)), proposal(at(5, 2)), From::Commit(at(5, 1)), From::Ping(at(5, 2))];
    assert_eq!(
        hear(&mut learning, words),
        [
            append(at(5, 1)),
            Out::Ack(at(5, 1)),
            append(at(5, 2)),
            Out::Ack(at(5, 2)),
            Out::Commit(at(5, 1)),
            Out::Pong(at(5, 2)),
        ]
    );
    let unmatched = HangUp::UnmatchedCommit { expected: at(5, 2), committed: at(5, 3) };
    assert_eq!(hear(&mut learning, [From::Commit(at(5, 3))]), [Out::HangUp(unmatched)]);
}

/// A Java leader looks at the end of its tree after it has begun to forward: what it forwards first may be in the tree.
#[test]
fn proposals_that_a_tree_has_already_are_skipped() {
    let mut learning = Learning::new(OWN, false);
    hear(&mut learning, [From::LeaderInfo(Epoch(5)), From::Snap(at(5, 3))]);
    let in_the_tree = [1, 2, 3].map(|counter| at(5, counter));
    let again = in_the_tree.into_iter().flat_map(|zxid| [proposal(zxid), From::Commit(zxid)]);
    assert_eq!(hear(&mut learning, again), []);
    let words =
        [proposal(at(5, 4)), From::NewLeader(Epoch(5)), From::Commit(at(5, 3)), From::Commit(at(5, 4))];
    let out = hear(&mut learning, words);
    assert_eq!((&out[0], out.last()), (&append(at(5, 4)), Some(&Out::Commit(at(5, 4)))), "{out:?}");
    let out = hear(&mut learning, [From::UpToDate, proposal(at(5, 3))]);
    assert!(matches!(out.last(), Some(Out::HangUp(HangUp::Gap { .. }))), "{out:?}");
}

#[test]
fn a_gap_ends_the_connection() {
    let mut learning = following();
    let twice = HangUp::Gap { last: at(5, 1), next: at(5, 1) };
    let out = hear(&mut learning, [proposal(at(5, 1)), proposal(at(5, 1))]);
    assert_eq!(out[2..], [Out::HangUp(twice)]);
    let mut learning = following();
    let back = HangUp::Gap { last: OWN.last, next: at(2, 1) };
    assert_eq!(hear(&mut learning, [From::Inform(at(2, 1), record())]), [Out::HangUp(back)]);
    let mut learning = following();
    hear(&mut learning, [proposal(at(5, 1))]);
    let gap = HangUp::Gap { last: at(5, 1), next: at(5, 3) };
    assert_eq!(hear(&mut learning, [proposal(at(5, 3))]), [Out::HangUp(gap)]);
}

#[test]
fn e1_an_observer_logs_and_applies_and_acknowledges_no_proposal() {
    let mut learning = Learning::new(OWN, true);
    let words = [
        From::LeaderInfo(Epoch(5)),
        From::Diff,
        proposal(at(4, 1)),
        From::Commit(at(4, 1)),
        From::NewLeader(Epoch(5)),
        From::UpToDate,
        From::Inform(at(5, 1), record()),
    ];
    let out = hear(&mut learning, words);
    assert_eq!(out[2..4], [append(at(4, 1)), Out::Commit(at(4, 1))]);
    assert_eq!(out[8..], [append(at(5, 1)), Out::Commit(at(5, 1))]);
    let acks = out.iter().filter(|output| matches!(output, Out::Ack(zxid) if zxid.counter() > 0));
    assert_eq!(acks.count(), 0);
}

#[test]
fn words_out_of_turn_end_the_connection() {
    for words in [
        vec![From::Diff],
        vec![From::LeaderInfo(Epoch(5)), proposal(at(5, 1))],
        vec![From::LeaderInfo(Epoch(5)), From::Diff, From::UpToDate],
        vec![From::LeaderInfo(Epoch(5)), From::Diff, From::NewLeader(Epoch(6))],
        vec![From::LeaderInfo(Epoch(5)), From::Diff, From::Diff],
    ] {
        let mut learning = Learning::new(OWN, false);
        assert_eq!(
            hear(&mut learning, words.clone()).pop(),
            Some(Out::HangUp(HangUp::OutOfTurn)),
            "{words:?}"
        );
    }
}

#[test]
fn a_learner_moves_on_with_its_leader_and_saves_each_step_before_it_says_so() {
    let six = Epoch(6);
    for observer in [false, true] {
        let mut learning = Learning::new(OWN, observer);
        let words = [From::LeaderInfo(Epoch(5)), From::Diff, From::NewLeader(Epoch(5)), From::UpToDate];
        hear(&mut learning, words);
        hear(&mut learning, [proposal(at(5, 1))]);
        let promise = [Out::SaveAccepted(six), Out::AckEpoch { last: at(5, 1), current: Some(Epoch(5)) }];
        assert_eq!(hear(&mut learning, [From::LeaderInfo(six)]), promise);
        assert_eq!(hear(&mut learning, [proposal(at(5, 2))])[0], append(at(5, 2)), "the epoch goes on");
        let border = [Out::SaveCurrent(six), Out::Ack(at(6, 0))];
        assert_eq!(hear(&mut learning, [From::NewLeader(six)]), border);
        assert_eq!(hear(&mut learning, [proposal(at(6, 1))])[0], append(at(6, 1)));
        let commits = [From::Commit(at(5, 1)), From::Commit(at(5, 2))];
        assert_eq!(hear(&mut learning, commits), [Out::Commit(at(5, 1)), Out::Commit(at(5, 2))]);
        assert_eq!(hear(&mut learning, [From::UpToDate]), [Out::Moved(six)]);
        assert_eq!(hear(&mut learning, [From::Commit(at(6, 1))]), [Out::Commit(at(6, 1))]);
        assert!(learning.is_following());
        let again = [Out::SaveAccepted(Epoch(7)), Out::AckEpoch { last: at(6, 1), current: Some(six) }];
        assert_eq!(hear(&mut learning, [From::LeaderInfo(Epoch(7))]), again);
    }
}

#[test]
fn a_leader_that_moves_on_out_of_turn_is_left() {
    let six = || From::LeaderInfo(Epoch(6));
    let courses: [(&str, Vec<From>); 8] = [
        ("no promise was asked for", vec![From::NewLeader(Epoch(6))]),
        ("another epoch was promised", vec![six(), From::NewLeader(Epoch(7))]),
        ("the border is missing", vec![six(), From::UpToDate]),
        ("a proposal comes before its border", vec![six(), proposal(at(6, 1))]),
        ("the epoch is not later", vec![From::LeaderInfo(Epoch(5))]),
        ("it goes back", vec![From::LeaderInfo(Epoch(4))]),
        ("a second move begins before the first ends", vec![six(), From::LeaderInfo(Epoch(7))]),
        (
            "something before the border is not committed",
            vec![proposal(at(5, 1)), six(), From::NewLeader(Epoch(6)), From::UpToDate],
        ),
    ];
    for (why, course) in courses {
        let mut learning = following();
        assert_eq!(hear(&mut learning, course).last(), Some(&Out::HangUp(HangUp::OutOfTurn)), "{why}");
    }
    let mut learning = following();
    let last = From::LeaderInfo(Epoch(Epoch::LAST.0 + 1));
    assert_eq!(hear(&mut learning, [last]), [Out::HangUp(HangUp::OutOfTurn)]);
}

#[test]
fn a_leader_moves_on_to_the_last_epoch() {
    let before = Epoch(Epoch::LAST.0 - 1);
    let mut learning = Learning::new(OWN, false);
    hear(
        &mut learning,
        [
            From::LeaderInfo(before),
            From::Diff,
            From::NewLeader(before),
            From::UpToDate,
            From::LeaderInfo(Epoch::LAST),
        ],
    );
    let border = [Out::SaveCurrent(Epoch::LAST), Out::Ack(Zxid::new(Epoch::LAST, 0))];
    assert_eq!(hear(&mut learning, [From::NewLeader(Epoch::LAST)]), border);
}
