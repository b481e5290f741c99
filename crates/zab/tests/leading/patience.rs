//! How long a leader waits for its learners.

use crate::epoch::{LeadingRig, ONE, TIMING, ack_epoch, begin};
use ostler_proto::id::{Epoch, ServerId, Zxid};
use ostler_zab::{
    Mono,
    leading::{FromLearner, LeadingOutput, LinkId, Refusal, StepDown},
};

/// It has said all that it had to say, and nothing was asked of it since: what others were slow to do is not its silence.
#[test]
fn a_learner_that_acknowledged_the_history_early_is_not_refused_as_silent() {
    let mut epoch = LeadingRig::new(&[1, 2, 3]);
    epoch.greet(1, 4);
    epoch.accepted_saved();
    epoch.hear(1, ack_epoch(3, 5));
    epoch.hear(1, FromLearner::Ack(begin(5)));
    epoch.now = TIMING.sync + 100;
    assert!(epoch.current_saved().contains(&LeadingOutput::UpToDate(ONE)), "its own disk was slow");
    assert_eq!(epoch.tick(TIMING.sync + 101), []);
    assert_eq!(epoch.tick(TIMING.sync * 2 + 99), []);

    let mut epoch = LeadingRig::new(&[1, 2, 3, 4, 5]);
    let join = |epoch: &mut LeadingRig, id: u64| {
        let info =
            FromLearner::Info { id: ServerId(id as i64), observer: false, accepted: Epoch(4), moves: false };
        epoch.hear(id, info);
    };
    join(&mut epoch, 1);
    join(&mut epoch, 2);
    epoch.accepted_saved();
    epoch.hear(1, ack_epoch(3, 5));
    epoch.hear(2, ack_epoch(3, 5));
    epoch.current_saved();
    epoch.hear(1, FromLearner::Ack(begin(5)));
    epoch.now = TIMING.sync + 100;
    epoch.hear(2, FromLearner::Ack(begin(5)));
    assert!(epoch.leading.is_established(), "the other follower was slow");
    assert_eq!(epoch.tick(TIMING.sync + 101), []);
}

/// A leader that needs a follower whose tree takes longer than `initLimit` would begin anew for ever.
#[test]
fn a_follower_that_takes_its_tree_holds_up_the_end_of_the_synchronisation() {
    let mut epoch = LeadingRig::new(&[1, 2, 3]);
    epoch.greet(1, 4);
    epoch.accepted_saved();
    epoch.hear(1, ack_epoch(3, 5));
    epoch.current_saved();
    for now in (0..=TIMING.init * 4).step_by(400) {
        epoch.leading.lives(Mono(now), ONE);
        assert_eq!(epoch.tick(now), [], "at {now} ms");
    }
    epoch.now = TIMING.init * 4;
    assert!(epoch.hear(1, FromLearner::Ack(begin(5))).contains(&LeadingOutput::UpToDate(ONE)));
}

/// Each step has `initLimit` from its own beginning.
#[test]
fn a_step_towards_the_epoch_that_takes_too_long_ends_it() {
    let mut epoch = LeadingRig::new(&[1, 2, 3]);
    epoch.now = 300;
    epoch.greet(1, 4);
    assert_eq!(epoch.tick(TIMING.init + 299), []);
    assert_eq!(epoch.tick(TIMING.init + 300), [LeadingOutput::StepDown(StepDown::EpochNotAccepted)]);
    let mut epoch = LeadingRig::new(&[1, 2, 3]);
    epoch.greet(1, 4);
    epoch.now = 300;
    epoch.accepted_saved();
    epoch.hear(1, ack_epoch(3, 5));
    assert_eq!(epoch.tick(TIMING.init + 299), []);
    assert_eq!(epoch.tick(TIMING.init + 300), [LeadingOutput::StepDown(StepDown::NotSynchronised)]);
}

#[test]
fn a_learner_before_uptodate_may_be_silent_for_init_and_sync_limit() {
    let mut epoch = LeadingRig::established();
    epoch.greet(2, 4);
    let patience = TIMING.init + TIMING.sync;
    for now in [400, 800, 1_200, patience - 1] {
        epoch.hear_at(now, 1);
        assert_eq!(epoch.tick(now), [], "at {now} ms");
    }
    let (link, server) = (LinkId(2), Some(ServerId(2)));
    assert_eq!(epoch.tick(patience), [LeadingOutput::Refuse { link, server, why: Refusal::Silent }]);
}

/// A follower that is brought to the history acknowledges with it what was proposed meanwhile, and an observer nothing.
#[test]
fn only_a_follower_that_serves_owes_its_disk() {
    let mut epoch = LeadingRig::established();
    epoch.greet(2, 4);
    epoch.hear(2, ack_epoch(3, 5));
    epoch.greet(4, 4);
    epoch.hear(4, ack_epoch(3, 5));
    epoch.hear(4, FromLearner::Ack(begin(5)));
    let first = Zxid::new(Epoch(5), 1);
    epoch.leading.proposed(Mono(0), first);
    epoch.hear(1, FromLearner::Ack(first));
    for now in [400, 800] {
        for id in [1, 4] {
            epoch.hear_at(now, id);
        }
        assert_eq!(epoch.tick(now), [], "at {now} ms");
    }
}

/// Only a voter that is brought to the history is waited for.
#[test]
fn a_stream_that_nobody_waits_for_holds_up_nothing() {
    for observer in [true, false] {
        let mut epoch = LeadingRig::new(&[1, 2, 3]);
        epoch.greet(1, 4);
        epoch.accepted_saved();
        epoch.hear(1, ack_epoch(3, 5));
        epoch.current_saved();
        let info = FromLearner::Info { id: ServerId(2), observer, accepted: Epoch(4), moves: false };
        epoch.hear(2, info);
        if observer {
            epoch.hear(2, ack_epoch(3, 5));
        }
        // The observer takes its tree; the voter has not promised the epoch yet.
        epoch.leading.lives(Mono(TIMING.init - 1), LinkId(2));
        assert_eq!(epoch.tick(TIMING.init - 1), []);
        assert_eq!(epoch.tick(TIMING.init), [LeadingOutput::StepDown(StepDown::NotSynchronised)]);
    }
}
