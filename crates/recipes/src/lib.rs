//! Leaders, locks, semaphores, barriers, counters, caches, groups, queues and discovery on ZooKeeper: Apache Curator's
//! recipes in Rust, compatible with them on the wire, with a fencing token for everything that is held.
#![deny(missing_docs)]

mod background;
pub mod barrier;
pub mod cache;
mod claim;
pub mod counter;
pub mod discovery;
mod error;
pub mod fencing;
pub mod leader;
pub mod lock;
pub mod nodes;
pub mod partitioner;
#[cfg(feature = "planted-bugs")]
mod planted;
pub mod queue;
mod queue_order;
mod queue_place;
mod session_retry;
pub mod two_phase_commit;
mod until_answered;

pub use error::{Error, Result};
