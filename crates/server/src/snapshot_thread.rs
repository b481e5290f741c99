//! Snapshots are written here, from a frozen tree, while the service goes on; old files are removed after.

use crate::driver::Driver;
use ostler_data_dir::{
    Frozen,
    snapshots::{Cuts, SnapshotSettings, Unfinished, purge},
};
use ostler_server_core::{Input, stats::Summary};
use ostler_storage::StorageError;
use ostler_tree::FrozenTree;
use std::{
    panic::resume_unwind,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    },
    thread,
    time::{Duration, Instant},
};
use thread_priority::{
    NormalThreadSchedulePolicy, ThreadPriority, ThreadSchedulePolicy, set_thread_priority_and_policy,
    thread_native_id,
};

/// The pace of a snapshot, which is not urgent: it leaves processor and disk to the service.
const PACE_BYTES_PER_S: u64 = 16 << 20;
/// Bytes by which a snapshot hurries for each byte that is logged meanwhile: the log has to be replayed after a crash.
const HURRY: u64 = 4;
const PACE_MAX_BYTES_PER_S: u64 = 128 << 20;
/// If the processor has no idle moment for this time, a snapshot is late, and takes a share of the processor.
const PATIENCE: Duration = Duration::from_millis(500);

/// Where frozen trees wait to be written.
#[derive(Debug)]
pub(crate) struct SnapshotQueue {
    /// `None` ends the thread.
    sender: Sender<Option<Frozen>>,
    cuts: Arc<Cuts>,
    stopped: Arc<AtomicBool>,
    pub(crate) written: AtomicU64,
    pub(crate) last_ms: AtomicU64,
    /// How long each took, ms, since the start or `srst`.
    pub(crate) took_ms: Mutex<Summary>,
    pub(crate) failed: AtomicU64,
}

impl SnapshotQueue {
    pub(crate) fn new(settings: &SnapshotSettings) -> (Arc<SnapshotQueue>, Receiver<Option<Frozen>>) {
        let (sender, receiver) = channel();
        let queue = SnapshotQueue {
            sender,
            cuts: settings.cuts.clone(),
            stopped: settings.ending.clone(),
            written: AtomicU64::new(0),
            last_ms: AtomicU64::new(0),
            took_ms: Mutex::default(),
            failed: AtomicU64::new(0),
        };
        (Arc::new(queue), receiver)
    }

    pub(crate) fn push(&self, frozen: Box<FrozenTree>) {
        // The thread ends only when it is told to.
        let cuts = self.cuts.count();
        let _ = self.sender.send(Some(Frozen { tree: frozen, cuts }));
    }

    /// Ends the thread. A snapshot that is being written is given up, as the log has all of it, and so is a purge.
    pub(crate) fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
        let _ = self.sender.send(None);
    }
}

/// What the thread works with.
pub(crate) struct SnapshotWork {
    pub(crate) settings: SnapshotSettings,
    /// The other end of the queue.
    pub(crate) frozen: Receiver<Option<Frozen>>,
    /// The time between purges that no snapshot asks for; `None` for no such purges.
    pub(crate) purge_every: Option<Duration>,
}

/// Runs until the queue is stopped. Removes old files at the start, after each snapshot, and each `purge_every`.
/// `log_bytes` grows with the log.
pub(crate) fn run(queue: &SnapshotQueue, driver: &Arc<Driver>, log_bytes: &AtomicU64, work: &SnapshotWork) {
    let settings = &work.settings;
    purge(settings);
    loop {
        let frozen = match work.frozen.recv_timeout(work.purge_every.unwrap_or(Duration::MAX)) {
            Ok(Some(frozen)) => frozen,
            Ok(None) | Err(RecvTimeoutError::Disconnected) => return,
            Err(RecvTimeoutError::Timeout) => {
                purge(settings);
                continue;
            }
        };
        let (zxid, znodes, begun) = (frozen.tree.zxid, frozen.tree.len(), Instant::now());
        match write(&frozen, settings, log_bytes, &queue.stopped) {
            Ok(false) => tracing::info!(%zxid, "a snapshot was given up; the log has all of it"),
            Ok(true) => {
                let ms = begun.elapsed().as_millis() as u64;
                queue.written.fetch_add(1, Ordering::Relaxed);
                queue.last_ms.store(ms, Ordering::Relaxed);
                // A panic aborts the process, so a poisoned lock is never met.
                queue.took_ms.lock().unwrap_or_else(PoisonError::into_inner).add(ms);
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

/// How fast a snapshot may grow.
struct Pace {
    begun: Instant,
    logged: u64,
}

impl Pace {
    /// The time from the beginning at which this number of bytes is due.
    fn due(&self, written: u64, logged: u64) -> Duration {
        let at = |pace: u64, bytes: u64| Duration::from_micros(bytes * 1_000_000 / pace);
        let urged = (logged - self.logged) * HURRY;
        at(PACE_BYTES_PER_S, written.saturating_sub(urged)).max(at(PACE_MAX_BYTES_PER_S, written))
    }

    /// The time by which this number of bytes is too early. At most a moment, as the log may grow meanwhile.
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
/// The work is done by a thread of the idle class, so that a request has the processor at once: it would have to wait
/// for the end of a turn of a thread that is only nice. If there are too few idle moments, the calling thread takes over:
/// without a privilege a thread cannot leave the idle class again.
fn write(
    frozen: &Frozen,
    settings: &SnapshotSettings,
    log_bytes: &AtomicU64,
    stopped: &AtomicBool,
) -> Result<bool, StorageError> {
    let logged = || log_bytes.load(Ordering::Relaxed);
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
        // If the system refuses it, the pace alone keeps the snapshot from disturbing the service.
        let idle = ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Idle);
        let _ = set_thread_priority_and_policy(thread_native_id(), ThreadPriority::Min, idle);
        snapshot.advance(|written| keep_pace(written) && !pace.is_late(written, logged()))
    };
    let name = "snapshot-idle".to_owned();
    thread::scope(|scope| match thread::Builder::new().name(name).spawn_scoped(scope, in_idle_moments) {
        Ok(idle) => idle.join().unwrap_or_else(|panic| resume_unwind(panic)),
        // Without the other thread, this thread does all the work.
        Err(_) => Ok(false),
    })?;
    if !snapshot.advance(keep_pace)? {
        snapshot.give_up(settings);
        return Ok(false);
    }
    snapshot.finish_unless_cut(frozen, settings)
}
