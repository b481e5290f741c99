//! The stream of a cache's events, for one reader.

use crate::cache::model::CacheEvent;
use crate::polled::PolledBroadcast;
use futures_util::Stream;
use std::{
    collections::VecDeque,
    future::poll_fn,
    pin::Pin,
    task::{Context, Poll, ready},
};
use tokio::sync::broadcast::{self, error::RecvError};

/// The events of a cache, for one reader. First comes `Created` for each znode that the cache held when the stream was
/// made, then `Initialized` if the cache was initialized, then each change. A slow reader gets `Gap` with the number of
/// events that were left out.
#[derive(Debug)]
pub struct CacheEvents {
    held: VecDeque<CacheEvent>,
    changes: PolledBroadcast<CacheEvent>,
}

impl CacheEvents {
    pub(crate) fn new(
        held: VecDeque<CacheEvent>,
        changes: Option<broadcast::Receiver<CacheEvent>>,
    ) -> CacheEvents {
        CacheEvents { held, changes: changes.map_or(PolledBroadcast::Ended, PolledBroadcast::Idle) }
    }

    /// Waits for the next event; `None` once the cache or the client is closed, or an error has ended the cache: see
    /// [`CuratorCache::end_reason`](crate::cache::CuratorCache::end_reason).
    pub async fn next(&mut self) -> Option<CacheEvent> {
        poll_fn(|cx| self.poll(cx)).await
    }

    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<CacheEvent>> {
        if let Some(event) = self.held.pop_front() {
            return Poll::Ready(Some(event));
        }
        Poll::Ready(match ready!(self.changes.poll_recv(cx)) {
            Ok(event) => Some(event),
            Err(RecvError::Lagged(missed)) => Some(CacheEvent::Gap(missed)),
            Err(RecvError::Closed) => None,
        })
    }
}

impl Stream for CacheEvents {
    type Item = CacheEvent;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<CacheEvent>> {
        self.poll(cx)
    }
}
