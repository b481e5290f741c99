//! Learners that come with the id of another.

use crate::epoch::{LeadingRig, TIMING, ack_epoch, begin};
use ostler_proto::id::{Epoch, ServerId};
use ostler_zab::{
    Mono,
    leading::{AddressMatch, FromLearner, LeadingOutput, LearnerOrigin, LinkId, Refusal},
};

const OLD: LinkId = LinkId(9);
const NEW: LinkId = LinkId(10);

fn came(epoch: &mut LeadingRig, link: LinkId, place: AddressMatch, linked: bool) -> Vec<LeadingOutput> {
    let info = FromLearner::Info { id: ServerId(2), observer: false, accepted: Epoch(5), moves: false };
    let mut out = Vec::new();
    epoch.leading.heard_from(Mono(epoch.now), link, LearnerOrigin { place, linked }, info, &mut out);
    out
}

fn refused(link: LinkId, why: Refusal) -> LeadingOutput {
    LeadingOutput::Refuse { link, server: Some(ServerId(2)), why }
}

/// The history is taken over.
fn joins(epoch: &mut LeadingRig, link: LinkId) {
    epoch.hear(link.0, ack_epoch(3, 5));
    epoch.hear(link.0, FromLearner::Ack(begin(5)));
    assert!(epoch.leading.has_history(link));
}

#[test]
fn a_learner_at_a_configured_address_replaces_one_elsewhere() {
    use AddressMatch::{AtHome, Elsewhere, Unclear};
    for (old, new, stays) in [
        ((Elsewhere, true), (AtHome, true), false),
        ((Elsewhere, true), (AtHome, false), false),
        ((Unclear, true), (AtHome, true), false),
        ((Elsewhere, true), (Unclear, true), false),
        ((AtHome, true), (AtHome, true), true),
        ((AtHome, false), (AtHome, true), false),
        ((AtHome, true), (AtHome, false), true),
        ((AtHome, false), (Elsewhere, true), true),
        // Addresses are translated: both may be.
        ((Elsewhere, true), (Elsewhere, true), true),
        ((Elsewhere, false), (Elsewhere, true), false),
    ] {
        let mut epoch = LeadingRig::established();
        came(&mut epoch, OLD, old.0, old.1);
        joins(&mut epoch, OLD);
        let out = came(&mut epoch, NEW, new.0, new.1);
        let expected = if stays { refused(NEW, Refusal::SameId) } else { refused(OLD, Refusal::Replaced) };
        assert_eq!(out[0], expected, "{old:?} {new:?}");
        assert_eq!(epoch.leading.server_of(NEW).is_none(), stays);
        assert_eq!(epoch.leading.server_of(OLD).is_some(), stays);
    }
}

#[test]
fn a_learner_without_progress_gives_way_though_it_answers() {
    let mut epoch = LeadingRig::established();
    let come = |epoch: &mut LeadingRig, link| came(epoch, link, AddressMatch::AtHome, true);
    come(&mut epoch, OLD);
    for now in (0..1_000).step_by(250) {
        epoch.hear_at(now, OLD.0);
        assert_eq!(come(&mut epoch, NEW), [refused(NEW, Refusal::SameId)], "it may be the real one's disk");
    }
    epoch.hear_at(1_000, OLD.0);
    assert_eq!(come(&mut epoch, NEW)[0], refused(OLD, Refusal::Replaced));
    // A tree that moves is a way on.
    epoch.hear(NEW.0, ack_epoch(3, 5));
    epoch.now = 2_500;
    epoch.leading.lives(Mono(2_500), NEW);
    assert_eq!(come(&mut epoch, OLD), [refused(OLD, Refusal::SameId)]);
    epoch.hear(NEW.0, FromLearner::Ack(begin(5)));
    epoch.now = 60_000;
    assert_eq!(come(&mut epoch, OLD), [refused(OLD, Refusal::SameId)], "it has the history");
}

#[test]
fn words_alone_keep_nobody_here() {
    for (accepts_epoch, limit) in
        [(false, TIMING.init + TIMING.sync), (true, 4 * (TIMING.init + TIMING.sync))]
    {
        let mut epoch = LeadingRig::established();
        came(&mut epoch, OLD, AddressMatch::AtHome, true);
        if accepts_epoch {
            epoch.hear(OLD.0, ack_epoch(3, 5));
        }
        epoch.hear_at(limit - 1, OLD.0);
        epoch.hear_at(limit - 1, 1);
        assert_eq!(epoch.tick(limit - 1), []);
        assert_eq!(epoch.tick(limit), [refused(OLD, Refusal::NoProgress)]);
    }
}

#[test]
fn a_promise_in_the_name_of_a_replaced_learner_does_not_count() {
    let mut epoch = LeadingRig::new(&[1, 2, 3, 4, 5]);
    epoch.greet(1, 4);
    let info = FromLearner::Info { id: ServerId(2), observer: false, accepted: Epoch(4), moves: false };
    epoch.hear(OLD.0, info);
    epoch.accepted_saved();
    epoch.hear(OLD.0, ack_epoch(3, 5));
    came(&mut epoch, NEW, AddressMatch::AtHome, true);
    assert_eq!(epoch.hear(1, ack_epoch(3, 5)), [], "1 and 3 of five");
    assert_eq!(epoch.hear(NEW.0, ack_epoch(3, 5))[0], LeadingOutput::SaveCurrent(Epoch(5)));
}

#[test]
fn those_without_a_vote_on_their_way_to_the_history_are_counted() {
    let mut epoch = LeadingRig::established();
    let come = |epoch: &mut LeadingRig, id: i64| {
        let info = FromLearner::Info { id: ServerId(id), observer: true, accepted: Epoch(5), moves: false };
        epoch.hear(id as u64, info).pop().unwrap()
    };
    for id in 100..355 {
        assert!(matches!(come(&mut epoch, id), LeadingOutput::LeaderInfo { .. }));
    }
    // Learners with the history, and voters, are not counted.
    joins(&mut epoch, LinkId(100));
    (355..357)
        .for_each(|id| assert!(matches!(come(&mut epoch, id), LeadingOutput::LeaderInfo { .. }), "{id}"));
    let why = Refusal::TooMany(256);
    let refused = LeadingOutput::Refuse { link: LinkId(357), server: Some(ServerId(357)), why };
    assert_eq!(come(&mut epoch, 357), refused);
    assert!(matches!(come(&mut epoch, 2), LeadingOutput::LeaderInfo { .. }));
}
