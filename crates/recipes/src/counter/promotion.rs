//! A lock for when there are too many writers.

use crate::{Result, lock::InterProcessMutex};
use ostler_client::{Client, RetryPolicy};
use std::{fmt, pin::Pin, sync::Arc, time::Duration};

/// What [`PromotionLock::acquire`] gives: the holder's guard, whose drop releases the lock, or `None` if the lock could
/// not be had in time.
pub type LockFuture<'a> = Pin<Box<dyn Future<Output = Result<Option<Box<dyn Send>>>> + Send + 'a>>;

/// A lock that writers of one value take by turns when setting it again and again has not helped.
pub trait PromotionLock: Send + Sync {
    /// Waits for the lock, no longer than `limit`. Dropped, the future leaves nothing behind.
    fn acquire(&self, limit: Duration) -> LockFuture<'_>;
}

impl PromotionLock for InterProcessMutex {
    fn acquire(&self, limit: Duration) -> LockFuture<'_> {
        Box::pin(async move {
            let held = self.acquire_within(limit).await?;
            Ok(held.map(|guard| Box::new(guard) as Box<dyn Send>))
        })
    }
}

/// How to go on when others were always faster. Curator's `PromotedToLock`.
#[derive(Clone)]
pub struct PromotedToLock {
    pub(crate) lock: Arc<dyn PromotionLock>,
    pub(crate) limit: Duration,
    pub(crate) retry: RetryPolicy,
}

impl PromotedToLock {
    /// Waits for the lock no longer than `limit`, and tries again under it as `retry` says: there can be writers that
    /// do not take the lock.
    pub fn new(lock: impl PromotionLock + 'static, limit: Duration, retry: RetryPolicy) -> PromotedToLock {
        PromotedToLock { lock: Arc::new(lock), limit, retry }
    }

    /// The same with the [`InterProcessMutex`] at `path`, as Curator's has: all who change the value name the same one.
    /// It must not be the value's own path, whose children would be the lock's queue.
    pub fn at(client: &Client, path: &str, limit: Duration, retry: RetryPolicy) -> PromotedToLock {
        PromotedToLock::new(InterProcessMutex::new(client, path), limit, retry)
    }
}

impl fmt::Debug for PromotedToLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PromotedToLock").field("limit", &self.limit).finish_non_exhaustive()
    }
}
