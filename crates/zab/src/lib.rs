//! Zab, ZooKeeper's agreement protocol: elections, the phases of an epoch at leader and learner, and which proposals
//! are committed.
//!
//! Pure state machines without I/O: they take messages and reports of the disk, and return outputs for the caller to
//! carry out. A transaction is opaque bytes here. A standalone server is a quorum of one, on the same path as an
//! ensemble.
//!
//! The files in `testdata` show elections and epochs message by message.
#![no_std]
extern crate alloc;

pub mod election;
pub mod gate;
pub mod history;
pub mod leading;
pub mod learning;
pub mod proposals;
pub mod quorum;
pub mod sync;
pub mod time;

pub use election::{Election, ElectionOutput, ElectionTiming};
pub use gate::{DiskGate, PersistSeq};
pub use history::{History, HistoryLimits, Record};
pub use proposals::{EpochLength, Proposals};
pub use quorum::{Electorate, Quorum};
pub use time::Mono;

/// The examples of the README are compiled with the tests of the documentation.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExamples;
