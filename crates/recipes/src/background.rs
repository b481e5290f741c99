//! Tasks that end with the value they work for. They run where their client runs: the runtime in which a recipe is used
//! may end before the client does.

use ostler_client::Client;
use tokio::{sync::watch, task::JoinHandle};

/// A task that is stopped when this is dropped.
#[derive(Debug)]
pub(crate) struct Background(JoinHandle<()>);

impl Background {
    pub(crate) fn spawn(client: &Client, work: impl Future<Output = ()> + Send + 'static) -> Background {
        Background(client.runtime().spawn(work))
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The end of a task, for whoever wants to wait for it, and as often.
#[derive(Debug, Clone)]
pub(crate) struct Ended(watch::Receiver<()>);

/// Held by a task, and by what it leaves to others to do: as long as one of these is there, the task has not ended.
#[derive(Debug, Clone)]
pub(crate) struct Running {
    _ended: watch::Sender<()>,
}

impl Ended {
    /// Begins a task that nobody stops from outside.
    pub(crate) fn of<F>(client: &Client, work: impl FnOnce(Running) -> F) -> Ended
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let (running, ended) = watch::channel(());
        let running = Running { _ended: running };
        let work = work(running.clone());
        client.runtime().spawn(async move {
            let _running = running;
            work.await;
        });
        Ended(ended)
    }

    /// Waits until everything that the task had is dropped, and what it has left to do is done.
    pub(crate) async fn wait(mut self) {
        // It says nothing but that it is gone.
        let _ = self.0.changed().await;
    }
}
