//! Leaves out voters that keep an election from its end.
//!
//! The election port does not prove who votes: votes can come in the name of a server that is away, for ever better
//! candidates, in ever later rounds, or for a candidate that cannot be followed. Such votes are recognised by their
//! effect. If a voter disrupts one election again and again, or is elected and cannot be reached, the election ignores
//! it for a while, as if it were unreachable. Then the others elect one of themselves. Once a leader is established,
//! votes change nothing. Committed transactions do not depend on who votes, so a voter that is left out by mistake
//! loses time only.

use super::{Election, Phase};
use crate::{quorum::Electorate, time::Mono};
use alloc::{collections::BTreeMap, vec::Vec};
use ostler_planted::{self as planted, Bug};
use ostler_proto::{election::Candidate, id::ServerId};

/// The time in milliseconds for which a voter is left out at first. It doubles each time, up to `LEFT_OUT_MAX`.
const LEFT_OUT_MIN: u64 = 2_000;
const LEFT_OUT_MAX: u64 = 8_000;
/// Disruptions that are normal: each voter backs a few candidates in a round, and an election has a few rounds.
const DISRUPTIONS_OF_ONE: u32 = 10;
const DISRUPTIONS_PER_VOTER: u32 = 2;
/// Failures that are normal: a server may end just when it is elected.
const FAILURES_FORGIVEN: u32 = 1;

/// The disruptions by each voter since it last led or followed.
#[derive(Debug, Default)]
pub(super) struct DisruptiveVoters {
    of: BTreeMap<ServerId, Disruptions>,
}

#[derive(Debug, Default)]
struct Disruptions {
    /// Disruptions in this search for a leader.
    count: u32,
    /// How often it was elected and could not be reached.
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

    /// Another search for a leader begins.
    pub(super) fn begin(&mut self) {
        self.of.values_mut().for_each(|of| of.count = 0);
    }

    /// Counts a vote that has changed this server's candidate or round. Returns true if its sender is left out from now
    /// on.
    fn count(&mut self, now: Mono, from: ServerId, candidate: Candidate, voters: usize) -> bool {
        let mut limit = DISRUPTIONS_OF_ONE + DISRUPTIONS_PER_VOTER * voters as u32;
        if candidate.id != from {
            // It may only pass on a candidate that it has heard of. The server that names itself has to be left out
            // first.
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
    /// The server that was elected cannot be reached.
    pub fn leader_unreachable(&mut self, now: Mono, leader: ServerId) {
        if leader != self.me {
            self.disruptive.failed(now, leader);
        }
    }

    /// Forgets a server's disruptions: it leads this server, or follows it.
    pub fn forgive(&mut self, server: ServerId) {
        self.disruptive.of.remove(&server);
    }

    /// Notes that a voter has disrupted this election. Returns true if that was once too often: then the election has
    /// begun a new round without it.
    pub(super) fn note_disruption(
        &mut self,
        now: Mono,
        from: ServerId,
        candidate: Candidate,
        electorate: &Electorate,
    ) -> bool {
        // A connection can come with any server id.
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
