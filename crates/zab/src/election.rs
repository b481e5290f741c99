//! Fast leader election: who leads next, from votes alone.
//!
//! Everybody votes for itself first. A better candidate is adopted and told to all; once a quorum backs one
//! candidate and nothing better comes, it is elected. The first in the order of [`Candidate`] has every
//! transaction that a quorum has, so no committed one is lost. That two servers can still believe in
//! different leaders for a moment is Zab's to deal with: only one of them gets a quorum of followers.
//!
//! As upstream has it (`FastLeaderElection`), on the wire too, with one difference: upstream waits a fixed
//! time for better votes after a quorum has agreed. Here that wait ends as soon as nobody is left who could
//! send one: every voter has backed the candidate in this round, or is known to be out of reach.

mod disruptive;
mod late_votes;
mod record;
mod timing;
mod without_vote;

pub use record::{ElectionEvent, ElectionRecord, Entry, IgnoreReason, Rule, Verdict};
pub use timing::ElectionTiming;

use crate::{quorum::Electorate, time::Mono};
use alloc::{
    collections::{BTreeMap, BTreeSet},
    string::String,
    vec::Vec,
};
use ostler_proto::{
    election::{Candidate, NOTIFICATION_VERSION, Notification, PeerState},
    id::{Epoch, ServerId, Zxid},
    planted::{self, Bug},
};

/// What the server has to do for an election.
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

/// Between elections: what others are told who ask.
#[derive(Debug, Clone)]
struct Settled {
    state: PeerState,
    candidate: Option<Candidate>,
    round: u64,
    /// Whom others have backed since, until the epoch has begun.
    backed_since: Option<BTreeMap<ServerId, ServerId>>,
}

#[derive(Debug)]
struct Looking {
    /// The vote for oneself; `None` for one who cannot be elected.
    own: Option<Candidate>,
    /// That vote when this election began: what it has on its disk does not change meanwhile.
    initial_own: Option<Candidate>,
    proposal: Option<Candidate>,
    /// The ballot box: the last vote of each voter in this round.
    ballots: BTreeMap<ServerId, Ballot>,
    /// Votes of those who have a leader.
    settled_votes: BTreeMap<ServerId, Ballot>,
    /// Voters that look for a leader as well: whom they back, if anybody, and their round. For a server without a voice.
    looking_voters: BTreeMap<ServerId, (Option<Candidate>, u64)>,
    resend_at: Mono,
    resend_after: u64,
    /// A quorum has agreed; until then something better may come.
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
    /// There is nothing on disk: it may have been there, and been acknowledged.
    without_history: bool,
    timing: ElectionTiming,
    /// The logical clock: the number of this election. Lives as long as the process.
    round: u64,
    phase: Phase,
    /// Voters to whom there is no connection, as far as is known.
    unreachable: BTreeSet<ServerId>,
    /// Sent along with every vote.
    config: String,
    record: ElectionRecord,
    disruptive: disruptive::DisruptiveVoters,
}

impl Election {
    /// For one server. It is settled on nobody until [`Election::look`].
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

    /// Whether nothing is on disk, and nobody has said that this is right. Such a server votes with others that have
    /// nothing, and only joins where somebody has something: it may have lost what a quorum relies on.
    pub fn set_without_history(&mut self, without_history: bool) {
        self.without_history = without_history;
    }

    /// Whether this server has given up its vote in this election.
    pub fn has_no_vote(&self) -> bool {
        !self.observer && matches!(&self.phase, Phase::Looking(looking) if looking.own.is_none())
    }

    /// The number of the current or last election.
    pub fn round(&self) -> u64 {
        self.round
    }

    /// What happened in the current or last election.
    pub fn record(&self) -> &ElectionRecord {
        &self.record
    }

    /// Whether a leader is sought.
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

    /// Begins an election. `own` is the vote for oneself; `None` for an observer, and for a server whose
    /// database is not trusted.
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

    /// A leader that leaves has named the next: it is taken without an election, as upstream does. Whether it can
    /// lead shows when it asks for its followers' epochs.
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

    /// Synchronised with the leader: from now on the vote names the new epoch, as the leader's own does, so
    /// that whoever comes later finds all votes equal.
    pub fn established(&mut self, epoch: Epoch) {
        if let Phase::Settled(Settled { candidate: Some(candidate), backed_since, .. }) = &mut self.phase {
            (candidate.epoch, *backed_since) = (epoch, None);
        }
    }

    /// The leader brings its history, so it has the promises of a quorum: what was said before they were given is over, and
    /// if it loses them it ends this connection.
    pub fn history_arrives(&mut self) {
        if let Phase::Settled(settled) = &mut self.phase {
            settled.backed_since = None;
        }
    }

    /// A voter has connected to this server as to its leader, whatever it has said before.
    pub fn voter_follows(&mut self, server: ServerId) {
        if let Phase::Settled(Settled { backed_since: Some(backed_since), .. }) = &mut self.phase {
            backed_since.remove(&server);
        }
    }

    /// Whether a server has elected this one in another round than that of now: it is called back, and whatever it asks of
    /// its leader until it knows is in vain.
    pub fn has_elected_me_before(&self, server: ServerId) -> bool {
        let Phase::Looking(looking) = &self.phase else { return false };
        let vote = looking.settled_votes.get(&server);
        vote.is_some_and(|vote| vote.candidate.id == self.me && vote.round < self.round)
    }

    /// The configuration that votes carry from now on, and whether this server votes under it.
    pub fn set_config(&mut self, config: String, observer: bool) {
        (self.config, self.observer) = (config, observer);
        // Who follows goes on, with or without a vote; only with one does it count for others who look.
        if let Phase::Settled(settled) = &mut self.phase
            && settled.state != PeerState::Leading
        {
            settled.state = if observer { PeerState::Observing } else { PeerState::Following };
        }
    }

    /// A connection to a voter has come, or cannot be had.
    pub fn link_changed(
        &mut self,
        now: Mono,
        peer: ServerId,
        up: bool,
        electorate: &Electorate,
        out: &mut Vec<ElectionOutput>,
    ) {
        // Anybody may connect with any number.
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
            // Also where it takes the place of another: what was sent on that may be lost.
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

    /// What a voter was sent last may be lost, and it may have nothing to say by itself.
    fn resend_soon(&mut self, now: Mono) {
        if let Phase::Looking(looking) = &mut self.phase {
            looking.resend_at = looking.resend_at.min(now.after(self.timing.recall));
        }
    }

    /// A vote has come from a server of another ensemble: it counts for nothing, and gets no answer.
    pub fn refused_other_ensemble(&mut self, now: Mono, from: ServerId, vote: &Notification) {
        self.record.received(now, from, vote, Verdict::Ignored(IgnoreReason::AnotherEnsemble));
    }

    /// A vote has come.
    pub fn notified(
        &mut self,
        now: Mono,
        from: ServerId,
        vote: &Notification,
        electorate: &Electorate,
        out: &mut Vec<ElectionOutput>,
    ) {
        if !electorate.votes(from) {
            self.record.received(now, from, vote, Verdict::Ignored(IgnoreReason::NoVoter));
            // An observer, or a server that is to join: it only wants to know. Two of them, each of whom takes the other
            // for one, must not go on telling: upstream's do.
            if vote.state == PeerState::Looking && !(self.observer && self.is_looking()) {
                self.send_to(now, from, out);
            }
            return;
        }
        let Phase::Looking(looking) = &mut self.phase else {
            return self.notified_after_decision(now, from, vote, electorate, out);
        };
        // An epoch that has begun is another thing, as its leader has a quorum; but it is not this server's.
        let is_looking = vote.state == PeerState::Looking;
        let names = |is_so: &dyn Fn(ServerId) -> bool| vote.candidate.is_some_and(|of| is_so(of.id));
        let is_left_out = |server| self.disruptive.is_left_out(now, server);
        if (is_left_out(from) && (is_looking || names(&|of| of == self.me)))
            || (is_looking && names(&is_left_out))
        {
            return self.record.received(now, from, vote, Verdict::Ignored(IgnoreReason::LeftOut));
        }
        let has = looking.initial_own.map(|own| (own.epoch, own.zxid));
        let of_this = vote.candidate.filter(|of| of.id == self.me && is_looking);
        if of_this.is_some_and(|of| has.is_some_and(|has| (of.epoch, of.zxid) > has)) {
            // What it was elected for in an earlier life may not be on its disk any more; or somebody makes it up.
            let why = IgnoreReason::SaysTooMuchOfThisServer;
            self.record.received(now, from, vote, Verdict::Ignored(why));
            return if looking.own.is_some() {
                self.answer_voter(now, from, out)
            };
        }
        if vote.state == PeerState::Looking {
            // What it has said of a leader does not hold any more. Upstream goes on counting it, and follows one whom all
            // have left.
            looking.settled_votes.remove(&from);
            looking.looking_voters.insert(from, (vote.candidate, vote.round));
        } else {
            looking.looking_voters.remove(&from);
        }
        let Some(candidate) = vote.candidate else {
            self.record.received(now, from, vote, Verdict::Ignored(IgnoreReason::BacksNobody));
            return self.back_best_if_all_look(now, electorate, out);
        };
        if !electorate.votes(candidate.id) {
            return self.record.received(
                now,
                from,
                vote,
                Verdict::Ignored(IgnoreReason::CandidateDoesNotVote),
            );
        }
        let ballot = Ballot { candidate, round: vote.round, state: vote.state };
        match vote.state {
            PeerState::Observing => {
                self.record.received(now, from, vote, Verdict::Ignored(IgnoreReason::NoVoter))
            }
            PeerState::Looking if looking.own.is_none() && !self.observer => {
                self.record.received(now, from, vote, Verdict::Ignored(IgnoreReason::Untrusted));
                self.back_best_if_all_look(now, electorate, out);
            }
            PeerState::Looking => self.count_looking(now, from, vote, ballot, electorate, out),
            PeerState::Following | PeerState::Leading => {
                self.record.received(now, from, vote, Verdict::Counted);
                if candidate.id == self.me && ballot.round > self.round {
                    if self.note_disruption(now, from, candidate, electorate) {
                        return self.send_to_all(now, electorate, out);
                    }
                    self.move_past_round(now, ballot.round, electorate, out);
                }
                self.count_settled(now, from, ballot, electorate, out);
            }
        }
    }

    /// A time that [`Election::next_deadline`] named has come.
    pub fn deadline(&mut self, now: Mono, electorate: &Electorate, out: &mut Vec<ElectionOutput>) {
        let has_unreachable_voter = self.has_unreachable_voter(electorate);
        let Phase::Looking(looking) = &mut self.phase else { return };
        if looking.settle_until.is_some_and(|until| until <= now)
            && let Some(candidate) = looking.proposal
        {
            return self.elect_and_tell(now, candidate, self.round, electorate, out);
        }
        if looking.resend_at <= now {
            // Nobody writes to an observer of his own accord: it has to ask until somebody has a leader.
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

    /// A vote of another who looks.
    fn count_looking(
        &mut self,
        now: Mono,
        from: ServerId,
        vote: &Notification,
        ballot: Ballot,
        electorate: &Electorate,
        out: &mut Vec<ElectionOutput>,
    ) {
        let Phase::Looking(looking) = &mut self.phase else { return };
        let theirs = ballot.candidate;
        if self.without_history && (theirs.epoch > Epoch(0) || theirs.zxid > Zxid::ZERO) {
            let backed = looking.own.is_some() || looking.proposal.is_some();
            (looking.own, looking.proposal, looking.settle_until) = (None, None, None);
            self.record.received(now, from, vote, Verdict::Ignored(IgnoreReason::Untrusted));
            // Who votes answers each word of an observer.
            if backed {
                self.send_to_all(now, electorate, out);
            }
            return self.back_best_if_all_look(now, electorate, out);
        }
        if ballot.round < self.round {
            // It learns the round from the answer.
            self.record.received(now, from, vote, Verdict::Ignored(IgnoreReason::EarlierRound));
            return self.answer_voter(now, from, out);
        }
        let later = ballot.round > self.round;
        if later {
            self.round = ballot.round;
            looking.ballots.clear();
        }
        // A server knows best what it has itself: whoever says more of it is wrong.
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
        self.record.received(now, from, vote, verdict);
        if changed {
            looking.settle_until = None;
            // Then it is not listened to for a while, and the others are to hear of something else.
            self.note_disruption(now, from, theirs, electorate);
            self.send_to_all(now, electorate, out);
        } else if verdict == Verdict::Worse && Some(theirs) < looking.proposal {
            // It may have begun to look just now, and have missed what was told before. Upstream leaves it to the
            // repetition of the vote. Weights may make each vote worse than the other: one of the two is silent.
            self.answer_voter(now, from, out);
        }
        self.check_quorum(now, electorate, out);
    }

    /// Tells a voter that looks what this server knows better. An observer does not: its word counts for nothing, and is
    /// answered by whoever votes, so the two would go on as fast as they can until somebody leads.
    fn answer_voter(&mut self, now: Mono, voter: ServerId, out: &mut Vec<ElectionOutput>) {
        if !self.observer {
            self.send_to(now, voter, out);
        }
    }

    /// Somebody follows this server, which does not lead: others had its vote when it ended, and elected it. It does not
    /// take that up, as what they elected it for may not be on its disk any more. They wait for it, as upstream's do for as
    /// long as an epoch may take to begin, until they hear of it in a round after theirs.
    fn move_past_round(
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

    /// A vote of one who has a leader: that leader is joined once a quorum says so, and itself does.
    fn count_settled(
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
            // Votes of this round that were counted before their senders had elected must fit whole.
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
        // A change that is only logged here may give votes to servers that have none under that leader. Who follows a
        // leader needs no promise from them: that leader got all that it needs before it brings its history.
        let agreed =
            electorate.current.is_quorum(|server| looking.settled_votes.get(&server).is_some_and(same));
        if agreed && leads(&looking.settled_votes) {
            // As the leader itself counts: a later round of its means that this epoch is over.
            let round =
                looking.settled_votes.get(&ballot.candidate.id).map_or(ballot.round, |vote| vote.round);
            return self.join_decided(now, ballot.candidate, round, electorate, out);
        }
        // Who has a leader speaks only when asked, and will say something else once its epoch has begun.
        self.resend_soon(now);
    }

    /// Whether a quorum backs the proposal, and whether anything better can still come.
    fn check_quorum(&mut self, now: Mono, electorate: &Electorate, out: &mut Vec<ElectionOutput>) {
        let (me, round) = (self.me, self.round);
        let Phase::Looking(looking) = &mut self.phase else { return };
        let Some(candidate) = looking.proposal else { return };
        if self.observer {
            // An observer's own voice is none: it hears from those who have a leader.
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

    /// Decided here: the others learn of it at once, for one that began late may count on this voice.
    fn elect_and_tell(
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

    /// Decided by others: who has been told of another vote may count on it.
    fn join_decided(
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

    fn elect(&mut self, now: Mono, candidate: Candidate, round: u64, out: &mut Vec<ElectionOutput>) {
        let state = match (candidate.id == self.me, self.observer) {
            (true, _) => PeerState::Leading,
            (false, false) => PeerState::Following,
            (false, true) => PeerState::Observing,
        };
        if let Phase::Looking(looking) = &self.phase {
            let votes = looking.ballots.iter().chain(&looking.settled_votes);
            let votes = votes.map(|(server, ballot)| (*server, ballot.candidate)).collect();
            self.record.add(now, ElectionEvent::Elected { candidate, state, votes });
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

/// The rule by which a candidate is better than what is backed now, if it is.
fn beats(new: Candidate, current: Option<Candidate>, electorate: &Electorate) -> Option<Rule> {
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
