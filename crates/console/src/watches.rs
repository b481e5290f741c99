//! Watches by path, by session, and those that one change fires.
//!
//! Which paths have the most watchers is not kept anywhere, so all watches are walked through, a few hundred at a time. The
//! result is a snapshot ([`survey`]), which is kept for a while: pages are parts of it.

mod herd;
mod place;
mod survey;

use crate::{
    error::ApiError,
    list::{self, List, Parameters},
    rights::Viewer,
    state::Console,
};
use axum::{
    Router,
    extract::{Query, State},
    response::Response,
    routing::get,
};
use place::Place;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
pub(crate) use survey::Surveys;

/// The paths that show watches.
pub(crate) fn reads(api: Router<Arc<Console>>) -> Router<Arc<Console>> {
    api.route("/watches", get(watches))
}

/// The numbers of watches by kind, and of what has them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Totals {
    data: usize,
    children: usize,
    persistent: usize,
    persistent_recursive: usize,
    connections: usize,
    paths: usize,
}

impl Totals {
    fn add(self, other: Totals) -> Totals {
        Totals {
            data: self.data + other.data,
            children: self.children + other.children,
            persistent: self.persistent + other.persistent,
            persistent_recursive: self.persistent_recursive + other.persistent_recursive,
            connections: self.connections + other.connections,
            // The same path may be watched at several servers.
            paths: self.paths.max(other.paths),
        }
    }

    fn note(&mut self, watched: ostler_server_core::report::watch_walk::Watched) {
        self.data += usize::from(watched.data);
        self.children += usize::from(watched.children);
        self.persistent += usize::from(watched.persistent);
        self.persistent_recursive += usize::from(watched.recursive);
    }
}

/// One server's part: entries in the order of the list, each with its place in the server's own list.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Part<T> {
    items: Vec<T>,
    /// The place of the first entry, and whether there are more behind the last one.
    place: Place,
    goes_on: bool,
    totals: Totals,
    truncated: bool,
    /// The server's clock when the watches were looked at.
    as_of_ms: i64,
}

/// The answer. It has what another server needs to merge it.
#[derive(Debug, Serialize)]
struct Answer<T> {
    #[serde(flatten)]
    list: List<T>,
    totals: Totals,
    /// When the watches were looked at; of several servers the earliest time.
    as_of_ms: i64,
    place: Place,
    goes_on: bool,
}

/// An entry that knows its server and its order.
trait Entry {
    /// The order in the list.
    type Order: Ord;
    fn order(&self) -> Self::Order;
    /// How far the place in the server's own list moves with this entry.
    fn step(&self, place: &Place) -> Place;
}

async fn watches(
    State(console): State<Arc<Console>>,
    Viewer(caller): Viewer,
    Query(parameters): Query<Parameters>,
) -> Result<Response, ApiError> {
    let of = console.clone();
    let (query, ids) = (parameters.clone(), caller.ids);
    if list::text(&parameters, "path").is_some() {
        let own = list::aside(&console, move || herd::part(&of, &query, &ids)).await??;
        return answer(&console, &parameters, own).await;
    }
    match list::text(&parameters, "by").unwrap_or("path") {
        "path" => {
            let own = list::aside(&console, move || survey::by_path(&of, &query, &ids)).await??;
            answer(&console, &parameters, own).await
        }
        "session" => {
            let own = list::aside(&console, move || survey::by_session(&of, &query)).await??;
            answer(&console, &parameters, own).await
        }
        other => Err(ApiError::bad(format!("by={other} is not allowed: path or session."))),
    }
}

async fn answer<T>(
    console: &Arc<Console>,
    parameters: &Parameters,
    own: Part<T>,
) -> Result<Response, ApiError>
where
    T: Entry + Serialize + serde::de::DeserializeOwned,
{
    let limit = list::limit(parameters)?;
    let all = list::with_others(console, "watches", parameters, own).await;
    Ok(all.servers.answer(merge(all.parts, limit)))
}

/// The parts of several servers as one list. Each server's place moves as far as its entries are listed.
fn merge<T: Entry>(parts: Vec<Part<T>>, limit: usize) -> Answer<T> {
    let totals = parts.iter().fold(Totals::default(), |sum, part| sum.add(part.totals));
    let truncated = parts.iter().any(|part| part.truncated);
    let as_of_ms = parts.iter().map(|part| part.as_of_ms).min().unwrap_or(0);
    let (first, goes_on) =
        parts.first().map_or_else(Default::default, |part| (part.place.clone(), part.goes_on));
    let mut places: Vec<(Place, bool)> =
        parts.iter().map(|part| (part.place.clone(), part.goes_on)).collect();
    let mut left: Vec<std::iter::Peekable<std::vec::IntoIter<T>>> =
        parts.into_iter().map(|part| part.items.into_iter().peekable()).collect();
    let mut items: Vec<T> = Vec::new();
    while items.len() < limit {
        // A part that is empty and goes on says nothing about what comes next, so the list ends there.
        if left.iter_mut().zip(&places).any(|(items, (_, goes_on))| *goes_on && items.peek().is_none()) {
            break;
        }
        let heads = left.iter_mut().enumerate();
        let next = heads.filter_map(|(at, items)| Some((items.peek()?.order(), at))).min();
        let Some((_, at)) = next else { break };
        if let Some(item) = left[at].next() {
            places[at].0 = item.step(&places[at].0);
            items.push(item);
        }
    }
    let is_unfinished: Vec<bool> = left
        .iter_mut()
        .zip(&places)
        .map(|(items, (_, goes_on))| *goes_on || items.peek().is_some())
        .collect();
    let unfinished = places.iter().zip(&is_unfinished).filter(|(_, goes_on)| **goes_on);
    let next = place::cursor(unfinished.map(|((place, _), _)| place));
    Answer { list: List { items, next, truncated }, totals, as_of_ms, place: first, goes_on }
}

#[cfg(test)]
mod tests {
    use super::*;
    use survey::SessionRow;

    fn part(server: i64, counts: &[usize], goes_on: bool) -> Part<SessionRow> {
        let row = |count: &usize| SessionRow {
            session: "0x1".into(),
            address: "10.0.0.1:1".into(),
            server,
            count: *count,
        };
        Part {
            items: counts.iter().map(row).collect(),
            place: Place { server, survey: 7, at: 10 },
            goes_on,
            totals: Totals { data: 1, paths: 3, ..Totals::default() },
            truncated: false,
            as_of_ms: server,
        }
    }

    fn counts(answer: &Answer<SessionRow>) -> Vec<usize> {
        answer.list.items.iter().map(|row| row.count).collect()
    }

    #[test]
    fn the_largest_of_all_servers_come_first_and_each_server_goes_on_where_it_was_left() {
        let answer = merge(vec![part(1, &[9, 5, 1], false), part(2, &[8, 2], false)], 3);
        assert_eq!((counts(&answer), answer.list.next.as_deref()), (vec![9, 8, 5], Some("1:7:12,2:7:11")));
        assert_eq!((answer.totals.data, answer.totals.paths, answer.as_of_ms), (2, 3, 1));
        let all = merge(vec![part(1, &[9], false), part(2, &[8, 2], false)], 3);
        assert_eq!((counts(&all), all.list.next), (vec![9, 8, 2], None));
        // Nothing is known of what the first server has behind 5.
        let few = merge(vec![part(1, &[9, 5], true), part(2, &[8, 2], false)], 9);
        assert_eq!((counts(&few), few.list.next.as_deref()), (vec![9, 8, 5], Some("1:7:12,2:7:11")));
        // The second server is at its end, so only the first one is asked for more.
        let one = merge(vec![part(1, &[9, 5], true), part(2, &[8], false)], 3);
        assert_eq!((counts(&one), one.list.next.as_deref()), (vec![9, 8, 5], Some("1:7:12")));
    }
}
