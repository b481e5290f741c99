//! What can go wrong.

use ostler_client_core::Failure;
use ostler_proto::{error::ErrorCode, id::SessionId, jute::JuteError};
use std::{io, time::Duration};

/// Result of an operation.
pub type Result<T> = std::result::Result<T, Error>;

/// What can go wrong. Each says whether the operation may have been done nevertheless.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The server refuses the operation: nothing was changed.
    #[error("{operation} {path}: {code:?}")]
    Server {
        /// Why, in ZooKeeper's words.
        code: ErrorCode,
        /// What was asked, in ZooKeeper's words.
        operation: &'static str,
        /// The znode, as the caller named it.
        path: Box<str>,
    },
    /// The server refuses the operation with a code that this version does not know.
    #[error("{operation} {path}: error {code}, which this client does not know")]
    UnknownCode {
        /// The number.
        code: i32,
        /// What was asked.
        operation: &'static str,
        /// The znode.
        path: Box<str>,
    },
    /// One operation of a multi fails, so none was done.
    #[error("multi: operation {index} ({operation} {path}): {code:?}")]
    Multi {
        /// Why.
        code: ErrorCode,
        /// Which, counted from 0.
        index: usize,
        /// What it is.
        operation: &'static str,
        /// Its znode.
        path: Box<str>,
    },
    /// The connection was lost between request and reply: **it may have been done or not**.
    #[error("{operation} {path}: the connection was lost before the reply, so it may have been done or not")]
    ConnectionLoss {
        /// What was asked.
        operation: &'static str,
        /// The znode.
        path: Box<str>,
    },
    /// It was tried again after a try whose reply was lost, and ended otherwise: **it may have been done or not**. What
    /// else is asked of this error ([`Error::code`] and its like) is answered for the last try.
    #[error(
        "an earlier try lost its connection before the reply, so it may have been done or not; the last one: {last}"
    )]
    Undecided {
        /// What the last try met.
        last: Box<Error>,
    },
    /// No server could be reached within the connection timeout. It was not sent.
    #[error("{operation} {path}: no server could be reached within the connection timeout; it was not sent")]
    NotConnected {
        /// What was asked.
        operation: &'static str,
        /// The znode.
        path: Box<str>,
    },
    /// The session in which it was asked for has ended. It was not sent.
    #[error("{operation} {path}: the session has expired; it was not sent")]
    SessionExpired {
        /// What was asked.
        operation: &'static str,
        /// The znode.
        path: Box<str>,
    },
    /// It is bound to a session that is over, and was not sent in another.
    #[error("{operation} {path}: bound to session {session}, which is over; it was not sent")]
    SessionChanged {
        /// The session that it is bound to.
        session: SessionId,
        /// What was asked.
        operation: &'static str,
        /// The znode.
        path: Box<str>,
    },
    /// The watch was taken away by `remove_watches`.
    #[error("watch {path}: removed by remove_watches")]
    WatchRemoved {
        /// The znode.
        path: Box<str>,
    },
    /// The server refuses an identity.
    #[error("the server refuses the identity; look at scheme and secret")]
    AuthFailed,
    /// The client is closed.
    #[error("the client is closed")]
    Closed,
    /// The request is larger than a server accepts. It was not sent.
    #[error("{operation} {path}: {size} bytes, and {limit} is the limit; it was not sent (see max_packet)")]
    TooLarge {
        /// Bytes that it takes.
        size: usize,
        /// Bytes that it may take.
        limit: usize,
        /// What was asked.
        operation: &'static str,
        /// The znode.
        path: Box<str>,
    },
    /// Not a path that a znode can have.
    #[error(
        "{path:?} is no path of a znode: it must begin with a slash, and have no empty, `.` or `..` part"
    )]
    BadPath {
        /// What was given.
        path: Box<str>,
    },
    /// The reply cannot be read.
    #[error("{operation} {path}: the server's reply makes no sense: {cause}")]
    BadReply {
        /// What is wrong with it.
        cause: JuteError,
        /// What was asked.
        operation: &'static str,
        /// The znode.
        path: Box<str>,
    },
    /// The connect string cannot be read.
    #[error("connect string {text:?}: {problem}; it should look like host1:2181,host2:2181/root")]
    ConnectString {
        /// What was given.
        text: Box<str>,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// The certificates or the key for TLS cannot be used.
    #[error("TLS: {problem}")]
    Tls {
        /// What is wrong.
        problem: Box<str>,
    },
    /// No session came about in the time given.
    #[error("no session with {servers} within {waited:?}; the last trouble: {trouble}")]
    Unreachable {
        /// The connect string.
        servers: Box<str>,
        /// How long it was tried.
        waited: Duration,
        /// The last thing that went wrong.
        trouble: Box<str>,
    },
}

impl Error {
    /// What the last try has met, of an operation that was tried more than once.
    pub(crate) fn last_try(&self) -> &Error {
        match self {
            Error::Undecided { last } => last,
            only => only,
        }
    }

    /// The server's error code, if a server has spoken.
    pub fn code(&self) -> Option<ErrorCode> {
        match self.last_try() {
            Error::Server { code, .. } | Error::Multi { code, .. } => Some(*code),
            _ => None,
        }
    }

    /// The znode is not there.
    pub fn is_no_node(&self) -> bool {
        self.code() == Some(ErrorCode::NoNode)
    }

    /// The znode is there already.
    pub fn is_node_exists(&self) -> bool {
        self.code() == Some(ErrorCode::NodeExists)
    }

    /// The znode has another version.
    pub fn is_bad_version(&self) -> bool {
        self.code() == Some(ErrorCode::BadVersion)
    }

    /// The znode has children.
    pub fn is_not_empty(&self) -> bool {
        self.code() == Some(ErrorCode::NotEmpty)
    }

    /// The server does not know the operation.
    pub fn is_unimplemented(&self) -> bool {
        self.code() == Some(ErrorCode::Unimplemented)
    }

    /// The operation may have been done although there is an error.
    pub fn is_outcome_unknown(&self) -> bool {
        matches!(self, Error::ConnectionLoss { .. } | Error::BadReply { .. } | Error::Undecided { .. })
    }

    /// There is no connection, or there was none; a later try may do better.
    pub fn is_connection_trouble(&self) -> bool {
        match self {
            Error::ConnectionLoss { .. } | Error::NotConnected { .. } => true,
            // The connection was lost, and with it, in the end, the session: in the next one a later try may do better.
            Error::Undecided { last } if last.is_session_expired() => true,
            Error::Undecided { last } => last.is_connection_trouble(),
            other => other.code() == Some(ErrorCode::ThrottledOp),
        }
    }

    /// A later try may do better without anybody's doing, at the same server or the next one.
    pub fn may_pass(&self) -> bool {
        self.is_connection_trouble()
            || matches!(self.code(), Some(ErrorCode::NotReadOnly | ErrorCode::SessionMoved))
    }

    /// The session in which it was asked for has expired, and the last try was not done: this client says so, or the
    /// server.
    pub(crate) fn is_session_expired(&self) -> bool {
        matches!(self.last_try(), Error::SessionExpired { .. })
            || self.code() == Some(ErrorCode::SessionExpired)
    }

    /// The session that it was meant for is over.
    pub fn is_session_over(&self) -> bool {
        matches!(self.last_try(), Error::SessionChanged { .. } | Error::Closed) || self.is_session_expired()
    }
}

/// What an operation was about, for its errors.
#[derive(Debug, Clone, Copy)]
pub(crate) struct About<'a> {
    pub(crate) operation: &'static str,
    pub(crate) path: &'a str,
    pub(crate) session: Option<SessionId>,
}

impl About<'_> {
    pub(crate) fn code(&self, code: i32) -> Error {
        let (operation, path) = (self.operation, self.path.into());
        match ErrorCode::from_code(code) {
            Some(code) => Error::Server { code, operation, path },
            None => Error::UnknownCode { code, operation, path },
        }
    }

    pub(crate) fn bad_reply(&self, cause: JuteError) -> Error {
        Error::BadReply { cause, operation: self.operation, path: self.path.into() }
    }

    pub(crate) fn failure(&self, failure: Failure) -> Error {
        let (operation, path) = (self.operation, self.path.into());
        match failure {
            Failure::ConnectionLoss => Error::ConnectionLoss { operation, path },
            Failure::NotConnected => Error::NotConnected { operation, path },
            Failure::SessionExpired => Error::SessionExpired { operation, path },
            Failure::SessionChanged => {
                Error::SessionChanged { session: self.session.unwrap_or_default(), operation, path }
            }
            Failure::AuthFailed => Error::AuthFailed,
            Failure::Closed => Error::Closed,
            Failure::TooLarge { size, limit } => Error::TooLarge { size, limit, operation, path },
        }
    }
}

/// What went wrong with an attempt to connect, for the log and for `Unreachable`.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DialError {
    #[error("the name {0} cannot be resolved: {1}")]
    Resolve(String, io::Error),
    #[error("the name {0} has no address")]
    NoAddress(String),
    #[error("cannot connect to {0}: {1}")]
    Connect(String, io::Error),
    #[error("TLS with {0}: {1}")]
    Tls(String, io::Error),
}
