//! One member of a trace, and its disk.

use ostler_proto::{
    id::{Epoch, ServerId, Zxid},
    membership::Membership,
    stat::ExtendedTypes,
    txn::TxnRecord,
};
use ostler_server_core::{
    CoreConfig, EnsembleConfig, LogPart, Now, PersistOp, Record, Server,
    quorum::{LocalSessions, ObserverOptions},
};
use ostler_tree::{FrozenTree, Tree};
use ostler_zab::{ElectionTiming, EpochLength, HistoryLimits, PersistSeq, leading::LeadingTiming};
use std::{
    collections::{BTreeMap, VecDeque},
    rc::Rc,
};

/// The state that survives a crash.
#[derive(Default)]
pub(crate) struct Disk {
    accepted: Epoch,
    current: Epoch,
    snapshot: Option<Rc<FrozenTree>>,
    /// The transactions after the snapshot.
    log: Vec<(Zxid, Record)>,
    pub(crate) config: Membership,
    proposed: Option<Membership>,
    incomplete: bool,
    /// Acts that are not done.
    pub(crate) queue: VecDeque<(PersistSeq, PersistOp)>,
    pub(crate) waits: bool,
}

impl Disk {
    /// Does all acts. Returns the number of the last one, and the search that wants the tree again.
    pub(crate) fn sync(&mut self) -> (Option<PersistSeq>, Option<u64>) {
        let (mut last, mut search) = (None, None);
        for (seq, act) in std::mem::take(&mut self.queue) {
            if let PersistOp::Truncate { reload: Some(id), .. } = &act {
                search = Some(*id);
            }
            last = Some(seq);
            self.carry_out(act);
        }
        (last, search)
    }

    fn carry_out(&mut self, act: PersistOp) {
        match act {
            PersistOp::Append { zxid, record } => self.log.push((zxid, record)),
            PersistOp::RollLog => {}
            PersistOp::MarkIncomplete => self.incomplete = true,
            PersistOp::SaveAccepted(epoch) => self.accepted = epoch,
            PersistOp::SaveCurrent(epoch) => (self.current, self.incomplete) = (epoch, false),
            PersistOp::Truncate { to, .. } => self.log.retain(|(zxid, _)| *zxid <= to),
            PersistOp::SaveConfig { membership, active: true } => self.config = membership,
            PersistOp::SaveConfig { membership, active: false } => self.proposed = Some(membership),
            PersistOp::Install(tree) => {
                self.snapshot = Some(Rc::from(tree));
                self.log.clear();
            }
        }
    }

    /// The tree that snapshot and log give.
    pub(crate) fn tree(&self) -> Tree {
        let mut tree =
            self.snapshot.as_ref().map_or_else(|| Tree::fresh(ExtendedTypes::default()), |of| restore(of));
        for (_, record) in &self.log {
            tree.apply(&TxnRecord::read(&record.0).unwrap(), &mut Vec::new());
        }
        tree
    }

    pub(crate) fn read_log(&self, after: Zxid, through: Zxid) -> Option<LogPart> {
        let from = self.snapshot.as_ref().map_or(Zxid::ZERO, |tree| tree.zxid);
        let before = self.log.iter().map(|(zxid, _)| *zxid).rfind(|zxid| *zxid <= after);
        let records = self.log.iter().filter(|(zxid, _)| after < *zxid && *zxid <= through);
        (after >= from).then(|| LogPart { before, records: records.cloned().collect() })
    }

    pub(crate) fn text(&self) -> String {
        let last = self.log.last().map(|(zxid, _)| *zxid).or(self.snapshot.as_ref().map(|tree| tree.zxid));
        let (accepted, current, last) = (self.accepted.0, self.current.0, last.unwrap_or_default());
        format!("acceptedEpoch {accepted}, currentEpoch {current}, last {last}")
    }
}

/// The tree that a snapshot holds.
pub(crate) fn restore(frozen: &FrozenTree) -> Tree {
    let acls: BTreeMap<_, _> = frozen.acls.iter().cloned().collect();
    let mut tree = Tree::empty(ExtendedTypes::default());
    for node in frozen.nodes() {
        let acl = (node.acl.to_disk(), acls.get(&node.acl).map(|acls| &**acls));
        tree.restore_node(&node.path, node.data.as_deref(), node.stat, acl).unwrap();
    }
    tree.finish_restore(frozen.zxid, frozen.sessions.iter().copied(), Some(frozen.zxid));
    tree
}

#[derive(Default)]
pub(crate) struct Member {
    pub(crate) disk: Disk,
    /// `None` while it is down.
    pub(crate) server: Option<Server>,
}

impl Member {
    /// A process begins, with what is on disk. `kept` transactions stay in its memory for learners.
    pub(crate) fn boot(&mut self, id: i64, now: Now, kept: usize) {
        let core =
            CoreConfig { server: ServerId(id), skip_acl: true, reconfig: true, ..CoreConfig::default() };
        let disk = &mut self.disk;
        disk.queue.clear();
        let tree = disk.tree();
        let ensemble = EnsembleConfig {
            membership: disk.config.clone(),
            pending: disk.proposed.clone(),
            election: ElectionTiming::default(),
            timing: LeadingTiming { init: 20_000, sync: 10_000 },
            refuse_others: true,
            voters_min: 2,
            observing: ObserverOptions::default(),
            epoch: EpochLength { in_place: None, ..EpochLength::default() },
            history: HistoryLimits { records: kept, bytes: 1 << 20 },
            local_sessions: LocalSessions::Off,
            read_only_after_ms: None,
            may_start_empty: true,
            incomplete: disk.incomplete,
            accepted: disk.accepted,
            current: disk.current,
            log_from: disk.snapshot.as_ref().map_or(Zxid::ZERO, |tree| tree.zxid),
        };
        let replayed = disk.log.len() as u64;
        self.server = Some(Server::member(core, ensemble, tree, replayed, now));
    }
}
