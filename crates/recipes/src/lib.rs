//! Leaders, locks, semaphores, barriers, counters, caches, groups, queues and discovery on ZooKeeper: Apache Curator's
//! recipes in Rust, compatible with them on the wire, with a fencing token for everything that is held.
//!
//! ```
//! use ostler_recipes::prelude::*;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let server = ostler_testkit::TestServer::start().await?;
//! # let servers = server.connect_string();
//! let client = Client::connect(&servers).await?;
//! client.create("/ledger", b"0").await?;
//! let lock = InterProcessMutex::new(&client, "/locks/ledger");
//! let guard = lock.acquire().await?;
//! // Done only if this process holds the lock at that moment, however long it was paused before.
//! guard.multi().set_data("/ledger", b"42").await?;
//! // For a store outside of ZooKeeper: it refuses a smaller token than one that it has seen.
//! println!("UPDATE ledger SET amount = 42, token = {0} WHERE token <= {0}", guard.token().as_i64());
//! guard.release().await?;
//! # Ok(()) }
//! ```
//!
//! # Curator's classes
//! | Curator | here |
//! |---|---|
//! | `LeaderLatch`, `LeaderSelector` | [`leader::LeaderLatch`], [`leader::LeaderSelector`]; also [`leader::UnfairElection`], [`leader::Acknowledgement`] |
//! | `InterProcessMutex`, `InterProcessSemaphoreMutex` | [`lock::InterProcessMutex`], [`lock::InterProcessSemaphoreMutex`] |
//! | `InterProcessReadWriteLock`, `InterProcessMultiLock` | [`lock::InterProcessReadWriteLock`], [`lock::InterProcessMultiLock`] |
//! | `InterProcessSemaphoreV2`, `Revoker` | [`lock::InterProcessSemaphore`], [`lock::attempt_revoke`] |
//! | `DistributedBarrier`, `DistributedDoubleBarrier` | [`barrier::DistributedBarrier`], [`barrier::DistributedDoubleBarrier`] |
//! | `SharedCount`, `SharedValue` | [`counter::SharedCount`], [`counter::SharedValue`] |
//! | `DistributedAtomicLong`, `DistributedAtomicValue` | [`counter::DistributedAtomicLong`], [`counter::DistributedAtomicValue`] |
//! | `CachedAtomicLong` | [`counter::CachedAtomicNumber`] |
//! | `CuratorCache`, `TreeCache` | [`cache::CuratorCache`] |
//! | `PathChildrenCache`, `NodeCache` | [`cache::PathChildrenCache`], [`cache::NodeCache`] |
//! | `PersistentNode`, `PersistentTtlNode`, `GroupMember` | [`nodes::PersistentNode`], [`nodes::PersistentTtlNode`], [`nodes::GroupMember`] |
//! | `QueueBuilder`, `DistributedQueue` and its kinds | [`queue::DistributedQueue::builder`], [`queue`] |
//! | `SimpleDistributedQueue` | [`queue::SimpleDistributedQueue`] |
//! | `ServiceDiscovery`, `ServiceCache`, `ServiceProvider` | [`discovery::ServiceDiscovery`], [`discovery::ServiceCache`], [`discovery::ServiceProvider`] |
//! | `ModeledFramework`, `CachedModeledFramework` | [`typed::Typed`], [`typed::TypedCache`] |
//! | none | [`fencing`], [`partitioner::SetPartitioner`], [`two_phase_commit::Transaction`] |
//!
//! # Rules
//! - `new` sends no request. `start` begins work in the background, and an async `start` also waits for its first result.
//!   Each async function waits.
//! - Tasks run in the client's [runtime](ostler_client::Client::runtime). So a recipe can be made anywhere, and goes on
//!   when the runtime ends in which it was made. Futures must be awaited within a tokio runtime.
//! - A value that works in the background, or keeps a znode, ends when it is dropped. Its `close` does the same and waits
//!   for it, and can be called again. Guards, leases and shares have `release` instead, which can be called once.
//! - An adjective or a participle waits: `created`, `initialized`, `joined`, `lost`. A name with `is_` or `has_` asks,
//!   and sends a request only if it is async.
//! - `_within` limits the time of a wait. After that time there is `None`, or `false`. The limit counts from the call and
//!   includes the requests. So a limit of zero never succeeds, even if the lock is free. Curator's `acquire(0, unit)` takes
//!   a free lock.
//! - A guard of a lock, a lease or a leadership dereferences to its [`Fence`](fencing::Fence): `guard.token()`,
//!   `guard.is_held()`, `guard.lost().await`, `guard.multi()`. A [`MultiGuard`](lock::MultiGuard) does not, because it has
//!   several.
//! - `next` of a stream, `lost`, `ended`, `suspended` and all that only waits can be dropped in `tokio::select!` and called
//!   again without a loss. An `acquire` that is dropped leaves the queue.
//! - All changes are a [`Stream`](ostler_client::Stream), which also has a method `next`.
//! - [`Error`] is the error of what is held. Other recipes return the client's error, or one of their own around it. Each
//!   says whether it [is retryable](Error::is_retryable).
//!
//! [`prelude`] has the usual names.
#![deny(missing_docs)]

mod background;
pub mod barrier;
pub mod cache;
mod claim;
pub mod counter;
pub mod discovery;
#[cfg(doctest)]
mod documents;
mod error;
pub mod fencing;
pub mod leader;
pub mod lock;
pub mod nodes;
pub mod partitioner;
#[cfg(feature = "planted-bugs")]
mod planted;
mod polled;
pub mod prelude;
pub mod queue;
mod queue_order;
mod queue_place;
mod session_retry;
pub mod two_phase_commit;
pub mod typed;
mod until_answered;
mod versioned;

pub use error::{Error, Result};
/// The client whose types are in the recipes' signatures.
pub use ostler_client;
/// The traits of a service's payload, in [`discovery`].
pub use serde;
pub use serde_json;

/// The examples of the README are compiled with the tests of the documentation.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExamples;
