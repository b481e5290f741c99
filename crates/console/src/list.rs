//! Parameters of requests, and work on threads that may wait.

use crate::error::{ApiError, Code};
use std::{collections::BTreeMap, str::FromStr};
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

/// Does something on a thread that may wait.
pub(crate) async fn aside<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ApiError> {
    let failed = |_| ApiError::new(Code::Server, "The server has failed to make the answer. See its log.");
    spawn_blocking(work).await.map_err(failed)
}
