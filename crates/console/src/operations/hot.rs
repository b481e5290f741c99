//! Hot paths and clients: of a sample, or for a short time of all requests.

use crate::{
    error::ApiError,
    list::{self, Gathered, Parameters},
    rights::{Operator, Viewer},
    state::Console,
};
use axum::{
    Json,
    extract::{Query, State},
    response::Response,
};
use ostler_proto::acl::Id;
use ostler_server::admin::AdminHandle;
use ostler_server_core::stats::hot::{Hot, HotReport};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::{collections::HashMap, hash::Hash, sync::Arc, time::Duration};

/// Paths that are looked at: those that look the same to the caller are added before the hottest are chosen.
const LOOKED_AT: usize = 512;
/// Entries of each kind, by default and at most.
const LIMIT: usize = 20;
const LIMIT_MAX: usize = 100;
/// The time for which each request is counted, by default and at most, in seconds.
const MEASURED_S: u64 = 30;
const MEASURED_MAX_S: u64 = 60;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct HotPath {
    path: String,
    count: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct HotAddress {
    address: String,
    count: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct HotSession {
    session: String,
    count: u64,
}

/// A measurement that goes on, or has ended a short time ago.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Measured {
    server: i64,
    /// For how long it goes on; 0 if it is over.
    left_ms: u64,
    /// The most requests that a count may lack.
    at_most_too_few: u64,
}

/// One server's part, and the answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct HotPart {
    span_ms: u64,
    sampled_one_in: u32,
    reads: Vec<HotPath>,
    writes: Vec<HotPath>,
    addresses: Vec<HotAddress>,
    sessions: Vec<HotSession>,
    measured: Option<Measured>,
}

pub(super) async fn hot(
    State(console): State<Arc<Console>>,
    Viewer(caller): Viewer,
    Query(parameters): Query<Parameters>,
) -> Result<Response, ApiError> {
    let limit = list::parsed::<usize>(&parameters, "limit", "a number from 1 to 100")?;
    let limit = limit.unwrap_or(LIMIT).clamp(1, LIMIT_MAX);
    let of = console.clone();
    let own = list::aside(&console, move || part(&of.handle, &caller.ids)).await?;
    // Exact counts of this server and the samples of others are not to be added.
    let all = match own.measured {
        Some(_) => Gathered::own(&console, own),
        None => list::with_others(&console, "hot", &parameters, own).await,
    };
    Ok(all.servers.answer(merge(all.parts, limit)))
}

/// The time to measure.
#[derive(Deserialize)]
pub(super) struct Wanted {
    #[serde(default)]
    seconds: Option<u64>,
}

/// Counts each request of this server for a while.
pub(super) async fn measure(
    State(console): State<Arc<Console>>,
    Operator(caller): Operator,
    Json(wanted): Json<Wanted>,
) -> Result<Json<Value>, ApiError> {
    let seconds = wanted.seconds.unwrap_or(MEASURED_S);
    if !(1..=MEASURED_MAX_S).contains(&seconds) {
        return Err(ApiError::bad(format!("seconds={seconds} is not allowed: from 1 to {MEASURED_MAX_S}.")));
    }
    console.handle.measure_hot_paths(Duration::from_secs(seconds), (&caller.ids, caller.conn.peer.ip()));
    Ok(Json(json!({ "seconds": seconds })))
}

/// This server's part, for a caller with these identities.
fn part(handle: &AdminHandle, ids: &[Id]) -> HotPart {
    let (sampled, measured) = handle.hot_paths(LOOKED_AT);
    let (report, measured) = match measured {
        Some(of) => {
            let (left_ms, at_most_too_few) = (of.left_ms, of.at_most_too_few);
            (of.hot, Some(Measured { server: list::own_id(handle), left_ms, at_most_too_few }))
        }
        None => (sampled, None),
    };
    let HotReport { span_ms, sampled_one_in, reads, writes, addresses, sessions } = report;
    HotPart {
        span_ms,
        sampled_one_in,
        reads: paths(handle, ids, reads),
        writes: paths(handle, ids, writes),
        addresses: addresses
            .into_iter()
            .take(LIMIT_MAX)
            .map(|of| HotAddress { address: of.name, count: of.requests })
            .collect(),
        sessions: sessions
            .into_iter()
            .take(LIMIT_MAX)
            .map(|of| HotSession { session: of.name, count: of.requests })
            .collect(),
        measured,
    }
}

/// Paths as the caller may see them. Those that look the same are one.
fn paths(handle: &AdminHandle, ids: &[Id], all: Vec<Hot>) -> Vec<HotPath> {
    let names: Vec<&str> = all.iter().map(|of| &*of.name).collect();
    let seen = handle.seen_paths(ids, &names, list::let_others);
    let counts = seen.into_iter().zip(all.iter().map(|of| of.requests));
    summed(counts, LIMIT_MAX).into_iter().map(|(path, count)| HotPath { path, count }).collect()
}

/// The sums of the counts by name, the highest first.
fn summed<K: Hash + Eq + Ord>(counts: impl Iterator<Item = (K, u64)>, limit: usize) -> Vec<(K, u64)> {
    let mut sums: HashMap<K, u64> = HashMap::new();
    for (name, count) in counts {
        *sums.entry(name).or_default() += count;
    }
    let mut all: Vec<(K, u64)> = sums.into_iter().collect();
    all.sort_by(|(name, count), (other, others)| others.cmp(count).then_with(|| name.cmp(other)));
    all.truncate(limit);
    all
}

fn merge(parts: Vec<HotPart>, limit: usize) -> HotPart {
    let mut merged = HotPart {
        span_ms: parts.iter().map(|part| part.span_ms).max().unwrap_or(0),
        sampled_one_in: parts.iter().map(|part| part.sampled_one_in).max().unwrap_or(1),
        reads: Vec::new(),
        writes: Vec::new(),
        addresses: Vec::new(),
        sessions: Vec::new(),
        measured: parts.iter().find_map(|part| part.measured.clone()),
    };
    let path = |(path, count)| HotPath { path, count };
    let paths = |of: fn(&HotPart) -> &Vec<HotPath>| -> Vec<HotPath> {
        let all = parts.iter().flat_map(of).map(|of| (of.path.clone(), of.count));
        summed(all, limit).into_iter().map(path).collect()
    };
    merged.reads = paths(|part| &part.reads);
    merged.writes = paths(|part| &part.writes);
    let addresses = parts.iter().flat_map(|part| &part.addresses).map(|of| (of.address.clone(), of.count));
    merged.addresses =
        summed(addresses, limit).into_iter().map(|(address, count)| HotAddress { address, count }).collect();
    let sessions = parts.iter().flat_map(|part| &part.sessions).map(|of| (of.session.clone(), of.count));
    merged.sessions =
        summed(sessions, limit).into_iter().map(|(session, count)| HotSession { session, count }).collect();
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(paths: &[(&str, u64)]) -> HotPart {
        let reads =
            paths.iter().map(|(path, count)| HotPath { path: (*path).into(), count: *count }).collect();
        let (writes, addresses, sessions) = Default::default();
        HotPart { span_ms: 5, sampled_one_in: 64, reads, writes, addresses, sessions, measured: None }
    }

    #[test]
    fn counts_of_several_servers_are_added() {
        let merged = merge(vec![part(&[("/a", 5), ("/b", 4)]), part(&[("/b", 2), ("/c", 1)])], 2);
        let counts: Vec<(&str, u64)> = merged.reads.iter().map(|of| (&*of.path, of.count)).collect();
        assert_eq!(counts, [("/b", 6), ("/a", 5)]);
        assert_eq!((merged.span_ms, merged.sampled_one_in), (5, 64));
    }
}
