//! Learners that come with the id of another.

use crate::reign::{Reign, TIMING, ack_epoch, begin};
use ostler_proto::id::{Epoch, ServerId};
use ostler_zab::{
    Mono,
    leading::{FromLearner, LeadingOutput, LinkId, Place, Refusal, Whence},
};

const OLD: LinkId = LinkId(9);
const NEW: LinkId = LinkId(10);

fn came(reign: &mut Reign, link: LinkId, place: Place, linked: bool) -> Vec<LeadingOutput> {
    let info = FromLearner::Info { id: ServerId(2), observer: false, accepted: Epoch(5) };
    let mut out = Vec::new();
    reign.leading.heard_from(Mono(reign.now), link, Whence { place, linked }, info, &mut out);
    out
}

fn refused(link: LinkId, why: Refusal) -> LeadingOutput {
    LeadingOutput::Refuse { link, server: Some(ServerId(2)), why }
}

/// The history is taken over.
fn joins(reign: &mut Reign, link: LinkId) {
    reign.hear(link.0, ack_epoch(3, 5));
    reign.hear(link.0, FromLearner::Ack(begin(5)));
    assert!(reign.leading.has_history(link));
}

#[test]
fn who_is_where_the_configuration_has_it_takes_the_place_of_who_is_not() {
    use Place::{AtHome, Elsewhere, Unclear};
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
        let mut reign = Reign::established();
        came(&mut reign, OLD, old.0, old.1);
        joins(&mut reign, OLD);
        let out = came(&mut reign, NEW, new.0, new.1);
        let expected = if stays { refused(NEW, Refusal::SameId) } else { refused(OLD, Refusal::Replaced) };
        assert_eq!(out[0], expected, "{old:?} {new:?}");
        assert_eq!(reign.leading.server_of(NEW).is_none(), stays);
        assert_eq!(reign.leading.server_of(OLD).is_some(), stays);
    }
}

#[test]
fn who_does_not_come_further_gives_way_though_it_speaks() {
    let mut reign = Reign::established();
    let come = |reign: &mut Reign, link| came(reign, link, Place::AtHome, true);
    come(&mut reign, OLD);
    for now in (0..1_000).step_by(250) {
        reign.hear_at(now, OLD.0);
        assert_eq!(come(&mut reign, NEW), [refused(NEW, Refusal::SameId)], "it may be the real one's disk");
    }
    reign.hear_at(1_000, OLD.0);
    assert_eq!(come(&mut reign, NEW)[0], refused(OLD, Refusal::Replaced));
    // A tree that moves is a way on.
    reign.hear(NEW.0, ack_epoch(3, 5));
    reign.now = 2_500;
    reign.leading.lives(Mono(2_500), NEW);
    assert_eq!(come(&mut reign, OLD), [refused(OLD, Refusal::SameId)]);
    reign.hear(NEW.0, FromLearner::Ack(begin(5)));
    reign.now = 60_000;
    assert_eq!(come(&mut reign, OLD), [refused(OLD, Refusal::SameId)], "it has the history");
}

#[test]
fn words_alone_keep_nobody_here() {
    for (accepts_epoch, limit) in
        [(false, TIMING.init + TIMING.sync), (true, 4 * (TIMING.init + TIMING.sync))]
    {
        let mut reign = Reign::established();
        came(&mut reign, OLD, Place::AtHome, true);
        if accepts_epoch {
            reign.hear(OLD.0, ack_epoch(3, 5));
        }
        reign.hear_at(limit - 1, OLD.0);
        reign.hear_at(limit - 1, 1);
        assert_eq!(reign.tick(limit - 1), []);
        assert_eq!(reign.tick(limit), [refused(OLD, Refusal::Stands)]);
    }
}

#[test]
fn what_was_promised_in_the_name_of_another_does_not_count() {
    let mut reign = Reign::new(&[1, 2, 3, 4, 5]);
    reign.greet(1, 4);
    let info = FromLearner::Info { id: ServerId(2), observer: false, accepted: Epoch(4) };
    reign.hear(OLD.0, info);
    reign.accepted_saved();
    reign.hear(OLD.0, ack_epoch(3, 5));
    came(&mut reign, NEW, Place::AtHome, true);
    assert_eq!(reign.hear(1, ack_epoch(3, 5)), [], "1 and 3 of five");
    assert_eq!(reign.hear(NEW.0, ack_epoch(3, 5))[0], LeadingOutput::SaveCurrent(Epoch(5)));
}

#[test]
fn those_without_a_vote_on_their_way_to_the_history_are_counted() {
    let mut reign = Reign::established();
    let come = |reign: &mut Reign, id: i64| {
        let info = FromLearner::Info { id: ServerId(id), observer: true, accepted: Epoch(5) };
        reign.hear(id as u64, info).pop().unwrap()
    };
    for id in 100..355 {
        assert!(matches!(come(&mut reign, id), LeadingOutput::LeaderInfo { .. }));
    }
    // Whoever has the history is not on the way any more, and who votes is not counted.
    joins(&mut reign, LinkId(100));
    (355..357)
        .for_each(|id| assert!(matches!(come(&mut reign, id), LeadingOutput::LeaderInfo { .. }), "{id}"));
    let why = Refusal::TooMany(256);
    let refused = LeadingOutput::Refuse { link: LinkId(357), server: Some(ServerId(357)), why };
    assert_eq!(come(&mut reign, 357), refused);
    assert!(matches!(come(&mut reign, 2), LeadingOutput::LeaderInfo { .. }));
}
