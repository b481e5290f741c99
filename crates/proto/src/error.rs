//! The error codes that a server sends to its clients (`KeeperException.Code`).

/// A value of the error field of a reply header. Each variant has upstream's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(i32)]
pub enum ErrorCode {
    /// In a multi: the operation was not done because another operation of the multi failed.
    RuntimeInconsistency = -2,
    /// The server cannot read the request, or the reply would be too large.
    MarshallingError = -5,
    /// The server does not know the operation, or does not allow it to clients.
    Unimplemented = -6,
    /// An argument of the request is not valid, such as a path.
    BadArguments = -8,
    /// The session is unknown.
    UnknownSession = -12,
    /// No quorum of the new configuration is connected and up to date.
    NewConfigNoQuorum = -13,
    /// Another reconfiguration is in progress.
    ReconfigInProgress = -14,
    /// The znode, or the parent of a new znode, does not exist.
    NoNode = -101,
    /// The ACL does not allow the operation to the client's identities.
    NoAuth = -102,
    /// The version is not the expected one.
    BadVersion = -103,
    /// The parent is an ephemeral, which cannot have children.
    NoChildrenForEphemerals = -108,
    /// The znode exists already.
    NodeExists = -110,
    /// The znode has children.
    NotEmpty = -111,
    /// The session has expired.
    SessionExpired = -112,
    /// The ACL is empty, malformed or too large, or has an unknown scheme.
    InvalidAcl = -114,
    /// The authentication failed. The server closes the connection.
    AuthFailed = -115,
    /// The session has moved to another server or connection.
    SessionMoved = -118,
    /// The server is read-only, and the operation is a write.
    NotReadOnly = -119,
    /// A local session cannot create ephemerals, if it cannot become a global one.
    EphemeralOnLocalSession = -120,
    /// There is no such watch.
    NoWatcher = -121,
    /// Reconfiguration is disabled on the server.
    ReconfigDisabled = -123,
    /// The server requires an authenticated session and closes this one.
    SessionClosedRequireSaslAuth = -124,
    /// The write would exceed a hard quota.
    QuotaExceeded = -125,
    /// The server was overloaded and has not done the operation.
    ThrottledOp = -127,
}

impl ErrorCode {
    /// The number on the wire.
    pub fn code(self) -> i32 {
        self as i32
    }

    /// The code with this number, on the wire or in the log. `None` if the number is unknown.
    pub fn from_code(code: i32) -> Option<ErrorCode> {
        ALL.into_iter().find(|error| error.code() == code)
    }
}

const ALL: [ErrorCode; 24] = [
    ErrorCode::RuntimeInconsistency,
    ErrorCode::MarshallingError,
    ErrorCode::Unimplemented,
    ErrorCode::BadArguments,
    ErrorCode::UnknownSession,
    ErrorCode::NewConfigNoQuorum,
    ErrorCode::ReconfigInProgress,
    ErrorCode::NoNode,
    ErrorCode::NoAuth,
    ErrorCode::BadVersion,
    ErrorCode::NoChildrenForEphemerals,
    ErrorCode::NodeExists,
    ErrorCode::NotEmpty,
    ErrorCode::SessionExpired,
    ErrorCode::InvalidAcl,
    ErrorCode::AuthFailed,
    ErrorCode::SessionMoved,
    ErrorCode::NotReadOnly,
    ErrorCode::EphemeralOnLocalSession,
    ErrorCode::NoWatcher,
    ErrorCode::ReconfigDisabled,
    ErrorCode::SessionClosedRequireSaslAuth,
    ErrorCode::QuotaExceeded,
    ErrorCode::ThrottledOp,
];
