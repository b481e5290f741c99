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
    /// The event or error, once it is known: the async watch must not be polled after that.
    known: Option<Result<WatchedEvent>>,
    runtime: Arc<Runtime>,
}

impl Watch {
    pub(super) fn new(client: &Client, watch: crate::Watch) -> Watch {
        Watch { watch, known: None, runtime: client.runtime.clone() }
    }

    /// Waits for the change.
    ///
    /// # Errors
    /// Those of the async [`Watch`](crate::Watch).
    pub fn wait(self) -> Result<WatchedEvent> {
        match self.known {
            Some(known) => known,
            None => self.runtime.block_on(self.watch),
        }
    }

    /// Waits for the change, at most for `limit`; `None` after that time. A watch has one event: later calls return it
    /// again.
    ///
    /// # Errors
    /// Those of the async [`Watch`](crate::Watch).
    pub fn wait_within(&mut self, limit: Duration) -> Result<Option<WatchedEvent>> {
        if self.known.is_none() {
            let watch = &mut self.watch;
            self.known = self.runtime.block_on(async { timeout(limit, watch).await }).ok();
        }
        self.known.clone().transpose()
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.watch.fmt(f)
    }
}

/// Why there is no item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoItem {
    /// Not within the time. A later call may have one.
    #[error("there is no item yet")]
    NotYet,
    /// There will be no more.
    #[error("there are no more items")]
    Ended,
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

    /// Waits for the next item, at most for `limit`.
    ///
    /// # Errors
    /// [`NoItem::NotYet`] after that time; [`NoItem::Ended`] once there are no more.
    pub fn next_within(&mut self, limit: Duration) -> std::result::Result<S::Item, NoItem> {
        let stream = &mut self.stream;
        let next = async { timeout(limit, poll_fn(|cx| Pin::new(&mut *stream).poll_next(cx))).await };
        self.runtime.block_on(next).map_err(|_| NoItem::NotYet)?.ok_or(NoItem::Ended)
    }
}

impl<S: Stream + Unpin> Iterator for Events<S> {
    type Item = S::Item;

    fn next(&mut self) -> Option<S::Item> {
        let stream = &mut self.stream;
        self.runtime.block_on(poll_fn(|cx| Pin::new(&mut *stream).poll_next(cx)))
    }
}
