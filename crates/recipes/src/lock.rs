//! Locks and semaphores that processes share.
//!
//! | Curator | here |
//! |---|---|
//! | `InterProcessMutex` | [`InterProcessMutex`], [`MutexGuard`] |
//! | `InterProcessSemaphoreMutex` | [`InterProcessSemaphoreMutex`] |
//! | `InterProcessReadWriteLock` | [`InterProcessReadWriteLock`] |
//! | `InterProcessMultiLock` | [`InterProcessMultiLock`] |
//! | `InterProcessSemaphoreV2`, `Lease` | [`InterProcessSemaphore`], [`Lease`] |
//! | `Revoker`, `makeRevocable` | [`attempt_revoke`], `revocation_requested` of mutexes' and read-write locks' guards |
//! | `acquire(time, unit)` | `acquire_within` |
//! | the thread that owns a lock | [`Owner`] |
//!
//! # What holding means
//! A guard holds an ephemeral znode of one session. [`Fence::is_held`](crate::fencing::Fence::is_held) says by this
//! machine's clock whether the lock is still held. [`Fence::lost`](crate::fencing::Fence::lost) waits until the holder
//! should stop. Writes through [`Fence::multi`](crate::fencing::Fence::multi) are refused once the lock is not held. A
//! lock alone does not protect data from a process that was paused: see [`fencing`](crate::fencing).
//!
//! # Dropping
//! A future of `acquire` can be dropped at any time and leaves no place in the queue. A guard that is dropped releases
//! the lock in the background, however long the connection is gone; `release` does the same and waits for it. The
//! deletion of the guard's znode is sent before any later request of the client.
//!
//! # Connection loss and expiry
//! A waiting contender keeps its place over connection losses. When its session has expired, it contends again, from
//! the end of the queue. A holder keeps the lock over connection losses that are shorter than the session's timeout,
//! and loses it with the session: a guard is never carried over into another session.
//!
//! # Cost
//! A mutex or read-write lock that is free takes one round trip to acquire and one to release; Curator's takes two and
//! one. The request that reads the queue is sent right behind the create, without waiting for its reply. A hand-over
//! of a mutex takes one or two events, and one of a read-write lock an event and a list of the queue, whatever the number of
//! waiting contenders.

mod multi_lock;
mod mutex;
mod owner;
mod read_write;
mod read_write_order;
mod revocation;
mod semaphore;
mod semaphore_mutex;

pub use multi_lock::{AnyGuard, AnyLock, InterProcessMultiLock, MultiGuard};
pub use mutex::{InterProcessMutex, MutexGuard};
pub(crate) use mutex::{WORD, wait_for_place};
pub use owner::Owner;
pub use read_write::{InterProcessReadWriteLock, ReadGuard, WriteGuard};
pub use revocation::attempt_revoke;
pub use semaphore::{InterProcessSemaphore, Lease, SemaphoreSize};
pub use semaphore_mutex::{InterProcessSemaphoreMutex, SemaphoreMutexGuard};
