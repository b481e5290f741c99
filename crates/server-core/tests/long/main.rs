//! One member in large trees, and under long random streams of requests: tests that take seconds.
#![allow(clippy::unwrap_used)]

#[allow(dead_code, reason = "other tests use the rest")]
#[path = "../member/disk.rs"]
mod disk;
#[allow(dead_code, reason = "other tests use the rest")]
#[path = "../member/member.rs"]
mod member;
mod multi_reads;
mod random;
#[allow(dead_code, reason = "other tests use the rest")]
#[path = "../member/sight.rs"]
mod sight;
#[allow(dead_code, reason = "the simulator uses the rest")]
#[path = "../../../sim/src/wire.rs"]
mod wire;
mod work;
