//! Watches and changes for programs that block.

use super::{Client, runtime::Runtime};
use crate::{Result, WatchedEvent};
use futures_core::Stream;
use std::{fmt, future::poll_fn, pin::Pin, sync::Arc, time::Duration};
use tokio::time::timeout;

/// A one-shot watch: [`wait`](Watch::wait) returns the next change of a znode. If it is dropped, it is removed at the
/// server.
#[must_use = "a watch that is dropped is removed"]
pub struct Watch {
    watch: crate::Watch,
    runtime: Arc<Runtime>,
}

impl Watch {
    pub(super) fn new(client: &Client, watch: crate::Watch) -> Watch {
        Watch { watch, runtime: client.runtime.clone() }
    }

    /// Waits for the change.
    ///
    /// # Errors
    /// Those of the async [`Watch`](crate::Watch).
    pub fn wait(self) -> Result<WatchedEvent> {
        self.runtime.block_on(self.watch)
    }

    /// Waits for the change, at most for `limit`; gives the watch back after that time.
    ///
    /// # Errors
    /// The watch, if there is no change within `limit`.
    pub fn wait_within(mut self, limit: Duration) -> std::result::Result<Result<WatchedEvent>, Watch> {
        let watch = &mut self.watch;
        match self.runtime.block_on(async { timeout(limit, watch).await }) {
            Ok(event) => Ok(event),
            Err(_) => Err(self),
        }
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.watch.fmt(f)
    }
}

/// An iterator over the items of a stream, such as the events of a watch. Each `next` waits for an item.
#[derive(Debug)]
#[must_use = "a watch that is dropped is removed"]
pub struct Events<S> {
    stream: S,
    runtime: Arc<Runtime>,
}

impl<S: Stream + Unpin> Events<S> {
    /// Over the items of any stream, such as a recipe's changes.
    pub fn new(client: &Client, stream: S) -> Events<S> {
        Events { stream, runtime: client.runtime.clone() }
    }

    /// Waits for the next item, at most for `limit`; `None` after that time, and once there are no more.
    pub fn next_within(&mut self, limit: Duration) -> Option<S::Item> {
        let stream = &mut self.stream;
        let next = async { timeout(limit, poll_fn(|cx| Pin::new(&mut *stream).poll_next(cx))).await };
        self.runtime.block_on(next).ok().flatten()
    }
}

impl<S: Stream + Unpin> Iterator for Events<S> {
    type Item = S::Item;

    fn next(&mut self) -> Option<S::Item> {
        let stream = &mut self.stream;
        self.runtime.block_on(poll_fn(|cx| Pin::new(&mut *stream).poll_next(cx)))
    }
}
