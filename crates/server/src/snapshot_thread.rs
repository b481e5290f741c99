//! The thread that writes snapshots from frozen trees while the server goes on, and removes old files.

use crate::driver::Driver;
use ostler_data_dir::{
    SnapshotSource,
    snapshots::{LogCuts, SnapshotSettings, UnfinishedSnapshot, purge},
};
use ostler_proto::id::Zxid;
use ostler_server_core::{Input, stats::Summary};
use ostler_storage::StorageError;
use ostler_tree::FrozenTree;
use std::{
    panic::resume_unwind,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    },
    thread,
    time::{Duration, Instant, SystemTime},
};
use thread_priority::{
    NormalThreadSchedulePolicy, ThreadPriority, ThreadSchedulePolicy, set_thread_priority_and_policy,
    thread_native_id,
};

/// The pace of a snapshot. It is low, because requests need the processor and the disk.
const PACE_BYTES_PER_S: u64 = 16 << 20;
/// Bytes of a snapshot that may be written earlier for each byte logged meanwhile. A busy server needs its snapshot sooner,
/// because the log since then has to be replayed after a crash.
const HURRY: u64 = 4;
const PACE_MAX_BYTES_PER_S: u64 = 128 << 20;
/// A snapshot that is late by this time, because the processor is never idle, goes on at normal priority.
const PATIENCE: Duration = Duration::from_millis(500);

/// A snapshot that the thread has written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WrittenSnapshot {
    /// Its last transaction.
    pub zxid: Zxid,
    /// When it was complete.
    pub at: SystemTime,
    /// How long it took.
    pub took: Duration,
}

/// A snapshot that could not be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedSnapshot {
    /// Its last transaction.
    pub zxid: Zxid,
    /// When it failed.
    pub at: SystemTime,
    /// The error, in words.
    pub error: String,
}

/// The last snapshots since the server has started.
#[derive(Debug, Clone, Default)]
pub(crate) struct LastSnapshots {
    /// Snapshots that were written, have failed, or were given up.
    pub(crate) ended: u64,
    pub(crate) written: Option<WrittenSnapshot>,
    pub(crate) failed: Option<FailedSnapshot>,
}

/// The queue of frozen trees that wait to be written.
#[derive(Debug)]
pub(crate) struct SnapshotQueue {
    /// `None` ends the thread.
    sender: Sender<Option<SnapshotSource>>,
    cuts: Arc<LogCuts>,
    stopped: Arc<AtomicBool>,
    pub(crate) written: AtomicU64,
    pub(crate) last_ms: AtomicU64,
    /// The time that each snapshot took, ms, since the start or `srst`.
    pub(crate) took_ms: Mutex<Summary>,
    pub(crate) failed: AtomicU64,
    last: Mutex<LastSnapshots>,
}

impl SnapshotQueue {
    pub(crate) fn new(settings: &SnapshotSettings) -> (Arc<SnapshotQueue>, Receiver<Option<SnapshotSource>>) {
        let (sender, receiver) = channel();
        let queue = SnapshotQueue {
            sender,
            cuts: settings.cuts.clone(),
            stopped: settings.ending.clone(),
            written: AtomicU64::new(0),
            last_ms: AtomicU64::new(0),
            took_ms: Mutex::default(),
            failed: AtomicU64::new(0),
            last: Mutex::default(),
        };
        (Arc::new(queue), receiver)
    }

    pub(crate) fn push(&self, frozen: Box<FrozenTree>) {
        // The thread ends only by `stop`, so the receiver is there.
        let cuts = self.cuts.count();
        let _ = self.sender.send(Some(SnapshotSource { tree: frozen, cuts }));
    }

    /// The last snapshots since the server has started.
    pub(crate) fn last(&self) -> LastSnapshots {
        self.lock_last().clone()
    }

    fn lock_last(&self) -> MutexGuard<'_, LastSnapshots> {
        // A panic aborts the process, so a poisoned lock is never met.
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes what has become of a snapshot.
    fn note(&self, zxid: Zxid, took: Duration, result: &Result<bool, StorageError>) {
        let at = SystemTime::now();
        let mut last = self.lock_last();
        last.ended += 1;
        match result {
            Ok(true) => last.written = Some(WrittenSnapshot { zxid, at, took }),
            Ok(false) => {}
            Err(error) => last.failed = Some(FailedSnapshot { zxid, at, error: error.to_string() }),
        }
    }

    /// Ends the thread. A snapshot that it is writing is given up, because the log has all of it, and so is a purge.
    pub(crate) fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
        let _ = self.sender.send(None);
    }
}

/// The queue and the settings of the thread.
pub(crate) struct SnapshotWork {
    pub(crate) settings: SnapshotSettings,
    /// The other end of the queue.
    pub(crate) frozen: Receiver<Option<SnapshotSource>>,
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
        let result = write(&frozen, settings, log_bytes, &queue.stopped);
        queue.note(zxid, begun.elapsed(), &result);
        match result {
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

/// The pace at which a snapshot may grow.
struct Pace {
    begun: Instant,
    logged: u64,
}

impl Pace {
    /// The time since the beginning at which this number of bytes is due.
    fn due(&self, written: u64, logged: u64) -> Duration {
        let at = |pace: u64, bytes: u64| Duration::from_micros(bytes * 1_000_000 / pace);
        let urged = (logged - self.logged) * HURRY;
        at(PACE_BYTES_PER_S, written.saturating_sub(urged)).max(at(PACE_MAX_BYTES_PER_S, written))
    }

    /// The time to wait before this number of bytes is due, at most 50 ms, because the log may grow meanwhile. `None` if it
    /// is due.
    fn early(&self, written: u64, logged: u64) -> Option<Duration> {
        const MOMENT: Duration = Duration::from_millis(50);
        let early = self.due(written, logged).saturating_sub(self.begun.elapsed());
        (!early.is_zero()).then_some(early.min(MOMENT))
    }

    fn is_late(&self, written: u64, logged: u64) -> bool {
        self.begun.elapsed() > self.due(written, logged) + PATIENCE
    }
}

/// Writes a frozen tree as a snapshot and makes it durable, at its pace. Returns false if the snapshot was given up,
/// because of `stopped` or because the log was cut meanwhile.
///
/// A thread of the idle class does the work: a request then gets the processor at once, while it would wait for a thread
/// that only has a low priority. If the processor is idle too seldom, the calling thread takes over, because a thread
/// cannot leave the idle class again without a privilege.
fn write(
    frozen: &SnapshotSource,
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
    let mut snapshot = UnfinishedSnapshot::begin(&frozen.tree, settings)?;
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
