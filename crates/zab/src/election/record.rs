//! What happened in an election, kept so that it can be explained.

use crate::time::Mono;
use alloc::vec::Vec;
use ostler_proto::{
    election::{Candidate, Notification, PeerState},
    id::ServerId,
};

/// An election that goes on for hours must not fill the memory: how it began is kept, and how it ended.
const FIRST_KEPT: usize = 500;
const LAST_KEPT: usize = 500;
/// Nor what is heard and answered in the years after it.
const FIRST_KEPT_SINCE: usize = 50;
const LAST_KEPT_SINCE: usize = 150;

/// One server's view of one election.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ElectionRecord {
    /// In order.
    pub entries: Vec<Entry>,
    /// Entries from the middle that were not kept.
    pub left_out: usize,
    /// The same, of what came after the end.
    pub left_out_since: usize,
    /// The number of entries up to the end of the election.
    end: Option<usize>,
}

/// An event with its time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The time of the event.
    pub at: Mono,
    /// The event.
    pub event: ElectionEvent,
}

/// An event of an election, as one server saw it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ElectionEvent {
    /// The election began with a vote for oneself, if one may be elected.
    Began {
        /// Its number.
        round: u64,
        /// The vote.
        own: Option<Candidate>,
    },
    /// This server sent its vote to all voters.
    SentToAll {
        /// The candidate that it backs.
        candidate: Option<Candidate>,
        /// The number of the election.
        round: u64,
    },
    /// This server sent its vote to one other server, as an answer or over a new connection.
    SentToOne {
        /// The receiver.
        to: ServerId,
        /// The state of this server.
        state: PeerState,
        /// The candidate that this server backs.
        candidate: Option<Candidate>,
        /// The number of the election.
        round: u64,
    },
    /// This server received a vote.
    Received {
        /// The sender.
        from: ServerId,
        /// The sender's state.
        state: PeerState,
        /// The candidate that the sender backs.
        candidate: Option<Candidate>,
        /// The sender's round.
        round: u64,
        /// What this server made of the vote.
        verdict: Verdict,
    },
    /// A voter can be reached now.
    Reached {
        /// The voter.
        peer: ServerId,
    },
    /// A voter cannot be reached.
    Lost {
        /// The voter.
        peer: ServerId,
    },
    /// A quorum backs a candidate; a better vote may still come.
    Agreed {
        /// The candidate.
        candidate: Candidate,
    },
    /// The election is over. The votes that decided it go along.
    Elected {
        /// The elected candidate.
        candidate: Candidate,
        /// The state of this server from now on.
        state: PeerState,
        /// Who backed whom.
        votes: Vec<(ServerId, Candidate)>,
    },
}

/// What came of a vote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Not looked at further.
    Ignored(IgnoreReason),
    /// Its candidate is better than the one backed before.
    Adopted {
        /// By which rule.
        rule: Rule,
        /// And the round was a later one, which was taken over.
        later_round: bool,
    },
    /// Its round was a later one, which was taken over; its candidate is no better than oneself.
    LaterRound,
    /// It went into the ballot box, for the candidate that this server backs too.
    Counted,
    /// It went into the ballot box; its candidate is not as good.
    Worse,
    /// It came after the election, and says that what was decided here will not be.
    ElectionVoid,
}

/// Why one candidate is better than another, or than none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// Nobody was backed before.
    FirstHeard,
    /// It has seen a later epoch.
    LaterEpoch,
    /// Same epoch; its log goes further.
    LaterZxid,
    /// Same log; its id is larger.
    LargerId,
}

/// Why a vote was ignored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IgnoreReason {
    /// Its sender does not vote.
    NoVoter,
    /// It names no candidate.
    BacksNobody,
    /// Its candidate is no voter here.
    CandidateDoesNotVote,
    /// It belongs to an election that is over.
    EarlierRound,
    /// This server's database is not trusted, so it does not take part.
    Untrusted,
    /// This server has decided already.
    Decided,
    /// Its sender is a server of another ensemble.
    AnotherEnsemble,
    /// Its sender, or its candidate, has upset elections again and again, or was elected and was not there: it is left out
    /// for a while.
    LeftOut,
    /// It says of this server that it has more than it has.
    SaysTooMuchOfThisServer,
}

impl ElectionRecord {
    pub(crate) fn begin(at: Mono, round: u64, own: Option<Candidate>) -> Self {
        let mut record = ElectionRecord::default();
        record.add(at, ElectionEvent::Began { round, own });
        record
    }

    pub(crate) fn add(&mut self, at: Mono, event: ElectionEvent) {
        let (begin, first, last, left_out) = match self.end {
            None => (0, FIRST_KEPT, LAST_KEPT, &mut self.left_out),
            Some(end) => (end, FIRST_KEPT_SINCE, LAST_KEPT_SINCE, &mut self.left_out_since),
        };
        if self.entries.len() == begin + first + last {
            self.entries.remove(begin + first);
            *left_out += 1;
        }
        let is_end = matches!(event, ElectionEvent::Elected { .. });
        self.entries.push(Entry { at, event });
        if is_end {
            self.end = Some(self.entries.len());
        }
    }

    pub(crate) fn received(&mut self, at: Mono, from: ServerId, vote: &Notification, verdict: Verdict) {
        let Notification { state, candidate, round, .. } = *vote;
        self.add(at, ElectionEvent::Received { from, state, candidate, round, verdict });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ostler_proto::id::{Epoch, Zxid};

    #[test]
    fn of_a_long_election_its_beginning_and_its_end_are_kept() {
        let mut record = ElectionRecord::begin(Mono(0), 1, None);
        for at in 1..3000 {
            record.add(Mono(at), ElectionEvent::SentToAll { candidate: None, round: 1 });
        }
        let kept: Vec<u64> = record.entries.iter().map(|entry| entry.at.0).collect();
        assert_eq!(kept, (0..500).chain(2500..3000).collect::<Vec<u64>>());
        assert_eq!(record.left_out, 2000);
    }

    #[test]
    fn what_comes_after_the_end_does_not_push_the_end_out() {
        let mut record = ElectionRecord::begin(Mono(0), 1, None);
        let candidate = Candidate { epoch: Epoch(1), zxid: Zxid(1), id: ServerId(2) };
        let (state, votes) = (PeerState::Following, Vec::new());
        record.add(Mono(1), ElectionEvent::Elected { candidate, state, votes });
        for at in 2..3000 {
            let (candidate, round) = (Some(candidate), 1);
            record.add(Mono(at), ElectionEvent::SentToOne { to: ServerId(4), state, candidate, round });
        }
        let kept: Vec<u64> = record.entries.iter().map(|entry| entry.at.0).collect();
        assert_eq!(kept, (0..52).chain(2850..3000).collect::<Vec<u64>>());
        assert_eq!((record.left_out, record.left_out_since), (0, 2798));
    }
}
