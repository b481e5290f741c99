//! What can go wrong.

use crate::fencing::Token;

/// Result of a recipe's operation.
pub type Result<T> = std::result::Result<T, Error>;

/// What can go wrong.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Neither done nor to be done: whoever asked does not hold any more what the operation is bound to.
    #[error(
        "{node} with token {token} is no longer held, so nothing was done; stop what was done as its holder"
    )]
    NotHeld {
        /// The znode by which it was held.
        node: Box<str>,
        /// Its token.
        token: Token,
    },
    /// A reader asks for the write lock, for which it would wait for itself.
    #[error("{path}: its owner holds the read lock and would wait for itself; release it first")]
    WouldWaitForItself {
        /// The lock.
        path: Box<str>,
    },
    /// The recipe was closed meanwhile.
    #[error("{path}: closed")]
    Closed {
        /// Where the recipe is.
        path: Box<str>,
    },
    /// Clients with different roots meet, and one of them would have to use a znode that it has no name for.
    #[error("{path} cannot be named by a client whose root is {root}")]
    OutsideOfRoot {
        /// The znode, as the servers know it.
        path: Box<str>,
        /// The root, as the servers know it.
        root: Box<str>,
    },
    /// What the client met.
    #[error(transparent)]
    Client(#[from] ostler_client::Error),
}

impl Error {
    /// Whether it is lost what the operation was bound to.
    pub fn is_not_held(&self) -> bool {
        matches!(self, Error::NotHeld { .. })
    }

    /// The client's error.
    pub fn client(&self) -> Option<&ostler_client::Error> {
        match self {
            Error::Client(error) => Some(error),
            _ => None,
        }
    }
}
