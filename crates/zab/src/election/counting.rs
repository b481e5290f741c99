//! Counts votes: weighs each against this server's proposal, and elects the candidate that a quorum backs.

use super::{Ballot, Election, ElectionEvent, ElectionOutput, IgnoreReason, Phase, Rule, Verdict};
use crate::{quorum::Electorate, time::Mono};
use alloc::{collections::BTreeMap, vec::Vec};
use ostler_planted::{self as planted, Bug};
use ostler_proto::{
    election::{Candidate, Notification, PeerState},
    id::{Epoch, ServerId, Zxid},
};

impl Election {
    /// The reason why a voter's vote is not even counted, while this server looks for a leader.
    pub(super) fn reason_to_ignore(
        &self,
        now: Mono,
        from: ServerId,
        vote: &Notification,
    ) -> Option<IgnoreReason> {
        let Phase::Looking(looking) = &self.phase else { return None };
        // Votes of servers with a leader still count, unless they name this server: an epoch that has begun has a
        // quorum.
        let is_looking = vote.state == PeerState::Looking;
        let names = |is_so: &dyn Fn(ServerId) -> bool| vote.candidate.is_some_and(|of| is_so(of.id));
        let is_left_out = |server| self.disruptive.is_left_out(now, server);
        if (is_left_out(from) && (is_looking || names(&|of| of == self.me)))
            || (is_looking && names(&is_left_out))
        {
            return Some(IgnoreReason::LeftOut);
        }
        // A vote that says more of this server than it has may be from before this server lost its disk, or be forged.
        let has = looking.initial_own.map(|own| (own.epoch, own.zxid));
        let of_this = vote.candidate.filter(|of| of.id == self.me && is_looking);
        let says_too_much = of_this.is_some_and(|of| has.is_some_and(|has| (of.epoch, of.zxid) > has));
        says_too_much.then_some(IgnoreReason::SaysTooMuchOfThisServer)
    }

    /// Notes whether a voter looks for a leader.
    pub(super) fn note_voter(&mut self, from: ServerId, vote: &Notification) {
        let Phase::Looking(looking) = &mut self.phase else { return };
        if vote.state == PeerState::Looking {
            // The sender has left its leader, so its earlier vote does not count any more. Upstream goes on counting
            // it, and may follow a leader that all have left.
            looking.settled_votes.remove(&from);
            looking.looking_voters.insert(from, (vote.candidate, vote.round));
        } else {
            looking.looking_voters.remove(&from);
        }
    }

    /// Counts a vote for a voter.
    pub(super) fn count(
        &mut self,
        now: Mono,
        from: ServerId,
        vote: &Notification,
        electorate: &Electorate,
        out: &mut Vec<ElectionOutput>,
    ) {
        let Some(candidate) = vote.candidate else { return };
        match vote.state {
            PeerState::Observing => {
                self.record.received(now, from, vote, Verdict::Ignored { why: IgnoreReason::NoVoter })
            }
            PeerState::Looking if self.has_no_vote() => {
                self.record.received(now, from, vote, Verdict::Ignored { why: IgnoreReason::Untrusted });
                self.back_best_if_all_look(now, electorate, out);
            }
            PeerState::Looking => self.count_looking(now, from, vote, electorate, out),
            PeerState::Following | PeerState::Leading => {
                self.record.received(now, from, vote, Verdict::Counted);
                if candidate.id == self.me && vote.round > self.round {
                    if self.note_disruption(now, from, candidate, electorate) {
                        return self.send_to_all(now, electorate, out);
                    }
                    self.move_past_round(now, vote.round, electorate, out);
                }
                let ballot = Ballot { candidate, round: vote.round, state: vote.state };
                self.count_settled(now, from, ballot, electorate, out);
            }
        }
    }

    /// Takes a vote of a voter that looks for a leader.
    pub(super) fn count_looking(
        &mut self,
        now: Mono,
        from: ServerId,
        vote: &Notification,
        electorate: &Electorate,
        out: &mut Vec<ElectionOutput>,
    ) {
        let Some(theirs) = vote.candidate else { return };
        if self.without_history && (theirs.epoch > Epoch(0) || theirs.zxid > Zxid::ZERO) {
            self.record.received(now, from, vote, Verdict::Ignored { why: IgnoreReason::Untrusted });
            return self.lose_vote(now, electorate, out);
        }
        if vote.round < self.round {
            // The answer tells the sender the round.
            self.record.received(now, from, vote, Verdict::Ignored { why: IgnoreReason::EarlierRound });
            return self.answer_voter(now, from, out);
        }
        let ballot = Ballot { candidate: theirs, round: vote.round, state: vote.state };
        let Some((verdict, changed)) = self.weigh(from, ballot, electorate) else { return };
        self.record.received(now, from, vote, verdict);
        let Phase::Looking(looking) = &mut self.phase else { return };
        if changed {
            looking.settle_until = None;
            // If the sender is left out now, the others have to hear of the new round.
            self.note_disruption(now, from, theirs, electorate);
            self.send_to_all(now, electorate, out);
        } else if verdict == Verdict::Worse && Some(theirs) < looking.proposal {
            // The sender may have begun to look only now, and have missed this vote. Upstream waits for the repetition
            // of the vote. With weights each of two votes may be worse than the other; by the comparison only one of
            // the two servers answers.
            self.answer_voter(now, from, out);
        }
        self.check_quorum(now, electorate, out);
    }

    /// Another server has data, and this one has lost its own: its vote does not count any more.
    fn lose_vote(&mut self, now: Mono, electorate: &Electorate, out: &mut Vec<ElectionOutput>) {
        let Phase::Looking(looking) = &mut self.phase else { return };
        let backed = looking.own.is_some() || looking.proposal.is_some();
        (looking.own, looking.proposal, looking.settle_until) = (None, None, None);
        // Only if it changes something: voters answer each vote of a server without a vote.
        if backed {
            self.send_to_all(now, electorate, out);
        }
        self.back_best_if_all_look(now, electorate, out);
    }

    /// Weighs a ballot of this round or a later one against this server's proposal, and takes the better candidate.
    /// Returns the verdict, and whether this server's vote has changed.
    fn weigh(&mut self, from: ServerId, ballot: Ballot, electorate: &Electorate) -> Option<(Verdict, bool)> {
        let Phase::Looking(looking) = &mut self.phase else { return None };
        let theirs = ballot.candidate;
        let later = ballot.round > self.round;
        if later {
            self.round = ballot.round;
            looking.ballots.clear();
        }
        // A server's vote for itself says what it has. Votes of others that claim more for it are wrong.
        let is_denied = |of: Candidate| of.id == from && theirs.id == from && of > theirs;
        let denied = looking.proposal.filter(|of| is_denied(*of));
        looking.ballots.retain(|_, ballot| denied.is_none_or(|denied| ballot.candidate != denied));
        let best = if later || denied.is_some() { looking.own } else { looking.proposal };
        let rule = beats(theirs, best, electorate);
        let adopted = if rule.is_some() { Some(theirs) } else { best };
        let changed = later || adopted != looking.proposal;
        looking.proposal = adopted;
        looking.ballots.insert(from, ballot);
        let verdict = match (rule, later) {
            (Some(rule), later) => Verdict::Adopted { rule, later_round: later },
            (None, true) => Verdict::LaterRound,
            (None, false) if adopted == Some(theirs) => Verdict::Counted,
            (None, false) => Verdict::Worse,
        };
        Some((verdict, changed))
    }

    /// Sends this server's vote to a voter that lacks it. An observer does not: voters answer each of its votes, so the
    /// two would send votes without end until there is a leader.
    pub(super) fn answer_voter(&mut self, now: Mono, voter: ServerId, out: &mut Vec<ElectionOutput>) {
        if !self.observer {
            self.send_to(now, voter, out);
        }
    }

    /// A server follows this one, which does not lead: it was elected by a vote from before its restart. It does not
    /// accept that, as its data may not be on its disk any more. It goes on to a later round: the followers look again
    /// when they hear of it, else they would wait for it for `initLimit`.
    pub(super) fn move_past_round(
        &mut self,
        now: Mono,
        theirs: u64,
        electorate: &Electorate,
        out: &mut Vec<ElectionOutput>,
    ) {
        let Phase::Looking(looking) = &mut self.phase else { return };
        if looking.own.is_none() {
            return;
        }
        self.round = theirs + 1;
        looking.ballots.clear();
        (looking.proposal, looking.settle_until) = (looking.own, None);
        self.send_to_all(now, electorate, out);
    }

    /// Takes a vote of a server that has a leader. This server elects the same leader once a quorum and the leader
    /// itself say so.
    pub(super) fn count_settled(
        &mut self,
        now: Mono,
        from: ServerId,
        ballot: Ballot,
        electorate: &Electorate,
        out: &mut Vec<ElectionOutput>,
    ) {
        let (me, round) = (self.me, self.round);
        let Phase::Looking(looking) = &mut self.phase else { return };
        let leads = |votes: &BTreeMap<ServerId, Ballot>| {
            let leader = ballot.candidate.id;
            if leader == me {
                return ballot.round == round;
            }
            votes.get(&leader).is_some_and(|vote| vote.state == PeerState::Leading)
        };
        if ballot.round == round {
            looking.ballots.insert(from, ballot);
            // Votes of this round from servers that still looked have to name the same candidate with the same epoch
            // and zxid.
            let same = |vote: &Ballot| match vote.state {
                PeerState::Looking => vote.candidate == ballot.candidate && vote.round == ballot.round,
                _ => vote.candidate.id == ballot.candidate.id,
            };
            let own = looking.proposal == Some(ballot.candidate);
            let agreed = electorate
                .is_quorum(|server| (server == me && own) || looking.ballots.get(&server).is_some_and(same));
            if agreed && leads(&looking.ballots) {
                return self.join_decided(now, ballot.candidate, round, electorate, out);
            }
        }
        looking.settled_votes.insert(from, ballot);
        let same = |vote: &Ballot| {
            (vote.candidate.id, vote.candidate.epoch) == (ballot.candidate.id, ballot.candidate.epoch)
        };
        // Only the configuration in force counts here. A change in this server's log may give votes to servers that do
        // not vote under that leader, and to follow a leader their promises are not needed.
        let agreed =
            electorate.current.is_quorum(|server| looking.settled_votes.get(&server).is_some_and(same));
        if agreed && leads(&looking.settled_votes) {
            // The leader's own round: if it names a later one, this epoch is over.
            let round =
                looking.settled_votes.get(&ballot.candidate.id).map_or(ballot.round, |vote| vote.round);
            return self.join_decided(now, ballot.candidate, round, electorate, out);
        }
        // A server with a leader sends its vote only when asked, and another one once its epoch has begun. So ask
        // again.
        self.resend_soon(now);
    }

    /// Elects the candidate if a quorum backs it: at once if no better vote can come, else after the settle time.
    pub(super) fn check_quorum(&mut self, now: Mono, electorate: &Electorate, out: &mut Vec<ElectionOutput>) {
        let (me, round) = (self.me, self.round);
        let Phase::Looking(looking) = &mut self.phase else { return };
        let Some(candidate) = looking.proposal else { return };
        if self.observer {
            // An observer does not vote. It elects the leader that voters name.
            return;
        }
        let backs = |server: ServerId| {
            server == me
                || looking
                    .ballots
                    .get(&server)
                    .is_some_and(|vote| vote.candidate == candidate && vote.round == round)
        };
        if !electorate.is_quorum(backs) {
            looking.settle_until = None;
            return;
        }
        let certain = electorate.voters().into_iter().all(|voter| {
            let is_missing = self.unreachable.contains(&voter) || self.disruptive.is_left_out(now, voter);
            backs(voter) || is_missing
        });
        if certain {
            return self.elect_and_tell(now, candidate, round, electorate, out);
        }
        if looking.settle_until.is_none() {
            looking.settle_until = Some(now.after(self.timing.settle));
            self.record.add(now, ElectionEvent::Agreed { candidate });
        }
    }

    /// Elects a leader by votes of servers that look, and sends the result to all: a server that began late may need
    /// this vote.
    pub(super) fn elect_and_tell(
        &mut self,
        now: Mono,
        candidate: Candidate,
        round: u64,
        electorate: &Electorate,
        out: &mut Vec<ElectionOutput>,
    ) {
        self.elect(now, candidate, round, out);
        let elected = out.pop();
        self.send_to_all(now, electorate, out);
        out.extend(elected);
    }

    /// Elects a leader that others follow already. Sends the result to all if they have another vote of this server.
    pub(super) fn join_decided(
        &mut self,
        now: Mono,
        candidate: Candidate,
        round: u64,
        electorate: &Electorate,
        out: &mut Vec<ElectionOutput>,
    ) {
        let told = self.vote().candidate;
        if told.is_some_and(|told| told.id != candidate.id) {
            self.elect_and_tell(now, candidate, round, electorate, out);
        } else {
            self.elect(now, candidate, round, out);
        }
    }
}

/// The rule by which a candidate is better than the current one; `None` if it is not better.
pub(super) fn beats(new: Candidate, current: Option<Candidate>, electorate: &Electorate) -> Option<Rule> {
    if electorate.current.weight(new.id) == 0 {
        return None;
    }
    let Some(current) = current else { return Some(Rule::FirstHeard) };
    let order = |of: Candidate| {
        if planted::is(Bug::ElectWithoutEpoch) {
            return (Epoch(0), Zxid::new(Epoch(0), of.zxid.counter()), of.id);
        }
        (of.epoch, of.zxid, of.id)
    };
    if order(new) <= order(current) {
        return None;
    }
    Some(if new.epoch > current.epoch {
        Rule::LaterEpoch
    } else if new.zxid > current.zxid {
        Rule::LaterZxid
    } else {
        Rule::LargerId
    })
}
