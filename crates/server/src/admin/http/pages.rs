//! Parts of long answers, for callers that ask with `limit` and `after`.
//!
//! Without these parameters an answer is whole, as in Java. With them it has at most `limit` entries, those after the
//! entry that `after` names, and a member `next`: what to ask for as `after` to go on, or null at the end.

use super::{
    bodies::{self, object},
    commands::Query,
    json::Object,
};
use crate::admin::four_letter::{Connection, ServerView, WatchesOfSession};
use serde_json::{Value, json};

/// The most entries of a part.
const LIMIT_MAX: usize = 10_000;

/// The part that a caller asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Page<'a> {
    limit: usize,
    after: Option<&'a str>,
}

impl<'a> Page<'a> {
    /// `None` for the whole answer.
    pub(super) fn of(query: &'a Query) -> Option<Page<'a>> {
        let (limit, after) = (query.get("limit"), query.get("after").map(String::as_str));
        if limit.is_none() && after.is_none() {
            return None;
        }
        let limit = limit.and_then(|limit| limit.parse().ok()).unwrap_or(1000);
        Some(Page { limit: limit.clamp(1, LIMIT_MAX), after })
    }

    /// Takes the part from entries in the order of their names, and the name to go on after.
    fn take<T>(
        self,
        all: Vec<T>,
        name: impl Fn(&T) -> String,
        order: impl Fn(&T, &str) -> bool,
    ) -> (Vec<T>, Value) {
        let from = self.after.map_or(0, |after| all.partition_point(|entry| !order(entry, after)));
        let is_last = all.len() - from <= self.limit;
        let part: Vec<T> = all.into_iter().skip(from).take(self.limit).collect();
        let next = part.last().filter(|_| !is_last).map_or(Value::Null, |last| json!(name(last)));
        (part, next)
    }
}

fn number(text: &str) -> i64 {
    text.parse().unwrap_or(i64::MIN)
}

pub(super) fn connections(view: &ServerView, page: Option<Page<'_>>) -> Object {
    of_connections(view, page, bodies::connections)
}

pub(super) fn stats(view: &ServerView, page: Option<Page<'_>>) -> Object {
    of_connections(view, page, bodies::stats)
}

/// Connections are named by their addresses: these are unique, and stay as long as a connection does.
fn of_connections(view: &ServerView, page: Option<Page<'_>>, body: fn(&ServerView) -> Object) -> Object {
    let Some(page) = page else { return body(view) };
    let mut all: Vec<Connection> = view.connections.clone();
    all.sort_by_cached_key(|connection| connection.remote.to_string());
    let name = |connection: &Connection| connection.remote.to_string();
    let (part, next) =
        page.take(all, name, |connection, after| connection.remote.to_string().as_str() > after);
    with_next(body(&ServerView { connections: part, ..view.clone() }), next)
}

fn with_next(mut members: Object, next: Value) -> Object {
    members.insert("next".into(), next);
    members
}

pub(super) fn watches(mut all: Vec<WatchesOfSession>, page: Option<Page<'_>>) -> Object {
    let Some(page) = page else { return bodies::watches(&all) };
    all.sort_by_key(|of| of.session_id);
    let name = |of: &WatchesOfSession| of.session_id.to_string();
    let (part, next) = page.take(all, name, |of, after| of.session_id > number(after));
    with_next(bodies::watches(&part), next)
}

pub(super) fn watches_by_path(all: Vec<WatchesOfSession>, page: Option<Page<'_>>) -> Object {
    let members = bodies::watches_by_path(&all);
    let Some(page) = page else { return members };
    let paths = members.into_iter().next().map_or_else(Object::new, |(_, paths)| object(paths));
    let entries: Vec<(String, Value)> = paths.into_iter().collect();
    let (part, next) = page.take(entries, |(path, _)| path.clone(), |(path, _), after| path.as_str() > after);
    let part: Object = part.into_iter().collect();
    with_next(object(json!({ "path_to_session_ids": part })), next)
}

/// The part is one of the sessions with ephemerals; the times of expiry are whole.
pub(super) fn dump(view: &ServerView, page: Option<Page<'_>>) -> Object {
    let Some(page) = page else { return bodies::dump(view) };
    let mut all = view.ephemerals.clone();
    all.sort_by_key(|of| of.session_id);
    let (part, next) =
        page.take(all, |of| of.session_id.to_string(), |of, after| of.session_id > number(after));
    with_next(bodies::dump(&ServerView { ephemerals: part, ..view.clone() }), next)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(text: &str) -> Query {
        text.split('&')
            .filter_map(|part| part.split_once('='))
            .map(|(key, value)| (key.into(), value.into()))
            .collect()
    }

    #[test]
    fn parts_follow_each_other_until_the_end() {
        let all = || -> Vec<WatchesOfSession> {
            (1..=5)
                .map(|session_id| WatchesOfSession { session_id, paths: vec![format!("/{session_id}")] })
                .collect()
        };
        assert_eq!(watches(all(), None).len(), 1);
        let mut after = String::new();
        let mut seen = Vec::new();
        loop {
            let asked = query(&format!("limit=2{after}"));
            let part = watches(all(), Page::of(&asked));
            seen.extend(object(part["session_id_to_watched_paths"].clone()).into_iter().map(|(id, _)| id));
            match part["next"].as_str() {
                Some(next) => after = format!("&after={next}"),
                None => break,
            }
        }
        assert_eq!(seen, ["1", "2", "3", "4", "5"]);
        let asked = query("limit=2&after=/3");
        let part = watches_by_path(all(), Page::of(&asked));
        assert_eq!(object(part["path_to_session_ids"].clone()).len(), 2);
        assert_eq!(part["next"], Value::Null);
    }

    #[test]
    fn a_limit_is_bounded() {
        assert_eq!(Page::of(&query("limit=0")).unwrap().limit, 1);
        assert_eq!(Page::of(&query("limit=99999999999")).unwrap().limit, LIMIT_MAX);
        assert_eq!(Page::of(&query("limit=x")).unwrap().limit, 1000);
        assert_eq!(Page::of(&query("")), None);
    }
}
