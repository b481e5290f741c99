//! The connections of the quorum port that carry an epoch, and how long a ping takes there and back, for the admin server.

use super::{MemberMode, role::MemberRole};
use crate::{input::Now, server::Server};
use alloc::{collections::BTreeMap, vec::Vec};
use ostler_proto::id::ServerId;
use ostler_zab::leading::LinkId;

/// A connection between a leader and a learner, as one of them knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuorumLink {
    /// The server at the other end.
    pub peer: ServerId,
    /// The begin, in milliseconds since 1970.
    pub since_ms: i64,
    /// The time that the last ping took there and back, in microseconds; known to the leader only.
    pub round_trip_us: Option<u64>,
}

/// The pings of a leader to its learners, or of an observer master to its observers.
#[derive(Debug, Default)]
pub(super) struct Pings {
    of: BTreeMap<LinkId, LearnerPings>,
}

#[derive(Debug, Clone, Copy)]
struct LearnerPings {
    since_ms: i64,
    /// When the ping was sent that is not answered yet. Learners answer in order.
    sent_us: Option<u64>,
    round_trip_us: Option<u64>,
}

impl Pings {
    pub(super) fn sent(&mut self, link: LinkId, now: Now) {
        let new = LearnerPings { since_ms: now.wall_ms, sent_us: None, round_trip_us: None };
        let pings = self.of.entry(link).or_insert(new);
        pings.sent_us.get_or_insert(now.mono_us());
    }

    pub(super) fn answered(&mut self, link: LinkId, now: Now) {
        if let Some(pings) = self.of.get_mut(&link)
            && let Some(sent) = pings.sent_us.take()
        {
            pings.round_trip_us = Some(now.mono_us().saturating_sub(sent));
        }
    }

    pub(super) fn gone(&mut self, link: LinkId) {
        self.of.remove(&link);
    }
}

impl Server {
    /// A learner has answered a ping.
    pub(super) fn note_pong(&mut self, now: Now, link: LinkId) {
        let ensemble = self.role.ensemble_mut();
        if let Some(learners) = ensemble.and_then(|ensemble| ensemble.role.learners_mut()) {
            learners.pings.answered(link, now);
        }
    }

    /// The connections of the quorum port that carry the present epoch: at a leader those of its learners, at a learner the
    /// one to its leader or observer master.
    pub fn quorum_links(&self) -> Vec<QuorumLink> {
        let Some(ensemble) = self.role.ensemble() else { return Vec::new() };
        if let MemberRole::Leading(leader) = &ensemble.role {
            let learners = &leader.learners;
            let known = learners.pings.of.iter().filter(|(link, _)| learners.leading.has_history(**link));
            let link = |(link, pings): (&LinkId, &LearnerPings)| {
                let (since_ms, round_trip_us) = (pings.since_ms, pings.round_trip_us);
                Some(QuorumLink { peer: learners.leading.server_of(*link)?, since_ms, round_trip_us })
            };
            return known.filter_map(link).collect();
        }
        if !matches!(ensemble.mode(), MemberMode::Follower | MemberMode::Observer) {
            return Vec::new();
        }
        let since_ms = self.epoch_times().last().map(|time| time.from_ms);
        let link = |peer| Some(QuorumLink { peer, since_ms: since_ms?, round_trip_us: None });
        ensemble.connected_to().and_then(link).into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A learner that comes again and again has another connection each time.
    #[test]
    fn nothing_is_kept_of_connections_that_are_gone() {
        let mut pings = Pings::default();
        for number in 0..100 {
            pings.sent(LinkId(number), Now::default());
            pings.answered(LinkId(number), Now::default());
            pings.gone(LinkId(number));
        }
        assert!(pings.of.is_empty(), "{pings:?}");
    }
}
