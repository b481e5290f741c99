//! Carries out the disk operations of the core ([`PersistOp`]): what each one does in files, and in which order its parts
//! become durable.
//!
//! All functions block. There is no clock, no queue, and no thread except the one that reads ahead in recovery. In a
//! server the disk's thread calls this code; the simulator calls the same code with a disk that loses data and fails.

use crate::{
    config_files::ConfigFiles,
    recovery::{self, RestoreOptions, Restored},
    snapshots::{self, SnapshotSettings},
};
use ostler_planted::{self as planted, Bug};
use ostler_proto::{
    id::{Epoch, ServerId, Zxid},
    membership::Membership,
};
use ostler_server_core::{LogPart, PersistOp, effect::Record};
use ostler_storage::{
    StorageError,
    disk::Disk,
    epochs::{self, EpochFile, mark_complete, mark_incomplete, read_epoch, write_epoch},
    error::IoContext,
    folders::DataFolders,
    recover::{Origin, RecoverOptions},
    snapshot::{find_snapshots, remove_snapshots_after},
    txnlog::{LogOptions, LogReader, TxnLog},
};
use ostler_tree::FrozenTree;
use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

/// The options of [`Persistence`].
#[derive(Debug, Clone)]
pub struct PersistenceOptions {
    /// How the state is restored at a start.
    pub restoring: RestoreOptions,
    /// How the log is written.
    pub log: LogOptions,
    /// How snapshots are written and kept.
    pub snapshots: snapshots::SnapshotOptions,
    /// The zoo.cfg beside which the configuration of the ensemble is saved, and this server's id. `None` if the
    /// configuration never changes.
    pub reconfigurable: Option<(PathBuf, ServerId)>,
    /// Whether the server is a member of an ensemble, so that a leader can send it its history.
    pub is_member: bool,
}

/// The state after a [`PersistOp::Truncate`] with a reload.
#[derive(Debug)]
pub struct Reloaded {
    /// The search for a leader in which the truncation was requested.
    pub search_id: u64,
    /// The state that was restored from the files after the truncation.
    pub restored: Restored,
}

/// A frozen tree for a snapshot, and the number of log cuts when it was frozen. After a later cut it must not become a
/// snapshot.
#[derive(Debug)]
pub struct SnapshotSource {
    /// The tree.
    pub tree: Box<FrozenTree>,
    /// [`LogCuts::count`](snapshots::LogCuts::count) when the tree was frozen.
    pub cuts: u64,
}

impl SnapshotSource {
    /// The last transaction in the tree.
    pub fn zxid(&self) -> Zxid {
        self.tree.zxid
    }
}

/// The files of a running server.
pub struct Persistence {
    log: TxnLog,
    snapshots: SnapshotSettings,
    options: PersistenceOptions,
    config_files: Option<(ConfigFiles, ServerId)>,
}

impl Persistence {
    /// Restores the state from the files. If there is no snapshot, one is written: Java refuses a folder with logs only, and
    /// so would the next start, unless `snapshot.trust.empty` is still set.
    ///
    /// # Errors
    /// The state cannot be restored, or the snapshot cannot be written.
    pub fn start(
        disk: Arc<dyn Disk>,
        folders: DataFolders,
        options: PersistenceOptions,
    ) -> Result<(Persistence, Restored), StorageError> {
        let restored = recovery::restore(&*disk, &folders, options.restoring)?;
        let mut log = TxnLog::open(disk.clone(), folders.logs.clone(), options.log);
        log.continue_after(restored.recovered.last_zxid);
        let skipped = restored.recovered.skipped_snapshots().map(Path::to_path_buf).collect();
        let snapshots = SnapshotSettings::new(disk.clone(), folders, log.spare(), options.snapshots, skipped);
        if matches!(restored.recovered.origin, Origin::Fresh | Origin::Log) {
            snapshots::write_at_once(&restored.tree.freeze(), &snapshots)?;
        }
        // The `initialize` file of a new member counts for all starts until the member has its first history.
        if !options.is_member || has_current_epoch(&*disk, &snapshots.folders)? {
            snapshots.folders.remove_initialize(&*disk)?;
        }
        let config_files =
            options.reconfigurable.clone().map(|(file, me)| (ConfigFiles::beside(file, disk), me));
        Ok((Persistence { log, snapshots, options, config_files }, restored))
    }

    /// Sets the configuration with which the server starts, as its files have it. Returns false if a changed configuration
    /// could not be saved. Then a warning in the log says why, and what to do.
    pub fn starts_with(&mut self, membership: &Membership) -> bool {
        self.config_files.as_mut().is_none_or(|(files, _)| files.start_with(membership))
    }

    /// The settings of snapshots.
    pub fn snapshots(&self) -> &SnapshotSettings {
        &self.snapshots
    }

    /// Carries out an operation. An append is durable after the next [`Persistence::sync`], any other operation when this
    /// returns.
    pub fn carry_out(&mut self, op: PersistOp) -> Result<Option<Reloaded>, StorageError> {
        match op {
            PersistOp::Append { zxid, record } => self.log.append(zxid, &record.0)?,
            PersistOp::RollLog => self.log.roll(),
            op => return self.carry_out_synced(op),
        }
        Ok(None)
    }

    /// Makes all appended records durable.
    pub fn sync(&mut self) -> Result<(), StorageError> {
        match self.log.commit() {
            Err(_) if planted::is(Bug::DiskErrorIgnored) => Ok(()),
            done => done,
        }
    }

    /// Notes for the next start how far the log is synced. Call it after [`Persistence::sync`] and after the sync was
    /// reported, because no reply needs to wait for this note.
    pub fn note_synced(&mut self) -> Result<(), StorageError> {
        self.log.note_synced()
    }

    /// Carries out an operation that is rare, as at a change of the leader. Makes all appended records durable first.
    fn carry_out_synced(&mut self, op: PersistOp) -> Result<Option<Reloaded>, StorageError> {
        self.log.commit()?;
        let settings = &self.snapshots;
        let (folders, disk) = (&settings.folders, &*settings.disk);
        match op {
            PersistOp::MarkIncomplete => mark_incomplete(disk, &folders.snapshots)?,
            PersistOp::SaveAccepted(epoch) => {
                write_epoch(disk, &folders.snapshots, EpochFile::Accepted, epoch)?;
            }
            PersistOp::SaveCurrent(epoch) => {
                write_epoch(disk, &folders.snapshots, EpochFile::Current, epoch)?;
                mark_complete(disk, &folders.snapshots)?;
                folders.remove_initialize(disk)?;
            }
            PersistOp::Truncate { to, reload } => {
                settings.cuts.add();
                // The log is cut before later snapshots are removed. If the process ends in between, the cut is repeated. In
                // the other order the log could be left with a gap that nothing shows.
                let cut = self.log.truncate_after(to)?;
                tracing::info!(%to, files = cut.removed.len(), cut = ?cut.cut, "the log was cut back");
                if let Some(search_id) = reload {
                    return Ok(Some(Reloaded { search_id, restored: self.read_cut(to)? }));
                }
                remove_snapshots_after(disk, &folders.snapshots, to)?;
            }
            PersistOp::Install(frozen) => {
                settings.cuts.add();
                // Later transactions are not part of this leader's history. They are removed once the tree is on disk, because
                // the transactions before may have been acknowledged. Snapshots are removed last, as above.
                snapshots::write_at_once(&frozen, settings)?;
                self.log.truncate_after(frozen.zxid)?;
                self.log.continue_after(frozen.zxid);
                remove_snapshots_after(disk, &folders.snapshots, frozen.zxid)?;
                tracing::info!(zxid = %frozen.zxid, logs = %folders.logs.display(), "the leader's tree is on disk");
            }
            PersistOp::SaveConfig { membership, active } => {
                if let Some((files, me)) = &mut self.config_files {
                    files.save(&membership, active, *me)?;
                }
            }
            PersistOp::Append { .. } | PersistOp::RollLog => {}
        }
        Ok(None)
    }

    /// Restores the state after the log was cut back to `to`.
    ///
    /// Snapshots after `to` are removed only if the state without them reaches `to`. A tree from a leader can replace
    /// records that the log never had, and nothing in the log shows that they are missing. Transactions up to `to` may have
    /// been acknowledged. So if only a later snapshot has them, it stays, although it also has transactions that the leader
    /// does not have, until another tree replaces it.
    fn read_cut(&mut self, to: Zxid) -> Result<Restored, StorageError> {
        let (disk, folders) = (&*self.snapshots.disk, &self.snapshots.folders);
        let read =
            |recover| recovery::restore(disk, folders, RestoreOptions { recover, ..self.options.restoring });
        let snapshots = find_snapshots(disk, &folders.snapshots)?;
        let later = snapshots.iter().any(|file| file.zxid > to);
        // Without any snapshot file the log starts with the first transaction. If a snapshot cannot be read, it may not.
        let trust_empty = snapshots.is_empty();
        let options = RecoverOptions { trust_empty, in_use: true, ..RecoverOptions::default() };
        match read(RecoverOptions { through: to, ..options }) {
            Ok(restored) if restored.recovered.last_zxid == to || !later => {
                remove_snapshots_after(disk, &folders.snapshots, to)?;
                return Ok(restored);
            }
            Err(error) if !later => return Err(error),
            Ok(_) | Err(_) => {}
        }
        let restored = read(options)?;
        let last = restored.recovered.last_zxid;
        tracing::warn!(
            %to,
            %last,
            "what is left of the log does not reach back to where the leader cuts it: the newest snapshot stays"
        );
        self.log.continue_after(last);
        Ok(restored)
    }

    /// Adds the number of log cuts to a tree that was frozen just now.
    pub fn frozen(&self, tree: Box<FrozenTree>) -> SnapshotSource {
        SnapshotSource { tree, cuts: self.snapshots.cuts.count() }
    }

    /// Writes a snapshot without pauses, and purges old files. Returns false without a snapshot if the log was cut since the
    /// tree was frozen, because the tree may have transactions that were taken back.
    pub fn write_snapshot(&self, frozen: &SnapshotSource) -> Result<bool, StorageError> {
        let mut snapshot = snapshots::UnfinishedSnapshot::begin(&frozen.tree, &self.snapshots)?;
        snapshot.advance(|_| true)?;
        let kept = snapshot.finish_unless_cut(frozen, &self.snapshots)?;
        snapshots::purge(&self.snapshots);
        Ok(kept)
    }
}

/// The accepted and the current epoch on disk. The folder of a standalone server has neither file; then the epoch is that
/// of `last`, its last transaction.
pub fn epochs(disk: &dyn Disk, folders: &DataFolders, last: Zxid) -> Result<(Epoch, Epoch), StorageError> {
    let epoch = |which| read_epoch(disk, &folders.snapshots, which);
    let current = epoch(EpochFile::Current)?.unwrap_or_default().max(last.epoch());
    Ok((epoch(EpochFile::Accepted)?.unwrap_or_default().max(current), current))
}

fn has_current_epoch(disk: &dyn Disk, folders: &DataFolders) -> Result<bool, StorageError> {
    Ok(read_epoch(disk, &folders.snapshots, EpochFile::Current)?.is_some_and(|current| current > Epoch(0)))
}

/// Whether the history on disk may be incomplete: the folder was empty, and the synchronization with a leader has begun but
/// not ended.
pub fn is_incomplete(disk: &dyn Disk, folders: &DataFolders) -> Result<bool, StorageError> {
    epochs::is_incomplete(disk, &folders.snapshots)
}

/// The zxid after which the log on disk is complete, after a start from `origin`.
pub fn log_from(origin: Origin) -> Zxid {
    match origin {
        Origin::Snapshot(zxid) => zxid,
        Origin::Log | Origin::Fresh | Origin::Untrusted => Zxid::ZERO,
    }
}

/// The records of the log after `after` up to `through`, for a learner that lacks them. `None` if the log does not have all
/// of them, or if they are larger than `percent` % of the newest snapshot (at least 1 MiB).
pub fn log_part(
    disk: &dyn Disk,
    folders: &DataFolders,
    (after, through): (Zxid, Zxid),
    percent: u32,
) -> Result<Option<LogPart>, StorageError> {
    let newest = find_snapshots(disk, &folders.snapshots)?.into_iter().next();
    let size = newest.and_then(|file| disk.open(&file.path).and_then(|file| file.size()).ok()).unwrap_or(0);
    let limit = (size * u64::from(percent) / 100).max(1 << 20);
    // The record before shows whether the learner's last transaction is in this log.
    let mut reader = LogReader::open(disk, &folders.logs, after.previous())?;
    let (mut part, mut bytes) = (LogPart { before: None, records: Vec::new() }, 0);
    while let Some(record) = reader.next_record()? {
        if record.zxid > through {
            break;
        }
        if record.zxid <= after {
            part.before = Some(record.zxid);
            continue;
        }
        bytes += record.bytes.len() as u64;
        if bytes > limit {
            return Ok(None);
        }
        let zxid = record.zxid;
        part.records.push((zxid, Record(record.bytes.into())));
        // Reading on to the end of the log would read all the space that is reserved behind it.
        if zxid == through {
            break;
        }
    }
    // A purge may have cleared a file since it was opened. It removes the name first, so a missing name shows this. Between
    // two epochs nothing else shows that records are missing.
    for path in reader.files_read() {
        if !disk.exists(path).during("look for", path)? {
            return Ok(None);
        }
    }
    let reaches = part.before == Some(after) && part.records.last().is_some_and(|(zxid, _)| *zxid == through);
    Ok(reaches.then_some(part))
}
