//! The threads beside the runtime's: one for the transaction log, one for snapshots, one for the audit log.

use crate::{
    audit::RunningAudit,
    disk_thread::{self, DiskWork},
    error::ServerError,
    handle::ServerHandle,
    snapshot_thread::{self, SnapshotWork},
    traces::TraceExporter,
};
use ostler_storage::lock::FolderLock;
use std::{
    sync::Arc,
    thread::{self, JoinHandle},
};
use tokio::sync::oneshot;

/// The threads that run. All of them are told to end when this is dropped.
#[derive(Debug)]
pub(super) struct Threads {
    handle: ServerHandle,
    running: Vec<JoinHandle<()>>,
    /// Ended after the others.
    pub(super) audit: Option<RunningAudit>,
    pub(super) traces: Option<TraceExporter>,
}

impl Threads {
    pub(super) fn of(handle: &ServerHandle) -> Threads {
        Threads { handle: handle.clone(), running: Vec::new(), audit: None, traces: None }
    }

    /// Starts the thread that writes the log. If the log fails, the receiver gets the error.
    pub(super) fn run_disk(
        &mut self,
        work: DiskWork,
        lock: Arc<FolderLock>,
    ) -> Result<oneshot::Receiver<ServerError>, ServerError> {
        let (failed, receiver) = oneshot::channel();
        let ServerHandle { driver, disk, .. } = self.handle.clone();
        self.spawn("disk", move || {
            if let Err(error) = disk_thread::run(&disk, &driver, work) {
                let _ = failed.send(error.into());
            }
            // No other process may have the folder while this thread may still write.
            drop(lock);
        })?;
        Ok(receiver)
    }

    /// Starts the thread that writes snapshots.
    pub(super) fn run_snapshots(
        &mut self,
        work: SnapshotWork,
        lock: Arc<FolderLock>,
    ) -> Result<(), ServerError> {
        let ServerHandle { driver, disk, snapshots } = self.handle.clone();
        self.spawn("snapshot", move || {
            snapshot_thread::run(&snapshots, &driver, &disk.bytes, &work);
            drop(lock);
        })
    }

    fn spawn(&mut self, name: &str, run: impl FnOnce() + Send + 'static) -> Result<(), ServerError> {
        let thread = thread::Builder::new().name(name.into()).spawn(run).map_err(ServerError::Thread)?;
        self.running.push(thread);
        Ok(())
    }

    /// Tells all to end without writing what waits, and waits until they have ended.
    pub(super) async fn abandon(self) {
        self.handle.abandon();
        self.join().await;
    }

    /// Waits until all have ended.
    pub(super) async fn join(self) {
        let join = move || {
            // As a whole: if the caller stops waiting, the threads still finish before this is dropped.
            let mut threads = self;
            threads.running.drain(..).for_each(|thread| drop(thread.join()));
            threads.audit.take().into_iter().for_each(RunningAudit::end);
            threads.traces.take().into_iter().for_each(TraceExporter::end);
        };
        // A panic aborts the process, so there is no error of a thread or of this task.
        let _ = tokio::task::spawn_blocking(join).await;
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.handle.abandon();
    }
}
