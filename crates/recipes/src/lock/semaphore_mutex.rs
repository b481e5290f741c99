//! The semaphore mutex: a lock that is a semaphore of one lease.

use super::semaphore::{InterProcessSemaphore, Lease};
use crate::{error::Result, fencing::Fence};
use ostler_client::Client;
use std::{ops::Deref, time::Duration};

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

    /// Waits for the lock. A task that holds it and calls this again waits for itself.
    ///
    /// # Errors
    /// The client's errors: the server refuses the znodes, or connection trouble lasts longer than the retry policy
    /// allows.
    pub async fn acquire(&self) -> Result<SemaphoreMutexGuard> {
        Ok(SemaphoreMutexGuard { lease: self.semaphore.acquire().await? })
    }

    /// Waits for the lock, at most for `limit`; `None` after that time.
    ///
    /// The limit counts from the call and includes the requests, so one that is shorter than a round trip never succeeds.
    ///
    /// # Errors
    /// As [`acquire`](InterProcessSemaphoreMutex::acquire).
    pub async fn acquire_within(&self, limit: Duration) -> Result<Option<SemaphoreMutexGuard>> {
        Ok(self.semaphore.acquire_within(limit).await?.map(|lease| SemaphoreMutexGuard { lease }))
    }
}

/// A held semaphore mutex. It is released in the background when this is dropped.
///
/// It dereferences to its [`Fence`], with token and transactions.
#[derive(Debug)]
#[must_use = "a guard that is dropped releases its lock"]
pub struct SemaphoreMutexGuard {
    lease: Lease,
}

impl Deref for SemaphoreMutexGuard {
    type Target = Fence;

    fn deref(&self) -> &Fence {
        self.fence()
    }
}

impl SemaphoreMutexGuard {
    /// The holder's fence.
    pub fn fence(&self) -> &Fence {
        self.lease.fence()
    }

    /// Releases the lock, and waits until the znode is deleted.
    ///
    /// # Errors
    /// The client's errors. The lock is released nevertheless: the deletion goes on in the background.
    pub async fn release(self) -> Result<()> {
        self.lease.release().await
    }
}
