//! A thread of its own for everything that a test starts: a test that blocks does not stop its servers and proxies,
//! and a server that is paused does not stop the test.

use crate::error::TestkitError;
use std::{thread, time::Duration};
use tokio::{
    runtime::{Builder, Handle, Runtime},
    task::spawn_blocking,
};

/// How long threads that are busy at the end are waited for.
const PATIENCE: Duration = Duration::from_secs(10);

/// A runtime with one thread.
#[derive(Debug)]
pub(crate) struct OwnRuntime(Option<Runtime>);

impl OwnRuntime {
    pub(crate) fn new(name: &str) -> Result<OwnRuntime, TestkitError> {
        let runtime = Builder::new_multi_thread().worker_threads(1).thread_name(name).enable_all().build();
        Ok(OwnRuntime(Some(runtime.map_err(TestkitError::Thread)?)))
    }

    pub(crate) fn handle(&self) -> &Handle {
        self.0.as_ref().expect("it is taken at its end only").handle()
    }

    /// Drops all tasks, and waits until its threads have ended.
    pub(crate) async fn end(mut self) {
        if let Some(runtime) = self.0.take() {
            let _ = spawn_blocking(move || runtime.shutdown_timeout(PATIENCE)).await;
        }
    }

    /// The same, for callers that cannot await: waits for a task, then ends.
    pub(crate) fn end_after<T: Send + 'static>(mut self, task: impl Future<Output = T> + Send + 'static) {
        if let Some(runtime) = self.0.take() {
            // A runtime must not be waited for on a thread of another one.
            let ending = thread::spawn(move || {
                let _ = runtime.block_on(async { tokio::time::timeout(PATIENCE, task).await.ok() });
                runtime.shutdown_timeout(PATIENCE);
            });
            let _ = ending.join();
        }
    }
}

impl Drop for OwnRuntime {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}
