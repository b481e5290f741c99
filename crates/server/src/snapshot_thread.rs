//! Snapshots are written here, from a frozen tree, while the service goes on; old files are removed after.

use crate::driver::Driver;
use ostler_proto::txn::DIGEST_VERSION;
use ostler_server_core::Input;
use ostler_storage::{
    StorageError,
    disk::Disk,
    folders::DataFolders,
    names::Compression,
    retention,
    snapshot::{SnapshotDigest, SnapshotTrailer, SnapshotWriter},
    txnlog::SpareLog,
};
use ostler_tree::{FrozenTree, Znode};
use std::{
    iter::Peekable,
    panic::resume_unwind,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc::{Receiver, Sender, channel},
    },
    thread,
    time::{Duration, Instant},
};
use thread_priority::{
    NormalThreadSchedulePolicy, ThreadPriority, ThreadSchedulePolicy, set_thread_priority_and_policy,
    thread_native_id,
};

/// Snapshots are nobody's hurry: at this pace they leave processor and disk to the service.
const PACE_BYTES_PER_S: u64 = 16 << 20;
/// What is logged meanwhile has to be replayed after a crash, so the snapshot of a busy server hurries by so
/// many bytes for each byte logged.
const HURRY: u64 = 4;
const PACE_MAX_BYTES_PER_S: u64 = 128 << 20;
const PACE_EVERY: u64 = 32 << 10;
/// Where a processor has no idle moment for so long, a snapshot is late, and goes on with a share of its own.
const PATIENCE: Duration = Duration::from_millis(500);

/// How often the log was cut back. A tree that was frozen before a cut may have what was cut off: it must not become
/// a snapshot after it.
#[derive(Debug, Default)]
pub(crate) struct Cuts {
    count: AtomicU64,
    /// Held while a snapshot gets its name, so that no cut comes between the look at the count and that.
    finishing: Mutex<()>,
}

impl Cuts {
    fn count(&self) -> u64 {
        self.count.load(Ordering::Acquire)
    }

    fn finishing(&self) -> MutexGuard<'_, ()> {
        // A panic aborts the process, so a poisoned lock is never met.
        self.finishing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// To be called before snapshots of what is cut off are removed: no more of them come from then on.
    pub(crate) fn add(&self) {
        let _none_finishes = self.finishing();
        self.count.fetch_add(1, Ordering::Release);
    }
}

/// A tree to be written, and how many cuts there were when it was frozen.
#[derive(Debug)]
pub(crate) struct Frozen {
    tree: Box<FrozenTree>,
    cuts: u64,
}

/// Where frozen trees wait to be written.
#[derive(Debug)]
pub(crate) struct SnapshotQueue {
    /// `None` ends the thread.
    sender: Sender<Option<Frozen>>,
    cuts: Arc<Cuts>,
    stopped: AtomicBool,
    pub(crate) written: AtomicU64,
    pub(crate) last_ms: AtomicU64,
    pub(crate) failed: AtomicU64,
}

impl SnapshotQueue {
    pub(crate) fn new(cuts: Arc<Cuts>) -> (Arc<SnapshotQueue>, Receiver<Option<Frozen>>) {
        let (sender, receiver) = channel();
        let queue = SnapshotQueue {
            sender,
            cuts,
            stopped: AtomicBool::new(false),
            written: AtomicU64::new(0),
            last_ms: AtomicU64::new(0),
            failed: AtomicU64::new(0),
        };
        (Arc::new(queue), receiver)
    }

    pub(crate) fn push(&self, frozen: Box<FrozenTree>) {
        // The thread ends only when it is told to.
        let cuts = self.cuts.count();
        let _ = self.sender.send(Some(Frozen { tree: frozen, cuts }));
    }

    /// Ends the thread, and gives up the snapshot that it is writing: the log has all of it.
    pub(crate) fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
        let _ = self.sender.send(None);
    }
}

/// How snapshots are written and kept.
#[derive(Clone)]
pub(crate) struct SnapshotSettings {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) folders: DataFolders,
    pub(crate) compression: Compression,
    pub(crate) digest: bool,
    pub(crate) last_processed: bool,
    /// Snapshots to keep; `None` keeps all.
    pub(crate) keep: Option<usize>,
    /// Bytes logged by this process.
    pub(crate) log_bytes: Arc<AtomicU64>,
    /// What becomes of old logs.
    pub(crate) spare: Arc<SpareLog>,
    pub(crate) cuts: Arc<Cuts>,
}

/// Runs until the queue is stopped.
pub(crate) fn run(
    queue: &SnapshotQueue,
    receiver: &Receiver<Option<Frozen>>,
    driver: &Arc<Driver>,
    settings: &SnapshotSettings,
) {
    while let Ok(Some(frozen)) = receiver.recv() {
        let (zxid, znodes, begun) = (frozen.tree.zxid, frozen.tree.len(), Instant::now());
        match write(&frozen, settings, &queue.stopped) {
            Ok(false) => tracing::info!(%zxid, "a snapshot was given up; the log has all of it"),
            Ok(true) => {
                let ms = begun.elapsed().as_millis() as u64;
                queue.written.fetch_add(1, Ordering::Relaxed);
                queue.last_ms.store(ms, Ordering::Relaxed);
                tracing::info!(%zxid, znodes, ms, "snapshot written");
            }
            // The log has everything that the snapshot would have, so the service goes on.
            Err(error) => {
                queue.failed.fetch_add(1, Ordering::Relaxed);
                tracing::error!(%zxid, %error, "the snapshot was not written; the log keeps growing until one is");
            }
        }
        drop(frozen);
        driver.step(Input::SnapshotDone);
        purge(settings);
    }
}

/// Removes what no kept snapshot needs.
pub(crate) fn purge(settings: &SnapshotSettings) {
    let Some(keep) = settings.keep else { return };
    match retention::purge(&*settings.disk, &settings.folders, keep, &settings.spare) {
        Ok(removed) if removed.is_empty() => {}
        Ok(removed) => tracing::info!(files = removed.len(), "old snapshots and logs removed"),
        Err(error) => tracing::warn!(%error, "old files were not removed"),
    }
}

/// How fast a snapshot may grow.
struct Pace {
    begun: Instant,
    logged: u64,
}

impl Pace {
    /// When so many bytes are due, counted from the beginning.
    fn due(&self, written: u64, logged: u64) -> Duration {
        let at = |pace: u64, bytes: u64| Duration::from_micros(bytes * 1_000_000 / pace);
        let urged = (logged - self.logged) * HURRY;
        at(PACE_BYTES_PER_S, written.saturating_sub(urged)).max(at(PACE_MAX_BYTES_PER_S, written))
    }

    /// How much too early so many bytes are. At most a moment: the log may grow meanwhile.
    fn early(&self, written: u64, logged: u64) -> Option<Duration> {
        const MOMENT: Duration = Duration::from_millis(50);
        let early = self.due(written, logged).saturating_sub(self.begun.elapsed());
        (!early.is_zero()).then_some(early.min(MOMENT))
    }

    fn is_late(&self, written: u64, logged: u64) -> bool {
        self.begun.elapsed() > self.due(written, logged) + PATIENCE
    }
}

/// Writes a frozen tree as a snapshot and makes it durable, at its pace. `false` if it was given up: `stopped` half way,
/// or the log was cut meanwhile.
///
/// The work is done in moments that nobody else wants: a request that comes then has the processor at once, where it
/// would wait out a turn of a thread that is merely nice. If there are too few such moments the calling thread
/// takes over, since a thread may not leave the idle class again without a privilege.
fn write(frozen: &Frozen, settings: &SnapshotSettings, stopped: &AtomicBool) -> Result<bool, StorageError> {
    let logged = || settings.log_bytes.load(Ordering::Relaxed);
    let pace = Pace { begun: Instant::now(), logged: logged() };
    let keep_pace = |written| {
        while !stopped.load(Ordering::Relaxed)
            && let Some(early) = pace.early(written, logged())
        {
            thread::sleep(early);
        }
        !stopped.load(Ordering::Relaxed)
    };
    let mut snapshot = Unfinished::begin(&frozen.tree, settings)?;
    let in_idle_moments = || {
        // Where it is refused the pace has to do.
        let idle = ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Idle);
        let _ = set_thread_priority_and_policy(thread_native_id(), ThreadPriority::Min, idle);
        snapshot.advance(|written| keep_pace(written) && !pace.is_late(written, logged()))
    };
    let name = "snapshot-idle".to_owned();
    thread::scope(|scope| match thread::Builder::new().name(name).spawn_scoped(scope, in_idle_moments) {
        Ok(idle) => idle.join().unwrap_or_else(|panic| resume_unwind(panic)),
        // Then this thread does it all.
        Err(_) => Ok(()),
    })?;
    snapshot.advance(keep_pace)?;
    if !snapshot.is_written() {
        return Ok(false);
    }
    let _no_cut = settings.cuts.finishing();
    let holds = settings.cuts.count() == frozen.cuts;
    if holds {
        snapshot.finish()?;
    }
    Ok(holds)
}

/// Writes a frozen tree as a snapshot and makes it durable, as fast as it goes: somebody waits for it.
pub(crate) fn write_at_once(frozen: &FrozenTree, settings: &SnapshotSettings) -> Result<(), StorageError> {
    let mut snapshot = Unfinished::begin(frozen, settings)?;
    snapshot.advance(|_| true)?;
    snapshot.finish()
}

/// A snapshot on its way. Dropped unfinished, it leaves no file.
struct Unfinished<'a> {
    writer: SnapshotWriter<'a>,
    nodes: Peekable<Box<dyn Iterator<Item = &'a Znode> + Send + 'a>>,
    trailer: SnapshotTrailer,
}

impl<'a> Unfinished<'a> {
    fn begin(frozen: &'a FrozenTree, settings: &'a SnapshotSettings) -> Result<Unfinished<'a>, StorageError> {
        let writer = SnapshotWriter::begin(
            &*settings.disk,
            &settings.folders.snapshots,
            frozen.zxid,
            settings.compression,
            frozen.sessions.iter().copied(),
            frozen.acls.iter().map(|(id, acls)| (id.to_disk(), &**acls)),
        )?;
        let digest = SnapshotDigest { zxid: frozen.zxid, version: DIGEST_VERSION, digest: frozen.digest };
        let trailer = SnapshotTrailer {
            digest: settings.digest.then_some(digest),
            last_processed: settings.last_processed.then_some(frozen.zxid),
        };
        let nodes: Box<dyn Iterator<Item = &Znode> + Send> = Box::new(frozen.nodes());
        Ok(Unfinished { writer, nodes: nodes.peekable(), trailer })
    }

    /// Writes znodes to the last. Asks now and then, with the bytes written so far, whether to go on.
    fn advance(&mut self, go_on: impl Fn(u64) -> bool) -> Result<(), StorageError> {
        let mut asked = self.writer.written();
        while let Some(node) = self.nodes.peek() {
            if self.writer.written() - asked >= PACE_EVERY {
                asked = self.writer.written();
                if !go_on(asked) {
                    break;
                }
            }
            self.writer.node(&node.path, node.data.as_deref(), node.acl.to_disk(), &node.stat)?;
            self.nodes.next();
        }
        Ok(())
    }

    fn is_written(&mut self) -> bool {
        self.nodes.peek().is_none()
    }

    fn finish(self) -> Result<(), StorageError> {
        self.writer.finish(self.trailer)?;
        Ok(())
    }
}
