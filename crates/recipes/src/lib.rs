//! Leaders, locks, semaphores, barriers, counters, caches, groups, queues and discovery on ZooKeeper: Apache Curator's
//! recipes in Rust, compatible with them on the wire, with a fencing token for everything that is held.
#![deny(missing_docs)]

mod background;
pub mod cache;
pub mod counter;
mod until_answered;
