//! Values and numbers that many processes share: `SharedValue`, `SharedCount`, `DistributedAtomicLong` and the like.
//!
//! A value is a znode's data, in Curator's formats, so Java processes share it: a count is four bytes, a long eight,
//! big-endian.
//!
//! # Connection loss
//! A write whose reply is lost may have been done. It is looked for after the reconnect: if the znode has not changed
//! since, it is written again, and if it has changed in a way that this write cannot have caused, it was not done. What
//! remains is [`Error::ConnectionLoss`]: the znode now looks as this write would have left it, or was changed again
//! since. Adding once more could count twice, and only the caller knows what that would mean.

mod atomic_number;
mod atomic_value;
mod cached_number;
mod promotion;
mod shared_count;
mod shared_value;
mod swap;

pub use atomic_number::{
    AtomicNumber, DistributedAtomicInteger, DistributedAtomicLong, DistributedAtomicNumber,
};
pub use atomic_value::{AtomicStats, AtomicUpdate, DistributedAtomicValue};
pub use cached_number::CachedAtomicNumber;
pub use promotion::{LockFuture, PromotedToLock, PromotionLock};
pub use shared_count::{CountChanges, SharedCount};
pub use shared_value::{SharedValue, ValueChanges, VersionedValue};

use ostler_client::Error;

/// What can go wrong with a shared value or number.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum CounterError {
    /// An operation of the client fails.
    #[error(transparent)]
    Client(#[from] Error),
    /// The lock that a writer goes on under could not be waited for. Nothing was changed.
    #[error("the lock for when others are always faster: {0}")]
    Lock(#[source] crate::Error),
    /// The znode's data is no number of this kind.
    #[error(
        "{path}: {size} bytes of data, which are no number of {expected} bytes; something else is kept there"
    )]
    Corrupt {
        /// The znode.
        path: Box<str>,
        /// Bytes that it has.
        size: usize,
        /// Bytes that a number takes.
        expected: usize,
    },
    /// The znode has been set so often that its version is -1, which servers take for any version: nothing can be
    /// set on the condition that it has not changed. Setting it without a condition once helps.
    #[error(
        "{path}: its version has overflowed to -1, which servers take for any version; set it unconditionally once"
    )]
    VersionUnusable {
        /// The znode.
        path: Box<str>,
    },
}

/// Result of an operation on a shared value or number.
pub type Result<T> = std::result::Result<T, CounterError>;
