//! One member from outside: requests in, what clients see out, with a disk and a clock that the tests move.
#![allow(clippy::unwrap_used)]

mod access;
mod audit;
mod catch_up;
mod counts;
mod crashes;
mod disk;
mod figures;
mod logins;
#[allow(dead_code, reason = "long tests use the rest")]
mod member;
mod multis;
mod order;
mod parts;
mod passwords;
mod quotas;
mod reaping;
mod restoring;
#[path = "../log/said.rs"]
mod said;
mod sequences;
mod session_ends;
mod sessions;
mod sight;
mod slow_requests;
mod snapshot_times;
mod snapshots;
mod watches;
#[allow(dead_code, reason = "the simulator uses the rest")]
#[path = "../../../sim/src/wire.rs"]
mod wire;
mod znodes;
