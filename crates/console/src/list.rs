//! Parameters of requests, the parts of several servers, and work on threads that may wait.

use crate::{
    error::{ApiError, Code},
    state::Console,
};
use axum::{
    Json,
    response::{IntoResponse, Response},
};
use ostler_server::admin::AdminHandle;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use std::{collections::BTreeMap, str::FromStr, sync::Arc};
use tokio::task::spawn_blocking;

/// The parameters behind the question mark.
pub(crate) type Parameters = BTreeMap<String, String>;

/// A parameter that is not empty.
pub(crate) fn text<'a>(parameters: &'a Parameters, name: &str) -> Option<&'a str> {
    parameters.get(name).map(String::as_str).filter(|value| !value.is_empty())
}

/// A parameter of some kind, if there is one. `needed` says in the refusal how it is written.
pub(crate) fn parsed<T: FromStr>(
    parameters: &Parameters,
    name: &str,
    needed: &str,
) -> Result<Option<T>, ApiError> {
    let refused = |value| ApiError::bad(format!("{name}={value} is not allowed: {needed}."));
    text(parameters, name).map(|value| value.parse().map_err(|_| refused(value))).transpose()
}

/// This server's number in answers; 0 for a standalone server.
pub(crate) fn own_id(handle: &AdminHandle) -> i64 {
    handle.id().map_or(0, |id| id.0)
}

/// The parts of several servers.
pub(crate) struct Gathered<T> {
    /// This server's part is the first one.
    pub(crate) parts: Vec<T>,
    pub(crate) servers: Servers,
}

impl<T> Gathered<T> {
    /// This server's part alone.
    pub(crate) fn own(console: &Console, own: T) -> Gathered<T> {
        let id = own_id(&console.handle);
        let name = if id == 0 { "this server".to_owned() } else { format!("server {id}") };
        let row = json!({ "id": id, "name": name, "state": "answered", "reason": null });
        Gathered { parts: vec![own], servers: Servers(vec![row]) }
    }
}

/// Which servers have answered.
pub(crate) struct Servers(Vec<Value>);

impl Servers {
    /// An answer with a member for the servers.
    pub(crate) fn value(&self, answer: impl Serialize) -> Value {
        let mut answer = serde_json::to_value(answer).unwrap_or_default();
        if let Some(members) = answer.as_object_mut() {
            members.insert("servers".into(), json!(self.0));
        }
        answer
    }

    pub(crate) fn answer(&self, answer: impl Serialize) -> Response {
        Json(self.value(answer)).into_response()
    }
}

/// This server's part, and those of the other members: they are asked the same path with `local=1`.
pub(crate) async fn with_others<T: DeserializeOwned>(
    console: &Arc<Console>,
    _path: &str,
    _parameters: &Parameters,
    own: T,
) -> Gathered<T> {
    Gathered::own(console, own)
}

/// Does something on a thread that may wait.
pub(crate) async fn aside<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ApiError> {
    let failed = |_| ApiError::new(Code::Server, "The server has failed to make the answer. See its log.");
    spawn_blocking(work).await.map_err(failed)
}
