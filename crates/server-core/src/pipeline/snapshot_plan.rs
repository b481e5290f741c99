//! Decides when the next snapshot is due.

use crate::{
    config::CoreConfig,
    context::Context,
    effect::{Effect, PersistOp},
    quorum::MemberMode,
    server::Server,
};
use alloc::boxed::Box;

impl Server {
    pub(super) fn consider_snapshot(&mut self, cx: &mut Context<'_>, record_len: usize) {
        if self.pipeline.snapshots.count_record(&self.config, record_len) {
            self.begin_snapshot(cx);
        }
    }

    /// Begins a snapshot for an operator, if one can begin now.
    pub(crate) fn take_snapshot(&mut self, cx: &mut Context<'_>) {
        if self.snapshot_turn() == SnapshotTurn::Free {
            self.pipeline.snapshots.begin();
            self.begin_snapshot(cx);
        }
    }

    fn begin_snapshot(&mut self, cx: &mut Context<'_>) {
        self.stats.snapshots += 1;
        self.pipeline.persist(cx, PersistOp::RollLog);
        cx.effects.push(Effect::Snapshot(Box::new(self.tree.freeze())));
    }

    /// Transactions since the last snapshot was begun, those that the start has replayed included.
    pub fn records_since_snapshot(&self) -> u64 {
        self.pipeline.snapshots.txns
    }

    /// Whether [`Input::TakeSnapshot`](crate::Input::TakeSnapshot) would begin a snapshot now.
    pub fn snapshot_turn(&self) -> SnapshotTurn {
        match self.mode() {
            // The tree can have transactions that the next leader takes back, or that are cut from the log now.
            Some(MemberMode::Looking | MemberMode::ReadOnly) => SnapshotTurn::NotServing,
            _ if self.pipeline.snapshots.running => SnapshotTurn::Running,
            _ => SnapshotTurn::Free,
        }
    }
}

/// Whether a snapshot can begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SnapshotTurn {
    /// It can.
    Free,
    /// Another one is being written.
    Running,
    /// The server serves no leader's history now.
    NotServing,
}

/// Decides when the next snapshot is due.
#[derive(Debug)]
pub(crate) struct SnapshotPlan {
    txns: u64,
    log_bytes: u64,
    /// Makes the limits random within a factor of two, so that the servers of an ensemble do not write snapshots at the
    /// same time.
    spread: u64,
    running: bool,
    random: u64,
}

impl SnapshotPlan {
    pub(crate) fn new(config: &CoreConfig, replayed: u64) -> Self {
        let random = config.seed | 1;
        SnapshotPlan { txns: replayed, log_bytes: 0, spread: random >> 11, running: false, random }
    }

    pub(crate) fn done(&mut self) {
        self.running = false;
    }

    /// Counts a record. Returns true if a snapshot has to begin now.
    fn count_record(&mut self, config: &CoreConfig, record_len: usize) -> bool {
        self.txns += 1;
        self.log_bytes += record_len as u64;
        let within = |limit: u64| limit / 2 + self.spread % (limit / 2 + 1);
        let full = self.txns > within(config.snapshot_txns)
            || config.snapshot_log_bytes.is_some_and(|limit| self.log_bytes > within(limit));
        if !full || self.running {
            return false;
        }
        self.begin();
        true
    }

    /// Counts from zero until the next snapshot.
    fn begin(&mut self) {
        (self.txns, self.log_bytes, self.running) = (0, 0, true);
        // xorshift64: its quality is enough, and the seed makes it repeatable.
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.spread = self.random >> 11;
    }
}
