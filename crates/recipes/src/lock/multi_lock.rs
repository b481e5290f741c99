//! The multi lock: several locks that are acquired together, all or none.

use super::{
    mutex::{InterProcessMutex, MutexGuard},
    owner::Owner,
    read_write::{InterProcessReadWriteLock, ReadGuard, WriteGuard},
    semaphore_mutex::{InterProcessSemaphoreMutex, SemaphoreMutexGuard},
};
use crate::{error::Result, fencing::Fence};
use futures_util::{StreamExt, stream::FuturesUnordered};
use ostler_client::Client;
use std::{future::pending, ops::Deref, time::Duration};
use tokio::time::timeout;

/// A lock of any kind, for an [`InterProcessMultiLock`]. Curator's `InterProcessLock`.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum AnyLock {
    /// A mutex.
    Mutex(InterProcessMutex),
    /// A mutex that is not reentrant: it knows no owners, also in [`acquire_as`](InterProcessMultiLock::acquire_as).
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
            AnyLock::Read(lock) => AnyGuard::Read(lock.acquire_read_as(owner).await?),
            AnyLock::Write(lock) => AnyGuard::Write(lock.acquire_write_as(owner).await?),
        })
    }
}

/// A held lock of any kind. It is released in the background when this is dropped.
///
/// It dereferences to its [`Fence`], with token and transactions.
#[derive(Debug)]
#[must_use = "a guard that is dropped releases its lock"]
#[non_exhaustive]
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

impl Deref for AnyGuard {
    type Target = Fence;

    fn deref(&self) -> &Fence {
        self.fence()
    }
}

impl AnyGuard {
    /// The holder's fence.
    pub fn fence(&self) -> &Fence {
        match self {
            AnyGuard::Mutex(guard) => guard.fence(),
            AnyGuard::SemaphoreMutex(guard) => guard.fence(),
            AnyGuard::Read(guard) => guard.fence(),
            AnyGuard::Write(guard) => guard.fence(),
        }
    }

    /// Releases the lock, and waits until the znode is deleted.
    ///
    /// # Errors
    /// The client's errors. The lock is released nevertheless: the deletion goes on in the background.
    pub async fn release(self) -> Result<()> {
        match self {
            AnyGuard::Mutex(guard) => guard.release().await,
            AnyGuard::SemaphoreMutex(guard) => guard.release().await,
            AnyGuard::Read(guard) => guard.release().await,
            AnyGuard::Write(guard) => guard.release().await,
        }
    }
}

/// Several locks that are acquired together, all or none. Curator's `InterProcessMultiLock`.
///
/// The locks are acquired in the given order, and [released](MultiGuard::release) in the opposite order. All programs that share some of the
/// locks must give them in the same order. Otherwise two programs can wait for each other.
#[derive(Debug, Clone)]
pub struct InterProcessMultiLock {
    locks: Vec<AnyLock>,
}

impl InterProcessMultiLock {
    /// A multi lock of the mutexes at these paths.
    pub fn new<'p>(client: &Client, paths: impl IntoIterator<Item = &'p str>) -> InterProcessMultiLock {
        InterProcessMultiLock::of(paths.into_iter().map(|path| InterProcessMutex::new(client, path).into()))
    }

    /// A multi lock of these locks.
    pub fn of(locks: impl IntoIterator<Item = AnyLock>) -> InterProcessMultiLock {
        InterProcessMultiLock { locks: locks.into_iter().collect() }
    }

    /// Waits for all locks. If one cannot be acquired, the others are released.
    ///
    /// # Errors
    /// The error of the first lock that cannot be acquired. A lock that is lost while this waits for the others is no
    /// error: look at [`MultiGuard::is_held`].
    pub async fn acquire(&self) -> Result<MultiGuard> {
        self.acquire_as(&Owner::new()).await
    }

    /// Waits for all locks, except those that this owner holds already.
    ///
    /// An [`AnyLock::SemaphoreMutex`] has no owners: if this owner holds it, this waits until it is released, which can be
    /// for ever.
    ///
    /// # Errors
    /// As [`acquire`](InterProcessMultiLock::acquire).
    pub async fn acquire_as(&self, owner: &Owner) -> Result<MultiGuard> {
        let mut guard = MultiGuard { guards: Vec::with_capacity(self.locks.len()) };
        for lock in &self.locks {
            match lock.acquire_as(owner).await {
                Ok(acquired) => guard.guards.push(acquired),
                Err(error) => {
                    // The first error is returned. A release that fails goes on in the background.
                    let _ = guard.release().await;
                    return Err(error);
                }
            }
        }
        Ok(guard)
    }

    /// Waits for all locks, at most for `limit` in all; `None` after that time.
    ///
    /// The limit counts from the call and includes the requests, so one that is shorter than a round trip never succeeds.
    ///
    /// # Errors
    /// As [`acquire`](InterProcessMultiLock::acquire).
    pub async fn acquire_within(&self, limit: Duration) -> Result<Option<MultiGuard>> {
        timeout(limit, self.acquire()).await.ok().transpose()
    }

    /// [`acquire_as`](InterProcessMultiLock::acquire_as), at most for `limit` in all; `None` after that time.
    ///
    /// The limit counts from the call and includes the requests, so one that is shorter than a round trip never succeeds,
    /// unless the owner holds all of them already.
    ///
    /// # Errors
    /// As [`acquire`](InterProcessMultiLock::acquire).
    pub async fn acquire_as_within(&self, owner: &Owner, limit: Duration) -> Result<Option<MultiGuard>> {
        timeout(limit, self.acquire_as(owner)).await.ok().transpose()
    }
}

/// A held multi lock. All locks are released in the background when this is dropped.
///
/// It does not dereference to a fence, because each lock has one of its own: take that of the lock that protects what is
/// written, from [`guards`](MultiGuard::guards).
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

    /// Whether all locks are still held, by this machine's clock.
    pub fn is_held(&self) -> bool {
        self.guards.iter().all(|guard| guard.fence().is_held())
    }

    /// Waits until the holder should stop: until one of the locks is [lost](Fence::lost).
    pub async fn lost(&self) {
        let mut lost: FuturesUnordered<_> = self.guards.iter().map(|guard| guard.fence().lost()).collect();
        // Without locks nothing is ever lost.
        if lost.next().await.is_none() {
            pending().await
        }
    }

    /// Releases all locks, the last one first.
    ///
    /// # Errors
    /// The first lock's error. All locks are released nevertheless.
    pub async fn release(mut self) -> Result<()> {
        let mut first = Ok(());
        while let Some(guard) = self.guards.pop() {
            first = first.and(guard.release().await);
        }
        first
    }
}
