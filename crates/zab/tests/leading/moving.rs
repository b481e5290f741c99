//! A leader that moves on to the next epoch in place.

use crate::epoch::{LeadingRig, ack_epoch, begin};
use ostler_proto::id::{Epoch, ServerId};
use ostler_zab::{
    Electorate, Quorum,
    leading::{FromLearner, LeadingOutput as Out, LinkId, Refusal},
};

const SIX: Epoch = Epoch(6);

/// These learners follow in epoch 5, and can move; from 4 on they are observers.
fn led(links: &[u64]) -> LeadingRig {
    let mut rig = LeadingRig::new(&[1, 2, 3]);
    for link in links {
        rig.hear(*link, info(*link, 4, true));
    }
    rig.accepted_saved();
    for link in links {
        rig.hear(*link, ack_epoch(3, 5));
        rig.hear(*link, FromLearner::Ack(begin(5)));
    }
    rig.current_saved();
    assert!(rig.leading.is_established());
    rig
}

fn info(link: u64, accepted: u32, moves: bool) -> FromLearner {
    FromLearner::Info { id: ServerId(link as i64), observer: link > 3, accepted: Epoch(accepted), moves }
}

fn leader_info(link: u64) -> Out {
    Out::LeaderInfo { link: LinkId(link), epoch: SIX }
}

#[test]
fn the_next_epoch_is_used_only_when_a_quorum_has_promised_it() {
    let mut rig = led(&[1, 2, 4]);
    assert_eq!(rig.begin_move(), [Out::SaveAccepted(SIX)]);
    assert_eq!(rig.begin_move(), [], "it has begun");
    assert_eq!(rig.hear(1, ack_epoch(5, 1)), [], "its own disk does not have the epoch yet");
    let mut rig = led(&[1, 2, 4]);
    rig.begin_move();
    assert_eq!(rig.accepted_saved(), [leader_info(1), leader_info(2)], "an observer is told at the border");
    assert_eq!(rig.hear(4, ack_epoch(5, 1)), [], "an observer's promise does not count");
    let promised_before = FromLearner::AckEpoch { last: begin(5), current: None };
    assert_eq!(rig.hear(1, promised_before), [], "nor one that was given before");
    assert_eq!(rig.hear(1, ack_epoch(4, 1)), [], "nor an answer from before this epoch");
    assert_eq!(rig.leading.epoch(), Some(Epoch(5)));
    assert_eq!(rig.hear(2, ack_epoch(5, 1)), [Out::MoveOn(SIX)]);
    assert_eq!(rig.leading.epoch(), Some(SIX));
    assert_eq!(rig.hear(1, ack_epoch(5, 1)), [], "late");
}

#[test]
fn the_move_ends_when_a_quorum_has_the_border_on_disk_and_all_before_it_is_committed() {
    let mut rig = led(&[1, 2, 4]);
    rig.begin_move();
    rig.accepted_saved();
    rig.hear(1, ack_epoch(5, 1));
    assert_eq!(rig.hear(1, FromLearner::Ack(begin(5))), [], "of the epoch before");
    assert_eq!(rig.hear(4, FromLearner::Ack(begin(6))), [], "an observer");
    assert_eq!(rig.hear(1, FromLearner::Ack(begin(6))), [], "one of three");
    assert!(!rig.leading.is_border_on_disk());
    assert_eq!(rig.border_committed(), [], "not yet");
    assert_eq!(rig.current_saved(), [Out::BorderOnDisk(SIX)]);
    assert!(rig.leading.is_moving());
    let told = [
        Out::UpToDate(LinkId(1)),
        Out::UpToDate(LinkId(2)),
        Out::MoveObserver { link: LinkId(4), epoch: SIX },
    ];
    assert_eq!(rig.border_committed(), told);
    assert!(!rig.leading.is_moving() && rig.leading.is_established());
    assert_eq!(rig.hear(2, FromLearner::Ack(begin(6))), [], "late");
    assert_eq!(rig.begin_move(), [Out::SaveAccepted(Epoch(7))]);
}

#[test]
fn only_the_leaders_own_acknowledgement_comes_from_its_disk() {
    let mut rig = led(&[1, 2]);
    rig.begin_move();
    rig.accepted_saved();
    rig.hear(1, ack_epoch(5, 1));
    assert_eq!(rig.current_saved(), [], "its disk is one of three");
    assert_eq!(rig.hear(1, FromLearner::Ack(begin(6))), [Out::BorderOnDisk(SIX)]);
}

#[test]
fn a_move_waits_until_all_learners_are_synchronized_and_can_move() {
    let mut rig = led(&[1, 2]);
    rig.hear(4, info(4, 5, true));
    assert_eq!(rig.begin_move(), [], "4 is not synchronized");
    rig.hear(4, ack_epoch(5, 1));
    rig.hear(4, FromLearner::Ack(begin(5)));
    assert!(!rig.begin_move().is_empty());

    let mut rig = led(&[1, 2]);
    rig.hear(4, info(4, 5, false));
    rig.hear(4, ack_epoch(5, 1));
    rig.hear(4, FromLearner::Ack(begin(5)));
    assert_eq!(rig.begin_move(), [], "4 cannot");
    rig.leading.disconnected(LinkId(4));
    assert!(!rig.begin_move().is_empty());
}

#[test]
fn no_move_begins_while_the_electorate_changes_or_without_a_quorum() {
    let voters = || Quorum::majority([1, 2, 3].map(ServerId));
    let mut rig = led(&[1, 2]);
    rig.leading.set_electorate(Electorate { current: voters(), next: Some(voters()) });
    assert_eq!(rig.begin_move(), []);
    rig.leading.set_electorate(Electorate::of(voters()));
    for link in [1, 2] {
        rig.leading.disconnected(LinkId(link));
    }
    assert_eq!(rig.begin_move(), []);
}

/// A change of the electorate that comes after the beginning needs both quorums.
#[test]
fn an_epoch_needs_the_promises_of_both_electorates() {
    let of = |ids: [i64; 3]| Quorum::majority(ids.map(ServerId));
    let mut rig = led(&[1, 2]);
    rig.begin_move();
    rig.accepted_saved();
    rig.leading.set_electorate(Electorate { current: of([1, 2, 3]), next: Some(of([7, 8, 3])) });
    assert_eq!(rig.hear(1, ack_epoch(5, 1)), []);
    rig.leading.set_electorate(Electorate { current: of([1, 2, 3]), next: Some(of([2, 8, 3])) });
    assert_eq!(rig.hear(2, ack_epoch(5, 1)), [Out::MoveOn(SIX)]);
}

#[test]
fn a_learner_that_comes_during_a_move_gets_the_new_epoch_after_it() {
    let mut rig = led(&[1]);
    rig.begin_move();
    assert_eq!(rig.hear(2, info(2, 6, false)), [], "it waits");
    assert_eq!(rig.accepted_saved(), [leader_info(1)], "it is not asked for a promise");
    assert_eq!(rig.hear(1, ack_epoch(5, 1)), [Out::MoveOn(SIX)]);
    assert!(rig.leading.active_followers().eq([LinkId(1)]));
    rig.hear(1, FromLearner::Ack(begin(6)));
    rig.current_saved();
    assert_eq!(rig.border_committed(), [Out::UpToDate(LinkId(1)), leader_info(2)]);
    let synchronise = rig.hear(2, FromLearner::AckEpoch { last: begin(5), current: None });
    assert_eq!(synchronise, [Out::Synchronise { link: LinkId(2), last: begin(5) }]);
}

#[test]
fn an_observer_master_takes_along_the_observers_that_can_move_and_sends_the_others_away() {
    let mut rig = LeadingRig::relaying(5);
    for (link, moves) in [(4, true), (5, false), (6, true)] {
        rig.hear(link, info(link, 5, moves));
        if link < 6 {
            rig.hear(link, ack_epoch(5, 1));
            rig.hear(link, FromLearner::Ack(begin(5)));
        }
    }
    let refuse = |id: u64| Out::Refuse {
        link: LinkId(id),
        server: Some(ServerId(id as i64)),
        why: Refusal::EpochMoved,
    };
    let mover = Out::MoveObserver { link: LinkId(4), epoch: SIX };
    assert_eq!(rig.relay_move(SIX), [refuse(5), refuse(6), mover], "6 is not synchronized");
    assert_eq!(rig.hear(6, info(6, 5, true)), [leader_info(6)]);
}

#[test]
fn a_promise_on_a_connection_that_is_replaced_does_not_count() {
    use ostler_zab::leading::{AddressMatch, LearnerOrigin};
    let mut rig = led(&[1]);
    rig.begin_move();
    rig.hear(1, ack_epoch(5, 1));
    let better = LearnerOrigin { place: AddressMatch::AtHome, linked: true };
    let came = rig.hear_from(9, better, info(1, 5, true));
    assert!(matches!(came[..], [Out::Refuse { why: Refusal::Replaced, .. }]), "{came:?}");
    assert_eq!(rig.accepted_saved(), []);
}
