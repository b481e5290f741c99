//! Tasks that end with the value they work for.

use tokio::{sync::watch, task::JoinHandle};

/// A task that is stopped when this is dropped.
#[derive(Debug)]
pub(crate) struct Background(JoinHandle<()>);

impl Background {
    /// # Panics
    /// Outside of a tokio runtime.
    pub(crate) fn spawn(work: impl Future<Output = ()> + Send + 'static) -> Background {
        Background(tokio::spawn(work))
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

impl Ended {
    /// Begins a task that nobody stops from outside.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub(crate) fn of(work: impl Future<Output = ()> + Send + 'static) -> Ended {
        let (running, ended) = watch::channel(());
        tokio::spawn(async move {
            let _running = running;
            work.await;
        });
        Ended(ended)
    }

    /// Waits until everything that the task had is dropped.
    pub(crate) async fn wait(mut self) {
        // It says nothing but that it is gone.
        let _ = self.0.changed().await;
    }
}
