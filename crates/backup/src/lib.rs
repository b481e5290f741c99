//! Backups of a server's files while it runs, and restores to one transaction.
//!
//! - [`backup`] copies a base (a snapshot) and the log after it from a server's data folder into a [`store`], and goes
//!   on as the log grows. [`part`] is the manifest.
//! - [`history`] reads the manifests and says which transactions the backup has. [`rebuild`] makes the tree of one of
//!   them in memory, and checks every checksum and digest on the way. [`verify`] checks a whole backup.
//! - [`restore`] writes the data folders of a whole ensemble. [`subtree`] puts a subtree back into a running ensemble.
//!
//! A backup only reads the server's folder and takes no lock. All functions but those of [`subtree`] block.

pub mod backup;
mod base;
mod committed;
mod continuation;
mod error;
pub mod history;
mod log_tail;
pub mod part;
pub mod rebuild;
pub mod restore;
pub mod store;
pub mod subtree;
mod temporary;
#[cfg(test)]
mod tests;
mod tree_builder;
pub mod verify;

pub use committed::Committed;
pub use error::{BackupError, Result};
