//! The pipeline of writes: prepare, propose, commit. A standalone server is a quorum of one on the same path.
//!
//! A write is checked against the tree with all pending changes ([`prepare`]), numbered, and sent to the disk and the
//! followers ([`propose`]). When a quorum has it, it is applied ([`commit`]) and its client gets the answer
//! ([`answer`]).

mod answer;
mod commit;
pub(crate) mod prepare;
mod prepare_multi;
pub(crate) mod propose;
pub(crate) mod reaper;
pub(crate) mod snapshot_plan;
pub(crate) mod syncs;

use crate::{
    config::CoreConfig,
    context::Context,
    effect::{Effect, PersistOp, Record},
    input::ConnId,
    quorum::AfterPersist,
    server::Server,
    stats::stages::WriteMarks,
};
use alloc::{
    collections::{BTreeMap, VecDeque},
    vec::Vec,
};
use ostler_proto::id::Zxid;
use ostler_tree::{Overlay, Tree, TreeEvent};
use ostler_zab::{DiskGate, leading::LinkId};
use snapshot_plan::SnapshotPlan;
use syncs::SyncWaiter;

/// The route of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WriteRoute {
    /// Propose it: this server leads.
    Propose,
    /// Forward it to the leader.
    Forward,
    /// Refuse it: there is no leader, and this server serves reads only.
    ReadOnly,
}

/// A proposal that has not committed.
#[derive(Debug)]
pub(crate) struct Outstanding {
    pub(crate) zxid: Zxid,
    pub(crate) record: Record,
    /// When the proposal was made, by its leader's wall clock, in ms since 1970.
    pub(crate) made_ms: i64,
    /// When it was made or came here, on this server's monotonic clock in microseconds.
    pub(crate) came_us: u64,
    /// The connection of this server that waits for it, if this server has proposed it.
    pub(crate) conn: Option<ConnId>,
}

/// The writes under way.
#[derive(Debug)]
pub(crate) struct Pipeline {
    /// The changes that are proposed and not applied.
    pub(crate) overlay: Overlay,
    /// The acts that wait for the disk.
    pub(crate) gate: DiskGate<AfterPersist>,
    /// Proposals that are logged, or being logged, and not committed.
    pub(crate) outstanding: VecDeque<Outstanding>,
    /// Syncs, each with the zxid that it waits for.
    pub(crate) syncs: VecDeque<(Zxid, SyncWaiter)>,
    /// The zxid for which the last [`SyncWaiter::Session`] of each learner in `syncs` waits or waited.
    pub(crate) last_revalidations: BTreeMap<LinkId, Zxid>,
    pub(crate) snapshots: SnapshotPlan,
    /// When proposals were on disk and committed.
    pub(crate) marks: WriteMarks,
    /// Reused for encoding records.
    scratch: Vec<u8>,
    /// Reused for what a record changes.
    events: Vec<TreeEvent>,
}

impl Pipeline {
    pub(crate) fn new(config: &CoreConfig, tree: &Tree, replayed: u64) -> Pipeline {
        Pipeline {
            overlay: Overlay::new(tree),
            gate: DiskGate::default(),
            outstanding: VecDeque::new(),
            syncs: VecDeque::new(),
            last_revalidations: BTreeMap::new(),
            snapshots: SnapshotPlan::new(config, replayed),
            marks: WriteMarks::default(),
            scratch: Vec::new(),
            events: Vec::new(),
        }
    }

    /// Asks the disk for an act. Acts that are held from now on wait for it.
    pub(crate) fn persist(&mut self, cx: &mut Context<'_>, op: PersistOp) {
        cx.effects.push(Effect::Persist { seq: self.gate.issue(), op });
    }
}

impl Server {
    /// The route of writes; `None` while no client is served, as there is no leader.
    pub(crate) fn write_route(&self) -> Option<WriteRoute> {
        if self.leads() {
            return Some(WriteRoute::Propose);
        }
        let ensemble = self.role.ensemble()?;
        if ensemble.is_read_only() {
            return Some(WriteRoute::ReadOnly);
        }
        ensemble.following().map(|_| WriteRoute::Forward)
    }

    /// Whether clients can open sessions here, if only to read: there is a leader, or the server is a read-only one.
    pub fn takes_sessions(&self) -> bool {
        self.write_route().is_some()
    }

    /// Whether this server numbers the writes: as the leader of an epoch that has begun, or as a standalone server.
    pub(crate) fn leads(&self) -> bool {
        self.role.proposals().is_some()
    }

    /// The last proposal that this server has made or logged.
    pub(crate) fn proposed(&self) -> Zxid {
        self.pipeline.outstanding.back().map_or(self.tree.last_processed(), |proposal| proposal.zxid)
    }

    /// The zxid up to which this server's tree is complete. It has everything before the epoch that has begun here, even
    /// if nothing was written in that epoch yet. The last zxid of the tree shows that only at a leader.
    pub(crate) fn complete_through(&self) -> Zxid {
        let epoch = self.role.ensemble().map(|ensemble| ensemble.begun_epoch());
        let begun = epoch.map_or(Zxid::ZERO, |epoch| Zxid::new(epoch, 0));
        self.tree.last_processed().max(begun)
    }

    /// The zxid of the next proposal.
    pub(crate) fn next_zxid(&self) -> Zxid {
        let proposals = self.role.proposals().expect("only a server that leads prepares writes");
        proposals.next_zxid()
    }
}
