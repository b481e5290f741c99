//! Snapshots in files: how one is begun, grows and is finished, and when it must not be.

use crate::Frozen;
use ostler_proto::txn::DIGEST_VERSION;
use ostler_storage::{
    StorageError,
    disk::Disk,
    folders::DataFolders,
    names::Compression,
    retention,
    snapshot::{Building, SnapshotDigest, SnapshotTrailer, SnapshotWriter},
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

/// How often the writer of a snapshot is asked whether to go on.
const PACE_EVERY: u64 = 32 << 10;

/// How snapshots are written and kept, as the configuration has it.
#[derive(Debug, Clone, Copy)]
pub struct SnapshotOptions {
    /// Of the files.
    pub compression: Compression,
    /// Whether they carry the tree's digest.
    pub digest: bool,
    /// Whether they carry the last zxid.
    pub last_processed: bool,
    /// Snapshots to keep; `None` keeps all.
    pub keep: Option<usize>,
}

/// How often the log was cut back. A tree that was frozen before a cut may have what was cut off: it must not become
/// a snapshot after it.
#[derive(Debug, Default)]
pub struct Cuts {
    count: AtomicU64,
    /// Held while a snapshot gets its name, so that no cut comes between the look at the count and that.
    finishing: Mutex<()>,
}

impl Cuts {
    pub fn count(&self) -> u64 {
        self.count.load(Ordering::Acquire)
    }

    fn finishing(&self) -> MutexGuard<'_, ()> {
        // A panic aborts the process, so a poisoned lock is never met.
        self.finishing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// To be called before snapshots of what is cut off are removed: no more of them come from then on.
    pub fn add(&self) {
        let _none_finishes = self.finishing();
        self.count.fetch_add(1, Ordering::Release);
    }
}

/// How snapshots are written and kept, and where.
#[derive(Clone)]
pub struct SnapshotSettings {
    pub disk: Arc<dyn Disk>,
    pub folders: DataFolders,
    options: SnapshotOptions,
    /// What becomes of old logs.
    spare: Arc<SpareLog>,
    /// What the start could not read: none of them stands for others.
    unreadable: Arc<[PathBuf]>,
    pub cuts: Arc<Cuts>,
    /// The server ends: what only tidies up is left to the next start.
    pub ending: Arc<AtomicBool>,
}

impl SnapshotSettings {
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
            cuts: Arc::default(),
            ending: Arc::default(),
        }
    }

    fn go_on(&self) -> bool {
        !self.ending.load(Ordering::Relaxed)
    }
}

/// Removes what no kept snapshot needs.
pub fn purge(settings: &SnapshotSettings) {
    let Some(keep) = settings.options.keep else { return };
    let (disk, folders, go_on) = (&*settings.disk, &settings.folders, &|| settings.go_on());
    match retention::purge(disk, folders, keep, &settings.unreadable, &settings.spare, go_on) {
        Ok(removed) if removed.is_empty() => {}
        Ok(removed) => tracing::info!(files = removed.len(), "old snapshots and logs removed"),
        Err(error) => tracing::warn!(%error, "old files were not removed"),
    }
}

/// Writes a frozen tree as a snapshot and makes it durable, as fast as it goes: somebody waits for it.
pub fn write_at_once(frozen: &FrozenTree, settings: &SnapshotSettings) -> Result<(), StorageError> {
    let mut snapshot = Unfinished::begin_as(Building::Foreground, frozen, settings)?;
    snapshot.advance(|_| true)?;
    snapshot.finish()
}

/// A snapshot on its way. Dropped unfinished, it leaves no file.
pub struct Unfinished<'a> {
    writer: SnapshotWriter<'a>,
    nodes: Peekable<Box<dyn Iterator<Item = &'a Znode> + Send + 'a>>,
    trailer: SnapshotTrailer,
}

impl<'a> Unfinished<'a> {
    pub fn begin(
        frozen: &'a FrozenTree,
        settings: &'a SnapshotSettings,
    ) -> Result<Unfinished<'a>, StorageError> {
        Unfinished::begin_as(Building::Background, frozen, settings)
    }

    fn begin_as(
        building: Building,
        frozen: &'a FrozenTree,
        settings: &'a SnapshotSettings,
    ) -> Result<Unfinished<'a>, StorageError> {
        let writer = SnapshotWriter::begin_as(
            building,
            &*settings.disk,
            &settings.folders.snapshots,
            frozen.zxid,
            settings.options.compression,
            frozen.sessions.iter().copied(),
            frozen.acls.iter().map(|(id, acls)| (id.to_disk(), &**acls)),
        )?;
        let digest = SnapshotDigest { zxid: frozen.zxid, version: DIGEST_VERSION, digest: frozen.digest };
        let trailer = SnapshotTrailer {
            digest: settings.options.digest.then_some(digest),
            last_processed: settings.options.last_processed.then_some(frozen.zxid),
        };
        let nodes: Box<dyn Iterator<Item = &Znode> + Send> = Box::new(frozen.nodes());
        Ok(Unfinished { writer, nodes: nodes.peekable(), trailer })
    }

    /// Writes znodes to the last. Asks now and then, with the bytes written so far, whether to go on. Returns whether all
    /// are written.
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

    /// Leaves no file, unless the server ends.
    pub fn give_up(self, settings: &SnapshotSettings) {
        self.writer.give_up(&|| settings.go_on());
    }

    /// Gives the file its name, unless the log was cut since the tree was frozen. False if it was.
    pub fn finish_unless_cut(
        self,
        frozen: &Frozen,
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
