//! The record of an election, for `elec` and `ostler explain`.

use crate::time::Mono;
use alloc::vec::Vec;
use ostler_proto::{
    election::{Candidate, Notification, PeerState},
    id::ServerId,
};

/// The number of entries that are kept from the beginning and from the end of an election. An election that goes on for
/// hours must not fill the memory.
const FIRST_KEPT: usize = 500;
const LAST_KEPT: usize = 500;
/// The same for votes that come and are answered after the election.
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
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(tag = "what", rename_all = "snake_case")
)]
pub enum ElectionEvent {
    /// The election began with a vote for oneself, if one may be elected.
    Began {
        /// Its number.
        round: u64,
        /// The vote.
        own: Option<Candidate>,
    },
    /// This server sent its vote to all voters.
    #[cfg_attr(feature = "serde", serde(rename = "told"))]
    SentToAll {
        /// The number of the election.
        round: u64,
        /// The candidate that it backs.
        #[cfg_attr(feature = "serde", serde(rename = "vote"))]
        candidate: Option<Candidate>,
    },
    /// This server sent its vote to one other server, as an answer or over a new connection.
    #[cfg_attr(feature = "serde", serde(rename = "told_one"))]
    SentToOne {
        /// The receiver.
        to: ServerId,
        /// The state of this server.
        state: PeerState,
        /// The number of the election.
        round: u64,
        /// The candidate that this server backs.
        #[cfg_attr(feature = "serde", serde(rename = "vote"))]
        candidate: Option<Candidate>,
    },
    /// This server received a vote.
    Received {
        /// The sender.
        from: ServerId,
        /// The sender's state.
        state: PeerState,
        /// The sender's round.
        round: u64,
        /// The candidate that the sender backs.
        #[cfg_attr(feature = "serde", serde(rename = "vote"))]
        candidate: Option<Candidate>,
        /// The verdict of this server on the vote.
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
        #[cfg_attr(feature = "serde", serde(rename = "vote"))]
        candidate: Candidate,
    },
    /// The election is over. The votes that decided it go along.
    Elected {
        /// The elected candidate.
        #[cfg_attr(feature = "serde", serde(rename = "vote"))]
        candidate: Candidate,
        /// The votes that decided.
        #[cfg_attr(feature = "serde", serde(rename = "ballots"))]
        votes: Vec<CountedVote>,
    },
}

/// A vote that decided an election.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct CountedVote {
    /// The voter.
    pub voter: ServerId,
    /// The candidate that it backed.
    #[cfg_attr(feature = "serde", serde(rename = "vote"))]
    pub candidate: Candidate,
}

/// The verdict of this server on a vote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(tag = "is", rename_all = "snake_case")
)]
pub enum Verdict {
    /// Ignored.
    Ignored {
        /// The reason.
        why: IgnoreReason,
    },
    /// Its candidate is better than the one that this server backed, so this server backs it now.
    Adopted {
        /// The rule that decided.
        rule: Rule,
        /// The vote was of a later round, and this server has gone on to that round.
        later_round: bool,
    },
    /// It was of a later round, and this server has gone on to that round. Its candidate is no better than this server,
    /// which backs itself.
    LaterRound,
    /// Counted, for the candidate that this server backs.
    Counted,
    /// Counted, for a candidate that is worse than the one this server backs.
    Worse,
    /// It came after the election, and shows that the elected server will not lead. This server looks for a leader
    /// again. In JSON it has its earlier name, which programs read.
    #[cfg_attr(feature = "serde", serde(rename = "mistaken"))]
    ElectionVoid,
}

/// Why one candidate is better than another, or than none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
pub enum Rule {
    /// This server backed no candidate before.
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
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
pub enum IgnoreReason {
    /// The sender does not vote.
    NoVoter,
    /// The vote names no candidate.
    BacksNobody,
    /// The candidate is not a voter in this server's configuration.
    CandidateDoesNotVote,
    /// The vote is of an earlier round.
    EarlierRound,
    /// This server may have lost data, so it has no vote and counts none.
    Untrusted,
    /// This server has elected a leader already.
    Decided,
    /// The sender's configuration belongs to another ensemble.
    AnotherEnsemble,
    /// The sender or the candidate is left out for a while: it has disrupted elections again and again, or was elected
    /// and could not be reached.
    LeftOut,
    /// The vote claims a later epoch or zxid for this server than it has.
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
    fn a_long_election_keeps_its_first_and_last_entries() {
        let mut record = ElectionRecord::begin(Mono(0), 1, None);
        for at in 1..3000 {
            record.add(Mono(at), ElectionEvent::SentToAll { candidate: None, round: 1 });
        }
        let kept: Vec<u64> = record.entries.iter().map(|entry| entry.at.0).collect();
        assert_eq!(kept, (0..500).chain(2500..3000).collect::<Vec<u64>>());
        assert_eq!(record.left_out, 2000);
    }

    #[test]
    fn entries_after_the_election_do_not_push_its_end_out() {
        let mut record = ElectionRecord::begin(Mono(0), 1, None);
        let candidate = Candidate { epoch: Epoch(1), zxid: Zxid(1), id: ServerId(2) };
        let (state, votes) = (PeerState::Following, Vec::new());
        record.add(Mono(1), ElectionEvent::Elected { candidate, votes });
        for at in 2..3000 {
            let (candidate, round) = (Some(candidate), 1);
            record.add(Mono(at), ElectionEvent::SentToOne { to: ServerId(4), state, candidate, round });
        }
        let kept: Vec<u64> = record.entries.iter().map(|entry| entry.at.0).collect();
        assert_eq!(kept, (0..52).chain(2850..3000).collect::<Vec<u64>>());
        assert_eq!((record.left_out, record.left_out_since), (0, 2798));
    }
}
