//! How an epoch begins, goes on and ends.

use crate::epoch::{LeadingRig, ONE, TIMING, ack_epoch, begin};
use ostler_proto::id::{Epoch, ServerId, Zxid};
use ostler_zab::{
    Mono,
    leading::{FromLearner, LeadingOutput, LinkId, Refusal, StepDown},
};

#[test]
fn e2_an_epoch_begins_with_an_epoch_that_no_quorum_has_seen() {
    let mut epoch = LeadingRig::new(&[1, 2, 3]);
    assert_eq!(epoch.took(), [], "alone it is no quorum");
    assert_eq!(epoch.greet(1, 7), [LeadingOutput::SaveAccepted(Epoch(8))]);
    assert_eq!(epoch.accepted_saved(), [LeadingOutput::LeaderInfo { link: ONE, epoch: Epoch(8) }]);
    let last = Zxid(0x3_0000_0005);
    assert_eq!(
        epoch.hear(1, ack_epoch(3, 5)),
        [LeadingOutput::SaveCurrent(Epoch(8)), LeadingOutput::Synchronise { link: ONE, last }]
    );
    assert_eq!(epoch.hear(1, FromLearner::Ack(begin(8))), [], "the leader's own disk is not there yet");
    assert_eq!(epoch.current_saved(), [LeadingOutput::Established(Epoch(8)), LeadingOutput::UpToDate(ONE)]);
}

#[test]
fn nothing_is_proposed_before_the_epoch_is_on_disk() {
    let mut epoch = LeadingRig::new(&[1, 2, 3]);
    epoch.greet(1, 4);
    assert_eq!(epoch.greet(2, 4), [], "the second follower waits like the first");
    assert_eq!(epoch.accepted_saved().len(), 2);
}

#[test]
fn a_lone_voter_is_its_own_quorum_and_goes_the_same_way() {
    let mut epoch = LeadingRig::new(&[3]);
    assert_eq!(epoch.took(), [LeadingOutput::SaveAccepted(Epoch(5))]);
    assert_eq!(epoch.accepted_saved(), [LeadingOutput::SaveCurrent(Epoch(5))]);
    assert_eq!(epoch.current_saved(), [LeadingOutput::Established(Epoch(5))]);
}

#[test]
fn a_leader_gives_way_to_a_follower_that_knows_more() {
    for ahead in [ack_epoch(3, 10), ack_epoch(4, 0)] {
        let mut epoch = LeadingRig::new(&[1, 2, 3]);
        epoch.greet(1, 4);
        epoch.accepted_saved();
        let out = epoch.hear(1, ahead);
        assert!(matches!(out[..], [LeadingOutput::Refuse { link: ONE, why: Refusal::Ahead { .. }, .. }]));
        // It comes back before the other one comes.
        epoch.leading.disconnected(ONE);
        epoch.greet(1, 5);
        assert_eq!(epoch.hear(1, FromLearner::AckEpoch { last: Zxid(0), current: None }), []);
        epoch.greet(2, 4);
        let out = epoch.hear(2, ahead);
        let why_refused =
            |out: &LeadingOutput| matches!(out, LeadingOutput::Refuse { why: Refusal::Ahead { .. }, .. });
        assert!(why_refused(&out[0]));
        assert_eq!(out[1], LeadingOutput::StepDown(StepDown::EpochNotAccepted));
    }
}

#[test]
fn a_promise_holds_for_who_comes_back() {
    let mut epoch = LeadingRig::new(&[1, 2, 3, 4, 5]);
    let promised_before = FromLearner::AckEpoch { last: Zxid(0), current: None };
    epoch.greet(1, 4);
    epoch.greet(2, 4);
    epoch.accepted_saved();
    epoch.hear(1, ack_epoch(3, 5));
    epoch.leading.disconnected(ONE);
    epoch.greet(1, 5);
    assert_eq!(epoch.hear(1, promised_before), []);
    assert_eq!(epoch.hear(2, promised_before), []);
    for (id, then) in [(4, None), (5, Some(StepDown::EpochNotAccepted))] {
        epoch.hear(
            id,
            FromLearner::Info { id: ServerId(id as i64), observer: false, accepted: Epoch(5), moves: false },
        );
        assert_eq!(epoch.hear(id, promised_before), Vec::from_iter(then.map(LeadingOutput::StepDown)));
    }
}

/// They look for a leader, and would find another one while this one waits.
#[test]
fn a_leader_steps_down_when_its_followers_leave_before_the_epoch() {
    let mut epoch = LeadingRig::new(&[1, 2, 3, 4, 5]);
    epoch.greet(1, 4);
    assert_eq!(epoch.greet(2, 4), [LeadingOutput::SaveAccepted(Epoch(5))]);
    assert_eq!(epoch.tick(1), []);
    epoch.leading.disconnected(ONE);
    assert_eq!(epoch.tick(2), [LeadingOutput::StepDown(StepDown::EpochNotAccepted)]);
    let mut epoch = LeadingRig::new(&[1, 2, 3]);
    epoch.greet(1, 4);
    epoch.accepted_saved();
    epoch.hear(1, ack_epoch(3, 5));
    epoch.current_saved();
    assert_eq!(epoch.tick(1), []);
    epoch.leading.disconnected(ONE);
    assert_eq!(epoch.tick(2), [LeadingOutput::StepDown(StepDown::NotSynchronised)]);
}

/// A tree may take longer to send than anything else may take.
#[test]
fn a_learner_that_takes_bytes_is_alive() {
    let mut epoch = LeadingRig::established();
    epoch.greet(2, 5);
    assert!(matches!(epoch.hear(2, ack_epoch(3, 5))[..], [LeadingOutput::Synchronise { .. }]));
    for now in (0..=TIMING.init * 4).step_by(400) {
        epoch.leading.lives(Mono(now), LinkId(2));
        epoch.hear_at(now, 1);
        assert_eq!(epoch.tick(now), []);
    }
    epoch.hear_at(TIMING.init * 6, 1);
    let out = epoch.tick(TIMING.init * 6);
    assert!(
        matches!(out[..], [LeadingOutput::Refuse { link: LinkId(2), why: Refusal::Silent, .. }]),
        "{out:?}"
    );
}

/// A voter that was refused because its history is newer comes back at once, and cannot promise. The voters that would
/// have to take its place may be away for good, or may not vote before a change commits.
#[test]
fn a_voter_that_cannot_promise_is_not_waited_for() {
    for (others_come, then) in [(true, None), (false, Some(StepDown::EpochNotAccepted))] {
        let mut epoch = LeadingRig::new(&[1, 2, 3, 4, 5]);
        epoch.greet(1, 4);
        epoch.greet(2, 4);
        epoch.accepted_saved();
        assert_eq!(epoch.hear(2, ack_epoch(3, 5)), []);
        epoch.hear(1, ack_epoch(3, 10));
        epoch.leading.disconnected(ONE);
        epoch.greet(1, 5);
        assert_eq!(epoch.hear(1, FromLearner::AckEpoch { last: Zxid(0), current: None }), []);
        if others_come {
            epoch.hear(
                4,
                FromLearner::Info { id: ServerId(4), observer: false, accepted: Epoch(4), moves: false },
            );
        }
        assert_eq!(epoch.tick(1), Vec::from_iter(then.map(LeadingOutput::StepDown)));
    }
}

/// Server 1 may have acknowledged to another leader what this one never got: nobody knows any more.
#[test]
fn a_follower_that_has_lost_its_data_does_not_make_an_epoch() {
    let nothing = |current| FromLearner::AckEpoch { last: Zxid::ZERO, current };
    for lost in [nothing(Some(Epoch(0))), nothing(None)] {
        let mut epoch = LeadingRig::new(&[1, 2, 3]);
        epoch.leading.set_servers_with_data([ServerId(1), ServerId(2)].into());
        epoch.greet(1, 0);
        epoch.accepted_saved();
        assert_eq!(epoch.hear(1, lost), [LeadingOutput::DataLost(ServerId(1))]);
        epoch.greet(2, 0);
        let out = epoch.hear(2, ack_epoch(3, 5));
        assert_eq!(out.len(), 3, "the other one counts, and both are brought to the history: {out:?}");
        epoch.current_saved();
        assert_eq!(epoch.hear(1, FromLearner::Ack(begin(5))), [], "its copy does not make the epoch either");
        assert!(!epoch.leading.is_established());
        epoch.hear(2, FromLearner::Ack(begin(5)));
        assert!(epoch.leading.is_established());
        epoch.leading.disconnected(LinkId(2));
        assert_eq!(epoch.tick(1), [], "by now it has all that was committed");
    }
}

#[test]
fn a_follower_that_never_had_data_counts() {
    for known in [&[2][..], &[1, 2]] {
        let mut epoch = LeadingRig::new(&[1, 2, 3]);
        epoch.leading.set_servers_with_data(known.iter().copied().map(ServerId).collect());
        epoch.greet(1, 4);
        epoch.accepted_saved();
        let current = if known.contains(&1) { Epoch(1) } else { Epoch(0) };
        let out = epoch.hear(1, FromLearner::AckEpoch { last: Zxid::ZERO, current: Some(current) });
        assert!(
            matches!(out[..], [LeadingOutput::SaveCurrent(_), LeadingOutput::Synchronise { .. }]),
            "{out:?}"
        );
    }
}

#[test]
fn observers_and_repeated_promises_do_not_count() {
    let mut epoch = LeadingRig::new(&[1, 2, 3]);
    assert_eq!(epoch.greet(4, 9), [], "an observer is no quorum with the leader, but its epoch is heeded");
    assert_eq!(epoch.greet(1, 4), [LeadingOutput::SaveAccepted(Epoch(10))]);
    epoch.accepted_saved();
    let again = FromLearner::AckEpoch { last: Zxid(0x3_0000_0005), current: None };
    assert_eq!(epoch.hear(1, again), [], "it may have promised this epoch to another");
    assert_eq!(epoch.hear(4, ack_epoch(3, 5)), []);
}

#[test]
fn a_late_learner_joins_without_a_wait() {
    let mut epoch = LeadingRig::established();
    let link = LinkId(2);
    assert_eq!(epoch.greet(2, 1), [LeadingOutput::LeaderInfo { link, epoch: Epoch(5) }]);
    let last = Zxid(0x9_0000_0001);
    let out = epoch.hear(2, ack_epoch(9, 1));
    assert_eq!(out, [LeadingOutput::Synchronise { link, last }], "the history is settled, whatever it has");
    assert_eq!(epoch.leading.forwarding().count(), 2);
    assert_eq!(epoch.hear(2, FromLearner::Ack(begin(5))), [LeadingOutput::UpToDate(link)]);
    assert_eq!(epoch.hear(2, FromLearner::Ack(begin(5))), [], "the second acknowledgement says nothing new");
    let zxid = Zxid(0x5_0000_0001);
    let from = ServerId(2);
    assert_eq!(epoch.hear(2, FromLearner::Ack(zxid)), [LeadingOutput::Acknowledged { from, zxid }]);
}

#[test]
fn an_acknowledgement_of_another_epoch_does_not_make_this_one() {
    let mut epoch = LeadingRig::new(&[1, 2, 3]);
    epoch.greet(1, 4);
    epoch.accepted_saved();
    epoch.hear(1, ack_epoch(3, 5));
    epoch.current_saved();
    assert_eq!(epoch.hear(1, FromLearner::Ack(begin(4))), []);
    assert!(!epoch.leading.is_established());
    assert_eq!(epoch.tick(1000), [LeadingOutput::StepDown(StepDown::NotSynchronised)]);
}

/// Java's followers acknowledge what came with the history in a thread of its own.
#[test]
fn an_acknowledgement_that_overtakes_that_of_the_history_does_no_harm() {
    let mut epoch = LeadingRig::new(&[1, 2, 3]);
    epoch.greet(1, 4);
    epoch.accepted_saved();
    epoch.hear(1, ack_epoch(3, 5));
    epoch.current_saved();
    assert_eq!(epoch.hear(1, FromLearner::Ack(Zxid::new(Epoch(3), 6))), []);
    assert!(!epoch.leading.is_established());
    epoch.hear(1, FromLearner::Ack(begin(5)));
    assert!(epoch.leading.is_established());
}

#[test]
fn e11_a_silent_follower_is_dropped_and_a_lost_quorum_ends_the_epoch() {
    let mut epoch = LeadingRig::established();
    epoch.now = 400;
    assert_eq!(epoch.hear(1, FromLearner::SignOfLife), []);
    assert_eq!(epoch.tick(899), []);
    assert_eq!(
        epoch.tick(900),
        [
            LeadingOutput::Refuse { link: ONE, server: Some(ServerId(1)), why: Refusal::Silent },
            LeadingOutput::StepDown(StepDown::QuorumLost)
        ]
    );
    let mut epoch = LeadingRig::established();
    epoch.leading.disconnected(ONE);
    assert_eq!(epoch.tick(1), [LeadingOutput::StepDown(StepDown::QuorumLost)]);
}

/// It says nothing of the new epoch's proposals.
#[test]
fn an_acknowledgement_of_an_earlier_epoch_before_the_history_does_not_count() {
    let mut epoch = LeadingRig::established();
    epoch.greet(2, 4);
    epoch.hear(2, ack_epoch(3, 5));
    assert_eq!(epoch.hear(2, FromLearner::Ack(Zxid::new(Epoch(3), 7))), []);
    assert_eq!(epoch.hear(2, FromLearner::Ack(begin(5))), [LeadingOutput::UpToDate(LinkId(2))]);
}

#[test]
fn an_acknowledgement_before_the_history_counts_once_the_history_is_acknowledged() {
    let mut epoch = LeadingRig::established();
    let two = LinkId(2);
    epoch.greet(2, 4);
    epoch.hear(2, ack_epoch(3, 5));
    let early = Zxid::new(Epoch(5), 7);
    assert_eq!(epoch.hear(2, FromLearner::Ack(early)), [], "nobody knows what it has before that");
    assert_eq!(
        epoch.hear(2, FromLearner::Ack(begin(5))),
        [LeadingOutput::UpToDate(two), LeadingOutput::Acknowledged { from: ServerId(2), zxid: early }]
    );
}

#[test]
fn a_follower_with_a_stalled_disk_is_refused_though_it_answers() {
    let at = |counter| Zxid::new(Epoch(5), counter);
    let stands = |zxid| LeadingOutput::Refuse {
        link: ONE,
        server: Some(ServerId(1)),
        why: Refusal::DiskStalled(zxid),
    };
    let mut epoch = LeadingRig::established();
    epoch.leading.proposed(Mono(100), at(1));
    epoch.leading.proposed(Mono(300), at(2));
    epoch.now = 590;
    epoch.hear(1, FromLearner::Ack(at(1)));
    assert_eq!(epoch.tick(799), [], "it has written the first in time");
    assert_eq!(epoch.tick(800)[0], stands(at(2)));
    let mut epoch = LeadingRig::established();
    epoch.leading.proposed(Mono(100), at(1));
    epoch.leading.proposed(Mono(300), at(2));
    epoch.now = 590;
    epoch.hear(1, FromLearner::Ack(at(2)));
    assert_eq!(epoch.tick(1_000), [], "nothing is left");
}

#[test]
fn a_learner_with_an_accepted_epoch_too_far_ahead_is_refused() {
    let far_away = |accepted| {
        let why = Refusal::EpochTooFar { accepted: Epoch(accepted), own: Epoch(4) };
        [LeadingOutput::Refuse { link: ONE, server: Some(ServerId(1)), why }]
    };
    let mut epoch = LeadingRig::new(&[1, 2, 3]);
    for accepted in [u32::MAX, Epoch::LAST.0, Epoch::LAST.0 - 1, 5 + (1 << 20)] {
        assert_eq!(epoch.greet(1, accepted), far_away(accepted));
    }
    assert_eq!(epoch.greet(2, 4), [LeadingOutput::SaveAccepted(Epoch(5))]);
    assert_eq!(epoch.greet(1, u32::MAX), far_away(u32::MAX), "nor later");
}

#[test]
fn a_server_that_has_accepted_the_last_epoch_does_not_lead() {
    let mut epoch = LeadingRig::with_accepted(&[1, 2, 3], Epoch::LAST);
    assert_eq!(epoch.greet(1, 4), [LeadingOutput::StepDown(StepDown::NoEpochLeft)]);
    let mut epoch = LeadingRig::with_accepted(&[1, 2, 3], Epoch(Epoch::LAST.0 - 1));
    assert_eq!(epoch.greet(1, Epoch::LAST.0 - 1), [LeadingOutput::SaveAccepted(Epoch::LAST)]);
}

#[test]
fn a_leader_without_followers_steps_down() {
    let mut epoch = LeadingRig::new(&[1, 2, 3]);
    assert_eq!(epoch.tick(499), []);
    assert_eq!(epoch.tick(500), [LeadingOutput::StepDown(StepDown::NoFollowers)]);
}

#[test]
fn two_servers_with_one_id_are_told_apart() {
    let mut epoch = LeadingRig::established();
    for id in [1, 3] {
        let info = FromLearner::Info { id: ServerId(id), observer: false, accepted: Epoch(5), moves: false };
        let refused =
            LeadingOutput::Refuse { link: LinkId(9), server: Some(ServerId(id)), why: Refusal::SameId };
        assert_eq!(epoch.hear(9, info), [refused]);
    }
    assert!(epoch.leading.is_established());
}

#[test]
fn words_out_of_turn_end_the_connection() {
    let refused = |server| [LeadingOutput::Refuse { link: ONE, server, why: Refusal::OutOfTurn }];
    let mut epoch = LeadingRig::new(&[1, 2, 3]);
    assert_eq!(epoch.hear(1, FromLearner::Ack(Zxid(1))), refused(None), "no greeting");
    epoch.greet(1, 4);
    assert_eq!(epoch.hear(1, ack_epoch(3, 5)), refused(Some(ServerId(1))), "no epoch was proposed");
    assert_eq!(epoch.hear(1, FromLearner::Ack(begin(5))), refused(Some(ServerId(1))), "nothing was sent");
}
