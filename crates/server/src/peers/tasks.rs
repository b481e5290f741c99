//! The tasks that serve connections to other servers. They end with this server, which may be one of several in its
//! process.

use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::{runtime::Handle, task::JoinSet};

/// Tasks of one server.
#[derive(Debug)]
pub(super) struct Tasks {
    runtime: Handle,
    /// `None` at the end: nothing begins any more.
    running: Mutex<Option<JoinSet<()>>>,
}

impl Tasks {
    /// On the runtime of the caller.
    pub(super) fn new() -> Tasks {
        Tasks { runtime: Handle::current(), running: Mutex::new(Some(JoinSet::new())) }
    }

    fn lock(&self) -> MutexGuard<'_, Option<JoinSet<()>>> {
        // A panic aborts the process, so a poisoned lock is never met.
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with(&self, begin: impl FnOnce(&mut JoinSet<()>)) {
        if let Some(running) = &mut *self.lock() {
            while running.try_join_next().is_some() {}
            begin(running);
        }
    }

    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.with(|running| drop(running.spawn_on(task, &self.runtime)));
    }

    /// For work that does not wait for the network.
    pub(super) fn spawn_blocking(&self, work: impl FnOnce() + Send + 'static) {
        self.with(|running| drop(running.spawn_blocking_on(work, &self.runtime)));
    }

    /// Ends all of them, and waits until they have ended.
    pub(super) async fn shut_down(&self) {
        let running = self.lock().take();
        if let Some(mut running) = running {
            running.shutdown().await;
        }
    }
}
