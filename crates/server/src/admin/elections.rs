//! A member's last elections, in the form in which the word `elec` gives them and `ostler explain` reads them.
//!
//! All `ms` are milliseconds since the search began, on the server's monotonic clock. Zxids are texts, since most
//! readers of JSON take numbers for doubles.

use ostler_proto::{
    election::{Candidate, PeerState},
    id::{Epoch, ServerId, Zxid},
};
use ostler_server_core::{
    input::Mono,
    quorum::election_history::{self, Takeover},
};
use ostler_zab::{
    election::{ElectionEvent, Entry, IgnoreReason, Rule, Verdict},
    leading::StepDown,
    learning::HangUp,
};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

/// The answer of a server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Elections {
    pub server: i64,
    /// The server's wall clock at the time of the answer.
    pub now_ms: i64,
    /// Empty for a standalone server.
    pub voters: Vec<i64>,
    /// How long an election waits for a better vote after a quorum has agreed.
    pub settle_ms: u64,
    /// The oldest first; the last one may be under way.
    pub searches: Vec<Search>,
}

/// One search for a leader.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Search {
    /// On the wall clock.
    pub began_ms: i64,
    pub why: Cause,
    /// The leader before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<i64>,
    /// How long before the search that leader was last heard of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub silent_ms: Option<u64>,
    /// The last transaction in the log.
    pub last: Hex,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elected: Option<Elected>,
    /// A learner has its connection to the leader.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connected_ms: Option<u64>,
    /// A learner has promised the epoch; a leader has the promises of a quorum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub discovered: Option<Discovered>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub takeover: Option<TakenOver>,
    /// The epoch has begun, and the server takes part in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub synchronised_ms: Option<u64>,
    /// The first one here from then on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_commit: Option<Commit>,
    pub moments: Vec<Moment>,
    /// Moments from the middle that were not kept.
    #[serde(default)]
    pub left_out: usize,
    /// The same, of those after the end.
    #[serde(default)]
    pub left_out_since: usize,
}

/// Why a leader is sought.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum Cause {
    Started,
    LeaderGone,
    /// In JSON under its earlier name: programs read it.
    #[serde(rename = "mistaken")]
    ElectionVoid,
    LeaderUnreachable,
    LeaderSilent {
        ms: u64,
    },
    LeaderBroken,
    StaleEpoch {
        proposed: u32,
        accepted: u32,
    },
    OutOfTurn,
    Gap {
        last: Hex,
        next: Hex,
    },
    UnmatchedCommit {
        expected: Hex,
        committed: Hex,
    },
    NoFollowers,
    EpochNotAccepted,
    NotSynchronised,
    QuorumLost,
    NoEpochLeft,
    CounterFull,
    Reconfigured,
    CutBack,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Elected {
    pub ms: u64,
    pub leader: i64,
    pub role: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Discovered {
    pub ms: u64,
    pub epoch: u32,
}

/// The act by which a learner changed its own history, beside adding the transactions that it lacked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TakenOver {
    pub ms: u64,
    pub how: How,
    /// The last transaction after it.
    pub last: Hex,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    Truncated,
    Snapshot,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Commit {
    pub ms: u64,
    pub zxid: Hex,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    Looking,
    Following,
    Leading,
    Observing,
}

/// Somebody who is voted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Vote {
    pub epoch: u32,
    pub zxid: Hex,
    pub id: i64,
}

/// Something that happened in an election.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moment {
    pub ms: u64,
    #[serde(flatten)]
    pub what: What,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum What {
    Began { round: u64, own: Option<Vote> },
    Told { round: u64, vote: Option<Vote> },
    ToldOne { to: i64, state: State, round: u64, vote: Option<Vote> },
    Received { from: i64, state: State, round: u64, vote: Option<Vote>, verdict: Judged },
    Reached { peer: i64 },
    Lost { peer: i64 },
    Agreed { vote: Vote },
    Elected { vote: Vote, ballots: Vec<BallotOf> },
}

/// The verdict on a vote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum Judged {
    Ignored {
        why: Ignored,
    },
    Adopted {
        rule: Better,
        later_round: bool,
    },
    LaterRound,
    Counted,
    Worse,
    /// In JSON under its earlier name: programs read it.
    #[serde(rename = "mistaken")]
    ElectionVoid,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ignored {
    NoVoter,
    BacksNobody,
    CandidateDoesNotVote,
    EarlierRound,
    Untrusted,
    Decided,
    AnotherEnsemble,
    LeftOut,
    SaysTooMuchOfThisServer,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Better {
    FirstHeard,
    LaterEpoch,
    LaterZxid,
    LargerId,
}

/// An entry of the ballot box.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct BallotOf {
    pub voter: i64,
    pub vote: Vote,
}

/// A zxid as it is written everywhere: `0x100000002`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Hex(pub u64);

impl Serialize for Hex {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&format_args!("{:#x}", self.0))
    }
}

impl<'a> Deserialize<'a> for Hex {
    fn deserialize<D: Deserializer<'a>>(from: D) -> Result<Hex, D::Error> {
        let text = String::deserialize(from)?;
        let number = text.strip_prefix("0x").and_then(|digits| u64::from_str_radix(digits, 16).ok());
        number.map(Hex).ok_or_else(|| D::Error::custom(format_args!("{text} is no zxid")))
    }
}

impl Elections {
    pub(crate) fn of(elections: election_history::Elections, now_ms: i64) -> Elections {
        let voters = elections.voters.into_iter().map(|voter| voter.0).collect();
        let searches = elections.searches.into_iter().map(Search::from).collect();
        Elections { server: elections.me.0, now_ms, voters, settle_ms: elections.settle_ms, searches }
    }
}

impl From<election_history::Search> for Search {
    fn from(search: election_history::Search) -> Search {
        let began = search.began.mono.0;
        let ms = |at: Mono| at.0.saturating_sub(began);
        Search {
            began_ms: search.began.wall_ms,
            why: search.why.into(),
            before: search.before.map(|server| server.0),
            silent_ms: search.last_word.map(|at| began.saturating_sub(at.0)),
            last: search.last.into(),
            elected: search.elected.map(|outcome| Elected {
                ms: ms(outcome.at),
                leader: outcome.leader.0,
                role: outcome.role.into(),
            }),
            connected_ms: search.connected.map(ms),
            discovered: search.discovered.map(|(at, Epoch(epoch))| Discovered { ms: ms(at), epoch }),
            takeover: search.takeover.map(|(at, takeover)| {
                let (how, last) = match takeover {
                    Takeover::Truncated(to) => (How::Truncated, to),
                    Takeover::Snapshot(of) => (How::Snapshot, of),
                };
                TakenOver { ms: ms(at), how, last: last.into() }
            }),
            synchronised_ms: search.synchronised.map(ms),
            first_commit: search.first_commit.map(|(at, zxid)| Commit { ms: ms(at), zxid: zxid.into() }),
            moments: search
                .votes
                .entries
                .into_iter()
                .map(|Entry { at, event }| Moment { ms: ms(at), what: event.into() })
                .collect(),
            left_out: search.votes.left_out,
            left_out_since: search.votes.left_out_since,
        }
    }
}

impl From<election_history::SearchReason> for Cause {
    fn from(why: election_history::SearchReason) -> Cause {
        use election_history::SearchReason;
        match why {
            SearchReason::Started => Cause::Started,
            SearchReason::LeaderGone => Cause::LeaderGone,
            SearchReason::ElectionVoid => Cause::ElectionVoid,
            SearchReason::LeaderUnreachable => Cause::LeaderUnreachable,
            SearchReason::LeaderSilent { ms } => Cause::LeaderSilent { ms },
            SearchReason::LeaderBroken => Cause::LeaderBroken,
            SearchReason::Left(HangUp::StaleEpoch {
                proposed: Epoch(proposed),
                accepted: Epoch(accepted),
            }) => Cause::StaleEpoch { proposed, accepted },
            SearchReason::Left(HangUp::OutOfTurn) => Cause::OutOfTurn,
            SearchReason::Left(HangUp::Gap { last, next }) => {
                Cause::Gap { last: last.into(), next: next.into() }
            }
            SearchReason::Left(HangUp::UnmatchedCommit { expected, committed }) => {
                Cause::UnmatchedCommit { expected: expected.into(), committed: committed.into() }
            }
            SearchReason::SteppedDown(StepDown::NoFollowers) => Cause::NoFollowers,
            SearchReason::SteppedDown(StepDown::EpochNotAccepted) => Cause::EpochNotAccepted,
            SearchReason::SteppedDown(StepDown::NotSynchronised) => Cause::NotSynchronised,
            SearchReason::SteppedDown(StepDown::QuorumLost) => Cause::QuorumLost,
            SearchReason::SteppedDown(StepDown::NoEpochLeft) => Cause::NoEpochLeft,
            SearchReason::CounterFull => Cause::CounterFull,
            SearchReason::Reconfigured => Cause::Reconfigured,
            SearchReason::CutBack => Cause::CutBack,
        }
    }
}

impl From<ElectionEvent> for What {
    fn from(happening: ElectionEvent) -> What {
        match happening {
            ElectionEvent::Began { round, own } => What::Began { round, own: own.map(Vote::from) },
            ElectionEvent::SentToAll { candidate, round } => {
                What::Told { round, vote: candidate.map(Vote::from) }
            }
            ElectionEvent::SentToOne { to, state, candidate, round } => {
                What::ToldOne { to: to.0, state: state.into(), round, vote: candidate.map(Vote::from) }
            }
            ElectionEvent::Received { from, state, candidate, round, verdict } => What::Received {
                from: from.0,
                state: state.into(),
                round,
                vote: candidate.map(Vote::from),
                verdict: verdict.into(),
            },
            ElectionEvent::Reached { peer } => What::Reached { peer: peer.0 },
            ElectionEvent::Lost { peer } => What::Lost { peer: peer.0 },
            ElectionEvent::Agreed { candidate } => What::Agreed { vote: candidate.into() },
            ElectionEvent::Elected { candidate, votes, .. } => {
                let ballot =
                    |(ServerId(voter), vote): (ServerId, Candidate)| BallotOf { voter, vote: vote.into() };
                What::Elected { vote: candidate.into(), ballots: votes.into_iter().map(ballot).collect() }
            }
        }
    }
}

impl From<Verdict> for Judged {
    fn from(verdict: Verdict) -> Judged {
        match verdict {
            Verdict::Ignored(why) => Judged::Ignored { why: why.into() },
            Verdict::Adopted { rule, later_round } => Judged::Adopted { rule: rule.into(), later_round },
            Verdict::LaterRound => Judged::LaterRound,
            Verdict::Counted => Judged::Counted,
            Verdict::Worse => Judged::Worse,
            Verdict::ElectionVoid => Judged::ElectionVoid,
        }
    }
}

impl From<IgnoreReason> for Ignored {
    fn from(why: IgnoreReason) -> Ignored {
        match why {
            IgnoreReason::NoVoter => Ignored::NoVoter,
            IgnoreReason::BacksNobody => Ignored::BacksNobody,
            IgnoreReason::CandidateDoesNotVote => Ignored::CandidateDoesNotVote,
            IgnoreReason::EarlierRound => Ignored::EarlierRound,
            IgnoreReason::Untrusted => Ignored::Untrusted,
            IgnoreReason::Decided => Ignored::Decided,
            IgnoreReason::AnotherEnsemble => Ignored::AnotherEnsemble,
            IgnoreReason::LeftOut => Ignored::LeftOut,
            IgnoreReason::SaysTooMuchOfThisServer => Ignored::SaysTooMuchOfThisServer,
        }
    }
}

impl From<Rule> for Better {
    fn from(rule: Rule) -> Better {
        match rule {
            Rule::FirstHeard => Better::FirstHeard,
            Rule::LaterEpoch => Better::LaterEpoch,
            Rule::LaterZxid => Better::LaterZxid,
            Rule::LargerId => Better::LargerId,
        }
    }
}

impl From<PeerState> for State {
    fn from(state: PeerState) -> State {
        match state {
            PeerState::Looking => State::Looking,
            PeerState::Following => State::Following,
            PeerState::Leading => State::Leading,
            PeerState::Observing => State::Observing,
        }
    }
}

impl From<Candidate> for Vote {
    fn from(candidate: Candidate) -> Vote {
        Vote { epoch: candidate.epoch.0, zxid: candidate.zxid.into(), id: candidate.id.0 }
    }
}

impl From<Zxid> for Hex {
    fn from(zxid: Zxid) -> Hex {
        Hex(zxid.0)
    }
}
