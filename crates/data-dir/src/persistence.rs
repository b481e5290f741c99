//! What a member asks of its disk, in files: what each act means, and in which order its parts become durable.
//!
//! It blocks, and has no clock or queue of its own, nor a thread but to read ahead, where that is wanted. The disk's
//! thread drives it in a server; the simulator drives the same code over a disk that forgets and fails.

use crate::{
    config_files::ConfigFiles,
    recovery::{self, Restored, Restoring},
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

/// How data are kept.
#[derive(Debug, Clone)]
pub struct KeepingOptions {
    /// How they are read.
    pub restoring: Restoring,
    /// How the log is written.
    pub log: LogOptions,
    /// How snapshots are written and kept.
    pub snapshots: snapshots::SnapshotOptions,
    /// The zoo.cfg beside which a configuration that changes is kept, and this server's number; `None` where the
    /// configuration never changes.
    pub reconfigurable: Option<(PathBuf, ServerId)>,
    /// Whether the server is a member of an ensemble, which may bring it its history.
    pub is_member: bool,
}

/// What is left after a [`PersistOp::Truncate`] that asked for it.
#[derive(Debug)]
pub struct Reloaded {
    /// Of the act.
    pub search_id: u64,
    /// What the files hold now.
    pub restored: Restored,
}

/// A tree to be written as a snapshot, and how often the log had been cut when it was frozen.
#[derive(Debug)]
pub struct Frozen {
    pub tree: Box<FrozenTree>,
    pub cuts: u64,
}

impl Frozen {
    /// The last transaction in it.
    pub fn zxid(&self) -> Zxid {
        self.tree.zxid
    }
}

/// A member's files, while it runs.
pub struct Persistence {
    log: TxnLog,
    snapshots: SnapshotSettings,
    options: KeepingOptions,
    config_files: Option<(ConfigFiles, ServerId)>,
}

impl Persistence {
    /// Gets the state back. Where there is no snapshot one is written: Java refuses a folder that has logs alone, and so does
    /// the next start here, which need not be told again to trust them.
    pub fn start(
        disk: Arc<dyn Disk>,
        folders: DataFolders,
        options: KeepingOptions,
    ) -> Result<(Persistence, Restored), StorageError> {
        let restored = recovery::restore(&*disk, &folders, options.restoring)?;
        let mut log = TxnLog::open(disk.clone(), folders.logs.clone(), options.log);
        log.continue_after(restored.recovered.last_zxid);
        let skipped = restored.recovered.skipped_snapshots().map(Path::to_path_buf).collect();
        let snapshots = SnapshotSettings::new(disk.clone(), folders, log.spare(), options.snapshots, skipped);
        if matches!(restored.recovered.origin, Origin::Fresh | Origin::Log) {
            snapshots::write_at_once(&restored.tree.freeze(), &snapshots)?;
        }
        // A member that is said to be new is so until it has its first history, however often it is started before.
        if !options.is_member || has_current_epoch(&*disk, &snapshots.folders)? {
            snapshots.folders.remove_initialize(&*disk)?;
        }
        let config_files =
            options.reconfigurable.clone().map(|(file, me)| (ConfigFiles::beside(file, disk), me));
        Ok((Persistence { log, snapshots, options, config_files }, restored))
    }

    /// Tells what the configuration's files have at the start. False if a change of it could not be kept: the log says
    /// why, and what to do.
    pub fn starts_with(&mut self, membership: &Membership) -> bool {
        self.config_files.as_mut().is_none_or(|(files, _)| files.start_with(membership))
    }

    pub fn snapshots(&self) -> &SnapshotSettings {
        &self.snapshots
    }

    /// Takes an act. Unless it says otherwise it is durable after the next [`Persistence::sync`].
    pub fn carry_out(&mut self, op: PersistOp) -> Result<Option<Reloaded>, StorageError> {
        match op {
            PersistOp::Append { zxid, record } => self.log.append(zxid, &record.0)?,
            PersistOp::RollLog => self.log.roll(),
            op => return self.rare(op),
        }
        Ok(None)
    }

    /// All that was taken is durable.
    pub fn sync(&mut self) -> Result<(), StorageError> {
        match self.log.commit() {
            Err(_) if planted::is(Bug::DiskErrorIgnored) => Ok(()),
            done => done,
        }
    }

    /// Notes how far the log is synced, for the next start. To be called after [`Persistence::sync`], once it has been
    /// reported: nobody needs to wait for it.
    pub fn note_synced(&mut self) -> Result<(), StorageError> {
        self.log.note_synced()
    }

    /// What changes with the leader only. All that was asked before is durable first.
    fn rare(&mut self, op: PersistOp) -> Result<Option<Reloaded>, StorageError> {
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
                // First the log. If the process ends before snapshots that have more are gone, the cut is made again; without
                // them the log alone could go on behind a gap that nothing shows.
                let cut = self.log.truncate_after(to)?;
                tracing::info!(%to, files = cut.removed.len(), cut = ?cut.cut, "the log was cut back");
                if let Some(search_id) = reload {
                    return Ok(Some(Reloaded { search_id, restored: self.read_cut(to)? }));
                }
                remove_snapshots_after(disk, &folders.snapshots, to)?;
            }
            PersistOp::Install(frozen) => {
                settings.cuts.add();
                // What is later is not this leader's. It goes when this is on disk, for what both have may have been
                // acknowledged; and snapshots go last, for the same reason as above.
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

    /// What is left after the log was cut back to `to`. Snapshots that have more go once that has been read without them,
    /// and reaches `to`: a tree that came whole from a leader stands for records that the log never had, and
    /// nothing in the log shows that they are missing. What stays may have been acknowledged, so where a snapshot alone
    /// has it that stays whole, with more in it than the leader has, until another tree takes its place.
    fn read_cut(&mut self, to: Zxid) -> Result<Restored, StorageError> {
        let (disk, folders) = (&*self.snapshots.disk, &self.snapshots.folders);
        let read =
            |recover| recovery::restore(disk, folders, Restoring { recover, ..self.options.restoring });
        let snapshots = find_snapshots(disk, &folders.snapshots)?;
        let later = snapshots.iter().any(|file| file.zxid > to);
        // Where there is no snapshot the log goes back to the beginning. Where one cannot be read it may not.
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

    /// Notes what a tree that was frozen just now belongs to.
    pub fn frozen(&self, tree: Box<FrozenTree>) -> Frozen {
        Frozen { tree, cuts: self.snapshots.cuts.count() }
    }

    /// Writes a snapshot in one go, and removes what is needed no more. False if the log was cut since the tree was
    /// frozen: then it may hold what was taken back.
    pub fn write_snapshot(&self, frozen: &Frozen) -> Result<bool, StorageError> {
        let mut snapshot = snapshots::Unfinished::begin(&frozen.tree, &self.snapshots)?;
        snapshot.advance(|_| true)?;
        let kept = snapshot.finish_unless_cut(frozen, &self.snapshots)?;
        snapshots::purge(&self.snapshots);
        Ok(kept)
    }
}

/// The accepted and the current epoch on disk. A folder of a server that was in no ensemble has neither: its last
/// transaction tells.
pub fn epochs(disk: &dyn Disk, folders: &DataFolders, last: Zxid) -> Result<(Epoch, Epoch), StorageError> {
    let epoch = |which| read_epoch(disk, &folders.snapshots, which);
    let current = epoch(EpochFile::Current)?.unwrap_or_default().max(last.epoch());
    Ok((epoch(EpochFile::Accepted)?.unwrap_or_default().max(current), current))
}

fn has_current_epoch(disk: &dyn Disk, folders: &DataFolders) -> Result<bool, StorageError> {
    Ok(read_epoch(disk, &folders.snapshots, EpochFile::Current)?.is_some_and(|current| current > Epoch(0)))
}

/// Whether the folder was empty, and what is there now may be only a part of a leader's history.
pub fn is_incomplete(disk: &dyn Disk, folders: &DataFolders) -> Result<bool, StorageError> {
    epochs::is_incomplete(disk, &folders.snapshots)
}

/// From where on the log on disk lacks nothing, after a start.
pub fn log_from(origin: Origin) -> Zxid {
    match origin {
        Origin::Snapshot(zxid) => zxid,
        Origin::Log | Origin::Fresh | Origin::Untrusted => Zxid::ZERO,
    }
}

/// A part of the log, for a learner that lacks it. `None` if the log does not reach back so far, or is more to send
/// than `percent` of a snapshot.
pub fn log_part(
    disk: &dyn Disk,
    folders: &DataFolders,
    (after, through): (Zxid, Zxid),
    percent: u32,
) -> Result<Option<LogPart>, StorageError> {
    let newest = find_snapshots(disk, &folders.snapshots)?.into_iter().next();
    let size = newest.and_then(|file| disk.open(&file.path).and_then(|file| file.size()).ok()).unwrap_or(0);
    let limit = (size * u64::from(percent) / 100).max(1 << 20);
    // One before shows whether the learner's last is a record here.
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
        // To find the end of the log would be to read all the space that is reserved behind it.
        if zxid == through {
            break;
        }
    }
    // A purge may have cleared the space of a file since it was opened; its name goes first. Between two epochs
    // nothing else shows that records are missing.
    for path in reader.files_read() {
        if !disk.exists(path).during("look for", path)? {
            return Ok(None);
        }
    }
    let reaches = part.before == Some(after) && part.records.last().is_some_and(|(zxid, _)| *zxid == through);
    Ok(reaches.then_some(part))
}
