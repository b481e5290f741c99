//! A server's data folder: carries out the disk operations of the core in files (log, snapshots, epochs, and the
//! configuration beside zoo.cfg), and restores the server's state from them.
//!
//! All functions block. The caller drives them: the threads of a server, or the simulator with a disk that loses data and
//! fails. Only recovery can use a thread of its own.

mod config_files;
mod persistence;
mod read_ahead;
pub mod recovery;
pub mod snapshots;

pub use persistence::{
    Persistence, PersistenceOptions, Reloaded, SnapshotSource, epochs, is_incomplete, log_from, log_part,
};

/// The examples of the README are compiled with the tests of the documentation.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExamples;
