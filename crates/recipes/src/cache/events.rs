//! A cache's events, for one reader.

use crate::cache::model::CacheEvent;
use std::collections::VecDeque;
use tokio::sync::broadcast::{self, error::RecvError};

/// What a cache held when this was asked for, as `Created`, followed by `Initialized` if it was, and then every
/// change. A reader that does not keep up is told how many it has missed.
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

    /// The next event; `None` once the cache or the client is closed.
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
