//! Background tasks of recipes. They run in the client's runtime, because the runtime in which a recipe is used may end
//! before the client does.

use ostler_client::Client;
use tokio::{sync::watch, task::AbortHandle};

/// A task that is stopped when this is dropped.
#[derive(Debug)]
pub(crate) struct BackgroundTask {
    task: AbortHandle,
    end: TaskEnd,
}

impl BackgroundTask {
    pub(crate) fn spawn(client: &Client, work: impl Future<Output = ()> + Send + 'static) -> BackgroundTask {
        let (running, ended) = watch::channel(());
        let running = TaskGuard { _ended: running };
        let task = client.runtime().spawn(async move {
            let _running = running;
            work.await;
        });
        BackgroundTask { task: task.abort_handle(), end: TaskEnd(ended) }
    }

    /// Stops the task at its next `await`, and waits for that.
    pub(crate) async fn stop(&self) {
        self.task.abort();
        self.ended().await;
    }

    /// Waits until the task has ended.
    pub(crate) async fn ended(&self) {
        self.end.clone().wait().await;
    }
}

impl Drop for BackgroundTask {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A handle by which any number of callers wait for the end of a task.
#[derive(Debug, Clone)]
pub(crate) struct TaskEnd(watch::Receiver<()>);

/// Held by a task and by each task to which it leaves work. A [`TaskEnd`] waits until all clones are dropped.
#[derive(Debug, Clone)]
pub(crate) struct TaskGuard {
    _ended: watch::Sender<()>,
}

impl TaskEnd {
    /// Spawns a task that runs until it returns.
    pub(crate) fn of<F>(client: &Client, work: impl FnOnce(TaskGuard) -> F) -> TaskEnd
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let (running, ended) = watch::channel(());
        let running = TaskGuard { _ended: running };
        let work = work(running.clone());
        client.runtime().spawn(async move {
            let _running = running;
            work.await;
        });
        TaskEnd(ended)
    }

    /// Waits until the task has ended, and the tasks to which it has left work.
    pub(crate) async fn wait(mut self) {
        // Nothing is ever sent: this returns when the last sender is dropped.
        let _ = self.0.changed().await;
    }
}
