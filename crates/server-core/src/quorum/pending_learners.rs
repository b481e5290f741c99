//! Learners that connect before this server leads: they may have elected it a moment earlier than itself. Also the
//! origin of each learner: its address, and whether its election port is connected.

use super::{Ensemble, learner_info};
use crate::{context::Context, effect::Effect, server::Server};
use alloc::{
    collections::{BTreeMap, BTreeSet},
    vec::Vec,
};
use ostler_proto::{id::ServerId, quorum_packet::Packet};
use ostler_zab::leading::{AddressMatch, FromLearner, LearnerOrigin, LinkId};

const EARLY_MAX: usize = 100;

/// A learner that has connected before this server leads.
#[derive(Debug)]
pub(super) struct PendingLearner {
    pub(super) link: LinkId,
    pub(super) info: FromLearner,
    pub(super) origin: LearnerOrigin,
    /// The version of the configuration that it has in force.
    pub(super) config_version: u64,
}

impl PendingLearner {
    pub(super) fn server(&self) -> Option<ServerId> {
        match self.info {
            FromLearner::Info { id, .. } => Some(id),
            _ => None,
        }
    }
}

/// Learners that have connected early, and the origins of all learners.
#[derive(Debug, Default)]
pub(super) struct PendingLearners {
    early: Vec<PendingLearner>,
    /// The comparison of each learner's address with the configuration.
    places: BTreeMap<LinkId, AddressMatch>,
    /// Servers with an election port connection to this one.
    linked: BTreeSet<ServerId>,
}

impl PendingLearners {
    pub(super) fn comes_from(&mut self, link: LinkId, place: AddressMatch) {
        self.places.insert(link, place);
    }

    pub(super) fn gone(&mut self, link: LinkId) {
        self.early.retain(|early| early.link != link);
        self.places.remove(&link);
    }

    pub(super) fn election_link(&mut self, server: ServerId, up: bool) {
        if up {
            self.linked.insert(server);
        } else {
            self.linked.remove(&server);
        }
    }

    /// Whether there is an election port connection to a server.
    pub(super) fn is_linked(&self, server: ServerId) -> bool {
        self.linked.contains(&server)
    }

    pub(super) fn origin(&self, link: LinkId, server: ServerId) -> LearnerOrigin {
        let place = self.places.get(&link).copied().unwrap_or_default();
        LearnerOrigin { place, linked: self.linked.contains(&server) }
    }

    pub(super) fn take_early(&mut self) -> Vec<PendingLearner> {
        core::mem::take(&mut self.early)
    }

    /// Removes early learners that wait in vain, and returns their connections, which have to be closed.
    pub(super) fn drop_early(&mut self, waits_in_vain: impl Fn(&PendingLearner) -> bool) -> Vec<LinkId> {
        self.early.extract_if(.., |early| waits_in_vain(early)).map(|early| early.link).collect()
    }

    /// Adds an early learner, unless one with its id and a better origin is there. Returns the connection that has to
    /// be closed, if there is one: the new one, or one that gives way.
    fn note_early(&mut self, new: PendingLearner, votes: impl Fn(ServerId) -> bool) -> Option<LinkId> {
        let id = new.server();
        let rival = self.early.iter().position(|early| early.server() == id);
        let has_vote = |early: &PendingLearner| early.server().is_some_and(&votes);
        let gives_way = match rival {
            Some(rival) if self.early[rival].origin > new.origin => return Some(new.link),
            Some(rival) => Some(rival),
            None if self.early.len() < EARLY_MAX => None,
            None if !has_vote(&new) => return Some(new.link),
            // A connection can come with any id. There are always fewer voters than places.
            None => match self.early.iter().position(|early| !has_vote(early)) {
                None => return Some(new.link),
                other => other,
            },
        };
        let closed = gives_way.map(|at| self.early.remove(at).link);
        self.early.push(new);
        closed
    }
}

impl Ensemble {
    /// Whether the other end of a connection is this server's leader, or a learner that has the history.
    fn has_joined(&self, link: LinkId) -> bool {
        self.role.learner().is_some_and(|learner| learner.link == link)
            || self.role.learners().is_some_and(|learners| learners.leading.has_history(link))
    }

    /// The origin of a learner. It matters with its first packet only.
    pub(super) fn origin(&self, link: LinkId, said: FromLearner) -> LearnerOrigin {
        match said {
            FromLearner::Info { id, .. } => self.pending_learners.origin(link, id),
            _ => LearnerOrigin::default(),
        }
    }
}

impl Server {
    /// Whether the other end of a quorum port connection is this server's leader, or a learner that has the history.
    /// Packets from any other end must be short.
    pub fn has_joined(&self, link: LinkId) -> bool {
        self.role.ensemble().is_some_and(|ensemble| ensemble.has_joined(link))
    }

    pub(crate) fn learner_from(&mut self, link: LinkId, place: AddressMatch) {
        if let Some(ensemble) = self.role.ensemble_mut() {
            ensemble.pending_learners.comes_from(link, place);
        }
    }

    pub(super) fn handle_early_learner(&mut self, cx: &mut Context<'_>, link: LinkId, packet: &Packet<'_>) {
        let Some(ensemble) = self.role.ensemble_mut() else { return };
        let said = learner_info(packet, ensemble.config.membership.version);
        let early = said.map(|(info, config_version)| {
            let origin = ensemble.origin(link, info);
            PendingLearner { link, info, origin, config_version }
        });
        let has_elected_me_before = |id| ensemble.election.has_elected_me_before(id);
        let closed = match early.filter(|early| !early.server().is_some_and(has_elected_me_before)) {
            Some(early) => {
                ensemble.pending_learners.note_early(early, |server| ensemble.electorate.votes(server))
            }
            None => Some(link),
        };
        cx.effects.extend(closed.map(Effect::HangUp));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ostler_proto::id::Epoch;

    fn early(link: u64, id: i64, place: AddressMatch) -> PendingLearner {
        let info = FromLearner::Info { id: ServerId(id), observer: false, accepted: Epoch(0), moves: false };
        let origin = LearnerOrigin { place, linked: true };
        PendingLearner { link: LinkId(link), info, origin, config_version: 0 }
    }

    fn votes(server: ServerId) -> bool {
        server.0 <= 3
    }

    #[test]
    fn of_two_with_one_id_the_one_stays_for_which_more_speaks() {
        let mut pending_learners = PendingLearners::default();
        assert_eq!(pending_learners.note_early(early(1, 2, AddressMatch::Elsewhere), votes), None);
        assert_eq!(pending_learners.note_early(early(2, 2, AddressMatch::AtHome), votes), Some(LinkId(1)));
        assert_eq!(pending_learners.note_early(early(3, 2, AddressMatch::Unclear), votes), Some(LinkId(3)));
        assert_eq!(
            pending_learners.note_early(early(4, 2, AddressMatch::AtHome), votes),
            Some(LinkId(2)),
            "it comes again"
        );
        assert_eq!(pending_learners.take_early().len(), 1);
    }

    #[test]
    fn a_crowd_keeps_no_voter_out() {
        let mut pending_learners = PendingLearners::default();
        for id in 10..10 + EARLY_MAX as i64 {
            assert_eq!(pending_learners.note_early(early(id as u64, id, AddressMatch::AtHome), votes), None);
        }
        assert_eq!(
            pending_learners.note_early(early(999, 999, AddressMatch::AtHome), votes),
            Some(LinkId(999))
        );
        assert_eq!(
            pending_learners.note_early(early(2, 2, AddressMatch::Elsewhere), votes),
            Some(LinkId(10))
        );
        assert_eq!(pending_learners.take_early().len(), EARLY_MAX);
    }
}
