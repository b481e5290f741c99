//! Receivers that can be polled, so that the recipes' changes are streams.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
};
use tokio::sync::{broadcast, watch};

type Wait<T> = Pin<Box<dyn Future<Output = T> + Send + Sync>>;

/// A receiver of the newest value.
pub(crate) struct PolledWatch<T> {
    receiver: watch::Receiver<T>,
    /// Waits for the next change, with a clone of the receiver.
    waiting: Option<Wait<bool>>,
}

impl<T: Send + Sync + 'static> PolledWatch<T> {
    pub(crate) fn new(receiver: watch::Receiver<T>) -> PolledWatch<T> {
        PolledWatch { receiver, waiting: None }
    }

    /// The value now. [`poll_changed`](PolledWatch::poll_changed) then waits for a later one.
    pub(crate) fn borrow_and_update(&mut self) -> watch::Ref<'_, T> {
        self.receiver.borrow_and_update()
    }

    /// Ready once the value may have changed since [`borrow_and_update`](PolledWatch::borrow_and_update); `None` if the
    /// sender is gone.
    pub(crate) fn poll_changed(&mut self, cx: &mut Context<'_>) -> Poll<Option<()>> {
        let receiver = &self.receiver;
        let waiting = self.waiting.get_or_insert_with(|| {
            let mut receiver = receiver.clone();
            Box::pin(async move { receiver.changed().await.is_ok() })
        });
        let changed = ready!(waiting.as_mut().poll(cx));
        self.waiting = None;
        Poll::Ready(changed.then_some(()))
    }
}

impl<T> Clone for PolledWatch<T> {
    fn clone(&self) -> Self {
        PolledWatch { receiver: self.receiver.clone(), waiting: None }
    }
}

impl<T: fmt::Debug> fmt::Debug for PolledWatch<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.receiver.fmt(f)
    }
}

/// A receiver of each value.
pub(crate) enum PolledBroadcast<T> {
    Idle(broadcast::Receiver<T>),
    Waiting(Wait<(Result<T, broadcast::error::RecvError>, broadcast::Receiver<T>)>),
    Ended,
}

impl<T: Clone + Send + 'static> PolledBroadcast<T> {
    /// The next value; an error if values are lost because the reader was too slow, or if there are no more.
    pub(crate) fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<Result<T, broadcast::error::RecvError>> {
        let mut waiting = match std::mem::replace(self, PolledBroadcast::Ended) {
            PolledBroadcast::Ended => return Poll::Ready(Err(broadcast::error::RecvError::Closed)),
            PolledBroadcast::Waiting(waiting) => waiting,
            PolledBroadcast::Idle(mut receiver) => Box::pin(async move {
                let received = receiver.recv().await;
                (received, receiver)
            }),
        };
        match waiting.as_mut().poll(cx) {
            Poll::Ready((received, receiver)) => {
                *self = PolledBroadcast::Idle(receiver);
                Poll::Ready(received)
            }
            Poll::Pending => {
                *self = PolledBroadcast::Waiting(waiting);
                Poll::Pending
            }
        }
    }
}

impl<T> fmt::Debug for PolledBroadcast<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PolledBroadcast").finish_non_exhaustive()
    }
}
