//! Writes snapshot files step by step, refuses to finish one after a cut of the log, and purges old files.

use crate::SnapshotSource;
use ostler_proto::txn::DIGEST_VERSION;
use ostler_storage::{
    StorageError,
    disk::Disk,
    folders::DataFolders,
    names::Compression,
    retention::{self, PurgePlan},
    snapshot::{Building, SnapshotDigest, SnapshotTarget, SnapshotTrailer, SnapshotWriter},
    txnlog::SpareLog,
};
use ostler_tree::{FrozenTree, Znode};
use std::{
    iter::Peekable,
    path::PathBuf,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

/// The number of bytes after which [`UnfinishedSnapshot::advance`] asks whether to go on.
const PACE_EVERY: u64 = 32 << 10;

/// The options of snapshots from the configuration.
#[derive(Debug, Clone, Copy)]
pub struct SnapshotOptions {
    /// The compression of new files.
    pub compression: Compression,
    /// Whether new files have the tree's digest.
    pub digest: bool,
    /// Whether new files have the last zxid at their end.
    pub last_processed: bool,
    /// The number of snapshots that a purge keeps; `None` keeps all.
    pub keep: Option<usize>,
}

/// The number of times that the log was cut back. A tree that was frozen before a cut may have transactions that were cut
/// off, so it must not become a snapshot after the cut.
#[derive(Debug, Default)]
pub struct LogCuts {
    count: AtomicU64,
    /// Held while a snapshot gets its name, so that no cut comes between the check of the count and the rename.
    finishing: Mutex<()>,
}

impl LogCuts {
    /// The number of cuts so far.
    pub fn count(&self) -> u64 {
        self.count.load(Ordering::Acquire)
    }

    fn finishing(&self) -> MutexGuard<'_, ()> {
        // A panic aborts the process, so a poisoned lock is never met.
        self.finishing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a cut. Call it before later snapshots are removed: from then on no snapshot of an older tree is finished.
    pub fn add(&self) {
        let _none_finishes = self.finishing();
        self.count.fetch_add(1, Ordering::Release);
    }
}

/// The folders, options and shared state for writing snapshots and purging.
#[derive(Clone)]
pub struct SnapshotSettings {
    /// The disk.
    pub disk: Arc<dyn Disk>,
    /// The folders of snapshots and logs.
    pub folders: DataFolders,
    options: SnapshotOptions,
    /// The place for a purged log that becomes the next log.
    spare: Arc<SpareLog>,
    /// The snapshots that the start could not read. A purge does not count them among those that it keeps.
    unreadable: Arc<[PathBuf]>,
    /// Held while files are removed, because an operator can purge while the server does.
    purging: Arc<Mutex<()>>,
    /// The cuts of the log.
    pub cuts: Arc<LogCuts>,
    /// Whether the server ends. Then the removal of files is left to the next start.
    pub ending: Arc<AtomicBool>,
}

impl SnapshotSettings {
    /// Settings with these folders and options.
    pub fn new(
        disk: Arc<dyn Disk>,
        folders: DataFolders,
        spare: Arc<SpareLog>,
        options: SnapshotOptions,
        unreadable: Vec<PathBuf>,
    ) -> SnapshotSettings {
        SnapshotSettings {
            disk,
            folders,
            options,
            spare,
            unreadable: unreadable.into(),
            purging: Arc::default(),
            cuts: Arc::default(),
            ending: Arc::default(),
        }
    }

    /// The number of snapshots that a purge keeps; `None` if the server purges nothing by itself.
    pub fn keep(&self) -> Option<usize> {
        self.options.keep
    }

    /// The snapshots that the start could not read.
    pub fn unreadable(&self) -> &[PathBuf] {
        &self.unreadable
    }

    fn go_on(&self) -> bool {
        !self.ending.load(Ordering::Relaxed)
    }

    fn purging(&self) -> MutexGuard<'_, ()> {
        // A panic aborts the process, so a poisoned lock is never met.
        self.purging.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The files that a purge which keeps this number of snapshots would remove now. At least
/// [`RETAIN_AT_LEAST`](retention::RETAIN_AT_LEAST) are kept.
pub fn purge_plan(settings: &SnapshotSettings, keep: usize) -> Result<PurgePlan, StorageError> {
    retention::plan(&*settings.disk, &settings.folders, keep, &settings.unreadable)
}

/// Removes files for an operator who has seen the plan: `planned` are the names that it had. Returns the removed files, or
/// `None`, with nothing removed, if the plan is another one by now.
pub fn purge_as_planned(
    settings: &SnapshotSettings,
    keep: usize,
    planned: &[String],
) -> Result<Option<Vec<PathBuf>>, StorageError> {
    let _only_one = settings.purging();
    let plan = purge_plan(settings, keep)?;
    let names = || plan.paths().filter_map(|path| path.file_name()?.to_str());
    if !names().eq(planned.iter().map(String::as_str)) {
        return Ok(None);
    }
    let (disk, folders, go_on) = (&*settings.disk, &settings.folders, &|| settings.go_on());
    retention::carry_out(disk, folders, plan, &settings.spare, go_on).map(Some)
}

/// Removes old snapshots, and logs that no kept snapshot needs. Errors are logged.
pub fn purge(settings: &SnapshotSettings) {
    let Some(keep) = settings.options.keep else { return };
    let _only_one = settings.purging();
    let (disk, folders, go_on) = (&*settings.disk, &settings.folders, &|| settings.go_on());
    match retention::purge(disk, folders, keep, &settings.unreadable, &settings.spare, go_on) {
        Ok(removed) if removed.is_empty() => {}
        Ok(removed) => tracing::info!(files = removed.len(), "old snapshots and logs removed"),
        Err(error) => tracing::warn!(%error, "old files were not removed"),
    }
}

/// Writes a frozen tree as a snapshot and makes it durable, as fast as possible, because the server waits for it.
pub fn write_at_once(frozen: &FrozenTree, settings: &SnapshotSettings) -> Result<(), StorageError> {
    let mut snapshot = UnfinishedSnapshot::begin_as(Building::Foreground, frozen, settings)?;
    snapshot.advance(|_| true)?;
    snapshot.finish()
}

/// As [`write_at_once`], for a snapshot beside those of the server. If the log was cut since the tree was frozen, nothing is
/// written, and this returns false.
pub fn write_at_once_unless_cut(
    frozen: &SnapshotSource,
    settings: &SnapshotSettings,
) -> Result<bool, StorageError> {
    let mut snapshot = UnfinishedSnapshot::begin_as(Building::Foreground, &frozen.tree, settings)?;
    snapshot.advance(|_| true)?;
    snapshot.finish_unless_cut(frozen, settings)
}

/// A snapshot that is being written. If it is dropped before its end, its file is removed.
pub struct UnfinishedSnapshot<'a> {
    writer: SnapshotWriter<'a>,
    nodes: Peekable<Box<dyn Iterator<Item = &'a Znode> + Send + 'a>>,
    trailer: SnapshotTrailer,
}

impl<'a> UnfinishedSnapshot<'a> {
    /// Begins a snapshot in the background.
    pub fn begin(
        frozen: &'a FrozenTree,
        settings: &'a SnapshotSettings,
    ) -> Result<UnfinishedSnapshot<'a>, StorageError> {
        UnfinishedSnapshot::begin_as(Building::Background, frozen, settings)
    }

    fn begin_as(
        building: Building,
        frozen: &'a FrozenTree,
        settings: &'a SnapshotSettings,
    ) -> Result<UnfinishedSnapshot<'a>, StorageError> {
        let compression = settings.options.compression;
        let file = SnapshotTarget::new(&settings.folders.snapshots, frozen.zxid, compression);
        let writer = SnapshotWriter::begin(
            &*settings.disk,
            SnapshotTarget { building, ..file },
            frozen.sessions.iter().copied(),
            frozen.acls.iter().map(|(id, acls)| (id.to_disk(), &**acls)),
        )?;
        let digest = SnapshotDigest { zxid: frozen.zxid, version: DIGEST_VERSION, digest: frozen.digest };
        let trailer = SnapshotTrailer {
            digest: settings.options.digest.then_some(digest),
            last_processed: settings.options.last_processed.then_some(frozen.zxid),
        };
        let nodes: Box<dyn Iterator<Item = &Znode> + Send> = Box::new(frozen.nodes());
        Ok(UnfinishedSnapshot { writer, nodes: nodes.peekable(), trailer })
    }

    /// Writes znodes until all are written, and returns true. Calls `go_on` from time to time with the number of bytes
    /// written so far, and returns false as soon as it returns false.
    pub fn advance(&mut self, go_on: impl Fn(u64) -> bool) -> Result<bool, StorageError> {
        let mut asked = self.writer.written();
        while let Some(node) = self.nodes.peek() {
            if self.writer.written() - asked >= PACE_EVERY {
                asked = self.writer.written();
                if !go_on(asked) {
                    return Ok(false);
                }
            }
            self.writer.node(&node.path, node.data.as_deref(), node.acl.to_disk(), &node.stat)?;
            self.nodes.next();
        }
        Ok(true)
    }

    fn finish(self) -> Result<(), StorageError> {
        self.writer.finish(self.trailer)?;
        Ok(())
    }

    /// Abandons the snapshot and removes its file. If the server ends, the file stays for the next start.
    pub fn give_up(self, settings: &SnapshotSettings) {
        self.writer.give_up(&|| settings.go_on());
    }

    /// Makes the file durable and gives it its name. If the log was cut since the tree was frozen, abandons the snapshot and
    /// returns false.
    pub fn finish_unless_cut(
        self,
        frozen: &SnapshotSource,
        settings: &SnapshotSettings,
    ) -> Result<bool, StorageError> {
        let _no_cut = settings.cuts.finishing();
        let holds = settings.cuts.count() == frozen.cuts;
        match holds {
            true => self.finish()?,
            false => self.give_up(settings),
        }
        Ok(holds)
    }
}
