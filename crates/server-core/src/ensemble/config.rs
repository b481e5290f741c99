//! What a member needs to know of its ensemble.

use super::{LocalSessions, ObserverOptions};
use ostler_proto::{
    id::{Epoch, Zxid},
    membership::Membership,
};
use ostler_zab::{ElectionTiming, EpochLength, HistoryLimits, leading::LeadingTiming};

/// What a member needs to know of its ensemble.
#[derive(Debug, Clone)]
pub struct EnsembleConfig {
    /// The configuration in force.
    pub membership: Membership,
    /// One that was proposed, and may be in force elsewhere.
    pub pending: Option<Membership>,
    /// How long an election waits.
    pub election: ElectionTiming,
    /// How long a leader and its learners wait for each other.
    pub timing: LeadingTiming,
    /// Servers whose configuration is another ensemble's have no say.
    pub refuse_others: bool,
    /// The least number of voters that a change of the configuration may leave. Upstream: 2, or 1 with `standaloneEnabled`
    /// off.
    pub voters_min: usize,
    /// What concerns observers.
    pub observing: ObserverOptions,
    /// How many proposals an epoch makes.
    pub epoch: EpochLength,
    /// Committed records kept in memory for learners that missed them.
    pub history: HistoryLimits,
    /// Whether new sessions are made known to all servers.
    pub local_sessions: LocalSessions,
    /// How long, in ms, this server looks for a leader before it begins to serve those who only read; `None` is for
    /// ever.
    pub read_only_after_ms: Option<u64>,
    /// Nothing on disk is right: this server is new.
    pub may_start_empty: bool,
    /// What is on disk may be a part of what this server once had and acknowledged: see
    /// [`PersistOp::MarkIncomplete`](crate::PersistOp::MarkIncomplete).
    pub incomplete: bool,
    /// The accepted epoch on disk.
    pub accepted: Epoch,
    /// The current epoch on disk.
    pub current: Epoch,
    /// The log on disk lacks nothing from here on: the snapshot that the tree was recovered from. Before that a
    /// whole tree may have taken the place of records.
    pub log_from: Zxid,
}
