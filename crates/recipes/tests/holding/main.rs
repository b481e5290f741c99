//! Elections and locks against a real server, with its faults.
#![allow(clippy::unwrap_used)]

mod curator_issues;
mod cuts;
mod dropping;
mod expiry;
mod fencing;
mod herd;
mod locks;
mod neighbours;
mod statements;
mod world;
