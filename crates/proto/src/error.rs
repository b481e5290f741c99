//! The error codes that a server sends to its clients (`KeeperException.Code`).

use core::fmt;

/// A value of the error field of a reply header. Each variant has upstream's name. It displays what has happened, in
/// words; [`name`](ErrorCode::name) is upstream's name. A program that uses the client has it as
/// `ostler_client::ErrorCode`.
///
/// ```
/// # use ostler_proto::error::ErrorCode;
/// assert_eq!(ErrorCode::BadVersion.to_string(), "the version is not the expected one");
/// assert_eq!(ErrorCode::BadVersion.name(), "BadVersion");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[repr(i32)]
#[non_exhaustive]
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

    /// ZooKeeper's name of the code, such as `NoNode`.
    pub fn name(self) -> &'static str {
        self.texts().0
    }

    /// Name and meaning.
    fn texts(self) -> (&'static str, &'static str) {
        match self {
            ErrorCode::RuntimeInconsistency => (
                "RuntimeInconsistency",
                "another operation of the multi has failed, so this one was not done",
            ),
            ErrorCode::MarshallingError => {
                ("MarshallingError", "the server cannot read the request, or its reply would be too large")
            }
            ErrorCode::Unimplemented => {
                ("Unimplemented", "the server does not know the operation, or does not allow it")
            }
            ErrorCode::BadArguments => ("BadArguments", "an argument of the request is not valid"),
            ErrorCode::UnknownSession => ("UnknownSession", "the server does not know the session"),
            ErrorCode::NewConfigNoQuorum => {
                ("NewConfigNoQuorum", "no quorum of the new configuration is connected and up to date")
            }
            ErrorCode::ReconfigInProgress => ("ReconfigInProgress", "another reconfiguration is in progress"),
            ErrorCode::NoNode => ("NoNode", "the znode, or the parent of a new one, does not exist"),
            ErrorCode::NoAuth => ("NoAuth", "the ACL does not allow it to this client's identities"),
            ErrorCode::BadVersion => ("BadVersion", "the version is not the expected one"),
            ErrorCode::NoChildrenForEphemerals => {
                ("NoChildrenForEphemerals", "the parent is ephemeral, and cannot have children")
            }
            ErrorCode::NodeExists => ("NodeExists", "the znode exists already"),
            ErrorCode::NotEmpty => ("NotEmpty", "the znode has children"),
            ErrorCode::SessionExpired => ("SessionExpired", "the session has expired"),
            ErrorCode::InvalidAcl => {
                ("InvalidAcl", "the ACL is empty, malformed or too large, or has an unknown scheme")
            }
            ErrorCode::AuthFailed => ("AuthFailed", "the server refuses the identity"),
            ErrorCode::SessionMoved => {
                ("SessionMoved", "the session has moved to another server or connection")
            }
            ErrorCode::NotReadOnly => ("NotReadOnly", "the server is read-only, because it has no quorum"),
            ErrorCode::EphemeralOnLocalSession => {
                ("EphemeralOnLocalSession", "a local session cannot create ephemeral znodes")
            }
            ErrorCode::NoWatcher => ("NoWatcher", "there is no such watch"),
            ErrorCode::ReconfigDisabled => ("ReconfigDisabled", "reconfiguration is disabled on the server"),
            ErrorCode::SessionClosedRequireSaslAuth => {
                ("SessionClosedRequireSaslAuth", "the server requires an authenticated session")
            }
            ErrorCode::QuotaExceeded => ("QuotaExceeded", "the write would exceed a quota"),
            ErrorCode::ThrottledOp => ("ThrottledOp", "the server is overloaded and has not done it"),
        }
    }

    /// The code with this number, on the wire or in the log. `None` if the number is unknown.
    pub fn from_code(code: i32) -> Option<ErrorCode> {
        ALL.into_iter().find(|error| error.code() == code)
    }
}

/// The event in words.
impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.texts().1)
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

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::{collections::BTreeSet, format};

    #[test]
    fn every_code_has_upstreams_name_and_its_own_words() {
        let words: BTreeSet<_> = ALL.iter().map(|code| code.texts().1).collect();
        assert_eq!(words.len(), ALL.len());
        for code in ALL {
            assert_eq!(code.name(), format!("{code:?}"));
            assert_eq!(ErrorCode::from_code(code.code()), Some(code));
        }
    }
}
