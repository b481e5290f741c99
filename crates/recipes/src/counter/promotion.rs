//! A lock that many writers of one value take when tries without a lock fail.

use crate::{Result, lock::InterProcessMutex};
use ostler_client::{Client, RetryPolicy};
use std::{fmt, pin::Pin, sync::Arc, time::Duration};

/// The future of [`PromotionLock::acquire_within`]: the holder's guard, whose drop releases the lock, or `None` after the
/// limit.
pub type LockFuture<'a> = Pin<Box<dyn Future<Output = Result<Option<Box<dyn Send>>>> + Send + 'a>>;

/// A lock that writers of one value take by turns after their tries without a lock have failed.
pub trait PromotionLock: Send + Sync {
    /// Waits for the lock, at most for `limit`. If the future is dropped, it must leave nothing behind.
    fn acquire_within(&self, limit: Duration) -> LockFuture<'_>;
}

impl PromotionLock for InterProcessMutex {
    fn acquire_within(&self, limit: Duration) -> LockFuture<'_> {
        Box::pin(async move {
            let held = InterProcessMutex::acquire_within(self, limit).await?;
            Ok(held.map(|guard| Box::new(guard) as Box<dyn Send>))
        })
    }
}

/// How to go on under a lock when other writers were always faster. Curator's `PromotedToLock`.
#[derive(Clone)]
pub struct PromotedToLock {
    pub(crate) lock: Arc<dyn PromotionLock>,
    pub(crate) limit: Duration,
    pub(crate) retry: RetryPolicy,
}

impl PromotedToLock {
    /// Waits for the lock at most for `limit`, and tries again under it by `retry`, because other writers may not take
    /// the lock.
    pub fn new(lock: impl PromotionLock + 'static, limit: Duration, retry: RetryPolicy) -> PromotedToLock {
        PromotedToLock { lock: Arc::new(lock), limit, retry }
    }

    /// Uses the [`InterProcessMutex`] at `path`, as Curator does. All writers of the value must use the same one. It
    /// must not be at the value's own path, because its queue would be that znode's children.
    pub fn at(client: &Client, path: &str, limit: Duration, retry: RetryPolicy) -> PromotedToLock {
        PromotedToLock::new(InterProcessMutex::new(client, path), limit, retry)
    }
}

impl fmt::Debug for PromotedToLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PromotedToLock").field("limit", &self.limit).finish_non_exhaustive()
    }
}
