//! ZooKeeper's files: transaction logs, snapshots, epochs, and how a server starts from them.
//!
//! Files go both ways with Java ZooKeeper 3.8 and 3.9: either can start from a folder that the other left.
//! The crate blocks, has no threads and no clock, and never looks inside a record beyond its header. All
//! file work goes through [`disk::Disk`], so that a simulated disk with faults can stand in for the real one.
//!
//! - [`folders`]: `version-2` below `dataDir` and `dataLogDir`; [`lock`]: one process per folder.
//! - [`txnlog`]: the log, written and read; what a torn end is and what corruption is.
//! - [`snapshot`]: snapshots, written and read, plain, gzip or Snappy.
//! - [`recover`]: newest usable snapshot + log; [`epochs`]: `acceptedEpoch` and `currentEpoch`.
//! - [`retention`]: which files are needed no more.

pub mod disk;
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
