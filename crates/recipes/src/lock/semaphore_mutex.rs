//! One holder at a time, by a semaphore with one lease.

use super::semaphore::{InterProcessSemaphore, Lease};
use crate::{
    error::Result,
    fencing::{Fence, FencedMulti, Token},
};
use ostler_client::Client;
use std::time::Duration;

/// A lock that one holder has at a time and nobody twice. Curator's `InterProcessSemaphoreMutex`, with its znodes.
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
    /// The client's: what forbids the znodes, and connection trouble that lasts longer than its retry policy.
    pub async fn acquire(&self) -> Result<SemaphoreMutexGuard> {
        Ok(SemaphoreMutexGuard { lease: self.semaphore.acquire().await? })
    }

    /// Waits for the lock, but no longer than `limit`; `None` if it was not to be had.
    ///
    /// # Errors
    /// As [`acquire`](InterProcessSemaphoreMutex::acquire).
    pub async fn acquire_within(&self, limit: Duration) -> Result<Option<SemaphoreMutexGuard>> {
        Ok(self.semaphore.acquire_within(limit).await?.map(|lease| SemaphoreMutexGuard { lease }))
    }
}

/// The lock, held. Dropped, it is released in the background.
#[derive(Debug)]
#[must_use = "a guard that is dropped releases its lock"]
pub struct SemaphoreMutexGuard {
    lease: Lease,
}

impl SemaphoreMutexGuard {
    /// What holding it means to servers and other stores.
    pub fn fence(&self) -> &Fence {
        self.lease.fence()
    }

    /// A number that grows from holder to holder.
    pub fn token(&self) -> Token {
        self.fence().token()
    }

    /// [`Fence::is_held`].
    pub fn is_held(&self) -> bool {
        self.fence().is_held()
    }

    /// [`Fence::multi`].
    pub fn multi(&self) -> FencedMulti<'_> {
        self.fence().multi()
    }

    /// Gives it up, and waits until others can have it.
    ///
    /// # Errors
    /// The client's. It is given up nevertheless: the deletion goes on in the background.
    pub async fn release(self) -> Result<()> {
        self.lease.release().await
    }
}
