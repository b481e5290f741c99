//! Fast leader election: one server's side of all its elections. It takes votes and returns the votes to send and the
//! elected leader.
//!
//! Each server votes for itself first. If it gets a vote for a better candidate, it backs that one and sends its new
//! vote to all. Once a quorum backs one candidate and no better one comes, it is elected. The best candidate in the
//! order of [`Candidate`] has every transaction that a quorum has, so no committed one is lost. Two servers may still
//! elect different leaders; only one of these gets a quorum of followers, so only one can begin an epoch.
//!
//! Rules and messages are upstream's (`FastLeaderElection`), with one difference: upstream waits a fixed time for
//! better votes after a quorum has agreed. Here the wait ends as soon as every voter has backed the candidate in this
//! round or is known to be unreachable.

mod counting;
mod disruptive;
mod late_votes;
mod record;
mod timing;
mod without_vote;

use counting::beats;
pub use record::{CountedVote, ElectionEvent, ElectionRecord, Entry, IgnoreReason, Rule, Verdict};
pub use timing::ElectionTiming;

use crate::{quorum::Electorate, time::Mono};
use alloc::{
    collections::{BTreeMap, BTreeSet},
    string::String,
    vec::Vec,
};
use ostler_proto::{
    election::{Candidate, NOTIFICATION_VERSION, Notification, PeerState},
    id::{Epoch, ServerId},
};

/// An act that the server has to carry out for an election.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ElectionOutput {
    /// Send a vote to another server.
    Send {
        /// The server to send it to.
        to: ServerId,
        /// The vote.
        notification: Notification,
    },
    /// The election is over: lead, or connect to the leader.
    Elected {
        /// The elected server.
        leader: ServerId,
    },
    /// The elected server will not lead: it looks for a leader itself, or no quorum backs it any more. Look for a leader
    /// again.
    LookAgain,
}

/// A vote that was received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Ballot {
    candidate: Candidate,
    round: u64,
    state: PeerState,
}

/// After an election: the vote that other servers get when they ask.
#[derive(Debug, Clone)]
struct Settled {
    state: PeerState,
    candidate: Option<Candidate>,
    round: u64,
    /// The candidate that each voter has backed since; `None` once the epoch has begun.
    backed_since: Option<BTreeMap<ServerId, ServerId>>,
}

#[derive(Debug)]
struct Looking {
    /// The vote for this server; `None` if it has no vote.
    own: Option<Candidate>,
    /// That vote when this election began. The data on disk does not change during an election.
    initial_own: Option<Candidate>,
    proposal: Option<Candidate>,
    /// The ballot box: the last vote of each voter in this round.
    ballots: BTreeMap<ServerId, Ballot>,
    /// Votes of servers that have a leader.
    settled_votes: BTreeMap<ServerId, Ballot>,
    /// Voters that look for a leader, too: their candidates, if any, and their rounds. For a server without a vote.
    looking_voters: BTreeMap<ServerId, (Option<Candidate>, u64)>,
    resend_at: Mono,
    resend_after: u64,
    /// A quorum has agreed, and the election ends at this time, unless a better vote comes before.
    settle_until: Option<Mono>,
}

#[derive(Debug)]
enum Phase {
    Looking(Looking),
    Settled(Settled),
}

/// One server's side of all its elections.
#[derive(Debug)]
pub struct Election {
    me: ServerId,
    observer: bool,
    /// There is no data on disk. There may have been some, and this server may have acknowledged it.
    without_history: bool,
    timing: ElectionTiming,
    /// The election round, or logical clock. It begins at 0 with the process.
    round: u64,
    phase: Phase,
    /// Voters to which there is no connection, as far as is known.
    unreachable: BTreeSet<ServerId>,
    /// Sent along with every vote.
    config: String,
    record: ElectionRecord,
    disruptive: disruptive::DisruptiveVoters,
}

impl Election {
    /// For one server. It has no leader and does not look for one until [`Election::look`].
    pub fn new(me: ServerId, observer: bool, timing: ElectionTiming, config: String) -> Self {
        let settled = Settled { state: PeerState::Looking, candidate: None, round: 0, backed_since: None };
        Election {
            me,
            observer,
            without_history: false,
            timing,
            round: 0,
            phase: Phase::Settled(settled),
            unreachable: BTreeSet::new(),
            config,
            record: ElectionRecord::default(),
            disruptive: disruptive::DisruptiveVoters::default(),
        }
    }

    /// Sets whether there is no data on disk, and no operator has declared the server new. It may have lost
    /// transactions that it had acknowledged. So it votes only while no other voter has data, and gives up its vote
    /// when it hears of one that has.
    pub fn set_without_history(&mut self, without_history: bool) {
        self.without_history = without_history;
    }

    /// Whether this server, not an observer, has no vote in this election.
    pub fn has_no_vote(&self) -> bool {
        !self.observer && matches!(&self.phase, Phase::Looking(looking) if looking.own.is_none())
    }

    /// The round of the current or last election.
    pub fn round(&self) -> u64 {
        self.round
    }

    /// The record of the current or last election.
    pub fn record(&self) -> &ElectionRecord {
        &self.record
    }

    /// Whether this server looks for a leader.
    pub fn is_looking(&self) -> bool {
        matches!(self.phase, Phase::Looking(_))
    }

    /// When [`Election::deadline`] is due.
    pub fn next_deadline(&self) -> Option<Mono> {
        match &self.phase {
            Phase::Looking(looking) => {
                Some(looking.settle_until.unwrap_or(looking.resend_at).min(looking.resend_at))
            }
            Phase::Settled(_) => None,
        }
    }

    /// Begins an election. `own` is the vote for this server; `None` for an observer, and for a server that may have
    /// lost data.
    pub fn look(
        &mut self,
        now: Mono,
        own: Option<Candidate>,
        electorate: &Electorate,
        out: &mut Vec<ElectionOutput>,
    ) {
        self.begin(now, own);
        self.send_to_all(now, electorate, out);
        self.check_quorum(now, electorate, out);
    }

    /// Elects the server that the last leader has named as the next, without votes, as upstream does. It still needs
    /// the promises of a quorum to lead.
    pub fn accept_suggested(
        &mut self,
        now: Mono,
        candidate: Candidate,
        electorate: &Electorate,
        out: &mut Vec<ElectionOutput>,
    ) {
        self.begin(now, None);
        self.elect_and_tell(now, candidate, self.round, electorate, out);
    }

    fn begin(&mut self, now: Mono, own: Option<Candidate>) {
        self.round += 1;
        self.disruptive.begin();
        self.record = ElectionRecord::begin(now, self.round, own);
        self.phase = Phase::Looking(Looking {
            own,
            initial_own: own,
            proposal: own,
            ballots: BTreeMap::new(),
            settled_votes: BTreeMap::new(),
            looking_voters: BTreeMap::new(),
            resend_at: now.after(self.timing.resend_min),
            resend_after: self.timing.resend_min,
            settle_until: None,
        });
    }

    /// The epoch has begun, and this server takes part in it. From now on its vote names the new epoch, as the leader's
    /// does, so that a server that looks later finds equal votes.
    pub fn established(&mut self, epoch: Epoch) {
        if let Phase::Settled(Settled { candidate: Some(candidate), backed_since, .. }) = &mut self.phase {
            (candidate.epoch, *backed_since) = (epoch, None);
        }
    }

    /// The leader sends its history, so it has the promises of a quorum. Votes from before do not matter any more. If
    /// the leader loses its quorum, it closes the connection.
    pub fn history_arrives(&mut self) {
        if let Phase::Settled(settled) = &mut self.phase {
            settled.backed_since = None;
        }
    }

    /// A voter has connected to this server as its leader. Its votes for others do not count any more.
    pub fn voter_follows(&mut self, server: ServerId) {
        if let Phase::Settled(Settled { backed_since: Some(backed_since), .. }) = &mut self.phase {
            backed_since.remove(&server);
        }
    }

    /// Whether a server follows this one because of an earlier round, while this one looks for a leader. It will look
    /// again once it hears of the later round, so its connection as a learner is of no use.
    pub fn has_elected_me_before(&self, server: ServerId) -> bool {
        let Phase::Looking(looking) = &self.phase else { return false };
        let vote = looking.settled_votes.get(&server);
        vote.is_some_and(|vote| vote.candidate.id == self.me && vote.round < self.round)
    }

    /// Sets the configuration that votes carry from now on, and whether this server is an observer in it.
    pub fn set_config(&mut self, config: String, observer: bool) {
        (self.config, self.observer) = (config, observer);
        // A server that follows goes on following. The state tells others whether its vote counts.
        if let Phase::Settled(settled) = &mut self.phase
            && settled.state != PeerState::Leading
        {
            settled.state = if observer { PeerState::Observing } else { PeerState::Following };
        }
    }

    /// A connection to a voter has come (`up`), or is gone or cannot be had.
    pub fn link_changed(
        &mut self,
        now: Mono,
        peer: ServerId,
        up: bool,
        electorate: &Electorate,
        out: &mut Vec<ElectionOutput>,
    ) {
        // A connection can come with any server id.
        let changed = if up {
            self.unreachable.remove(&peer)
        } else {
            electorate.votes(peer) && self.unreachable.insert(peer)
        };
        let Phase::Looking(looking) = &mut self.phase else { return };
        if !up {
            looking.looking_voters.remove(&peer);
        }
        if up {
            // Also if it takes the place of another connection: votes sent on that one may be lost.
            looking.resend_after = self.timing.resend_min;
            looking.resend_at = looking.resend_at.min(now.after(looking.resend_after));
        }
        if changed {
            self.record
                .add(now, if up { ElectionEvent::Reached { peer } } else { ElectionEvent::Lost { peer } });
        }
        if up {
            self.send_to(now, peer, out);
        } else {
            self.back_best_if_all_look(now, electorate, out);
        }
        if !up && self.has_unreachable_voter(electorate) {
            self.resend_soon(now);
        }
        if changed {
            self.check_quorum(now, electorate, out);
        }
    }

    fn has_unreachable_voter(&self, electorate: &Electorate) -> bool {
        electorate.voters().iter().any(|voter| self.unreachable.contains(voter))
    }

    /// Sends the vote again soon: the last one may be lost, and the other voter may send nothing by itself.
    fn resend_soon(&mut self, now: Mono) {
        if let Phase::Looking(looking) = &mut self.phase {
            looking.resend_at = looking.resend_at.min(now.after(self.timing.recall));
        }
    }

    /// A vote has come from a server of another ensemble. It is recorded, and gets no answer.
    pub fn refused_other_ensemble(&mut self, now: Mono, from: ServerId, vote: &Notification) {
        self.record.received(now, from, vote, Verdict::Ignored { why: IgnoreReason::AnotherEnsemble });
    }

    /// Takes a vote.
    pub fn notified(
        &mut self,
        now: Mono,
        from: ServerId,
        vote: &Notification,
        electorate: &Electorate,
        out: &mut Vec<ElectionOutput>,
    ) {
        if !electorate.votes(from) {
            self.record.received(now, from, vote, Verdict::Ignored { why: IgnoreReason::NoVoter });
            // The sender is an observer, or a server that is to join. It wants to know the leader only. Two observers
            // must not answer each other, or they would never stop, as upstream's do.
            if vote.state == PeerState::Looking && !(self.observer && self.is_looking()) {
                self.send_to(now, from, out);
            }
            return;
        }
        if !self.is_looking() {
            return self.notified_after_decision(now, from, vote, electorate, out);
        }
        if let Some(why) = self.reason_to_ignore(now, from, vote) {
            self.record.received(now, from, vote, Verdict::Ignored { why });
            if why == IgnoreReason::SaysTooMuchOfThisServer && !self.has_no_vote() {
                self.answer_voter(now, from, out);
            }
            return;
        }
        self.note_voter(from, vote);
        match vote.candidate {
            None => {
                self.record.received(now, from, vote, Verdict::Ignored { why: IgnoreReason::BacksNobody });
                self.back_best_if_all_look(now, electorate, out);
            }
            Some(candidate) if !electorate.votes(candidate.id) => {
                let why = IgnoreReason::CandidateDoesNotVote;
                self.record.received(now, from, vote, Verdict::Ignored { why });
            }
            Some(_) => self.count(now, from, vote, electorate, out),
        }
    }

    /// The time of [`Election::next_deadline`] has come: elects the candidate, or sends the vote again.
    pub fn deadline(&mut self, now: Mono, electorate: &Electorate, out: &mut Vec<ElectionOutput>) {
        let has_unreachable_voter = self.has_unreachable_voter(electorate);
        let Phase::Looking(looking) = &mut self.phase else { return };
        if looking.settle_until.is_some_and(|until| until <= now)
            && let Some(candidate) = looking.proposal
        {
            return self.elect_and_tell(now, candidate, self.round, electorate, out);
        }
        if looking.resend_at <= now {
            // No voter sends votes to an observer unasked: it has to ask until one has a leader.
            if !self.observer && !has_unreachable_voter {
                looking.resend_after = (looking.resend_after * 2).min(self.timing.resend_max);
            }
            looking.resend_at = now.after(looking.resend_after);
            if has_unreachable_voter {
                self.resend_soon(now);
            }
            self.send_to_all(now, electorate, out);
        }
    }

    fn elect(&mut self, now: Mono, candidate: Candidate, round: u64, out: &mut Vec<ElectionOutput>) {
        let state = match (candidate.id == self.me, self.observer) {
            (true, _) => PeerState::Leading,
            (false, false) => PeerState::Following,
            (false, true) => PeerState::Observing,
        };
        if let Phase::Looking(looking) = &self.phase {
            let votes = looking.ballots.iter().chain(&looking.settled_votes);
            let counted = |(voter, ballot): (&ServerId, &Ballot)| CountedVote {
                voter: *voter,
                candidate: ballot.candidate,
            };
            self.record.add(now, ElectionEvent::Elected { candidate, votes: votes.map(counted).collect() });
        }
        self.round = round;
        let backed_since = Some(BTreeMap::new());
        self.phase = Phase::Settled(Settled { state, candidate: Some(candidate), round, backed_since });
        out.push(ElectionOutput::Elected { leader: candidate.id });
    }

    fn vote(&self) -> Notification {
        let (state, candidate, round) = match &self.phase {
            Phase::Looking(looking) => (PeerState::Looking, looking.proposal, self.round),
            Phase::Settled(settled) => (settled.state, settled.candidate, settled.round),
        };
        let config = self.config.clone();
        Notification { state, candidate, round, version: NOTIFICATION_VERSION, config }
    }

    fn send_to(&mut self, now: Mono, to: ServerId, out: &mut Vec<ElectionOutput>) {
        if to != self.me {
            let notification = self.vote();
            let Notification { state, candidate, round, .. } = notification;
            self.record.add(now, ElectionEvent::SentToOne { to, state, candidate, round });
            out.push(ElectionOutput::Send { to, notification });
        }
    }

    fn send_to_all(&mut self, now: Mono, electorate: &Electorate, out: &mut Vec<ElectionOutput>) {
        let vote = self.vote();
        self.record.add(now, ElectionEvent::SentToAll { candidate: vote.candidate, round: vote.round });
        let others = electorate.voters().into_iter().filter(|voter| *voter != self.me);
        out.extend(others.map(|to| ElectionOutput::Send { to, notification: vote.clone() }));
    }
}
