//! Agreement: which zxid a proposal gets, when it is durable at a quorum, in which order it commits.
//!
//! A record is opaque bytes here. `no_std`: messages and durable acknowledgements in; appends and commits
//! out. A standalone server is a quorum of one that goes the same way as an ensemble.
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
