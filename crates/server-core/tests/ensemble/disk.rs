//! A member's disk: acts are queued and done in order; a crash loses some of those that were not reported done.

use crate::history::History;
use ostler_proto::{
    id::{Epoch, Zxid},
    stat::ExtendedTypes,
    txn::TxnRecord,
};
use ostler_server_core::{LogPart, PersistOp, Record};
use ostler_tree::{FrozenTree, Tree};
use ostler_zab::PersistSeq;
use std::collections::{BTreeMap, VecDeque};

/// As the log's reader has it: within an epoch the count has no holes, and how far an old epoch went is not known.
pub(crate) fn follows(last: Zxid, next: Zxid) -> bool {
    if next.epoch() > last.epoch() { next.counter() <= 1 } else { next == last.next() }
}

/// What survives.
pub(crate) struct Stored {
    pub(crate) accepted: Epoch,
    pub(crate) current: Epoch,
    pub(crate) log: Vec<(Zxid, Record)>,
    pub(crate) snapshots: BTreeMap<Zxid, (FrozenTree, History)>,
}

impl Stored {
    fn new() -> Stored {
        let fresh = Tree::fresh(ExtendedTypes::default()).freeze();
        let snapshots = BTreeMap::from([(fresh.zxid, (fresh, History::default()))]);
        Stored { accepted: Epoch::default(), current: Epoch::default(), log: Vec::new(), snapshots }
    }

    fn carry_out(&mut self, op: PersistOp, history: Option<History>) {
        match op {
            PersistOp::Append { zxid, record } => {
                let last = self.log.last().map_or(Zxid::ZERO, |(zxid, _)| *zxid);
                assert!(last < zxid, "{zxid} is appended after {last}");
                self.log.push((zxid, record));
            }
            PersistOp::RollLog | PersistOp::SaveConfig { .. } => {}
            PersistOp::SaveAccepted(epoch) => self.accepted = epoch,
            PersistOp::SaveCurrent(epoch) => self.current = epoch,
            PersistOp::Truncate { to, .. } => {
                self.snapshots.retain(|zxid, _| *zxid <= to);
                self.log.retain(|(zxid, _)| *zxid <= to);
            }
            PersistOp::Install(frozen) => {
                let zxid = frozen.zxid;
                self.install(*frozen, history.unwrap());
                self.log.retain(|(logged, _)| *logged <= zxid);
            }
        }
    }

    fn install(&mut self, frozen: FrozenTree, history: History) {
        self.snapshots.retain(|zxid, _| *zxid <= frozen.zxid);
        self.snapshots.insert(frozen.zxid, (frozen, history));
    }

    /// Whether a transaction cannot be lost here any more.
    pub(crate) fn has(&self, zxid: Zxid, record: &Record) -> bool {
        match self.log.binary_search_by_key(&zxid, |(logged, _)| *logged) {
            Ok(at) => self.log[at].1 == *record,
            Err(_) => self.snapshots.last_key_value().is_some_and(|(_, (_, history))| history.has(zxid)),
        }
    }

    /// The tree that a start finds, how many records of the log are in it, and which transactions.
    pub(crate) fn recover(&self) -> (Tree, u64, History) {
        let (mut tree, mut history) = match self.snapshots.last_key_value() {
            Some((_, (frozen, history))) => (thaw(frozen), history.clone()),
            None => (Tree::fresh(ExtendedTypes::default()), History::default()),
        };
        let mut replayed = 0;
        for (zxid, record) in self.log.iter().filter(|(zxid, _)| *zxid > self.newest_snapshot()) {
            let last = tree.last_processed();
            assert!(follows(last, *zxid), "the log goes on with {zxid} after {last}");
            tree.apply(&TxnRecord::read(&record.0).unwrap(), &mut Vec::new());
            history.push(*zxid);
            replayed += 1;
        }
        assert_eq!(tree.digest_mismatches(), 0, "replay gives the tree that the leader predicted");
        (tree, replayed, history)
    }

    pub(crate) fn newest_snapshot(&self) -> Zxid {
        self.snapshots.last_key_value().map_or(Zxid::ZERO, |(zxid, _)| *zxid)
    }

    /// What a learner lacks, as the quorum door reads it.
    pub(crate) fn log_part(&self, after: Zxid, through: Zxid) -> Option<LogPart> {
        let mut part = LogPart { before: None, records: Vec::new() };
        let mut last = Zxid(after.0.saturating_sub(1));
        for (zxid, record) in self.log.iter().filter(|(zxid, _)| (after..=through).contains(zxid)) {
            if !follows(last, *zxid) {
                return None;
            }
            last = *zxid;
            if *zxid <= after {
                part.before = Some(*zxid);
            } else {
                part.records.push((*zxid, record.clone()));
            }
        }
        let reaches = part.before == Some(after) && last == through && through > after;
        reaches.then_some(part)
    }

    /// Keeps the newest snapshots, and the log after the oldest of them.
    fn purge(&mut self) {
        while self.snapshots.len() > 3 {
            self.snapshots.pop_first();
        }
        let oldest = self.snapshots.first_key_value().map_or(Zxid::ZERO, |(zxid, _)| *zxid);
        self.log.retain(|(zxid, _)| *zxid > oldest);
    }
}

/// The tree that a snapshot holds.
pub(crate) fn thaw(frozen: &FrozenTree) -> Tree {
    let acls: BTreeMap<_, _> = frozen.acls.iter().cloned().collect();
    let mut tree = Tree::empty(ExtendedTypes::default());
    for node in frozen.nodes() {
        let acl = (node.acl.to_disk(), acls.get(&node.acl).map(|acls| &**acls));
        tree.restore_node(&node.path, node.data.as_deref(), node.stat, acl).unwrap();
    }
    tree.finish_restore(frozen.zxid, frozen.sessions.iter().copied(), None);
    assert_eq!(tree.digest(), frozen.digest, "a snapshot holds what its digest says");
    tree
}

/// The disk and its queue.
pub(crate) struct Disk {
    pub(crate) stored: Stored,
    queue: VecDeque<(PersistSeq, PersistOp, Option<History>)>,
}

/// What the member is told.
pub(crate) enum Told {
    Reloaded(u64, Box<Tree>, History),
    Persisted(PersistSeq),
}

impl Disk {
    pub(crate) fn new() -> Disk {
        Disk { stored: Stored::new(), queue: VecDeque::new() }
    }

    /// `history` is what is in a tree that is to be installed.
    pub(crate) fn push(&mut self, seq: PersistSeq, op: PersistOp, history: Option<History>) {
        self.queue.push_back((seq, op, history));
    }

    pub(crate) fn waiting(&self) -> usize {
        self.queue.len()
    }

    pub(crate) fn has_epoch_waiting(&self) -> bool {
        self.queue.iter().any(|(_, op, _)| matches!(op, PersistOp::SaveAccepted(_)))
    }

    pub(crate) fn reloads_next(&self) -> bool {
        matches!(self.queue.front(), Some((_, PersistOp::Truncate { reload: Some(_), .. }, _)))
    }

    /// So many acts are done.
    pub(crate) fn sync(&mut self, count: usize) -> Vec<Told> {
        let (mut told, mut reached) = (Vec::new(), None);
        for (seq, op, history) in self.queue.drain(..count.min(self.queue.len())) {
            let reload = match &op {
                PersistOp::Truncate { to, reload } => reload.map(|term| (term, *to)),
                _ => None,
            };
            self.stored.carry_out(op, history);
            if let Some((term, to)) = reload {
                let (tree, _, history) = self.stored.recover();
                assert!(tree.last_processed() <= to, "what was to go is gone");
                told.push(Told::Reloaded(term, Box::new(tree), history));
            }
            reached = Some(seq);
        }
        told.extend(reached.map(Told::Persisted));
        told
    }

    /// A snapshot in the background is complete.
    pub(crate) fn snapshot_done(&mut self, frozen: FrozenTree, history: History) {
        self.stored.snapshots.insert(frozen.zxid, (frozen, history));
        self.stored.purge();
    }

    /// Power off: of what waits, the first `count` acts happen to be done, and one may be half done.
    pub(crate) fn crash(&mut self, count: usize, half: bool) {
        for (_, op, history) in self.queue.drain(..count.min(self.queue.len())) {
            self.stored.carry_out(op, history);
        }
        match self.queue.pop_front() {
            Some((_, PersistOp::Install(frozen), history)) if half => {
                self.stored.install(*frozen, history.unwrap());
            }
            Some((_, PersistOp::Truncate { to, .. }, _)) if half => {
                self.stored.snapshots.retain(|zxid, _| *zxid <= to);
            }
            _ => {}
        }
        self.queue.clear();
    }
}
