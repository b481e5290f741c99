//! The list of sessions that have ended, and of connections that were lost while their sessions lived on.
//!
//! A server's part is its records as they are. So the merge of several parts judges with all that is known, as `ostler
//! explain session` does: a follower has seen the connection, and the leader decides about the session.

use super::clock::utc;
use crate::{
    error::ApiError,
    list::{self, Parameters},
};
use ostler_proto::{
    acl::Id,
    id::{ServerId, SessionId},
};
use ostler_server::admin::AdminHandle;
use ostler_server_core::sessions::ends::{
    EndCause, EndKey, EndedConnection, EndedPart, EndsReport, SessionEnd, session_of,
    verdict::{VerdictKind, judge},
};
use serde::{Deserialize, Serialize};
use std::{
    cmp::Reverse,
    collections::{HashMap, HashSet},
};

/// Sessions in an answer.
const LIMIT_MAX: usize = 200;
/// Records in one look at the core.
const IN_ONE_LOOK: usize = 50;
/// About the most bytes of records in a part: another server takes an answer of a mebibyte.
const BYTES_MAX: usize = 400 << 10;
/// About the bytes of a record without its paths, as JSON.
const RECORD_BYTES: usize = 900;

/// The place of a session in the list, which begins with the last end.
type Place = (i64, SessionId);

/// The ends that are asked for.
#[derive(Debug, Clone, Default)]
pub(crate) struct EndedQuery {
    /// Those before this place.
    before: Option<Place>,
    pub(crate) limit: usize,
    /// Those of clients whose address has this text in it.
    address: Option<String>,
    /// Those that this server has recorded.
    server: Option<i64>,
}

impl EndedQuery {
    pub(crate) fn of(parameters: &Parameters) -> Result<EndedQuery, ApiError> {
        let before = list::text(parameters, "cursor").map(|cursor| {
            place_of(cursor)
                .ok_or_else(|| ApiError::bad("The cursor is none of this list. Leave it out to begin anew."))
        });
        Ok(EndedQuery {
            before: before.transpose()?,
            limit: list::limit(parameters)?.min(LIMIT_MAX),
            address: list::text(parameters, "address").map(str::to_owned),
            server: list::parsed(parameters, "server", "the number of a server")?,
        })
    }

    fn wants(&self, key: &EndKey) -> bool {
        let is_before = self.before.is_none_or(|before| (key.ended_ms, key.session) < before);
        let is_there =
            |wanted: &String| key.address.is_some_and(|address| address.to_string().contains(&**wanted));
        is_before && self.address.as_ref().is_none_or(is_there)
    }
}

fn place_of(cursor: &str) -> Option<Place> {
    let (ms, session) = cursor.split_once('.')?;
    Some((ms.parse().ok()?, session_of(session)?))
}

fn cursor((ms, session): Place) -> String {
    format!("{ms}.{session}")
}

/// One server's part: its records of some sessions.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct EndedRecords {
    pub(crate) report: EndsReport,
    /// The place before which the list goes on.
    pub(crate) next: Option<String>,
}

/// This server's part, for a caller with these identities. It is gathered in several looks at the core.
pub(crate) fn part(handle: &AdminHandle, query: &EndedQuery, ids: &[Id]) -> EndedRecords {
    if query.server.is_some_and(|server| server != list::own_id(handle)) {
        return EndedRecords { report: handle.ends_numbered(&[]), next: None };
    }
    let keys = handle.inspect(|server| server.end_keys());
    let mut numbers: HashMap<SessionId, Vec<u64>> = HashMap::new();
    for key in &keys {
        numbers.entry(key.session).or_default().push(key.number);
    }
    let places = places(&keys, query);
    let (mut report, mut bytes, mut taken) = (handle.ends_numbered(&[]), 0, 0);
    for some in places.iter().take(query.limit).collect::<Vec<_>>().chunks(IN_ONE_LOOK) {
        let of_some: Vec<u64> =
            some.iter().filter_map(|(_, session)| numbers.get(session)).flatten().copied().collect();
        for numbers in of_some.chunks(IN_ONE_LOOK) {
            list::let_others();
            let mut ends = handle.ends_numbered(numbers).ends;
            show_paths(handle, ids, &mut ends);
            bytes += ends.iter().map(size).sum::<usize>();
            report.ends.extend(ends);
        }
        taken += some.len();
        if bytes > BYTES_MAX {
            break;
        }
    }
    let goes_on = taken < places.len();
    EndedRecords {
        report,
        next: places.get(taken.wrapping_sub(1)).filter(|_| goes_on).map(|last| cursor(*last)),
    }
}

/// The sessions of the records, the last end first. Of several records of a session its end counts, else the last connection.
fn places(keys: &[EndKey], query: &EndedQuery) -> Vec<Place> {
    let mut last: HashMap<SessionId, &EndKey> = HashMap::new();
    for key in keys {
        let known = last.entry(key.session).or_insert(key);
        if key.part == EndedPart::Session || known.part == EndedPart::Connection {
            *known = key;
        }
    }
    let mut places: Vec<Place> =
        last.into_values().filter(|key| query.wants(key)).map(|key| (key.ended_ms, key.session)).collect();
    places.sort_unstable_by_key(|place| Reverse(*place));
    places
}

fn size(end: &SessionEnd) -> usize {
    let paths = end.ephemerals.paths.iter().map(|path| path.len());
    let passed = end.ephemerals.passed.iter().map(|one| one.from.len() + one.to.len() + 60);
    RECORD_BYTES + paths.chain(passed).sum::<usize>()
}

/// Leaves of each path as much as the caller may see.
pub(crate) fn show_paths(handle: &AdminHandle, ids: &[Id], ends: &mut [SessionEnd]) {
    let paths = |ends: &[SessionEnd]| -> Vec<String> {
        let of = |end: &SessionEnd| {
            let passed = end.ephemerals.passed.iter().flat_map(|one| [one.from.clone(), one.to.clone()]);
            end.ephemerals
                .paths
                .iter()
                .cloned()
                .chain(passed)
                .map(|path| path.to_string())
                .collect::<Vec<_>>()
        };
        ends.iter().flat_map(of).collect()
    };
    let all = paths(ends);
    let texts: Vec<&str> = all.iter().map(String::as_str).collect();
    let mut seen = handle.seen_paths(ids, &texts, list::let_others).into_iter();
    for end in ends {
        end.ephemerals.paths.iter_mut().for_each(|path| put(path, seen.next()));
        for passed in &mut end.ephemerals.passed {
            put(&mut passed.from, seen.next());
            put(&mut passed.to, seen.next());
        }
    }
}

fn put(path: &mut arcstr::ArcStr, seen: Option<String>) {
    if let Some(seen) = seen.filter(|seen| *seen != **path) {
        *path = seen.into();
    }
}

/// A place that was passed on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Passed {
    path: String,
    to: String,
    session: String,
}

/// A session that has ended, or whose connection has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct EndedItem {
    pub(crate) id: String,
    server: i64,
    address: Option<String>,
    ended_ms: i64,
    /// `session`, or `connection` if the session may have lived on.
    part: EndedPart,
    cause: String,
    pub(crate) sentence: String,
    verdict: Option<&'static str>,
    gaps_ms: Vec<u64>,
    ephemerals: Vec<String>,
    ephemerals_count: u64,
    passed_on: Vec<Passed>,
    timeout_ms: i32,
}

impl EndedItem {
    /// A standalone server has no number in answers.
    pub(crate) fn show_server(&mut self, handle: &AdminHandle) {
        self.server = list::shown_id(handle, ServerId(self.server));
    }
}

/// The list of several servers' records, with at most `limit` sessions, and where it goes on.
pub(crate) fn merge(parts: Vec<EndedRecords>, limit: usize) -> (Vec<EndedItem>, Option<String>) {
    // A part that goes on says nothing about what is behind its end.
    let horizon = parts.iter().filter_map(|part| part.next.as_deref().and_then(place_of)).max();
    let reports: Vec<EndsReport> = parts.into_iter().map(|part| part.report).collect();
    let mut seen = HashSet::new();
    let mut sessions: Vec<Place> = Vec::new();
    for end in reports.iter().flat_map(|report| &report.ends) {
        if seen.insert(end.session)
            && let Some((_, last)) = subject(&reports, end.session)
        {
            sessions.push((last.ended_ms, last.session));
        }
    }
    sessions.sort_unstable_by_key(|place| Reverse(*place));
    sessions.retain(|place| horizon.is_none_or(|horizon| *place >= horizon));
    let goes_on = sessions.len() > limit;
    sessions.truncate(limit);
    let next = if goes_on { sessions.last().copied() } else { horizon };
    let items = sessions.iter().filter_map(|(_, session)| item(&reports, *session)).collect();
    (items, next.map(cursor))
}

/// The record that stands for a session: its end as the server that decided has it, or any, or its last connection.
fn subject(reports: &[EndsReport], session: SessionId) -> Option<(&EndsReport, &SessionEnd)> {
    let of = reports.iter().flat_map(|report| report.ends.iter().map(move |end| (report, end)));
    of.filter(|(_, end)| end.session == session)
        .max_by_key(|(_, end)| (end.part == EndedPart::Session, end.led, end.ended_ms, end.number))
}

/// A session that has ended, judged by all records.
pub(crate) fn item(reports: &[EndsReport], session: SessionId) -> Option<EndedItem> {
    let (report, end) = subject(reports, session)?;
    let verdict = judge(session, reports, &utc);
    let of_session = |report: &'_ EndsReport| {
        let server = report.server.0;
        let ends = report.ends.iter().filter(move |end| end.session == session);
        ends.filter_map(move |end| Some((server, end.connection.clone()?))).collect::<Vec<_>>()
    };
    let last =
        reports.iter().flat_map(of_session).max_by_key(|(_, of)| (of.established_ms, of.last_heard_ms));
    let passed = |one: &ostler_server_core::sessions::ends::PassedPlace| Passed {
        path: one.from.to_string(),
        to: one.to.to_string(),
        session: one.session.to_string(),
    };
    Some(EndedItem {
        id: session.to_string(),
        server: last
            .as_ref()
            .map(|(server, _)| *server)
            .or(end.served_by.map(|id| id.0))
            .unwrap_or(report.server.0),
        address: last.as_ref().map(|(_, of)| of.address.to_string()),
        ended_ms: end.ended_ms,
        part: end.part,
        cause: cause(&end.cause),
        sentence: sentence(&verdict.headline()),
        verdict: side(verdict.kind),
        gaps_ms: last.as_ref().map(|(_, of)| gaps(end, of)).unwrap_or_default(),
        ephemerals: end.ephemerals.paths.iter().map(ToString::to_string).collect(),
        ephemerals_count: end.ephemerals.count,
        passed_on: end.ephemerals.passed.iter().map(passed).collect(),
        timeout_ms: end.timeout_ms,
    })
}

/// The last gaps between requests, and the silence before the end, if that is why it came.
fn gaps(end: &SessionEnd, last: &EndedConnection) -> Vec<u64> {
    let mut gaps: Vec<u64> = last.gaps_ms.iter().map(|gap| u64::from(*gap)).collect();
    if matches!(end.cause, EndCause::Expired { .. } | EndCause::Silent { .. }) {
        gaps.push(u64::try_from(end.ended_ms - last.last_heard_ms).unwrap_or(0));
    }
    gaps
}

/// The name of a cause, as the records have it.
fn cause(cause: &EndCause) -> String {
    let value = serde_json::to_value(cause).unwrap_or_default();
    value.get("kind").and_then(|kind| kind.as_str()).unwrap_or("unknown").to_owned()
}

fn side(kind: VerdictKind) -> Option<&'static str> {
    match kind {
        VerdictKind::ClosedByClient
        | VerdictKind::ClientPaused
        | VerdictKind::ClientGone
        | VerdictKind::ClientFault
        | VerdictKind::AuthFailed => Some("client"),
        VerdictKind::Network => Some("network"),
        VerdictKind::Server => Some("server"),
        VerdictKind::Operator | VerdictKind::Moved | VerdictKind::Lives | VerdictKind::Unknown => None,
    }
}

/// A headline as a sentence.
pub(crate) fn sentence(headline: &str) -> String {
    let mut chars = headline.chars();
    let first = chars.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
    let end = if headline.ends_with('.') { "" } else { "." };
    format!("{first}{}{end}", chars.as_str())
}

#[cfg(test)]
#[path = "ended_tests.rs"]
mod tests;
