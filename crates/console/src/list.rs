//! Lists in parts: their parameters, and work that takes several looks at the core.

use crate::error::{ApiError, Code};
use serde::Serialize;
use std::{collections::BTreeMap, str::FromStr, thread, time::Duration};
use tokio::task::spawn_blocking;

/// The parameters behind the question mark.
pub(crate) type Parameters = BTreeMap<String, String>;

/// Entries of an answer, by default and at most.
const LIMIT: usize = 200;
const LIMIT_MAX: usize = 1000;
/// The pause between two looks at the core. A thread that releases a lock and takes it again at once keeps waiting threads
/// out.
const BETWEEN_LOOKS: Duration = Duration::from_micros(200);

/// A list, as each answer has it.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct List<T> {
    pub(crate) items: Vec<T>,
    /// What to ask for as `cursor` to go on.
    pub(crate) next: Option<String>,
    /// Whether there is more that cannot be asked for.
    pub(crate) truncated: bool,
}

/// The number of entries that the caller wants.
pub(crate) fn limit(parameters: &Parameters) -> Result<usize, ApiError> {
    let wanted = parsed::<usize>(parameters, "limit", "a number from 1 to 1,000")?;
    match wanted {
        Some(0) => Err(ApiError::bad("limit=0 is not allowed: a number from 1 to 1,000.")),
        wanted => Ok(wanted.unwrap_or(LIMIT).min(LIMIT_MAX)),
    }
}

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

/// Lets others use the core between two looks. The calling thread sleeps, so it must not be one that serves clients.
pub(crate) fn let_others() {
    thread::sleep(BETWEEN_LOOKS);
}
