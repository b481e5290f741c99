//! Names of the error codes in replies.

use ostler_proto::error::ErrorCode;

const KNOWN: [ErrorCode; 24] = [
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

/// `NoNode (-101)`, or the bare number of a code that nobody knows.
pub(crate) fn name(code: i32) -> String {
    match KNOWN.iter().find(|known| known.code() == code) {
        Some(known) => format!("{known:?} ({code})"),
        None => format!("error {code}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_have_names() {
        assert_eq!(name(-101), "NoNode (-101)");
        assert_eq!(name(-77), "error -77");
    }
}
