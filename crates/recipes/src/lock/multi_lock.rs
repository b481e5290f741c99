//! Several locks as one: all or none.

use super::{
    mutex::{InterProcessMutex, MutexGuard},
    owner::Owner,
    read_write::{InterProcessReadWriteLock, ReadGuard, WriteGuard},
    semaphore_mutex::{InterProcessSemaphoreMutex, SemaphoreMutexGuard},
};
use crate::{error::Result, fencing::Fence};
use ostler_client::Client;
use std::time::Duration;
use tokio::time::timeout;

/// A lock of whatever kind.
#[derive(Debug, Clone)]
pub enum AnyLock {
    /// A mutex.
    Mutex(InterProcessMutex),
    /// A mutex that is not reentrant.
    SemaphoreMutex(InterProcessSemaphoreMutex),
    /// The read side of a read-write lock.
    Read(InterProcessReadWriteLock),
    /// The write side of a read-write lock.
    Write(InterProcessReadWriteLock),
}

impl From<InterProcessMutex> for AnyLock {
    fn from(lock: InterProcessMutex) -> AnyLock {
        AnyLock::Mutex(lock)
    }
}

impl From<InterProcessSemaphoreMutex> for AnyLock {
    fn from(lock: InterProcessSemaphoreMutex) -> AnyLock {
        AnyLock::SemaphoreMutex(lock)
    }
}

impl AnyLock {
    async fn acquire_as(&self, owner: &Owner) -> Result<AnyGuard> {
        Ok(match self {
            AnyLock::Mutex(lock) => AnyGuard::Mutex(lock.acquire_as(owner).await?),
            AnyLock::SemaphoreMutex(lock) => AnyGuard::SemaphoreMutex(lock.acquire().await?),
            AnyLock::Read(lock) => AnyGuard::Read(lock.read_as(owner).await?),
            AnyLock::Write(lock) => AnyGuard::Write(lock.write_as(owner).await?),
        })
    }
}

/// A lock of whatever kind, held.
#[derive(Debug)]
#[must_use = "a guard that is dropped releases its lock"]
pub enum AnyGuard {
    /// A mutex.
    Mutex(MutexGuard),
    /// A mutex that is not reentrant.
    SemaphoreMutex(SemaphoreMutexGuard),
    /// The read side of a read-write lock.
    Read(ReadGuard),
    /// The write side of a read-write lock.
    Write(WriteGuard),
}

impl AnyGuard {
    /// What holding it means to servers and other stores.
    pub fn fence(&self) -> &Fence {
        match self {
            AnyGuard::Mutex(guard) => guard.fence(),
            AnyGuard::SemaphoreMutex(guard) => guard.fence(),
            AnyGuard::Read(guard) => guard.fence(),
            AnyGuard::Write(guard) => guard.fence(),
        }
    }

    /// Gives it up.
    ///
    /// # Errors
    /// The client's. It is given up nevertheless: the deletion goes on in the background.
    pub async fn release(self) -> Result<()> {
        match self {
            AnyGuard::Mutex(guard) => guard.release().await,
            AnyGuard::SemaphoreMutex(guard) => guard.release().await,
            AnyGuard::Read(guard) => guard.release().await,
            AnyGuard::Write(guard) => guard.release().await,
        }
    }
}

/// Several locks as one. Curator's `InterProcessMultiLock`.
///
/// They are taken in the order given and released in the opposite one. Whoever takes some of the same locks must give
/// them in the same order, or two wait for each other.
#[derive(Debug, Clone)]
pub struct InterProcessMultiLock {
    locks: Vec<AnyLock>,
}

impl InterProcessMultiLock {
    /// Mutexes at these paths.
    pub fn new<'p>(client: &Client, paths: impl IntoIterator<Item = &'p str>) -> InterProcessMultiLock {
        InterProcessMultiLock::of(paths.into_iter().map(|path| InterProcessMutex::new(client, path).into()))
    }

    /// These locks.
    pub fn of(locks: impl IntoIterator<Item = AnyLock>) -> InterProcessMultiLock {
        InterProcessMultiLock { locks: locks.into_iter().collect() }
    }

    /// Waits for all of them. If one is not to be had, those that were are released.
    ///
    /// # Errors
    /// The first lock's that is refused. One that was lost while others were waited for is not waited for again: look
    /// at [`MultiGuard::is_held`].
    pub async fn acquire(&self) -> Result<MultiGuard> {
        self.acquire_as(&Owner::new()).await
    }

    /// Waits for all of them, those aside that this owner holds.
    ///
    /// # Errors
    /// As [`acquire`](InterProcessMultiLock::acquire).
    pub async fn acquire_as(&self, owner: &Owner) -> Result<MultiGuard> {
        let mut guard = MultiGuard { guards: Vec::with_capacity(self.locks.len()) };
        for lock in &self.locks {
            match lock.acquire_as(owner).await {
                Ok(acquired) => guard.guards.push(acquired),
                Err(error) => {
                    // The first error is the one to tell; what cannot be released now is released in the background.
                    let _ = guard.release().await;
                    return Err(error);
                }
            }
        }
        Ok(guard)
    }

    /// Waits for all of them, but no longer than `limit` in all; `None` if they were not to be had.
    ///
    /// # Errors
    /// As [`acquire`](InterProcessMultiLock::acquire).
    pub async fn acquire_within(&self, limit: Duration) -> Result<Option<MultiGuard>> {
        timeout(limit, self.acquire()).await.ok().transpose()
    }
}

/// Several locks, held. Dropped, all are released in the background.
#[derive(Debug)]
#[must_use = "a guard that is dropped releases its locks"]
pub struct MultiGuard {
    guards: Vec<AnyGuard>,
}

impl MultiGuard {
    /// The guards, in the order of the locks.
    pub fn guards(&self) -> &[AnyGuard] {
        &self.guards
    }

    /// Whether all of them are held.
    pub fn is_held(&self) -> bool {
        self.guards.iter().all(|guard| guard.fence().is_held())
    }

    /// Gives all of them up, the last one first.
    ///
    /// # Errors
    /// The first that there was. All are given up nevertheless.
    pub async fn release(mut self) -> Result<()> {
        let mut first = Ok(());
        while let Some(guard) = self.guards.pop() {
            first = first.and(guard.release().await);
        }
        first
    }
}
