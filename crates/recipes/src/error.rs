//! The error of recipes that hold something. Other recipes return the client's error, or one of their own around it.

use crate::fencing::Token;

/// Result of an operation with something that is held.
pub type Result<T> = std::result::Result<T, Error>;

/// Why an operation of a lock, an election, a share or a fence has failed.
///
/// Caches, queues, barriers, nodes and transactions return the [client's error](ostler_client::Error). Counters, the
/// discovery and typed znodes have errors of their own, with the same questions: `client` and `is_retryable`.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The caller no longer holds the lock, lease or leadership that the operation is bound to. Nothing was done, and
    /// nothing will be.
    #[error(
        "{node} with token {token} is no longer held, so nothing was done; stop what was done as its holder"
    )]
    NotHeld {
        /// The path of the znode by which the caller held it.
        node: Box<str>,
        /// The fencing token of the caller's time as the holder.
        token: Token,
    },
    /// An owner that has the read lock asks for the write lock, and would wait for its own read lock.
    #[error("{path}: its owner holds the read lock and would wait for itself; release it first")]
    WouldWaitForItself {
        /// The lock's path.
        path: Box<str>,
    },
    /// The call waits for what only a recipe that was started can bring.
    #[error("{path}: not started, so there is nothing to wait for; call start first")]
    NotStarted {
        /// The recipe's path.
        path: Box<str>,
    },
    /// The recipe was closed before or during the call.
    #[error("{path}: closed")]
    Closed {
        /// The recipe's path.
        path: Box<str>,
    },
    /// Two clients with different roots are used together, and a znode is not below the root of the client that would
    /// have to use it.
    #[error("{path} cannot be named by a client whose root is {root}")]
    OutsideOfRoot {
        /// The znode's path from the servers' root.
        path: Box<str>,
        /// The client's root, as a path from the servers' root.
        root: Box<str>,
    },
    /// An error of the client.
    #[error(transparent)]
    Client(#[from] ostler_client::Error),
}

impl Error {
    /// Whether the caller no longer holds what the operation was bound to: [`Error::NotHeld`].
    pub fn is_not_held(&self) -> bool {
        matches!(self, Error::NotHeld { .. })
    }

    /// Whether the same operation may succeed later: connection trouble, a server that is cut off, or a session that is
    /// over where the next one can do it. Not if the caller no longer holds what the operation is bound to, and not if
    /// the client is closed. A write that is repeated after an error with an unknown outcome may be done twice: see
    /// [`ostler_client::Error::is_retryable`].
    pub fn is_retryable(&self) -> bool {
        self.client().is_some_and(is_retryable)
    }

    /// The client's error, if this is one.
    pub fn client(&self) -> Option<&ostler_client::Error> {
        match self {
            Error::Client(error) => Some(error),
            _ => None,
        }
    }
}

/// Whether an operation that has failed with this error may succeed later, in this session or in the next one.
pub(crate) fn is_retryable(error: &ostler_client::Error) -> bool {
    error.is_retryable() || error.is_session_over()
}
