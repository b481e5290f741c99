//! Elections and locks against real servers, with their faults.
#![allow(clippy::unwrap_used)]

mod acknowledged;
mod closing;
mod curator_issues;
mod cuts;
mod dropping;
mod ensemble;
mod exchange;
mod expiry;
mod fencing;
mod herd;
mod last_number;
mod local_sessions;
mod locks;
mod neighbours;
#[cfg(feature = "planted-bugs")]
mod planted;
mod refusals;
mod runtimes;
#[path = "../servers/mod.rs"]
mod servers;
mod statements;
mod vacancy;
mod world;
