//! The disk: one queue, one thread, one write and one sync for all that has gathered meanwhile.
//!
//! A write or sync that fails is the end: nothing is reported durable any more, and the server stops. What becomes of
//! its process is for the program to say.
//!
//! The thread only says how far it has come; the member hears of it on the runtime's threads. There its
//! state is warm, and the connections that are answered are woken without crossing threads.

use crate::driver::Driver;
use ostler_persistence::Persistence;
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

#[derive(Debug, Default)]
struct Pending {
    ops: Vec<(PersistSeq, PersistOp)>,
    /// The thread may take them.
    released: bool,
    /// The thread waits to be woken.
    asleep: bool,
    stopped: bool,
    /// What waits is not written any more.
    abandoned: bool,
}

/// What waits for the disk.
#[derive(Debug, Default)]
pub(crate) struct DiskQueue {
    pending: Mutex<Pending>,
    wake: Condvar,
    gathering: Notify,
    /// The last act that is on disk.
    durable: AtomicU64,
    advanced: Notify,
    /// Told once.
    pub(crate) abandoned: Notify,
    /// Bytes of records.
    pub(crate) bytes: AtomicU64,
    pub(crate) slow_syncs: AtomicU64,
    figures: Mutex<DiskFigures>,
}

/// Counts of the log's batches since the start or `srst`.
#[derive(Debug, Default, Clone)]
pub(crate) struct DiskFigures {
    /// From the write to the end of the sync, ms.
    pub(crate) sync_ms: Sampled,
    /// Transactions in a batch.
    pub(crate) batch: Summary,
}

impl DiskQueue {
    fn lock(&self) -> MutexGuard<'_, Pending> {
        // A panic aborts the process, so a poisoned lock is never met.
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn push(&self, seq: PersistSeq, op: PersistOp) {
        let mut pending = self.lock();
        let was_empty = pending.ops.is_empty();
        pending.ops.push((seq, op));
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

    /// Lets the thread finish what waits, then end.
    pub(crate) fn stop(&self) {
        self.lock().stopped = true;
        self.wake.notify_one();
    }

    /// Has the thread end after what it does at the moment, and leave what waits.
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
    fn take(&self, ops: &mut Vec<(PersistSeq, PersistOp)>) -> bool {
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

    /// What was counted.
    pub(crate) fn figures(&self) -> DiskFigures {
        self.lock_figures().clone()
    }

    /// Counts from nothing again.
    pub(crate) fn reset_figures(&self) {
        *self.lock_figures() = DiskFigures::default();
    }

    fn lock_figures(&self) -> MutexGuard<'_, DiskFigures> {
        // A panic aborts the process, so a poisoned lock is never met.
        self.figures.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn count_sync(&self, records: u64, took: Duration, warn_above: Duration) {
        let ms = took.as_millis() as u64;
        {
            let mut figures = self.lock_figures();
            figures.sync_ms.add(ms);
            if records > 0 {
                figures.batch.add(records);
            }
        }
        if took > warn_above {
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

/// Tells the member what is on disk. Runs until it is dropped.
pub(crate) async fn report(queue: Arc<DiskQueue>, driver: Arc<Driver>) {
    loop {
        queue.advanced.notified().await;
        driver.step(Input::Persisted(PersistSeq(queue.durable.load(Ordering::Acquire))));
    }
}

/// What the thread writes to.
pub(crate) struct DiskWork {
    pub(crate) persistence: Persistence,
    pub(crate) warn_above: Duration,
}

/// Runs until the queue is stopped. An error ends it at once.
pub(crate) fn run(queue: &DiskQueue, driver: &Driver, mut work: DiskWork) -> Result<(), StorageError> {
    let mut ops = Vec::new();
    while queue.take(&mut ops) {
        let (mut reached, mut bytes, mut records) = (None, 0, 0);
        for (seq, op) in ops.drain(..) {
            if let PersistOp::Append { record, .. } = &op {
                bytes += record.0.len() as u64;
                records += 1;
            }
            if let Some(reloaded) = work.persistence.carry_out(op)? {
                let (term, tree) = (reloaded.term, Box::new(reloaded.restored.tree));
                driver.step(Input::Reloaded { term, tree });
            }
            reached = Some(seq);
        }
        queue.bytes.fetch_add(bytes, Ordering::Relaxed);
        let begun = Instant::now();
        work.persistence.sync()?;
        queue.count_sync(records, begun.elapsed(), work.warn_above);
        if let Some(seq) = reached {
            queue.reached(seq);
        }
        work.persistence.note_synced()?;
    }
    Ok(())
}
