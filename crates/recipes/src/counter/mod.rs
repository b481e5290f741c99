//! Values and numbers that many processes share: `SharedValue`, `SharedCount`, `DistributedAtomicLong` and the like.
//!
//! A value is a znode's data, in Curator's formats, so Java processes share it: a count is four bytes, a long eight,
//! big-endian.
//!
//! # Connection loss
//! A write whose reply is lost may have been done. After the reconnect the recipe reads the znode. If the znode has not
//! changed, it writes again. If the znode has changed in a way that this write cannot have caused, the write was not
//! done. Otherwise the call returns [`Error::ConnectionLoss`]: the write may have been done, and to add again could
//! count twice.

mod atomic_number;
mod atomic_value;
mod cached_number;
mod promotion;
mod shared_count;
mod shared_value;
mod swap;

pub use crate::versioned::VersionedValue;
pub use atomic_number::{
    AtomicNumber, DistributedAtomicInteger, DistributedAtomicLong, DistributedAtomicNumber,
};
pub use atomic_value::{AtomicStats, AtomicUpdate, DistributedAtomicValue};
pub use cached_number::CachedAtomicNumber;
pub use promotion::{LockFuture, PromotedToLock, PromotionLock};
pub use shared_count::{CountChanges, SharedCount};
pub use shared_value::{SharedValue, ValueChanges};

use crate::error::is_retryable;
use ostler_client::Error;
use std::sync::Arc;

/// Why an operation on a shared value or number has failed.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum CounterError {
    /// An operation of the client has failed.
    #[error(transparent)]
    Client(#[from] Error),
    /// The lock of [`PromotedToLock`] could not be acquired. Nothing was changed.
    #[error("the lock for many writers cannot be acquired: {0}")]
    Lock(#[source] crate::Error),
    /// Other writers were faster in all tries that the retry policy allows. Nothing was changed.
    #[error("{path}: other writers were faster in all tries; try again, or allow more tries")]
    Contended {
        /// The znode's path.
        path: Box<str>,
    },
    /// The znode's data is not a number of this kind.
    #[error(
        "{path}: {size} bytes of data, which are not a number of {expected} bytes; the znode holds other data"
    )]
    Corrupt {
        /// The znode's path.
        path: Box<str>,
        /// The size of the znode's data, in bytes.
        size: usize,
        /// The size of a number, in bytes.
        expected: usize,
    },
    /// The znode's version has overflowed to -1, which servers take for any version. So a conditional write is not
    /// possible. One unconditional write ends this state. ZooKeeper 3.10 leaves -1 out when it counts.
    #[error(
        "{path}: its version has overflowed to -1, which servers take for any version; set it unconditionally once"
    )]
    VersionUnusable {
        /// The znode's path.
        path: Box<str>,
    },
    /// The function that makes the new value has refused to make one: [`CounterError::refused`]. Nothing was changed.
    #[error("the change is refused: {0}")]
    Refused(#[source] Arc<dyn std::error::Error + Send + Sync>),
}

impl CounterError {
    /// A refusal by the function that makes a new value, with its reason: an error or a text.
    pub fn refused(reason: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> CounterError {
        CounterError::Refused(Arc::from(reason.into()))
    }

    /// Whether the same operation may succeed later: [`CounterError::Contended`], and see
    /// [`Error::is_retryable`](crate::Error::is_retryable). An addition whose
    /// outcome is unknown may be done already.
    pub fn is_retryable(&self) -> bool {
        match self {
            CounterError::Contended { .. } => true,
            CounterError::Lock(error) => error.is_retryable(),
            error => error.client().is_some_and(is_retryable),
        }
    }

    /// The client's error, if this is one, or if the lock has failed with one.
    pub fn client(&self) -> Option<&Error> {
        match self {
            CounterError::Client(error) => Some(error),
            CounterError::Lock(error) => error.client(),
            _ => None,
        }
    }
}

/// The result of an operation on a shared value or number.
pub type Result<T> = std::result::Result<T, CounterError>;
