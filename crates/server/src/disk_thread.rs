//! The disk: one queue, one thread, one write and one sync for all that has gathered meanwhile.
//!
//! After a write or sync that fails nothing is reported durable any more, and the server stops. The program decides
//! what its process does then.
//!
//! The thread only notes how far it has come; the core is informed on the runtime's threads. Its state is in the
//! processor's cache there, and the connections that are answered are woken without crossing threads.

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

/// An operation, and when it began to wait.
type Queued = (PersistSeq, PersistOp, Instant);

#[derive(Debug, Default)]
struct Pending {
    ops: Vec<Queued>,
    /// The thread may take them.
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
    /// Told once.
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
    /// For each transaction the number that waited when its turn came, itself included.
    pub(crate) waiting: Summary,
    /// The time that a transaction had waited when its turn came, ms.
    pub(crate) waited_ms: Sampled,
    /// The time to write a transaction, ms: its share of its batch's time.
    pub(crate) write_ms: Summary,
    /// The time from the arrival of a transaction to the end of the sync, ms.
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

/// Transactions that were written together.
struct Batch {
    taken: Instant,
    written: Instant,
    /// When each transaction came.
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
        // To read the clock costs as much as a small part of a write, and milliseconds are counted.
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

    /// Has the thread write what waits, then end.
    pub(crate) fn stop(&self) {
        self.lock().stopped = true;
        self.wake.notify_one();
    }

    /// Has the thread end after the operation that it carries out now. The rest is not written.
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

    /// Waits for something to do; `false` when there is nothing and nothing will come.
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

    /// A copy of the counts.
    pub(crate) fn figures(&self) -> DiskFigures {
        self.lock_figures().clone()
    }

    /// Sets all counts to nothing.
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

/// Releases what has gathered to the thread, once every connection that is ready has had its turn: their
/// writes share a sync. Runs until it is dropped.
pub(crate) async fn gather(queue: Arc<DiskQueue>) {
    loop {
        queue.gathering.notified().await;
        tokio::task::yield_now().await;
        queue.release();
    }
}

/// Informs the core of what is on disk. Runs until it is dropped.
pub(crate) async fn report(queue: Arc<DiskQueue>, driver: Arc<Driver>) {
    loop {
        queue.advanced.notified().await;
        driver.step(Input::Persisted(PersistSeq(queue.durable.load(Ordering::Acquire))));
    }
}

/// What the thread works with.
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
