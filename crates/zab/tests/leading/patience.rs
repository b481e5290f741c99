//! How long a leader waits for its learners.

use crate::reign::{ONE, Reign, TIMING, ack_epoch, begin};
use ostler_proto::id::{Epoch, ServerId, Zxid};
use ostler_zab::{
    Mono,
    leading::{FromLearner, LeadingOutput, LinkId, Refusal, StepDown},
};

/// It has said all that it had to say, and nothing was asked of it since: what others were slow to do is not its silence.
#[test]
fn who_acknowledged_the_history_long_before_the_reign_begins_is_not_silent() {
    let mut reign = Reign::new(&[1, 2, 3]);
    reign.greet(1, 4);
    reign.accepted_saved();
    reign.hear(1, ack_epoch(3, 5));
    reign.hear(1, FromLearner::Ack(begin(5)));
    reign.now = TIMING.sync + 100;
    assert!(reign.current_saved().contains(&LeadingOutput::UpToDate(ONE)), "its own disk was slow");
    assert_eq!(reign.tick(TIMING.sync + 101), []);
    assert_eq!(reign.tick(TIMING.sync * 2 + 99), []);

    let mut reign = Reign::new(&[1, 2, 3, 4, 5]);
    let join = |reign: &mut Reign, id: u64| {
        let info = FromLearner::Info { id: ServerId(id as i64), observer: false, accepted: Epoch(4) };
        reign.hear(id, info);
    };
    join(&mut reign, 1);
    join(&mut reign, 2);
    reign.accepted_saved();
    reign.hear(1, ack_epoch(3, 5));
    reign.hear(2, ack_epoch(3, 5));
    reign.current_saved();
    reign.hear(1, FromLearner::Ack(begin(5)));
    reign.now = TIMING.sync + 100;
    reign.hear(2, FromLearner::Ack(begin(5)));
    assert!(reign.leading.is_established(), "the other follower was slow");
    assert_eq!(reign.tick(TIMING.sync + 101), []);
}

/// A leader that needs a follower whose tree takes longer than `initLimit` would begin anew for ever.
#[test]
fn a_follower_that_takes_its_tree_holds_up_the_end_of_the_synchronisation() {
    let mut reign = Reign::new(&[1, 2, 3]);
    reign.greet(1, 4);
    reign.accepted_saved();
    reign.hear(1, ack_epoch(3, 5));
    reign.current_saved();
    for now in (0..=TIMING.init * 4).step_by(400) {
        reign.leading.lives(Mono(now), ONE);
        assert_eq!(reign.tick(now), [], "at {now} ms");
    }
    reign.now = TIMING.init * 4;
    assert!(reign.hear(1, FromLearner::Ack(begin(5))).contains(&LeadingOutput::UpToDate(ONE)));
}

/// Each step has `initLimit` from its own beginning.
#[test]
fn a_step_towards_the_reign_that_takes_too_long_ends_it() {
    let mut reign = Reign::new(&[1, 2, 3]);
    reign.now = 300;
    reign.greet(1, 4);
    assert_eq!(reign.tick(TIMING.init + 299), []);
    assert_eq!(reign.tick(TIMING.init + 300), [LeadingOutput::StepDown(StepDown::EpochNotAccepted)]);
    let mut reign = Reign::new(&[1, 2, 3]);
    reign.greet(1, 4);
    reign.now = 300;
    reign.accepted_saved();
    reign.hear(1, ack_epoch(3, 5));
    assert_eq!(reign.tick(TIMING.init + 299), []);
    assert_eq!(reign.tick(TIMING.init + 300), [LeadingOutput::StepDown(StepDown::NotSynchronised)]);
}

#[test]
fn who_is_not_up_to_date_may_be_silent_for_as_long_as_a_step_takes_and_a_word_more() {
    let mut reign = Reign::established();
    reign.greet(2, 4);
    let patience = TIMING.init + TIMING.sync;
    for now in [400, 800, 1_200, patience - 1] {
        reign.hear_at(now, 1);
        assert_eq!(reign.tick(now), [], "at {now} ms");
    }
    let (link, server) = (LinkId(2), Some(ServerId(2)));
    assert_eq!(reign.tick(patience), [LeadingOutput::Refuse { link, server, why: Refusal::Silent }]);
}

/// A follower that is brought to the history acknowledges with it what was proposed meanwhile, and an observer nothing.
#[test]
fn only_a_follower_that_serves_owes_its_disk() {
    let mut reign = Reign::established();
    reign.greet(2, 4);
    reign.hear(2, ack_epoch(3, 5));
    reign.greet(4, 4);
    reign.hear(4, ack_epoch(3, 5));
    reign.hear(4, FromLearner::Ack(begin(5)));
    let first = Zxid::new(Epoch(5), 1);
    reign.leading.proposed(Mono(0), first);
    reign.hear(1, FromLearner::Ack(first));
    for now in [400, 800] {
        for id in [1, 4] {
            reign.hear_at(now, id);
        }
        assert_eq!(reign.tick(now), [], "at {now} ms");
    }
}

/// Only a voter that is brought to the history is waited for.
#[test]
fn a_stream_that_nobody_waits_for_holds_up_nothing() {
    for observer in [true, false] {
        let mut reign = Reign::new(&[1, 2, 3]);
        reign.greet(1, 4);
        reign.accepted_saved();
        reign.hear(1, ack_epoch(3, 5));
        reign.current_saved();
        let info = FromLearner::Info { id: ServerId(2), observer, accepted: Epoch(4) };
        reign.hear(2, info);
        if observer {
            reign.hear(2, ack_epoch(3, 5));
        }
        // The observer takes its tree; the voter has not promised the epoch yet.
        reign.leading.lives(Mono(TIMING.init - 1), LinkId(2));
        assert_eq!(reign.tick(TIMING.init - 1), []);
        assert_eq!(reign.tick(TIMING.init), [LeadingOutput::StepDown(StepDown::NotSynchronised)]);
    }
}
