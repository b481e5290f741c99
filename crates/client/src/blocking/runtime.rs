//! The thread in which a blocking client's tasks run.

use crate::{
    error::{Error, Result},
    shared::Shared,
};
use std::{future::Future, io, sync::Arc, thread, time::Duration};
use tokio::{
    runtime::{Builder, Handle},
    sync::oneshot,
    time::timeout,
};

/// How long the thread goes on for a client that was dropped, until its session is closed.
const CLOSE_WITHIN: Duration = Duration::from_secs(5);

/// A runtime with one thread. When this is dropped, the thread ends once the client's session is closed.
#[derive(Debug)]
pub(super) struct Runtime {
    handle: Handle,
    client: Option<Arc<Shared>>,
    stop: Option<oneshot::Sender<Option<Arc<Shared>>>>,
}

impl Runtime {
    /// # Errors
    /// [`Error::Thread`].
    pub(super) fn start() -> Result<Runtime> {
        let failed = |cause: io::Error| Error::Thread { problem: cause.to_string().into() };
        let runtime = Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel();
        let work = move || runtime.block_on(until_closed(stopped));
        thread::Builder::new().name("ostler-client".into()).spawn(work).map_err(failed)?;
        Ok(Runtime { handle, client: None, stop: Some(stop) })
    }

    /// The client whose end the thread waits for.
    pub(super) fn serve(mut self, client: &crate::Client) -> Arc<Runtime> {
        self.client = Some(client.shared().clone());
        Arc::new(self)
    }

    /// Waits for the future in the calling thread; its timers and sockets are the runtime's.
    pub(super) fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.handle.block_on(future)
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            // If the receiver is gone, the thread has ended already.
            let _ = stop.send(self.client.take());
        }
    }
}

async fn until_closed(stopped: oneshot::Receiver<Option<Arc<Shared>>>) {
    let Ok(Some(client)) = stopped.await else { return };
    let mut states = client.subscribe();
    let closed = async { while states.next().await.is_some() {} };
    // Without a connection the session cannot be closed, and expires.
    let _ = timeout(CLOSE_WITHIN, closed).await;
}
