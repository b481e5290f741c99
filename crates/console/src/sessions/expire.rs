//! An operator ends a session.

use super::one;
use crate::{
    error::{ApiError, Code},
    rights::Operator,
    state::Console,
};
use axum::{
    Json,
    extract::{Path, State},
};
use ostler_server::admin::NotExpired;
use serde_json::{Value, json};
use std::sync::Arc;

/// Ends a session, whichever server its client is connected to, and waits until that is committed.
pub(super) async fn expire(
    State(console): State<Arc<Console>>,
    Operator(caller): Operator,
    Path(id): Path<String>,
) -> Result<Json<Value>, ApiError> {
    let session = one::id_of(&id)?;
    let by = (&*caller.ids, caller.conn.peer.ip());
    match console.handle.expire_session(session, by).await {
        Ok(()) => {
            let sentence = format!("The session {session} has ended, and its ephemerals are gone.");
            Ok(Json(json!({ "done": true, "sentence": sentence })))
        }
        Err(NotExpired::NoSession) => Err(one::unknown(&console.handle, session)),
        Err(NotExpired::NotLeader) => Err(ApiError::new(
            Code::Busy,
            format!(
                "The session {session} is not ended: {}. Try again when there is one.",
                NotExpired::NotLeader
            ),
        )),
        Err(NotExpired::NotCommitted) => {
            let sentence = format!(
                "The leader was asked to end the session {session}, and has not done so within 5 s. Is there a quorum?"
            );
            Ok(Json(json!({ "done": false, "sentence": sentence })))
        }
    }
}
