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

/// One server's view of one election.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ElectionRecord {
    /// In order.
    pub entries: Vec<Entry>,
    /// Entries from the middle that were not kept.
    pub left_out: usize,
}

/// One moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// When.
    pub at: Mono,
    /// What.
    pub what: Happening,
}

/// What can happen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Happening {
    /// The election began with a vote for oneself, if one may be elected.
    Began {
        /// Its number.
        round: u64,
        /// The vote.
        own: Option<Candidate>,
    },
    /// Everybody was told.
    Told {
        /// Whom this server backs.
        candidate: Option<Candidate>,
        /// The number of the election.
        round: u64,
    },
    /// A vote came.
    Received {
        /// From whom.
        from: ServerId,
        /// The sender's state.
        state: PeerState,
        /// Whom it backs.
        candidate: Option<Candidate>,
        /// Its round.
        round: u64,
        /// What came of it.
        verdict: Verdict,
    },
    /// A voter can be reached now.
    Reached {
        /// Which.
        peer: ServerId,
    },
    /// A voter cannot be reached.
    Lost {
        /// Which.
        peer: ServerId,
    },
    /// A quorum backs a candidate; a better vote may still come.
    Agreed {
        /// Whom.
        candidate: Candidate,
    },
    /// The end, with the ballot box.
    Elected {
        /// Who leads.
        candidate: Candidate,
        /// What this server is now.
        state: PeerState,
        /// Who backed whom.
        votes: Vec<(ServerId, Candidate)>,
    },
}

/// What came of a vote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Not looked at further.
    Ignored(Why),
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
pub enum Why {
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
}

impl ElectionRecord {
    pub(crate) fn begin(at: Mono, round: u64, own: Option<Candidate>) -> Self {
        let mut record = ElectionRecord::default();
        record.add(at, Happening::Began { round, own });
        record
    }

    pub(crate) fn add(&mut self, at: Mono, what: Happening) {
        if self.entries.len() == FIRST_KEPT + LAST_KEPT {
            self.entries.remove(FIRST_KEPT);
            self.left_out += 1;
        }
        self.entries.push(Entry { at, what });
    }

    pub(crate) fn received(&mut self, at: Mono, from: ServerId, vote: &Notification, verdict: Verdict) {
        let Notification { state, candidate, round, .. } = *vote;
        self.add(at, Happening::Received { from, state, candidate, round, verdict });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_long_election_its_beginning_and_its_end_are_kept() {
        let mut record = ElectionRecord::begin(Mono(0), 1, None);
        for at in 1..3000 {
            record.add(Mono(at), Happening::Told { candidate: None, round: 1 });
        }
        let kept: Vec<u64> = record.entries.iter().map(|entry| entry.at.0).collect();
        assert_eq!(kept, (0..500).chain(2500..3000).collect::<Vec<u64>>());
        assert_eq!(record.left_out, 2000);
    }
}
