//! The error type of the client.

use ostler_client_core::Failure;
use ostler_proto::{error::ErrorCode, id::SessionId, jute::JuteError};
use std::{io, time::Duration};

/// The result of an operation of the client.
pub type Result<T> = std::result::Result<T, Error>;

/// Why an operation has failed. Each variant says whether the operation may have been done although it failed.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The server refuses the operation. Nothing was changed.
    #[error("{operation} {path}: {code} ({})", code.name())]
    Server {
        /// The server's error code.
        code: ErrorCode,
        /// ZooKeeper's name of the operation, such as `setData`.
        operation: &'static str,
        /// The znode's path, as the caller gave it.
        path: Box<str>,
    },
    /// The server refuses the operation with a code that this client does not know. Nothing was changed.
    #[error("{operation} {path}: error {code}, which this client does not know")]
    UnknownCode {
        /// The server's error code.
        code: i32,
        /// ZooKeeper's name of the operation.
        operation: &'static str,
        /// The znode's path, as the caller gave it.
        path: Box<str>,
    },
    /// An operation of a multi fails, so none of them was done.
    #[error("multi: operation {index} ({operation} {path}): {code} ({}); nothing was done", code.name())]
    Multi {
        /// The server's error code for the operation.
        code: ErrorCode,
        /// The index of the operation in the multi, counted from 0.
        index: usize,
        /// ZooKeeper's name of the operation.
        operation: &'static str,
        /// The path of the operation's znode.
        path: Box<str>,
    },
    /// The connection was lost between request and reply: **the operation may have been done or not**.
    #[error("{operation} {path}: the connection was lost before the reply, so it may have been done or not")]
    ConnectionLoss {
        /// ZooKeeper's name of the operation.
        operation: &'static str,
        /// The znode's path, as the caller gave it.
        path: Box<str>,
    },
    /// A try lost its connection before the reply, and a later try failed: **the operation may have been done or not**.
    /// [`Error::code`] and the other methods describe the last try.
    #[error(
        "an earlier try lost its connection before the reply, so it may have been done or not; the last one: {last}"
    )]
    Undecided {
        /// The error of the last try.
        #[source]
        last: Box<Error>,
    },
    /// No server could be reached within the connection timeout. The request was not sent.
    #[error("{operation} {path}: no server could be reached within the connection timeout; it was not sent")]
    NotConnected {
        /// ZooKeeper's name of the operation.
        operation: &'static str,
        /// The znode's path, as the caller gave it.
        path: Box<str>,
    },
    /// The session in which the operation was handed over has ended. The request was not sent.
    #[error("{operation} {path}: the session has expired; it was not sent")]
    SessionExpired {
        /// ZooKeeper's name of the operation.
        operation: &'static str,
        /// The znode's path, as the caller gave it.
        path: Box<str>,
    },
    /// The operation is bound to a session that is over. The request was not sent.
    #[error("{operation} {path}: bound to session {session}, which is over; it was not sent")]
    SessionChanged {
        /// The session that the operation is bound to.
        session: SessionId,
        /// ZooKeeper's name of the operation.
        operation: &'static str,
        /// The znode's path, as the caller gave it.
        path: Box<str>,
    },
    /// The watch was removed by `remove_watches`.
    #[error("watch {path}: removed by remove_watches")]
    WatchRemoved {
        /// The znode's path, as the caller gave it.
        path: Box<str>,
    },
    /// The server refuses an identity.
    #[error("the server refuses the identity; check scheme and secret")]
    AuthFailed,
    /// Kerberos has no ticket for the client, or is not part of the build.
    #[error("{problem}")]
    Kerberos {
        /// The reason, as text.
        problem: Box<str>,
    },
    /// The client is closed.
    #[error("the client is closed")]
    Closed,
    /// The request is larger than a server accepts. The request was not sent.
    #[error(
        "{operation} {path}: the request has {size} bytes, the limit is {limit}; it was not sent (see max_packet)"
    )]
    TooLarge {
        /// The size of the request, in bytes.
        size: usize,
        /// The limit, in bytes: [`ClientBuilder::max_packet`](crate::ClientBuilder::max_packet).
        limit: usize,
        /// ZooKeeper's name of the operation.
        operation: &'static str,
        /// The znode's path, as the caller gave it.
        path: Box<str>,
    },
    /// A path that no znode can have. The request was not sent.
    #[error(
        "{path:?} is not a path of a znode: a path begins with a slash and has no empty, `.` or `..` part"
    )]
    BadPath {
        /// The path, as the caller gave it.
        path: Box<str>,
    },
    /// A create has two options that no znode has both, such as `ephemeral` and `container`. The request was not sent.
    #[error("create {path}: no znode has both options, `{first}` and `{second}`; it was not sent")]
    ModeConflict {
        /// The option that was set first.
        first: &'static str,
        /// The other option.
        second: &'static str,
        /// The znode's path, as the caller gave it.
        path: Box<str>,
    },
    /// The server's reply cannot be read. The operation may have been done or not.
    #[error("{operation} {path}: the server's reply cannot be read: {cause}")]
    BadReply {
        /// The part of the reply that cannot be read.
        #[source]
        cause: JuteError,
        /// ZooKeeper's name of the operation.
        operation: &'static str,
        /// The znode's path, as the caller gave it.
        path: Box<str>,
    },
    /// The znode's data cannot be decompressed.
    #[cfg(feature = "gzip")]
    #[error("getData {path}: the data cannot be decompressed: {cause}")]
    Decompress {
        /// The znode's path, as the caller gave it.
        path: Box<str>,
        /// Why it cannot be decompressed.
        #[source]
        cause: crate::gzip::DecompressError,
    },
    /// The connect string cannot be read.
    #[error("connect string {text:?}: {problem}; it should look like host1:2181,host2:2181/root")]
    ConnectString {
        /// The connect string.
        text: Box<str>,
        /// The reason, as text.
        problem: &'static str,
    },
    /// The certificates or the key for TLS cannot be used.
    #[error("TLS: {problem}")]
    Tls {
        /// The reason, as text.
        problem: Box<str>,
    },
    /// The thread of a [blocking](crate::blocking) client cannot be started.
    #[error("the client's thread cannot be started: {problem}")]
    Thread {
        /// The reason, as text.
        problem: Box<str>,
    },
    /// No session was opened within the connection timeout.
    #[error("no session with {servers} within {waited:?}; the last error: {last_error}")]
    Unreachable {
        /// The connect string.
        servers: Box<str>,
        /// How long the client has tried.
        waited: Duration,
        /// The error of the last attempt, as text.
        last_error: Box<str>,
    },
}

impl Error {
    /// The error of the last try.
    pub(crate) fn last_try(&self) -> &Error {
        match self {
            Error::Undecided { last } => last,
            only => only,
        }
    }

    /// The server's error code, if a server has refused the operation.
    pub fn code(&self) -> Option<ErrorCode> {
        match self.last_try() {
            Error::Server { code, .. } | Error::Multi { code, .. } => Some(*code),
            _ => None,
        }
    }

    /// Whether the server answered `NoNode`: the znode, or a parent for a create, does not exist.
    pub fn is_no_node(&self) -> bool {
        self.code() == Some(ErrorCode::NoNode)
    }

    /// Whether the server answered `NodeExists`: the znode exists already.
    pub fn is_node_exists(&self) -> bool {
        self.code() == Some(ErrorCode::NodeExists)
    }

    /// Whether the server answered `BadVersion`: the znode has another version.
    pub fn is_bad_version(&self) -> bool {
        self.code() == Some(ErrorCode::BadVersion)
    }

    /// Whether the server answered `NotEmpty`: the znode has children.
    pub fn is_not_empty(&self) -> bool {
        self.code() == Some(ErrorCode::NotEmpty)
    }

    /// Whether the server answered `Unimplemented`: it does not know the operation.
    pub fn is_unimplemented(&self) -> bool {
        self.code() == Some(ErrorCode::Unimplemented)
    }

    /// Whether the server answered `NoAuth`: the ACL does not allow the operation to this client.
    pub fn is_no_auth(&self) -> bool {
        self.code() == Some(ErrorCode::NoAuth)
    }

    /// Whether the server refuses an identity of this client, so that the client cannot be used: wrong credentials.
    pub fn is_auth_failed(&self) -> bool {
        matches!(self.last_try(), Error::AuthFailed) || self.code() == Some(ErrorCode::AuthFailed)
    }

    /// The path that the operation was about, as the caller gave it.
    pub fn path(&self) -> Option<&str> {
        match self.last_try() {
            Error::Server { path, .. }
            | Error::UnknownCode { path, .. }
            | Error::Multi { path, .. }
            | Error::ConnectionLoss { path, .. }
            | Error::NotConnected { path, .. }
            | Error::SessionExpired { path, .. }
            | Error::SessionChanged { path, .. }
            | Error::WatchRemoved { path }
            | Error::TooLarge { path, .. }
            | Error::BadPath { path }
            | Error::ModeConflict { path, .. }
            | Error::BadReply { path, .. } => Some(path),
            #[cfg(feature = "gzip")]
            Error::Decompress { path, .. } => Some(path),
            _ => None,
        }
    }

    /// ZooKeeper's name of the operation, such as `setData`; in a multi, of the operation that fails.
    pub fn operation(&self) -> Option<&'static str> {
        match self.last_try() {
            Error::Server { operation, .. }
            | Error::UnknownCode { operation, .. }
            | Error::Multi { operation, .. }
            | Error::ConnectionLoss { operation, .. }
            | Error::NotConnected { operation, .. }
            | Error::SessionExpired { operation, .. }
            | Error::SessionChanged { operation, .. }
            | Error::TooLarge { operation, .. }
            | Error::BadReply { operation, .. } => Some(operation),
            Error::ModeConflict { .. } => Some("create"),
            #[cfg(feature = "gzip")]
            Error::Decompress { .. } => Some("getData"),
            _ => None,
        }
    }

    /// Whether the operation may have been done although there is an error.
    pub fn is_outcome_unknown(&self) -> bool {
        matches!(self, Error::ConnectionLoss { .. } | Error::BadReply { .. } | Error::Undecided { .. })
    }

    /// Whether the connection was lost or missing, or the server throttled the request: a later try may succeed. This is
    /// the question by which the client's [`RetryPolicy`](crate::RetryPolicy) tries again.
    pub fn is_connection_trouble(&self) -> bool {
        match self {
            Error::ConnectionLoss { .. } | Error::NotConnected { .. } => true,
            // The connection was lost, and then the session: a later try in the next session may succeed.
            Error::Undecided { last } if last.is_session_expired() => true,
            Error::Undecided { last } => last.is_connection_trouble(),
            other => other.code() == Some(ErrorCode::ThrottledOp),
        }
    }

    /// Whether a later try may succeed, at the same server or another one:
    /// [connection trouble](Error::is_connection_trouble), no server that answers the first connection
    /// ([`Error::Unreachable`]), a read-only server, or a session that has moved. For loops of the caller; the client
    /// itself tries again only after connection trouble. False for [`Error::SessionChanged`]: a handle that is bound to a
    /// session which is over never succeeds again. False for [`Error::SessionExpired`] as well: in a loop that goes on in
    /// the next session, ask [`is_session_over`](Error::is_session_over) too.
    ///
    /// **A write that is repeated may be done twice**: this is also true after [`Error::ConnectionLoss`] and
    /// [`Error::Undecided`] of a write that may have been done. A sequential create then leaves two znodes, and a setData
    /// overwrites what another client has set meanwhile. So for writes ask
    /// [`is_outcome_unknown`](Error::is_outcome_unknown) first: if it is true, read what is there before a repetition.
    pub fn is_retryable(&self) -> bool {
        self.is_connection_trouble()
            || matches!(self, Error::Unreachable { .. })
            || matches!(self.code(), Some(ErrorCode::NotReadOnly | ErrorCode::SessionMoved))
    }

    /// Whether the session has expired, as seen by this client or by the server, so that the last try was not done.
    pub(crate) fn is_session_expired(&self) -> bool {
        matches!(self.last_try(), Error::SessionExpired { .. })
            || self.code() == Some(ErrorCode::SessionExpired)
    }

    /// Whether the session that the operation belongs to is over: a later try may succeed in the next session. After the
    /// loss of its session a client without
    /// [`new_session_after_loss`](crate::ClientBuilder::new_session_after_loss) answers with this for ever.
    pub fn is_session_over(&self) -> bool {
        matches!(self.last_try(), Error::SessionChanged { .. }) || self.is_session_expired()
    }

    /// Whether the client has ended, so that no later try succeeds: it was closed ([`Error::Closed`]), or the server refused
    /// its credentials ([`Error::AuthFailed`]). Java's client is not alive in the same two cases.
    /// [`Client::add_auth`](crate::Client::add_auth) is an exception: after its `AuthFailed` the client goes on without
    /// that identity. A client that opens no
    /// [new session after a loss](crate::ClientBuilder::new_session_after_loss) answers with [`Error::SessionExpired`]
    /// once its session is over; this is false for that error.
    pub fn is_closed(&self) -> bool {
        matches!(self.last_try(), Error::Closed | Error::AuthFailed)
    }
}

/// The operation, path and session that errors name.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ErrorContext<'a> {
    pub(crate) operation: &'static str,
    pub(crate) path: &'a str,
    pub(crate) session: Option<SessionId>,
}

impl ErrorContext<'_> {
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

/// Why an attempt to connect has failed, for the log and for [`Error::Unreachable`].
#[derive(Debug, thiserror::Error)]
pub(crate) enum DialError {
    #[error("the name {0} cannot be resolved: {1}")]
    Resolve(String, io::Error),
    #[error("the name {0} has no address")]
    NoAddress(String),
    #[error("the server is no longer in the list")]
    NotListed,
    #[error("cannot connect to {0}: {1}")]
    Connect(String, io::Error),
    #[error("TLS with {0}: {1}")]
    Tls(String, io::Error),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_of_a_session_that_is_over_is_not_retryable() {
        let changed =
            || Error::SessionChanged { session: SessionId(1), operation: "create", path: "/a".into() };
        assert!(!changed().is_retryable() && changed().is_session_over());
        let undecided = Error::Undecided { last: Box::new(changed()) };
        assert!(!undecided.is_retryable() && undecided.is_outcome_unknown());
        let lost = Error::ConnectionLoss { operation: "create", path: "/a".into() };
        assert!(lost.is_retryable() && lost.is_outcome_unknown());
    }

    #[test]
    fn a_client_that_was_closed_or_refused_has_ended() {
        for ended in [|| Error::Closed, || Error::AuthFailed] {
            assert!(ended().is_closed() && Error::Undecided { last: Box::new(ended()) }.is_closed());
        }
        assert!(!Error::ConnectionLoss { operation: "create", path: "/a".into() }.is_closed());
    }
}
