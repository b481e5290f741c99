//! Lists in parts: their parameters, and work that takes several looks at the core.

use crate::{
    error::{ApiError, Code},
    fan_out::{self, Freshness},
    state::Console,
};
use axum::{
    Json,
    response::{IntoResponse, Response},
};
use ostler_proto::id::ServerId;
use ostler_server::admin::AdminHandle;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use std::{collections::BTreeMap, str::FromStr, sync::Arc, thread, time::Duration};
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
    /// The value of `cursor` that asks for the rest.
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

/// Whether only this server is asked.
pub(crate) fn is_local(parameters: &Parameters) -> bool {
    text(parameters, "local").is_some_and(|local| local != "0")
}

/// This server's number in answers; 0 for a standalone server.
pub(crate) fn own_id(handle: &AdminHandle) -> i64 {
    handle.id().map_or(0, |id| id.0)
}

/// A server's number in answers: a standalone server counts as 1 in its records, and has none.
pub(crate) fn shown_id(handle: &AdminHandle, server: ServerId) -> i64 {
    if handle.id().is_none() { 0 } else { server.0 }
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
        Gathered { parts: vec![own], servers: Servers(vec![fan_out::own_row(console)]) }
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

/// This server's part, and those of the other members: they are asked the same path with `local=1`. An answer that has another
/// form is no part, and its server is a row with the reason.
pub(crate) async fn with_others<T: DeserializeOwned>(
    console: &Arc<Console>,
    path: &str,
    parameters: &Parameters,
    own: T,
) -> Gathered<T> {
    let mut all = Gathered::own(console, own);
    if is_local(parameters) {
        return all;
    }
    for asked in fan_out::ask(console, &question(path, parameters), Freshness::Kept).await.iter() {
        let part = asked.read::<T>();
        all.servers.0.push(asked.row(part.as_ref().err()));
        all.parts.extend(part);
    }
    all.servers.0.sort_by_key(|row| row["id"].as_i64());
    all
}

/// The path by which another member is asked for its part.
fn question(path: &str, parameters: &Parameters) -> String {
    let given: Vec<_> = parameters.iter().filter(|(name, _)| *name != "local").collect();
    let mut query = serde_urlencoded::to_string(given).unwrap_or_default();
    if !query.is_empty() {
        query.push('&');
    }
    format!("{path}?{query}local=1")
}

/// Does something on a thread that may wait. Few do so at once: others wait for their turn.
pub(crate) async fn aside<T: Send + 'static>(
    console: &Console,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ApiError> {
    let failed = || ApiError::new(Code::Server, "The server has failed to make the answer. See its log.");
    let turn = console.turns.clone().acquire_owned().await.map_err(|_| failed())?;
    let done = spawn_blocking(move || {
        let done = work();
        drop(turn);
        done
    });
    done.await.map_err(|_| failed())
}

/// Lists of several servers as one, in descending order of `place`, with at most `limit` entries. Each comes with whether it
/// goes on behind its last entry. Returns whether the whole goes on, too.
pub(crate) fn merge_down<T, P: Ord>(
    parts: Vec<(Vec<T>, bool)>,
    limit: usize,
    place: impl Fn(&T) -> P,
) -> (Vec<T>, bool) {
    // A part that goes on says nothing about what is behind its end.
    let ends = parts.iter().filter(|(_, goes_on)| *goes_on);
    let horizon = ends.filter_map(|(items, _)| items.last()).map(&place).max();
    let mut all: Vec<T> = parts.into_iter().flat_map(|(items, _)| items).collect();
    all.retain(|item| horizon.as_ref().is_none_or(|horizon| place(item) >= *horizon));
    all.sort_by_key(|item| std::cmp::Reverse(place(item)));
    let goes_on = all.len() > limit || horizon.is_some();
    all.truncate(limit);
    (all, goes_on)
}

/// Lets others use the core between two looks. The calling thread sleeps, so it must not be one that serves clients.
pub(crate) fn let_others() {
    thread::sleep(BETWEEN_LOOKS);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_from_one_to_a_thousand() {
        let limit = |text: &str| limit(&Parameters::from([("limit".into(), text.into())])).ok();
        assert_eq!(limit("1"), Some(1));
        assert_eq!(limit("1000000"), Some(1000));
        assert_eq!(limit(""), Some(LIMIT));
        for wrong in ["0", "-1", "x", "1.5"] {
            assert_eq!(limit(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_question_has_the_same_parameters() {
        let pairs = [("address", "10.0.0.5:1&x=\u{e4}"), ("local", "0"), ("limit", "5")];
        let parameters = pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        assert_eq!(
            question("sessions", &parameters),
            "sessions?address=10.0.0.5%3A1%26x%3D%C3%A4&limit=5&local=1"
        );
        assert_eq!(question("hot", &Parameters::new()), "hot?local=1");
    }

    #[test]
    fn lists_are_merged_as_far_as_each_goes() {
        let merge = |parts, limit| merge_down(parts, limit, |item: &i32| *item);
        assert_eq!(merge(vec![(vec![9, 5], false), (vec![7, 1], false)], 9), (vec![9, 7, 5, 1], false));
        assert_eq!(merge(vec![(vec![9, 5], true), (vec![7, 1], false)], 9), (vec![9, 7, 5], true));
        assert_eq!(merge(vec![(vec![9, 5], false), (vec![7, 1], false)], 2), (vec![9, 7], true));
        assert_eq!(merge(Vec::new(), 2), (Vec::new(), false));
    }
}
