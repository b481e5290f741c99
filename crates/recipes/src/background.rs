//! Tasks that end with the value they work for.

use tokio::task::JoinHandle;

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
