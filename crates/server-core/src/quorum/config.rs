//! The settings of a member of an ensemble, and what it had on disk at its start.

use super::{LocalSessions, ObserverOptions};
use ostler_proto::{
    id::{Epoch, Zxid},
    membership::Membership,
};
use ostler_zab::{ElectionTiming, EpochLength, HistoryLimits, leading::LeadingTiming};

/// The settings of a member of an ensemble, and what it had on disk at its start.
#[derive(Debug, Clone)]
pub struct EnsembleConfig {
    /// The configuration in force.
    pub membership: Membership,
    /// A configuration that was proposed; other servers may have it in force.
    pub pending: Option<Membership>,
    /// The waiting times of elections.
    pub election: ElectionTiming,
    /// The waiting times of a leader and its learners for each other.
    pub timing: LeadingTiming,
    /// Whether votes are refused if the sender's configuration belongs to another ensemble.
    pub refuse_others: bool,
    /// The least number of voters that a change of the configuration may leave. Upstream: 2, or 1 with `standaloneEnabled`
    /// off.
    pub voters_min: usize,
    /// The settings that concern observers.
    pub observing: ObserverOptions,
    /// The number of proposals after which an epoch ends.
    pub epoch: EpochLength,
    /// How many committed transactions are kept in memory for learners that lack them.
    pub history: HistoryLimits,
    /// Whether new sessions are local or global.
    pub local_sessions: LocalSessions,
    /// The time in ms for which this server looks for a leader before it serves read-only clients; `None` if it never
    /// does.
    pub read_only_after_ms: Option<u64>,
    /// Whether an empty data folder is right, as the operator says that this server is new. Then its vote counts.
    pub may_start_empty: bool,
    /// Whether the data on disk may be only a part of what this server once had and acknowledged: see
    /// [`PersistOp::MarkIncomplete`](crate::PersistOp::MarkIncomplete). Its vote does not count then.
    pub incomplete: bool,
    /// The accepted epoch on disk.
    pub accepted: Epoch,
    /// The current epoch on disk.
    pub current: Epoch,
    /// From this zxid on the log on disk is complete: that of the snapshot from which the tree was recovered. Before it
    /// transactions may be missing, if a leader has sent a whole tree.
    pub log_from: Zxid,
}
