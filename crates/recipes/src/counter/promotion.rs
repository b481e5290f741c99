//! A lock for when there are too many writers.

use ostler_client::{Result, RetryPolicy};
use std::{fmt, pin::Pin, sync::Arc, time::Duration};

/// What [`PromotionLock::acquire`] gives: the holder's guard, whose drop releases the lock, or `None` if the lock could
/// not be had in time.
pub type LockFuture<'a> = Pin<Box<dyn Future<Output = Result<Option<Box<dyn Send>>>> + Send + 'a>>;

/// A lock that writers of one value take by turns when setting it again and again has not helped.
pub trait PromotionLock: Send + Sync {
    /// Waits for the lock, no longer than `limit`. Dropped, the future leaves nothing behind.
    fn acquire(&self, limit: Duration) -> LockFuture<'_>;
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
}

impl fmt::Debug for PromotedToLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PromotedToLock").field("limit", &self.limit).finish_non_exhaustive()
    }
}
