//! The semaphore mutex: a lock that is a semaphore of one lease.

use super::semaphore::{InterProcessSemaphore, Lease};
use crate::{
    error::Result,
    fencing::{Fence, FencedMulti, Token},
};
use ostler_client::Client;
use std::time::Duration;

/// A lock that has one holder at a time and is not reentrant. This is Curator's `InterProcessSemaphoreMutex`, with the
/// same znodes.
#[derive(Debug, Clone)]
pub struct InterProcessSemaphoreMutex {
    semaphore: InterProcessSemaphore,
}

impl InterProcessSemaphoreMutex {
    /// The lock at `path`.
    pub fn new(client: &Client, path: &str) -> InterProcessSemaphoreMutex {
        InterProcessSemaphoreMutex { semaphore: InterProcessSemaphore::new(client, path, 1) }
    }

    /// Waits for the lock.
    ///
    /// # Errors
    /// The client's errors: the server refuses the znodes, or connection trouble lasts longer than the retry policy
    /// allows.
    pub async fn acquire(&self) -> Result<SemaphoreMutexGuard> {
        Ok(SemaphoreMutexGuard { lease: self.semaphore.acquire().await? })
    }

    /// Waits for the lock, at most for `limit`; `None` after that time.
    ///
    /// # Errors
    /// As [`acquire`](InterProcessSemaphoreMutex::acquire).
    pub async fn acquire_within(&self, limit: Duration) -> Result<Option<SemaphoreMutexGuard>> {
        Ok(self.semaphore.acquire_within(limit).await?.map(|lease| SemaphoreMutexGuard { lease }))
    }
}

/// A held semaphore mutex. It is released in the background when this is dropped.
#[derive(Debug)]
#[must_use = "a guard that is dropped releases its lock"]
pub struct SemaphoreMutexGuard {
    lease: Lease,
}

impl SemaphoreMutexGuard {
    /// The holder's fence.
    pub fn fence(&self) -> &Fence {
        self.lease.fence()
    }

    /// The fencing token: a number that grows from holder to holder.
    pub fn token(&self) -> Token {
        self.fence().token()
    }

    /// Whether the lock is still held, by this machine's clock: [`Fence::is_held`].
    pub fn is_held(&self) -> bool {
        self.fence().is_held()
    }

    /// Begins a transaction that is done only if the lock is still held: [`Fence::multi`].
    pub fn multi(&self) -> FencedMulti<'_> {
        self.fence().multi()
    }

    /// Releases the lock, and waits until the znode is deleted.
    ///
    /// # Errors
    /// The client's errors. The lock is released nevertheless: the deletion goes on in the background.
    pub async fn release(self) -> Result<()> {
        self.lease.release().await
    }
}
