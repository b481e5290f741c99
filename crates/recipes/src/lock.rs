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
//! A guard holds a znode in a session. [`Fence::is_held`](crate::fencing::Fence::is_held) answers from this machine's
//! clock whether it still does, [`lost`](crate::fencing::Fence::lost) waits until its holder should stop, and writes
//! through [`multi`](crate::fencing::Fence::multi) are refused once it does not. A lock alone does not protect data
//! from a process that was paused: see [`fencing`](crate::fencing).
//!
//! # Dropping
//! A future of `acquire` that is dropped at whatever moment leaves no place in the queue. A guard that is dropped
//! releases in the background, however long the connection is gone; `release` does the same and waits for it. Its
//! znode's deletion is sent before whatever the client is asked for next.
//!
//! # Connection loss and expiry
//! Whoever waits keeps its place over connection losses, and contends anew, at the end of the queue, when its session
//! has expired. Whoever holds keeps the lock over connection losses shorter than the session's timeout, and has lost
//! it with the session: a guard is never carried over into another one.
//!
//! # Cost
//! A mutex or read-write lock that nobody holds takes one round trip to get and one to give back; Curator's takes two
//! and one. The queue is read right behind the create of one's znode, without waiting for its reply. A hand-over takes
//! one event and one look at the queue, however many wait.

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
pub(crate) use mutex::{WORD, wait_in_line};
pub use owner::Owner;
pub use read_write::{InterProcessReadWriteLock, ReadGuard, WriteGuard};
pub use revocation::attempt_revoke;
pub use semaphore::{InterProcessSemaphore, Lease, SemaphoreSize};
pub use semaphore_mutex::{InterProcessSemaphoreMutex, SemaphoreMutexGuard};
