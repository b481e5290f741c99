//! ZooKeeper's files: transaction logs, snapshots and epochs, and the recovery of a server from them.
//!
//! Ostler starts from the files of Java ZooKeeper 3.8 and 3.9, and these from the files of Ostler. The crate blocks,
//! has no threads and no clock, and reads of a record no more than its header. All file work goes through
//! [`disk::Disk`], so tests can use a simulated disk with faults.
//!
//! - [`folders`]: `version-2` below `dataDir` and `dataLogDir`; [`lock`]: one process per folder.
//! - [`txnlog`]: writes and reads the log, and tells a torn tail from damage.
//! - [`snapshot`]: writes and reads snapshots, plain, gzip or Snappy.
//! - [`recover`]: restores the state from the newest usable snapshot and the log after it.
//! - [`epochs`]: the files `acceptedEpoch` and `currentEpoch`.
//! - [`retention`]: removes files that no start needs.

pub mod disk;
pub mod disk_layer;
pub mod epochs;
pub mod error;
pub mod folders;
pub mod lock;
pub mod names;
pub mod recover;
pub mod retention;
pub mod shared_files;
pub mod snapshot;
pub mod txnlog;

pub use error::StorageError;

/// The examples of the README are compiled with the tests of the documentation.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExamples;
