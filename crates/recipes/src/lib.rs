//! Leaders, locks, semaphores, barriers, counters, caches, groups, queues and discovery on ZooKeeper: Apache Curator's
//! recipes in Rust, compatible with them on the wire, with a fencing token for everything that is held.
//!
//! # Shapes
//! A guard of a lock, a lease or a leadership dereferences to its [`Fence`](fencing::Fence): `guard.token()`,
//! `guard.is_held()`, `guard.lost().await`, `guard.multi()`. All changes are a [`Stream`](ostler_client::Stream), which
//! also has a method `next`. [`prelude`] has the usual names.
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
