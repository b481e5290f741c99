//! The tasks that serve connections to other servers. They end with this server. The process may have others, which go
//! on.

use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::{runtime::Handle, task::JoinSet};

/// Tasks of one server.
#[derive(Debug)]
pub(super) struct Tasks {
    runtime: Handle,
    /// `None` after [`Tasks::shut_down`]: no task begins any more.
    running: Mutex<Option<JoinSet<()>>>,
}

impl Tasks {
    /// The tasks run on the runtime of the caller.
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

    /// Begins work that blocks its thread.
    pub(super) fn spawn_blocking(&self, work: impl FnOnce() + Send + 'static) {
        self.with(|running| drop(running.spawn_blocking_on(work, &self.runtime)));
    }

    /// Ends all tasks, and waits until they have ended.
    pub(super) async fn shut_down(&self) {
        let running = self.lock().take();
        if let Some(mut running) = running {
            running.shutdown().await;
        }
    }
}
