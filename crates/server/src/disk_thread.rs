//! The disk thread: it takes all operations that wait in its queue, and makes them durable with one write and one sync.
//!
//! If a write or a sync fails, the server stops, and nothing is reported as durable any more. The program decides whether
//! its process ends.
//!
//! The thread only notes how far it has come; the runtime's threads inform the core. They have its state in their caches,
//! and can wake the connections that are answered.

use crate::driver::Driver;
use ostler_data_dir::Persistence;
use ostler_server_core::{
    Input, PersistOp,
    stats::{Sampled, Summary},
};
use ostler_storage::StorageError;
use ostler_zab::PersistSeq;
use std::{
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::sync::Notify;

/// An operation, and the time at which it was queued.
type Queued = (PersistSeq, PersistOp, Instant);

#[derive(Debug, Default)]
struct Pending {
    ops: Vec<Queued>,
    /// The thread may take the operations.
    released: bool,
    /// The thread waits to be woken.
    asleep: bool,
    stopped: bool,
    /// The operations that wait are not written any more.
    abandoned: bool,
}

/// The operations that wait for the disk.
#[derive(Debug, Default)]
pub(crate) struct DiskQueue {
    pending: Mutex<Pending>,
    wake: Condvar,
    gathering: Notify,
    /// The last operation that is on disk.
    durable: AtomicU64,
    advanced: Notify,
    /// Notified once, by [`DiskQueue::abandon`].
    pub(crate) abandoned: Notify,
    /// Bytes of records that were written.
    pub(crate) bytes: AtomicU64,
    pub(crate) slow_syncs: AtomicU64,
    figures: Mutex<DiskFigures>,
}

/// The number of operations in a row that get the same time.
const CLOCK_READ_EVERY: usize = 16;

/// Counts of the log's batches since the start or `srst`.
#[derive(Debug, Default, Clone)]
pub(crate) struct DiskFigures {
    /// From the write to the end of the sync, ms.
    pub(crate) sync_ms: Sampled,
    /// Transactions in a batch.
    pub(crate) batch: Summary,
    /// For each transaction the number of those that waited when its turn came, including itself.
    pub(crate) waiting: Summary,
    /// For each transaction the time that it had waited then, ms.
    pub(crate) waited_ms: Sampled,
    /// For each transaction the time of its write, ms: its share of the time of the batch.
    pub(crate) write_ms: Summary,
    /// For each transaction the time from the queue to the end of the sync, ms.
    pub(crate) total_ms: Sampled,
}

impl DiskFigures {
    fn count(&mut self, batch: &Batch, synced: Instant) {
        let ms = |from: Instant, to: Instant| to.saturating_duration_since(from).as_millis() as u64;
        self.sync_ms.add(ms(batch.written, synced));
        let records = batch.since.len() as u64;
        if records == 0 {
            return;
        }
        self.batch.add(records);
        let share = ms(batch.taken, batch.written) / records;
        let times = |since: Instant| (ms(since, batch.taken), ms(since, synced));
        let mut last = (batch.since[0], times(batch.since[0]));
        for (before, since) in (0..).zip(&batch.since) {
            if *since != last.0 {
                last = (*since, times(*since));
            }
            let (waited, total) = last.1;
            self.waiting.add(records - before);
            self.waited_ms.add(waited);
            self.write_ms.add(share);
            self.total_ms.add(total);
        }
    }
}

/// Operations that were written together.
struct Batch {
    taken: Instant,
    written: Instant,
    /// The time at which each transaction was queued.
    since: Vec<Instant>,
}

impl DiskQueue {
    fn lock(&self) -> MutexGuard<'_, Pending> {
        // A panic aborts the process, so a poisoned lock is never met.
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn push(&self, seq: PersistSeq, op: PersistOp) {
        let mut pending = self.lock();
        let was_empty = pending.ops.is_empty();
        // Reading the clock is not free, and milliseconds are exact enough.
        let since = match pending.ops.last() {
            Some((_, _, since)) if !pending.ops.len().is_multiple_of(CLOCK_READ_EVERY) => *since,
            _ => Instant::now(),
        };
        pending.ops.push((seq, op, since));
        drop(pending);
        if was_empty {
            self.gathering.notify_one();
        }
    }

    fn release(&self) {
        let mut pending = self.lock();
        pending.released = true;
        let asleep = std::mem::take(&mut pending.asleep);
        drop(pending);
        if asleep {
            self.wake.notify_one();
        }
    }

    /// Ends the thread after the operations that wait.
    pub(crate) fn stop(&self) {
        self.lock().stopped = true;
        self.wake.notify_one();
    }

    /// Ends the thread after the batch that it writes now. The operations that wait are not written.
    pub(crate) fn abandon(&self) {
        {
            let mut pending = self.lock();
            (pending.stopped, pending.abandoned) = (true, true);
        }
        self.wake.notify_one();
        self.abandoned.notify_one();
    }

    fn reached(&self, seq: PersistSeq) {
        self.durable.store(seq.0, Ordering::Release);
        self.advanced.notify_one();
    }

    /// Waits for operations. Returns false if none wait and none will come.
    fn take(&self, ops: &mut Vec<Queued>) -> bool {
        let mut pending = self.lock();
        while !pending.stopped && (!pending.released || pending.ops.is_empty()) {
            pending.asleep = true;
            pending = self.wake.wait(pending).unwrap_or_else(PoisonError::into_inner);
        }
        if pending.abandoned {
            return false;
        }
        pending.released = false;
        std::mem::swap(ops, &mut pending.ops);
        !ops.is_empty()
    }

    /// The counts since the start or the last reset.
    pub(crate) fn figures(&self) -> DiskFigures {
        self.lock_figures().clone()
    }

    /// The times of the syncs alone, since the start or the last reset.
    pub(crate) fn sync_times(&self) -> Summary {
        self.lock_figures().sync_ms.summary
    }

    /// Sets all counts to zero.
    pub(crate) fn reset_figures(&self) {
        *self.lock_figures() = DiskFigures::default();
    }

    fn lock_figures(&self) -> MutexGuard<'_, DiskFigures> {
        // A panic aborts the process, so a poisoned lock is never met.
        self.figures.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn count_sync(&self, batch: &Batch, warn_above: Duration) {
        let synced = Instant::now();
        self.lock_figures().count(batch, synced);
        let took = synced.saturating_duration_since(batch.written);
        if took > warn_above {
            let ms = took.as_millis() as u64;
            self.slow_syncs.fetch_add(1, Ordering::Relaxed);
            tracing::warn!(ms, "syncing the transaction log took long: is the disk shared or failing?");
        }
    }
}

/// Releases the queued operations to the thread once every connection that is ready has had its turn, so that their writes
/// share a sync. Runs until it is dropped.
pub(crate) async fn gather(queue: Arc<DiskQueue>) {
    loop {
        queue.gathering.notified().await;
        tokio::task::yield_now().await;
        queue.release();
    }
}

/// Informs the core of the last operation that is on disk. Runs until it is dropped.
pub(crate) async fn report(queue: Arc<DiskQueue>, driver: Arc<Driver>) {
    loop {
        queue.advanced.notified().await;
        driver.step(Input::Persisted(PersistSeq(queue.durable.load(Ordering::Acquire))));
    }
}

/// The files that the thread writes, and its settings.
pub(crate) struct DiskWork {
    pub(crate) persistence: Persistence,
    pub(crate) warn_above: Duration,
}

/// Runs until the queue is stopped. An error ends it at once.
pub(crate) fn run(queue: &DiskQueue, driver: &Driver, mut work: DiskWork) -> Result<(), StorageError> {
    let (mut ops, mut since) = (Vec::new(), Vec::new());
    while queue.take(&mut ops) {
        let taken = Instant::now();
        let (mut reached, mut bytes) = (None, 0);
        since.clear();
        for (seq, op, came) in ops.drain(..) {
            if let PersistOp::Append { record, .. } = &op {
                bytes += record.0.len() as u64;
                since.push(came);
            }
            if let Some(reloaded) = work.persistence.carry_out(op)? {
                let (search_id, tree) = (reloaded.search_id, Box::new(reloaded.restored.tree));
                driver.step(Input::Reloaded { search_id, tree });
            }
            reached = Some(seq);
        }
        queue.bytes.fetch_add(bytes, Ordering::Relaxed);
        let batch = Batch { taken, written: Instant::now(), since };
        work.persistence.sync()?;
        queue.count_sync(&batch, work.warn_above);
        since = batch.since;
        if let Some(seq) = reached {
            queue.reached(seq);
        }
        work.persistence.note_synced()?;
    }
    Ok(())
}
