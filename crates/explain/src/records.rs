//! A member's last elections, in the form in which the word `elec` gives them and explanations are made of them.
//!
//! All `ms` are milliseconds since the search began, on the server's monotonic clock. The events, verdicts and reasons are
//! the core's own types.

use ostler_proto::{
    election::PeerState,
    id::{Epoch, ServerId, Zxid},
};
use ostler_server_core::{
    input::Mono,
    quorum::election_history::{self, SearchReason, Takeover},
};
use ostler_zab::election::{ElectionEvent, Entry};
use serde::{Deserialize, Serialize};

/// The answer of a server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Elections {
    /// The server.
    pub server: ServerId,
    /// The server's wall clock at the time of the answer.
    pub now_ms: i64,
    /// The voters; empty for a standalone server.
    pub voters: Vec<ServerId>,
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
    /// The reason.
    pub why: SearchReason,
    /// The leader before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<ServerId>,
    /// How long before the search that leader was last heard of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub silent_ms: Option<u64>,
    /// The last transaction in the log.
    pub last: Zxid,
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

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Elected {
    pub ms: u64,
    pub leader: ServerId,
    pub role: PeerState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Discovered {
    pub ms: u64,
    pub epoch: Epoch,
}

/// The act by which a learner changed its own history, beside adding the transactions that it lacked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TakenOver {
    pub ms: u64,
    /// The act, and the last transaction after it.
    #[serde(flatten)]
    pub takeover: Takeover,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Commit {
    pub ms: u64,
    pub zxid: Zxid,
}

/// Something that happened in an election.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moment {
    pub ms: u64,
    #[serde(flatten)]
    pub event: ElectionEvent,
}

/// A record that no server makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the record has {0}")]
pub struct Implausible(&'static str);

/// Milliseconds above these are no times: the sums of a few of them fit into 64 bits.
const MS_MAX: u64 = 1 << 50;
/// Above what a server keeps.
const SEARCHES_MAX: usize = 64;
const MOMENTS_MAX: usize = 2_048;
/// Above the number of servers of any ensemble.
const SERVERS_MAX: usize = 512;

impl Elections {
    /// Checks a record that has come from elsewhere: its times can be computed with, and it is no longer than a server's.
    pub fn check(&self) -> Result<(), Implausible> {
        let is_time = |ms: i64| ms.unsigned_abs() <= MS_MAX;
        if !is_time(self.now_ms) || self.settle_ms > MS_MAX {
            return Err(Implausible("a time that is out of bounds"));
        }
        if self.searches.len() > SEARCHES_MAX || self.voters.len() > SERVERS_MAX {
            return Err(Implausible("too many entries"));
        }
        self.searches.iter().try_for_each(Search::check)
    }

    /// The record of a core, with the wall clock at this time.
    pub fn of(elections: election_history::Elections, now_ms: i64) -> Elections {
        let searches = elections.searches.into_iter().map(Search::from).collect();
        Elections {
            server: elections.me,
            now_ms,
            voters: elections.voters,
            settle_ms: elections.settle_ms,
            searches,
        }
    }
}

impl Search {
    fn check(&self) -> Result<(), Implausible> {
        let ends = [
            Some(self.began_ms.unsigned_abs()),
            self.silent_ms,
            self.elected.map(|elected| elected.ms),
            self.connected_ms,
            self.discovered.map(|discovered| discovered.ms),
            self.takeover.map(|takeover| takeover.ms),
            self.synchronised_ms,
            self.first_commit.map(|commit| commit.ms),
            match self.why {
                SearchReason::LeaderSilent { ms } => Some(ms),
                _ => None,
            },
        ];
        let moments = self.moments.iter().map(|moment| moment.ms);
        if ends.into_iter().flatten().chain(moments).any(|ms| ms > MS_MAX) {
            return Err(Implausible("a time that is out of bounds"));
        }
        let counted = |moment: &Moment| match &moment.event {
            ElectionEvent::Elected { votes, .. } => votes.len(),
            _ => 0,
        };
        if self.moments.len() > MOMENTS_MAX || self.moments.iter().any(|moment| counted(moment) > SERVERS_MAX)
        {
            return Err(Implausible("too many entries"));
        }
        Ok(())
    }
}

impl From<election_history::Search> for Search {
    fn from(search: election_history::Search) -> Search {
        let began = search.began.mono.0;
        let ms = |at: Mono| at.0.saturating_sub(began);
        Search {
            began_ms: search.began.wall_ms,
            why: search.why,
            before: search.before,
            silent_ms: search.last_word.map(|at| began.saturating_sub(at.0)),
            last: search.last,
            elected: search.elected.map(|outcome| Elected {
                ms: ms(outcome.at),
                leader: outcome.leader,
                role: outcome.role,
            }),
            connected_ms: search.connected.map(ms),
            discovered: search.discovered.map(|(at, epoch)| Discovered { ms: ms(at), epoch }),
            takeover: search.takeover.map(|(at, takeover)| TakenOver { ms: ms(at), takeover }),
            synchronised_ms: search.synchronised.map(ms),
            first_commit: search.first_commit.map(|(at, zxid)| Commit { ms: ms(at), zxid }),
            moments: search
                .votes
                .entries
                .into_iter()
                .map(|Entry { at, event }| Moment { ms: ms(at), event })
                .collect(),
            left_out: search.votes.left_out,
            left_out_since: search.votes.left_out_since,
        }
    }
}
