//! The votes of a server that may have lost acknowledged transactions. Its vote counts in one case only: all other
//! voters look for a leader, too.

use super::{Ballot, Election, ElectionOutput, Phase, beats};
use crate::{quorum::Electorate, time::Mono};
use alloc::vec::Vec;
use ostler_proto::{
    election::{Candidate, PeerState},
    id::{Epoch, ServerId, Zxid},
};

impl Election {
    /// For a server without a vote: backs the best candidate once all other voters look for a leader, too. A
    /// transaction that none of them has is lost already. Without this rule a new ensemble whose first leader ended
    /// before its epoch had begun would wait for ever. As soon as a voter has a leader or cannot be reached, this
    /// server backs no candidate again.
    pub(super) fn back_best_if_all_look(
        &mut self,
        now: Mono,
        electorate: &Electorate,
        out: &mut Vec<ElectionOutput>,
    ) {
        let (me, round) = (self.me, self.round);
        let Phase::Looking(looking) = &mut self.phase else { return };
        if self.observer || looking.own.is_some() {
            return;
        }
        let unreachable = &self.unreachable;
        let looks =
            |voter: &ServerId| looking.looking_voters.contains_key(voter) && !unreachable.contains(voter);
        let are_all_there = electorate.voters().iter().filter(|voter| **voter != me).all(looks);
        let heard = looking.looking_voters.values();
        let mut said = heard.clone().filter_map(|(candidate, _)| *candidate);
        if are_all_there
            && let Some(own) = looking.initial_own
            && !said.any(|of| of.epoch > Epoch(0) || of.zxid > Zxid::ZERO)
        {
            let latest = heard.map(|(_, round)| *round).fold(round, u64::max);
            return self.regain_vote(now, own, latest, electorate, out);
        }
        let backed = heard.clone().filter_map(|(candidate, _)| *candidate);
        let candidates = backed.filter(|of| of.id != me && electorate.votes(of.id));
        let best = candidates.fold(None, |best, of| beats(of, best, electorate).map_or(best, |_| Some(of)));
        let proposal = best.filter(|_| are_all_there);
        let latest = heard.map(|(_, round)| *round).fold(round, u64::max);
        if (proposal, latest) == (looking.proposal, round) && proposal.is_none() {
            return;
        }
        let changed = (proposal, latest) != (looking.proposal, round);
        (looking.proposal, self.round) = (proposal, latest);
        let ballots = looking.looking_voters.iter().filter(|(_, (_, round))| *round == latest);
        looking.ballots = ballots
            .filter_map(|(server, (candidate, round))| {
                let ballot = Ballot { candidate: (*candidate)?, round: *round, state: PeerState::Looking };
                Some((*server, ballot))
            })
            .collect();
        if changed {
            looking.settle_until = None;
            self.send_to_all(now, electorate, out);
        }
        self.check_quorum(now, electorate, out);
    }

    /// All voters look for a leader, and none of them has data. So this server votes for itself, like the others: else
    /// all would wait for data that no server has.
    fn regain_vote(
        &mut self,
        now: Mono,
        own: Candidate,
        round: u64,
        electorate: &Electorate,
        out: &mut Vec<ElectionOutput>,
    ) {
        let Phase::Looking(looking) = &mut self.phase else { return };
        let present = looking.looking_voters.iter().filter(|(_, (_, of))| *of == round);
        let ballots = present.filter_map(|(server, (candidate, round))| {
            Some((*server, Ballot { candidate: (*candidate)?, round: *round, state: PeerState::Looking }))
        });
        looking.ballots = ballots.filter(|(_, ballot)| electorate.votes(ballot.candidate.id)).collect();
        let mut best = own;
        for ballot in looking.ballots.values() {
            if beats(ballot.candidate, Some(best), electorate).is_some() {
                best = ballot.candidate;
            }
        }
        (looking.own, looking.proposal, looking.settle_until) = (Some(own), Some(best), None);
        self.round = round;
        self.send_to_all(now, electorate, out);
        self.check_quorum(now, electorate, out);
    }
}
