//! Leaders, locks, semaphores, barriers, counters, caches, groups, queues and discovery on ZooKeeper: Apache Curator's
//! recipes in Rust, compatible with them on the wire, with a fencing token for everything that is held.
#![deny(missing_docs)]

mod background;
pub mod barrier;
pub mod cache;
pub mod counter;
pub mod nodes;
pub mod queue;
mod until_answered;
