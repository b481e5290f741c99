//! The learners that count at a leader, and the texts of its refusals.

use crate::epoch::{LeadingRig, ONE, TIMING, ack_epoch, begin};
use ostler_proto::id::{Epoch, ServerId, Zxid};
use ostler_zab::{
    Electorate, Mono, Quorum,
    leading::{FromLearner, Leading, LeadingOutput, LinkId, Refusal, StepDown},
};

fn come(epoch: &mut LeadingRig, id: i64, observer: bool) -> Vec<LeadingOutput> {
    epoch.hear(id as u64, FromLearner::Info { id: ServerId(id), observer, accepted: Epoch(4), moves: false })
}

/// A server that has a vote by the configuration, and does not know it yet.
#[test]
fn a_voter_that_observes_counts_for_nothing() {
    let mut epoch = LeadingRig::new(&[1, 2, 3]);
    assert_eq!(come(&mut epoch, 1, true), []);
    assert_eq!(come(&mut epoch, 2, false), [LeadingOutput::SaveAccepted(Epoch(5))]);
    assert_eq!(epoch.accepted_saved().len(), 2);
    assert_eq!(epoch.hear(1, ack_epoch(3, 5)), []);
    assert_eq!(epoch.hear(2, ack_epoch(3, 5))[0], LeadingOutput::SaveCurrent(Epoch(5)));
    epoch.current_saved();
    assert_eq!(epoch.hear(1, FromLearner::Ack(begin(5))), []);
    assert!(!epoch.leading.is_established());
    epoch.hear(2, FromLearner::Ack(begin(5)));
    assert!(epoch.leading.is_established());
    let ids = |ids: Vec<ServerId>| ids.into_iter().map(|id| id.0).collect::<Vec<_>>();
    assert_eq!(ids(epoch.leading.synced().collect()), [1, 2]);
    assert_eq!(ids(epoch.leading.synced_followers().collect()), [2]);
    epoch.leading.disconnected(LinkId(2));
    assert_eq!(epoch.tick(1), [LeadingOutput::StepDown(StepDown::QuorumLost)]);
}

#[test]
fn a_voter_that_observes_is_not_here_before_the_epoch_either() {
    let mut epoch = LeadingRig::new(&[1, 2, 3]);
    come(&mut epoch, 1, true);
    come(&mut epoch, 2, false);
    assert_eq!(epoch.tick(1), []);
    epoch.leading.disconnected(LinkId(2));
    assert_eq!(epoch.tick(2), [LeadingOutput::StepDown(StepDown::EpochNotAccepted)]);
}

/// From its first word to its last one.
#[test]
fn learners_are_counted_by_how_far_they_are() {
    let mut epoch = LeadingRig::established();
    let counts = |epoch: &LeadingRig| {
        let of = epoch.leading.counts();
        (of.all, of.followers, of.observers)
    };
    assert_eq!(counts(&epoch), (1, 1, 0));
    for (id, last) in [(2, (2, 2, 0)), (4, (3, 2, 1))] {
        let before = counts(&epoch);
        epoch.greet(id, 4);
        let greeted = (before.0 + 1, before.1, before.2);
        assert_eq!(counts(&epoch), greeted);
        epoch.hear(id, ack_epoch(3, 5));
        assert_eq!(counts(&epoch), greeted, "it does not have the history");
        assert!(!epoch.leading.has_history(LinkId(id)));
        epoch.hear(id, FromLearner::Ack(begin(5)));
        assert!(epoch.leading.has_history(LinkId(id)));
        assert_eq!(counts(&epoch), last);
    }
    let forwarded: Vec<(LinkId, bool)> = epoch.leading.forwarding().collect();
    assert_eq!(forwarded, [(ONE, false), (LinkId(2), false), (LinkId(4), true)]);
    assert!(epoch.leading.links().eq([1, 2, 4].map(LinkId)));
    assert_eq!(epoch.leading.server_of(LinkId(4)), Some(ServerId(4)));
    assert_eq!(epoch.leading.server_of(LinkId(5)), None);
    assert!(!epoch.leading.has_history(LinkId(5)), "nobody has said a word there");
    epoch.leading.disconnected(LinkId(4));
    assert_eq!(counts(&epoch), (2, 2, 0));
}

#[test]
fn an_epoch_has_its_epoch_once_that_is_decided() {
    let mut epoch = LeadingRig::new(&[1, 2, 3]);
    assert_eq!(epoch.leading.epoch(), None);
    epoch.greet(1, 4);
    assert_eq!(epoch.leading.epoch(), Some(Epoch(5)));
}

#[test]
fn a_follower_with_observers_is_their_leader_for_as_long_as_it_follows() {
    let mut relaying = Leading::relaying(ServerId(1), Epoch(5), TIMING);
    assert!(relaying.is_established());
    assert_eq!(relaying.epoch(), Some(Epoch(5)));
    let mut out = Vec::new();
    relaying.tick(Mono(TIMING.init * 9), &mut out);
    assert_eq!(out, [], "it depends on nobody");
    let (link, now) = (LinkId(4), Mono(0));
    let info = FromLearner::Info { id: ServerId(4), observer: true, accepted: Epoch(5), moves: false };
    relaying.heard(now, link, info, &mut out);
    assert_eq!(out, [LeadingOutput::LeaderInfo { link, epoch: Epoch(5) }]);
    out.clear();
    let last = begin(5);
    relaying.heard(now, link, FromLearner::AckEpoch { last, current: None }, &mut out);
    assert_eq!(out, [LeadingOutput::Synchronise { link, last }]);
    out.clear();
    relaying.heard(now, link, FromLearner::Ack(last), &mut out);
    assert_eq!(out, [LeadingOutput::UpToDate(link)]);
}

#[test]
fn a_second_info_on_one_connection_is_refused() {
    let mut epoch = LeadingRig::new(&[1, 2, 3, 4, 5]);
    epoch.greet(1, 4);
    let other = FromLearner::Info { id: ServerId(2), observer: false, accepted: Epoch(4), moves: false };
    let why = Refusal::SameId;
    let refused = LeadingOutput::Refuse { link: ONE, server: Some(ServerId(2)), why };
    assert_eq!(epoch.hear(1, other), [refused]);
}

#[test]
fn an_epoch_that_an_ensemble_can_have_come_to_is_believed() {
    let far = 4 + (1 << 20);
    assert_eq!(LeadingRig::new(&[1, 2, 3]).greet(1, far), [LeadingOutput::SaveAccepted(Epoch(far + 1))]);
    assert_eq!(LeadingRig::new(&[1, 2, 3]).greet(1, 2), [LeadingOutput::SaveAccepted(Epoch(5))]);
}

/// A promise that counts twice would make two leaders of one epoch.
#[test]
fn a_promise_of_an_epoch_that_was_accepted_before_makes_no_epoch() {
    let mut epoch = LeadingRig::new(&[1, 2, 3]);
    epoch.greet(1, 4);
    epoch.greet(2, 4);
    epoch.accepted_saved();
    let before = |last| FromLearner::AckEpoch { last, current: None };
    assert_eq!(epoch.hear(1, before(Zxid::new(Epoch(3), 5))), []);
    assert_eq!(
        epoch.hear(2, before(Zxid::new(Epoch(3), 5))),
        [LeadingOutput::StepDown(StepDown::EpochNotAccepted)]
    );
    assert!(epoch.leading.synced().next().is_none());
}

/// With a change of the ensemble others decide.
#[test]
fn a_leader_counts_those_who_decide_now() {
    let mut epoch = LeadingRig::new(&[1, 2, 3]);
    epoch.greet(1, 4);
    epoch.accepted_saved();
    epoch.hear(1, ack_epoch(3, 5));
    epoch.current_saved();
    epoch.hear(1, FromLearner::Ack(begin(5)));
    assert_eq!(epoch.tick(1), []);
    epoch.leading.set_electorate(Electorate::of(Quorum::majority([1, 2, 3, 4, 5].map(ServerId))));
    assert_eq!(epoch.tick(2), [LeadingOutput::StepDown(StepDown::QuorumLost)]);
}

#[test]
fn each_refusal_says_what_to_look_at() {
    let zxid = Zxid::new(Epoch(2), 7);
    let ahead = Refusal::Ahead { current: Epoch(2), last: zxid };
    let too_far = Refusal::EpochTooFar { accepted: Epoch(9_999), own: Epoch(4) };
    for (refusal, part) in [
        (Refusal::SameId, "same myid"),
        (ahead, "epoch 2, zxid 0x200000007"),
        (too_far, "epoch 9999"),
        (Refusal::DiskStalled(zxid), "look at its disk"),
        (Refusal::Silent, "for too long"),
        (Refusal::OutOfTurn, "does not belong here"),
    ] {
        assert!(refusal.to_string().contains(part), "{refusal}");
    }
}
