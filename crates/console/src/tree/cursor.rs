//! Cursors: where a list goes on. Callers pass them back as they are.

use crate::error::ApiError;
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::{Serialize, de::DeserializeOwned};

/// The text of a cursor.
pub(super) fn write(cursor: &impl Serialize) -> Option<String> {
    serde_json::to_vec(cursor).ok().map(|json| URL_SAFE_NO_PAD.encode(json))
}

/// Reads a cursor that a caller has passed back.
pub(super) fn read<T: DeserializeOwned>(text: &str) -> Result<T, ApiError> {
    let json = URL_SAFE_NO_PAD.decode(text).ok();
    json.and_then(|json| serde_json::from_slice(&json).ok())
        .ok_or_else(|| ApiError::bad("The parameter cursor is not one that this list has given as next."))
}
