//! A member's disk. The operations of the core are queued and carried out in order, by the same code as in a server, on
//! simulated files.
//!
//! `Reported` notes what the disk has reported as durable: a start must find at least that.

use crate::{
    chance::Chance,
    files::{DiskFault, DiskFaultKind, SimFiles},
    history::History,
};
use ostler_data_dir::{
    Persistence, PersistenceOptions, SnapshotSource,
    recovery::{self, RestoreOptions, Restored},
    snapshots::SnapshotOptions,
};
use ostler_proto::{
    id::{Epoch, ServerId, Zxid},
    membership::Membership,
};
use ostler_server_core::{LogPart, PersistOp};
use ostler_storage::{
    StorageError,
    error::IoContext,
    folders::DataFolders,
    names::Compression,
    recover::Origin,
    txnlog::{LogOptions, LogReader},
};
use ostler_tree::{FrozenTree, Tree};
use ostler_zab::PersistSeq;
use std::{
    collections::{BTreeMap, VecDeque},
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

const DATA_DIR: &str = "/data";
const ZOO_CFG: &str = "/conf/zoo.cfg";
/// The most that is read of the log for a learner, in percent of a snapshot's size; at least 1 MiB.
const LOG_PERCENT: u32 = 33;

/// How a server ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// Only the process ends. The data that it had written stays in the system's memory.
    Killed,
    /// The machine loses its power, and with it what was not synced.
    PowerLost,
}

/// A report of the disk to the member.
pub(crate) enum DiskReport {
    Reloaded(u64, Box<Tree>, History),
    Persisted(PersistSeq),
}

/// The state that a server starts with, as read from the disk.
pub(crate) struct StartState {
    pub(crate) tree: Tree,
    pub(crate) replayed: u64,
    pub(crate) history: History,
    pub(crate) accepted: Epoch,
    pub(crate) current: Epoch,
    pub(crate) log_from: Zxid,
    pub(crate) incomplete: bool,
    pub(crate) membership: Membership,
    pub(crate) pending: Option<Membership>,
    /// No fault has removed anything from the disk.
    pub(crate) whole: bool,
}

/// The state that the disk has reported as durable.
#[derive(Debug, Clone, Default)]
struct Reported {
    history: History,
    accepted: Epoch,
    current: Epoch,
    /// The last epoch that the member has promised to a leader.
    promised: Epoch,
}

struct Snapshotting {
    frozen: SnapshotSource,
    history: History,
}

/// The disk and its queue.
pub(crate) struct MemberDisk {
    pub(crate) files: SimFiles,
    folders: DataFolders,
    options: PersistenceOptions,
    /// `Some` while the server runs.
    persistence: Option<Persistence>,
    queue: VecDeque<(PersistSeq, PersistOp, Option<History>)>,
    snapshotting: Option<Snapshotting>,
    reported: Reported,
    /// The transactions in each snapshot, by the snapshot's zxid.
    snapshots: BTreeMap<Zxid, History>,
    /// A fault has spoilt the disk: what it has reported may be missing.
    spoilt: bool,
    /// The transactions that the disk held when it was spoilt, until it has them again. The member had acknowledged
    /// them.
    lost: History,
}

/// The storage options of members. With `reconfigurable`, the configuration file may change.
pub(crate) fn keeping_options(prealloc_bytes: u64, reconfigurable: Option<ServerId>) -> PersistenceOptions {
    PersistenceOptions {
        restoring: RestoreOptions::default(),
        log: LogOptions { prealloc_bytes, ..LogOptions::default() },
        snapshots: SnapshotOptions {
            compression: Compression::None,
            digest: true,
            last_processed: true,
            keep: Some(3),
        },
        reconfigurable: reconfigurable.map(|me| (ZOO_CFG.into(), me)),
        is_member: true,
    }
}

impl MemberDisk {
    /// An empty disk with a zoo.cfg that names these servers.
    pub(crate) fn new(me: ServerId, membership: &Membership, prealloc_bytes: u64) -> MemberDisk {
        let files = SimFiles::default();
        let mut disk = MemberDisk {
            files,
            folders: DataFolders::at(Path::new(DATA_DIR), None),
            options: keeping_options(prealloc_bytes, Some(me)),
            persistence: None,
            queue: VecDeque::new(),
            snapshotting: None,
            reported: Reported::default(),
            snapshots: BTreeMap::new(),
            spoilt: false,
            lost: History::default(),
        };
        disk.write_zoo_cfg(membership);
        disk
    }

    fn write_zoo_cfg(&mut self, membership: &Membership) {
        self.files.put(Path::new(ZOO_CFG), membership.lines().join("\n").as_bytes());
    }

    /// The operator replaces the configuration.
    pub(crate) fn reconfigure(&mut self, membership: &Membership) {
        self.files.forget(Path::new("/conf"));
        self.write_zoo_cfg(membership);
    }

    /// Removes everything, and writes the configuration that the operator gives it.
    pub(crate) fn wipe(&mut self, membership: &Membership) {
        self.spoil();
        self.files.wipe();
        self.write_zoo_cfg(membership);
        self.snapshots.clear();
        (self.reported, self.spoilt) = (Reported::default(), false);
    }

    /// Notes that the disk may have lost what it has reported as durable.
    pub(crate) fn spoil(&mut self) {
        if !std::mem::replace(&mut self.spoilt, true) && self.lost == History::default() {
            self.lost = self.reported.history.clone();
        }
    }

    /// Notes that the disk holds again what it had lost.
    pub(crate) fn set_whole(&mut self) {
        self.lost = History::default();
    }

    /// Replaces the files by an older copy.
    pub(crate) fn put_back(&mut self, copy: &BTreeMap<PathBuf, Vec<u8>>) {
        self.spoil();
        self.files.put_back(copy);
    }

    /// Flips bits in a log or a snapshot. Returns its path.
    pub(crate) fn rot(&mut self, chance: &mut Chance) -> Option<PathBuf> {
        self.spoil();
        self.files.rot(&self.folders.snapshots, chance)
    }

    /// Writes the file of a proposed configuration.
    #[cfg(test)]
    pub(crate) fn leave_proposed(&mut self, text: &str) {
        self.files.put(Path::new(&format!("{ZOO_CFG}.dynamic.next")), text.as_bytes());
    }

    /// Damages the newest snapshot.
    #[cfg(test)]
    pub(crate) fn damage_newest_snapshot(&mut self) {
        let found = ostler_storage::snapshot::find_snapshots(&self.files, &self.folders.snapshots).unwrap();
        self.spoil();
        self.files.damage(&found[0].path);
    }

    /// Chooses how the next process ends its snapshots: as this version, with the digest only, as ZooKeeper 3.8 does,
    /// or with nothing.
    pub(crate) fn set_binary(&mut self, binary: u64) {
        const ENDS: [(bool, bool); 4] = [(true, true), (true, true), (true, false), (false, false)];
        let of = &mut self.options.snapshots;
        (of.digest, of.last_processed) = ENDS[binary as usize % ENDS.len()];
    }

    /// The next server that starts on this disk has another id.
    #[cfg(test)]
    pub(crate) fn belongs_to(&mut self, server: ServerId) {
        self.options.reconfigurable = Some((ZOO_CFG.into(), server));
    }

    /// Starts a server on the files.
    pub(crate) fn start(&mut self) -> Result<StartState, StorageError> {
        let disk = Arc::new(self.files.clone());
        let configuration = self.configuration().ok_or(io::Error::from(io::ErrorKind::InvalidData));
        let (membership, pending) = configuration.during("read the configuration in", Path::new(ZOO_CFG))?;
        DataFolders::open(&*disk, Path::new(DATA_DIR), None, true)?;
        let (persistence, restored) =
            Persistence::start(disk.clone(), self.folders.clone(), self.options.clone())?;
        let history = self.history_of(&restored)?;
        let (accepted, current) =
            ostler_data_dir::epochs(&*disk, &self.folders, restored.tree.last_processed())?;
        let whole = !std::mem::take(&mut self.spoilt);
        if whole {
            let reported = &self.reported;
            assert!(
                history.has_all_of(&reported.history),
                "[durable] the disk was said to have {:?}, and has {history:?}",
                reported.history
            );
            assert!(
                accepted >= reported.accepted && current >= reported.current,
                "[durable] epochs {:?} and {:?} were saved, and {accepted:?} and {current:?} are there",
                reported.accepted,
                reported.current
            );
        }
        let promised = if whole { self.reported.promised } else { Epoch::default() };
        self.reported = Reported { history: history.clone(), accepted, current, promised };
        self.persistence = Some(persistence);
        Ok(StartState {
            replayed: restored.recovered.records,
            log_from: ostler_data_dir::log_from(restored.recovered.origin),
            incomplete: ostler_data_dir::is_incomplete(&*disk, &self.folders)?,
            tree: restored.tree,
            history,
            accepted,
            current,
            membership,
            pending,
            whole,
        })
    }

    /// Reads the configuration as a server does: the one in force, and a proposed one. `None` if a lost sync has left a
    /// configuration with which no server starts.
    pub(crate) fn configuration(&self) -> Option<(Membership, Option<Membership>)> {
        let text = |path: &str| self.files.text(Path::new(path));
        let zoo_cfg = text(ZOO_CFG)?;
        let dynamic = zoo_cfg.lines().find_map(|line| line.strip_prefix("dynamicConfigFile="));
        let lines = match dynamic {
            Some(path) => text(path)?,
            None => zoo_cfg.clone(),
        };
        let mut membership = Membership::parse(&lines).ok()?;
        let version = dynamic.and_then(|path| u64::from_str_radix(path.rsplit_once('.')?.1, 16).ok());
        membership.version = version.unwrap_or(0);
        let pending = text(&format!("{ZOO_CFG}.dynamic.next")).and_then(|text| Membership::parse(&text).ok());
        Some((membership, pending))
    }

    /// The transactions in a tree that was read from the files.
    fn history_of(&mut self, restored: &Restored) -> Result<History, StorageError> {
        let (from, mut history) = match restored.recovered.origin {
            Origin::Snapshot(zxid) => (zxid, self.snapshots.get(&zxid).cloned().unwrap_or_default()),
            Origin::Log | Origin::Fresh | Origin::Untrusted => (Zxid::ZERO, History::default()),
        };
        let mut log = LogReader::open(&self.files, &self.folders.logs, from)?;
        while let Some(record) = log.next_record()? {
            history.push(record.zxid);
        }
        Ok(history)
    }

    /// Queues an operation. `history` holds the transactions in a tree that is to be installed.
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

    /// Whether a transaction is durable here.
    pub(crate) fn has(&self, zxid: Zxid) -> bool {
        self.reported.history.has(zxid) || self.lost.has(zxid)
    }

    /// The last transaction that was reported as durable.
    pub(crate) fn last_reported(&self) -> Zxid {
        self.reported.history.last()
    }

    pub(crate) fn accepted(&self) -> Epoch {
        self.reported.accepted
    }

    pub(crate) fn current(&self) -> Epoch {
        self.reported.current
    }

    /// Notes that the member promises an epoch to a leader. False if it has promised this or a later one before.
    pub(crate) fn note_promise(&mut self, epoch: Epoch) -> bool {
        std::mem::replace(&mut self.reported.promised, epoch) < epoch
    }

    /// Carries out the given number of operations. An error ends the server.
    pub(crate) fn sync(&mut self, count: usize) -> Result<Vec<DiskReport>, StorageError> {
        let (mut told, mut reached, mut appended) = (Vec::new(), None, Vec::new());
        for _ in 0..count.min(self.queue.len()) {
            let Some((seq, op, history)) = self.queue.pop_front() else { break };
            if let Some((search_id, tree, history)) = self.carry_out(op, history, &mut appended)? {
                told.push(DiskReport::Reloaded(search_id, tree, history));
            }
            reached = Some(seq);
        }
        self.sync_log(&mut appended)?;
        told.extend(reached.map(DiskReport::Persisted));
        Ok(told)
    }

    fn sync_log(&mut self, appended: &mut Vec<Zxid>) -> Result<(), StorageError> {
        if let Some(persistence) = &mut self.persistence {
            persistence.sync()?;
        }
        appended.drain(..).for_each(|zxid| self.reported.history.push(zxid));
        self.persistence.as_mut().map_or(Ok(()), Persistence::note_synced)
    }

    /// Carries out one operation. While an operation removes something, only the rest is certain to be there.
    fn carry_out(
        &mut self,
        op: PersistOp,
        history: Option<History>,
        appended: &mut Vec<Zxid>,
    ) -> Result<Option<(u64, Box<Tree>, History)>, StorageError> {
        if let PersistOp::Append { zxid, .. } = &op {
            appended.push(*zxid);
        } else {
            self.sync_log(appended)?;
        }
        let (mut accepted, mut current, mut installed) = (None, None, None);
        match &op {
            PersistOp::SaveAccepted(epoch) => accepted = Some(*epoch),
            PersistOp::SaveCurrent(epoch) => current = Some(*epoch),
            PersistOp::Truncate { to, .. } => {
                self.reported.history.cut(*to);
            }
            PersistOp::Install(frozen) => {
                let history = history.unwrap();
                self.reported.history = self.reported.history.common(&history);
                self.snapshots.insert(frozen.zxid, history.clone());
                installed = Some(history);
            }
            PersistOp::Append { .. }
            | PersistOp::RollLog
            | PersistOp::MarkIncomplete
            | PersistOp::SaveConfig { .. } => {}
        }
        let Some(persistence) = &mut self.persistence else { return Ok(None) };
        let reloaded = persistence.carry_out(op)?;
        self.reported.accepted = accepted.unwrap_or(self.reported.accepted);
        self.reported.current = current.unwrap_or(self.reported.current);
        self.reported.history = installed.unwrap_or_else(|| std::mem::take(&mut self.reported.history));
        let Some(reloaded) = reloaded else { return Ok(None) };
        let history = self.history_of(&reloaded.restored)?;
        // A tree may stay that has more than the log.
        let stays = &self.reported.history;
        assert!(stays.agrees(&history, stays.last()), "of {stays:?} a cut has left {history:?}");
        self.reported.history = history.clone();
        Ok(Some((reloaded.search_id, Box::new(reloaded.restored.tree), history)))
    }

    /// Begins a snapshot in the background.
    pub(crate) fn begin_snapshot(&mut self, tree: Box<FrozenTree>, history: History) {
        let Some(persistence) = &self.persistence else { return };
        self.snapshotting = Some(Snapshotting { frozen: persistence.frozen(tree), history });
    }

    /// Writes the snapshot, all at once. A failure changes nothing: the log has everything.
    pub(crate) fn finish_snapshot(&mut self) {
        let (Some(persistence), Some(of)) = (&self.persistence, self.snapshotting.take()) else { return };
        let before = self.snapshots.insert(of.frozen.zxid(), of.history);
        if persistence.write_snapshot(&of.frozen).is_ok_and(|kept| kept) {
            return;
        }
        if let Some(before) = before {
            self.snapshots.insert(of.frozen.zxid(), before);
        }
    }

    /// The part of the log that a learner lacks.
    pub(crate) fn log_part(&self, after: Zxid, through: Zxid) -> Option<LogPart> {
        ostler_data_dir::log_part(&self.files, &self.folders, (after, through), LOG_PERCENT).ok().flatten()
    }

    /// Ends the server at a random moment: during an operation of its disk, or between two.
    pub(crate) fn end(&mut self, ending: Ending, chance: &mut Chance) {
        let dead = |at| Some(DiskFault { at, kind: DiskFaultKind::Dead });
        if chance.one_in(3) && self.snapshotting.is_some() {
            self.files.set_fault(dead(chance.below(12)));
            self.finish_snapshot();
        }
        self.files.set_fault(dead(chance.below(16)));
        let count = chance.below(self.queue.len() as u64 + 1) as usize;
        // The process is gone, so its reports do not matter.
        let _ = self.sync(count);
        self.files.set_fault(None);
        if ending == Ending::PowerLost {
            self.files.lose_power(chance);
        }
        self.stop();
    }

    /// Notes that no server runs on the disk. Faults that are still pending are removed.
    pub(crate) fn stop(&mut self) {
        self.files.set_fault(None);
        (self.persistence, self.snapshotting) = (None, None);
        self.queue.clear();
    }

    /// The tree and the history that a start would find now.
    pub(crate) fn look(&mut self) -> (Tree, History) {
        let disk = self.files.clone();
        let restored = recovery::restore(&disk, &self.folders, self.options.restoring).unwrap();
        let history = self.history_of(&restored).unwrap();
        (restored.tree, history)
    }
}
