//! Voters whose votes keep an election from its end.
//!
//! Anybody can vote in the name of a server that is away: for ever better candidates, in ever later rounds, or for a
//! candidate that nobody can follow. Such votes are known by their effect, wherever they come from. If a voter disrupts
//! one election again and again, or is elected and cannot be reached, the election ignores it for a while, as if it were
//! unreachable. Then the others elect one of themselves. Once a leader is established, votes change nothing. Committed
//! transactions do not depend on who votes, so a voter that is left out by mistake loses time only.

use super::{Election, Phase};
use crate::{quorum::Electorate, time::Mono};
use alloc::{collections::BTreeMap, vec::Vec};
use ostler_proto::{
    election::Candidate,
    id::ServerId,
    planted::{self, Bug},
};

/// For how many milliseconds a voter is left out the first time. The time doubles with each further time.
const LEFT_OUT_MIN: u64 = 2_000;
const LEFT_OUT_MAX: u64 = 8_000;
/// Each has a few candidates in a round, and an election a few rounds.
const DISRUPTIONS_OF_ONE: u32 = 10;
const DISRUPTIONS_PER_VOTER: u32 = 2;
/// A leader may end just when it is elected.
const FAILURES_FORGIVEN: u32 = 1;

/// What came of each voter's votes, since it was last followed.
#[derive(Debug, Default)]
pub(super) struct DisruptiveVoters {
    of: BTreeMap<ServerId, Disruptions>,
}

#[derive(Debug, Default)]
struct Disruptions {
    /// In this search for a leader.
    count: u32,
    /// It was elected and was not there.
    failures: u32,
    times_left_out: u32,
    until: Option<Mono>,
}

impl Disruptions {
    fn leave_out(&mut self, now: Mono) {
        let time = LEFT_OUT_MIN << self.times_left_out.min(8);
        self.until = Some(now.after(time.min(LEFT_OUT_MAX)));
        self.times_left_out += 1;
        self.count = 0;
    }
}

impl DisruptiveVoters {
    pub(super) fn is_left_out(&self, now: Mono, server: ServerId) -> bool {
        if planted::is(Bug::FalseVotesCount) {
            return false;
        }
        self.of.get(&server).and_then(|of| of.until).is_some_and(|until| now < until)
    }

    /// Another search begins.
    pub(super) fn begin(&mut self) {
        self.of.values_mut().for_each(|of| of.count = 0);
    }

    /// A vote has changed what this server backs, or its round. True if its sender is to be left out from now on.
    fn count(&mut self, now: Mono, from: ServerId, candidate: Candidate, voters: usize) -> bool {
        let mut limit = DISRUPTIONS_OF_ONE + DISRUPTIONS_PER_VOTER * voters as u32;
        if candidate.id != from {
            // It may pass on what it has heard: who says it first is to be left out first.
            limit *= 2;
        }
        let of = self.of.entry(from).or_default();
        of.count += 1;
        let is_too_much = of.count > limit;
        if is_too_much {
            of.leave_out(now);
        }
        is_too_much && !planted::is(Bug::FalseVotesCount)
    }

    fn failed(&mut self, now: Mono, leader: ServerId) {
        let of = self.of.entry(leader).or_default();
        of.failures += 1;
        if of.failures > FAILURES_FORGIVEN {
            of.leave_out(now);
        }
    }
}

impl Election {
    /// Whom this server has elected was not there to be followed.
    pub fn leader_unreachable(&mut self, now: Mono, leader: ServerId) {
        if leader != self.me {
            self.disruptive.failed(now, leader);
        }
    }

    /// A server has shown that it is there and takes its part: it leads this one, or follows it.
    pub fn forgive(&mut self, server: ServerId) {
        self.disruptive.of.remove(&server);
    }

    /// A voter's vote has upset this election. True if that was once too often: it begins anew without that voter.
    pub(super) fn note_disruption(
        &mut self,
        now: Mono,
        from: ServerId,
        candidate: Candidate,
        electorate: &Electorate,
    ) -> bool {
        // Anybody may connect with any number.
        let voters = electorate.voters();
        if !voters.contains(&from) || !self.disruptive.count(now, from, candidate, voters.len()) {
            return false;
        }
        let disruptive = &self.disruptive;
        let Phase::Looking(looking) = &mut self.phase else { return false };
        self.round += 1;
        looking.ballots.clear();
        looking.looking_voters.retain(|server, _| !disruptive.is_left_out(now, *server));
        looking.settled_votes.retain(|server, _| !disruptive.is_left_out(now, *server));
        (looking.proposal, looking.settle_until) = (looking.own, None);
        true
    }

    /// Voters that are left out at the moment.
    pub fn left_out(&self, now: Mono) -> Vec<ServerId> {
        self.disruptive
            .of
            .keys()
            .copied()
            .filter(|server| self.disruptive.is_left_out(now, *server))
            .collect()
    }
}
