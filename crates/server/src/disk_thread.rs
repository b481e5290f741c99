//! The disk: one queue, one thread, one write and one sync for all that has gathered meanwhile.
//!
//! A write or sync that fails is the end: nothing is reported durable any more, and the process stops.
//!
//! The thread only says how far it has come; the member hears of it on the runtime's threads. There its
//! state is warm, and the connections that are answered are woken without crossing threads.

use crate::{
    config_files::ConfigFiles,
    driver::Driver,
    recovery,
    snapshot_thread::{self, SnapshotSettings},
};
use ostler_proto::{id::ServerId, stat::ExtendedTypes};
use ostler_server_core::{Input, PersistOp};
use ostler_storage::{
    StorageError,
    epochs::{EpochFile, write_epoch},
    recover::RecoverOptions,
    snapshot::remove_snapshots_after,
    txnlog::TxnLog,
};
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
    pub(crate) bytes: Arc<AtomicU64>,
    pub(crate) syncs: AtomicU64,
    pub(crate) sync_ms_max: AtomicU64,
    pub(crate) sync_ms_sum: AtomicU64,
    pub(crate) slow_syncs: AtomicU64,
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

    fn count_sync(&self, took: Duration, warn_above: Duration) {
        let ms = took.as_millis() as u64;
        self.syncs.fetch_add(1, Ordering::Relaxed);
        self.sync_ms_sum.fetch_add(ms, Ordering::Relaxed);
        self.sync_ms_max.fetch_max(ms, Ordering::Relaxed);
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

/// What the thread writes to, and what for.
pub(crate) struct DiskWork {
    pub(crate) log: TxnLog,
    pub(crate) settings: SnapshotSettings,
    pub(crate) types: ExtendedTypes,
    pub(crate) warn_above: Duration,
    /// Where a configuration that changes is kept, and this server's number.
    pub(crate) config_files: Option<(ConfigFiles, ServerId)>,
}

/// Runs until the queue is stopped. An error ends it at once.
pub(crate) fn run(queue: &DiskQueue, driver: &Driver, mut work: DiskWork) -> Result<(), StorageError> {
    let mut ops = Vec::new();
    while queue.take(&mut ops) {
        let (mut reached, mut bytes) = (None, 0);
        for (seq, op) in ops.drain(..) {
            match op {
                PersistOp::Append { zxid, record } => {
                    work.log.append(zxid, &record.0)?;
                    bytes += record.0.len() as u64;
                }
                PersistOp::RollLog => work.log.roll(),
                op => work.rare(driver, op)?,
            }
            reached = Some(seq);
        }
        queue.bytes.fetch_add(bytes, Ordering::Relaxed);
        let begun = Instant::now();
        work.log.commit()?;
        queue.count_sync(begun.elapsed(), work.warn_above);
        if let Some(seq) = reached {
            queue.reached(seq);
        }
    }
    Ok(())
}

impl DiskWork {
    /// What changes with the leader only. All that was asked before is durable first.
    fn rare(&mut self, driver: &Driver, op: PersistOp) -> Result<(), StorageError> {
        self.log.commit()?;
        let (snapshots, logs) = (&self.settings.folders.snapshots, &self.settings.folders.logs);
        let disk = &*self.settings.disk;
        match op {
            PersistOp::SaveAccepted(epoch) => write_epoch(disk, snapshots, EpochFile::Accepted, epoch)?,
            PersistOp::SaveCurrent(epoch) => write_epoch(disk, snapshots, EpochFile::Current, epoch)?,
            PersistOp::Truncate { to, reload } => {
                self.settings.cuts.add();
                remove_snapshots_after(disk, snapshots, to)?;
                let cut = self.log.truncate_after(to)?;
                tracing::info!(%to, files = cut.removed.len(), cut = ?cut.cut, "the log was cut back");
                if let Some(term) = reload {
                    let options = RecoverOptions { trust_empty: true, db_autocreate: true };
                    let folders = &self.settings.folders;
                    let restored = recovery::restore(disk, folders, options, self.types)?;
                    driver.step(Input::Reloaded { term, tree: Box::new(restored.tree) });
                }
            }
            PersistOp::Install(frozen) => {
                self.settings.cuts.add();
                // Another tree of that zxid would be replaced; later ones are not this leader's.
                remove_snapshots_after(disk, snapshots, frozen.zxid)?;
                snapshot_thread::write_at_once(&frozen, &self.settings)?;
                self.log.truncate_after(frozen.zxid)?;
                tracing::info!(zxid = %frozen.zxid, logs = %logs.display(), "the leader's tree is on disk");
            }
            PersistOp::SaveConfig { membership, active } => {
                if let Some((files, me)) = &self.config_files {
                    let own_client = membership.servers.get(me).is_some_and(|member| member.client.is_some());
                    match active {
                        true => files.save_active(&membership, own_client)?,
                        false => files.save_next(&membership)?,
                    }
                }
            }
            PersistOp::Append { .. } | PersistOp::RollLog => {}
        }
        Ok(())
    }
}
