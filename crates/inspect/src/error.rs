//! The errors of an inspection.

use ostler_storage::StorageError;
use std::{io, path::PathBuf};

/// The result of an inspection.
pub type Result<T> = std::result::Result<T, InspectError>;

/// A failure that ends an inspection. Damage that is only reported is no failure.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InspectError {
    /// A file or folder could not be read, or is in use.
    #[error("{0}")]
    Storage(#[from] StorageError),
    /// The output could not be written.
    #[error("cannot write the output: {0}")]
    Output(#[from] io::Error),
    /// The path is neither a data folder nor one of its files.
    #[error("{path}: {reason}")]
    NotData {
        /// The path as it was given.
        path: PathBuf,
        /// The missing thing, and what to give instead.
        reason: &'static str,
    },
    /// The files do not have the state that was asked for.
    #[error("{path}: {reason}")]
    NoState {
        /// The folder.
        path: PathBuf,
        /// The reason, in words.
        reason: String,
    },
    /// A repair would drop other transactions than the flag names.
    #[error("{0}")]
    Refused(String),
}
