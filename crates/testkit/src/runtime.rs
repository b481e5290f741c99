//! A runtime with its own thread for each server and proxy: a test that blocks does not stop them, and a paused server
//! does not stop the test.

use crate::error::TestkitError;
use std::{thread, time::Duration};
use tokio::{
    runtime::{Builder, Handle, Runtime},
    task::spawn_blocking,
};

/// How long the end of a runtime waits for busy threads.
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
        self.0.as_ref().expect("the runtime is taken only at its end").handle()
    }

    /// Drops all tasks, and waits until its threads have ended.
    pub(crate) async fn end(mut self) {
        if let Some(runtime) = self.0.take() {
            let _ = spawn_blocking(move || runtime.shutdown_timeout(PATIENCE)).await;
        }
    }

    /// Blocks until `task` and all threads have ended, for callers that cannot await.
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
