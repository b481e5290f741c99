//! Refused looks, and changes that the server has refused, as errors with a sentence.

use super::shown;
use crate::error::{ApiError, Code};
use ostler_client::Error;
use ostler_proto::error::ErrorCode;
use ostler_server_core::report::znodes::ZnodeRefusal;

/// The error of a refused look.
pub(super) fn refused(path: &str, refusal: ZnodeRefusal) -> ApiError {
    let error = match refusal {
        ZnodeRefusal::NoNode { nearest } => ApiError::new(
            Code::Client(ErrorCode::NoNode),
            format!(
                "There is no such znode. The nearest one above that exists is {}.",
                shown::quoted(&nearest)
            ),
        )
        .with("nearest", nearest.into()),
        ZnodeRefusal::NoAuth { granted } => ApiError::new(
            Code::Client(ErrorCode::NoAuth),
            "The znode exists, but its ACL does not let you read it.",
        )
        .with("rights", shown::rights(granted)),
        ZnodeRefusal::NotLoggedIn => ApiError::new(
            Code::SignIn,
            "This server takes requests only from those who have signed in (enforce.auth.schemes).",
        ),
    };
    error.at(path)
}

/// The change that was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    Create,
    Set,
    Delete,
    SetAcl,
}

/// The error of a change that a client was refused.
pub(super) fn of_client(path: &str, change: Change, error: &Error) -> ApiError {
    let error = match (error.code(), error) {
        (Some(code), _) => ApiError::new(Code::Client(code), sentence(change, code)),
        (None, Error::TooLarge { size, limit, .. }) => ApiError::new(
            Code::TooLarge,
            format!("The request would have {size} bytes, and the server takes at most {limit} (jute.maxbuffer)."),
        ),
        (None, Error::BadPath { .. }) => ApiError::bad("This cannot be the path of a znode."),
        (None, Error::AuthFailed) => ApiError::new(Code::SignIn, "The server has refused the login."),
        (None, error) if error.is_outcome_unknown() => ApiError::new(
            Code::Busy,
            "The connection was lost before the answer, so the change may have been made or not. Look before you try again.",
        )
        .with("outcome_unknown", true.into()),
        (None, error) => ApiError::new(
            Code::Busy,
            format!("Nothing was changed: the server takes no changes now ({error}). Is there a quorum?"),
        ),
    };
    error.at(path)
}

/// The meaning of a refusal, and what to do.
pub(super) fn sentence(change: Change, code: ErrorCode) -> &'static str {
    match (code, change) {
        (ErrorCode::NoNode, Change::Create) => {
            "The parent does not exist. Create it first, or with its parents."
        }
        (ErrorCode::NoNode, _) => "There is no such znode (any more).",
        (ErrorCode::NoAuth, Change::Create) => {
            "The ACL of the parent does not let you create children (CREATE)."
        }
        (ErrorCode::NoAuth, Change::Set) => "The ACL of the znode does not let you change its data (WRITE).",
        (ErrorCode::NoAuth, Change::Delete) => {
            "The ACL of the parent does not let you delete its children (DELETE)."
        }
        (ErrorCode::NoAuth, Change::SetAcl) => "The ACL of the znode does not let you change it (ADMIN).",
        (ErrorCode::BadVersion, Change::SetAcl) => "The ACL was changed meanwhile. Load it anew.",
        (ErrorCode::BadVersion, _) => "The znode was changed meanwhile. Load it anew, or compare.",
        (ErrorCode::NodeExists, _) => "A znode with this path exists already.",
        (ErrorCode::NotEmpty, _) => "The znode has children. Delete them first, or all of it by a plan.",
        (ErrorCode::InvalidAcl, _) => {
            "The ACL is empty, has an id that its scheme does not know, or a scheme that this server does not know."
        }
        (ErrorCode::NoChildrenForEphemerals, _) => "The parent is an ephemeral, and those have no children.",
        (ErrorCode::QuotaExceeded, _) => "The change would exceed a hard quota at or above the znode.",
        (ErrorCode::NotReadOnly, _) => "The server is read-only now, because there is no quorum.",
        (ErrorCode::ThrottledOp, _) => "The server is too busy and has not made the change. Try again.",
        (ErrorCode::Unimplemented, _) => {
            "The servers do not know this kind of znode (for TTL: extendedTypesEnabled=true on all of them)."
        }
        (ErrorCode::BadArguments, _) => "The server takes this path or this TTL for wrong.",
        (ErrorCode::SessionClosedRequireSaslAuth, _) => {
            "This server takes changes only from those who have signed in."
        }
        _ => "The server has refused the change.",
    }
}
