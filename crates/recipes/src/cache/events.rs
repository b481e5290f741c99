//! The stream of a cache's events, for one reader.

use crate::cache::model::CacheEvent;
use std::collections::VecDeque;
use tokio::sync::broadcast::{self, error::RecvError};

/// The events of a cache, for one reader. First comes `Created` for each znode that the cache held when the stream was
/// made, then `Initialized` if the cache was initialized, then each change. A slow reader gets `Missed` with the number
/// of events that were left out.
#[derive(Debug)]
pub struct CacheEvents {
    held: VecDeque<CacheEvent>,
    changes: Option<broadcast::Receiver<CacheEvent>>,
}

impl CacheEvents {
    pub(crate) fn new(
        held: VecDeque<CacheEvent>,
        changes: Option<broadcast::Receiver<CacheEvent>>,
    ) -> CacheEvents {
        CacheEvents { held, changes }
    }

    /// Waits for the next event; `None` once the cache or the client is closed.
    pub async fn next(&mut self) -> Option<CacheEvent> {
        if let Some(event) = self.held.pop_front() {
            return Some(event);
        }
        match self.changes.as_mut()?.recv().await {
            Ok(event) => Some(event),
            Err(RecvError::Lagged(missed)) => Some(CacheEvent::Missed(missed)),
            Err(RecvError::Closed) => None,
        }
    }
}
