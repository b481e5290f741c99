//! The error codes that a server sends to its clients (`KeeperException.Code`).

/// A value of the error field of a reply header. Each variant has upstream's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(i32)]
pub enum ErrorCode {
    RuntimeInconsistency = -2,
    MarshallingError = -5,
    Unimplemented = -6,
    BadArguments = -8,
    UnknownSession = -12,
    NewConfigNoQuorum = -13,
    ReconfigInProgress = -14,
    NoNode = -101,
    NoAuth = -102,
    BadVersion = -103,
    NoChildrenForEphemerals = -108,
    NodeExists = -110,
    NotEmpty = -111,
    SessionExpired = -112,
    InvalidAcl = -114,
    AuthFailed = -115,
    SessionMoved = -118,
    NotReadOnly = -119,
    EphemeralOnLocalSession = -120,
    NoWatcher = -121,
    ReconfigDisabled = -123,
    SessionClosedRequireSaslAuth = -124,
    QuotaExceeded = -125,
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
