//! Leaders, locks, semaphores, barriers, counters, caches, groups, queues and discovery on ZooKeeper: Apache Curator's
//! recipes in Rust, compatible with them on the wire, with a fencing token for everything that is held.
#![deny(missing_docs)]

mod error;
pub mod fencing;
pub mod leader;
mod line;
mod line_order;
pub mod lock;

pub use error::{Error, Result};
