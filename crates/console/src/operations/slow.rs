//! Slow requests, the newest first.

use crate::{
    error::ApiError,
    list::{self, List, Parameters},
    rights::Viewer,
    state::Console,
};
use axum::{
    extract::{Query, State},
    response::Response,
};
use ostler_proto::acl::Id;
use ostler_server::admin::AdminHandle;
use ostler_server_core::stats::{slow_requests::SlowRequest, stages::Stages};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Requests in one look at the core.
const IN_ONE_LOOK: usize = 100;

/// The place of a request in the list: when it was answered, the server, and its number there.
type Place = (i64, i64, u64);

/// The requests that are asked for.
#[derive(Debug, Clone)]
struct SlowQuery {
    before: Option<Place>,
    limit: usize,
    since_ms: i64,
}

impl SlowQuery {
    fn of(parameters: &Parameters) -> Result<SlowQuery, ApiError> {
        let before = list::text(parameters, "cursor").map(|cursor| {
            place_of(cursor)
                .ok_or_else(|| ApiError::bad("The cursor is none of this list. Leave it out to begin anew."))
        });
        Ok(SlowQuery {
            before: before.transpose()?,
            limit: list::limit(parameters)?,
            since_ms: list::parsed(parameters, "since_ms", "a time in ms since 1970")?.unwrap_or(i64::MIN),
        })
    }

    fn wants(&self, place: Place) -> bool {
        place.0 >= self.since_ms && self.before.is_none_or(|before| place < before)
    }
}

fn place_of(cursor: &str) -> Option<Place> {
    let mut parts = cursor.split('.');
    let place = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    parts.next().is_none().then_some(place)
}

/// A part of a request's time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Stage {
    name: String,
    for_ms: f64,
}

/// A slow request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct SlowItem {
    server: i64,
    number: u64,
    at_ms: i64,
    kind: String,
    path: Option<String>,
    session: String,
    address: String,
    total_ms: f64,
    stages: Vec<Stage>,
}

impl SlowItem {
    fn of(server: i64, of: SlowRequest) -> SlowItem {
        SlowItem {
            server,
            number: of.number,
            at_ms: of.answered_ms,
            kind: of.operation,
            path: of.path,
            session: of.session.to_string(),
            address: of.address.to_string(),
            total_ms: ms(of.total_us),
            stages: stages(&of.stages),
        }
    }

    fn place(&self) -> Place {
        (self.at_ms, self.server, self.number)
    }
}

fn ms(us: u64) -> f64 {
    us as f64 / 1000.0
}

/// The stages that were measured, in their order.
fn stages(of: &Stages) -> Vec<Stage> {
    let all = [
        ("parse", of.parse_us),
        ("queue", of.queue_us),
        ("propose", of.propose_us),
        ("own_disk", of.own_disk_us),
        ("quorum", of.quorum_us),
        ("apply", of.apply_us),
        ("write", of.write_us),
    ];
    all.into_iter().filter_map(|(name, us)| Some(Stage { name: name.to_owned(), for_ms: ms(us?) })).collect()
}

/// One server's part.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct SlowPart {
    items: Vec<SlowItem>,
    next: Option<String>,
    threshold_ms: Option<u64>,
    count: u64,
}

/// The answer.
#[derive(Debug, Serialize)]
struct Answer {
    #[serde(flatten)]
    list: List<SlowItem>,
    threshold_ms: Option<u64>,
    count: u64,
}

pub(super) async fn slow(
    State(console): State<Arc<Console>>,
    Viewer(caller): Viewer,
    Query(parameters): Query<Parameters>,
) -> Result<Response, ApiError> {
    let query = SlowQuery::of(&parameters)?;
    let (of, asked) = (console.clone(), query.clone());
    let own = list::aside(&console, move || part(&of.handle, &asked, &caller.ids)).await?;
    let threshold_ms = own.threshold_ms;
    let all = list::with_others(&console, "slow", &parameters, own).await;
    Ok(all.servers.answer(merge(all.parts, query.limit, threshold_ms)))
}

/// This server's part, for a caller with these identities.
fn part(handle: &AdminHandle, query: &SlowQuery, ids: &[Id]) -> SlowPart {
    let own = list::own_id(handle);
    let (mut items, mut after) = (Vec::new(), 0);
    let (threshold_ms, count) = loop {
        let report = handle.inspect(|server| server.slow_requests(after, IN_ONE_LOOK));
        let some = report.requests.into_iter().map(|request| SlowItem::of(own, request));
        items.extend(some.filter(|item| query.wants(item.place())));
        match report.next {
            Some(next) => after = next,
            None => break (report.threshold_ms, report.count),
        }
        list::let_others();
    };
    items.sort_by_key(|item| std::cmp::Reverse(item.place()));
    let goes_on = items.len() > query.limit;
    items.truncate(query.limit);
    let next = cursor(&items, goes_on);
    let paths: Vec<&str> = items.iter().filter_map(|item| item.path.as_deref()).collect();
    let mut seen = handle.seen_paths(ids, &paths, list::let_others).into_iter();
    items
        .iter_mut()
        .filter_map(|item| item.path.as_mut())
        .zip(&mut seen)
        .for_each(|(path, seen)| *path = seen);
    SlowPart { items, next, threshold_ms, count }
}

/// The cursor that asks for those behind the last of these.
fn cursor(items: &[SlowItem], goes_on: bool) -> Option<String> {
    let (at_ms, server, number) = items.last().filter(|_| goes_on)?.place();
    Some(format!("{at_ms}.{server}.{number}"))
}

fn merge(parts: Vec<SlowPart>, limit: usize, threshold_ms: Option<u64>) -> Answer {
    let count = parts.iter().map(|part| part.count).sum();
    let parts = parts.into_iter().map(|part| (part.items, part.next.is_some())).collect();
    let (items, goes_on) = list::merge_down(parts, limit, SlowItem::place);
    let next = cursor(&items, goes_on);
    Answer { list: List { items, next, truncated: false }, threshold_ms, count }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cursor_is_a_place() {
        assert_eq!(place_of("5.2.7"), Some((5, 2, 7)));
        assert_eq!(place_of("-5.-2.7"), Some((-5, -2, 7)));
        for wrong in ["", "5", "5.2", "5.2.7.8", "x.2.7", "5.2.-7"] {
            assert_eq!(place_of(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn only_stages_that_were_measured_are_shown() {
        let of = Stages { queue_us: Some(1500), write_us: Some(2), ..Stages::default() };
        let stage = |name: &str, for_ms| Stage { name: name.into(), for_ms };
        assert_eq!(stages(&of), [stage("queue", 1.5), stage("write", 0.002)]);
    }
}
