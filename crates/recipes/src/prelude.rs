//! The names that most programs need: `use ostler_recipes::prelude::*;`
//!
//! ```
//! use ostler_recipes::prelude::*;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let server = ostler_testkit::TestServer::start().await?;
//! # let servers = server.connect_string();
//! let client = Client::connect(&servers).await?;
//! let guard = InterProcessMutex::new(&client, "/locks/ledger").acquire().await?;
//! guard.multi().create("/ledger", b"42").ephemeral().await?;
//! guard.release().await?;
//! # Ok(()) }
//! ```
//!
//! The client's prelude is part of it. `Error` and `Result` are left out, because a program has its own.

pub use crate::{
    barrier::{DistributedBarrier, DistributedDoubleBarrier},
    cache::{CacheEvent, CuratorCache, NodeCache, PathChildrenCache, PathEvent},
    counter::{DistributedAtomicLong, SharedCount, SharedValue},
    discovery::{DownInstancePolicy, ServiceDiscovery, ServiceInstance, ServiceProvider},
    fencing::{Fence, FencedMulti, Token},
    leader::{
        LatchState, LeaderChange, LeaderLatch, LeaderSelector, Leadership, SelectorState, TakeLeadership,
        UnfairElection,
    },
    lock::{
        InterProcessMultiLock, InterProcessMutex, InterProcessReadWriteLock, InterProcessSemaphore, Lease,
        MutexGuard, Owner, ReadGuard, WriteGuard,
    },
    nodes::{GroupMember, PersistentNode},
    partitioner::{SetPartitioner, Share, ShareEnd},
    queue::{
        Consumer, DistributedDelayQueue, DistributedIdQueue, DistributedPriorityQueue, DistributedQueue,
        ErrorMode, QueueBuilder, SimpleDistributedQueue,
    },
    typed::Typed,
};
pub use ostler_client::prelude::*;
