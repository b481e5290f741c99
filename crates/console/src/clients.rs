//! Clients: which libraries they seem to use, who is refused, and who would notice a change of a limit.

mod kinds;

use crate::{
    error::ApiError,
    list::{self, Parameters},
    rights::Viewer,
    state::Console,
};
use axum::{
    Router,
    extract::{Query, State},
    response::Response,
    routing::get,
};
use kinds::Kind;
use ostler_proto::{error::ErrorCode, op::Op};
use ostler_server::admin::AdminHandle;
use ostler_server_core::report::clients::{ClientNotesReport, CountedClient, CutTimeout};
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

/// Clients in one look at the core.
const IN_ONE_LOOK: usize = 200;
/// A census is used again for this time.
const FRESH: Duration = Duration::from_secs(2);
/// Entries of each list.
const ENTRIES_MAX: usize = 100;
const EXAMPLES_MAX: usize = 5;

/// The path that shows clients.
pub(crate) fn reads(api: Router<Arc<Console>>) -> Router<Arc<Console>> {
    api.route("/clients", get(clients))
}

/// The last census of this server's clients.
#[derive(Default)]
pub(crate) struct Census {
    last: Mutex<Option<(Instant, ClientsPart)>>,
}

/// Clients that seem to use the same library.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct KindRow {
    kind: Kind,
    count: usize,
    examples: Vec<String>,
}

/// Requests that were refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct RefusedRow {
    /// The error, by ZooKeeper's name.
    code: String,
    /// The operation, as `getData`; a number if it has no name.
    operation: String,
    address: String,
    count: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct LargeRow {
    address: String,
    bytes: usize,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct TimeoutRow {
    address: String,
    asked_ms: i32,
    got_ms: i32,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct DigestRow {
    id: String,
    address: String,
}

/// One server's part.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct ClientsPart {
    kinds: Vec<KindRow>,
    refused: Vec<RefusedRow>,
    near_limit: Vec<LargeRow>,
    short_timeouts: Vec<TimeoutRow>,
    plaintext: usize,
    tls: usize,
    digest_only: Vec<DigestRow>,
    digest_only_count: usize,
}

/// A kind with its explanation.
#[derive(Debug, Serialize)]
struct ExplainedKind {
    kind: Kind,
    sentence: &'static str,
    count: usize,
    examples: Vec<String>,
}

/// The answer.
#[derive(Debug, Serialize)]
struct Answer {
    kinds: Vec<ExplainedKind>,
    #[serde(flatten)]
    rest: Rest,
}

/// The part that is answered as it was merged.
#[derive(Debug, Serialize)]
struct Rest {
    refused: Vec<RefusedRow>,
    near_limit: Vec<LargeRow>,
    short_timeouts: Vec<TimeoutRow>,
    plaintext: usize,
    tls: usize,
    digest_only: Vec<DigestRow>,
    digest_only_count: usize,
}

async fn clients(
    State(console): State<Arc<Console>>,
    _viewer: Viewer,
    Query(parameters): Query<Parameters>,
) -> Result<Response, ApiError> {
    let of = console.clone();
    let own = list::aside(&console, move || of.census.part(&of.handle)).await?;
    let all = list::with_others(&console, "clients", &parameters, own).await;
    let ClientsPart {
        kinds,
        refused,
        near_limit,
        short_timeouts,
        plaintext,
        tls,
        digest_only,
        digest_only_count,
    } = merge(all.parts);
    let explained = |KindRow { kind, count, examples }| ExplainedKind {
        kind,
        sentence: kind.sentence(),
        count,
        examples,
    };
    let rest = Rest { refused, near_limit, short_timeouts, plaintext, tls, digest_only, digest_only_count };
    Ok(all.servers.answer(Answer { kinds: kinds.into_iter().map(explained).collect(), rest }))
}

impl Census {
    /// This server's part. The clients are counted in several looks at the core.
    fn part(&self, handle: &AdminHandle) -> ClientsPart {
        // Held meanwhile, so that many who ask at once count once.
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((made, part)) = last.as_ref().filter(|(made, _)| made.elapsed() < FRESH) {
            tracing::trace!(age = ?made.elapsed(), "a census is used again");
            return part.clone();
        }
        let part = take(handle);
        *last = Some((Instant::now(), part.clone()));
        part
    }
}

fn take(handle: &AdminHandle) -> ClientsPart {
    let mut part = ClientsPart::default();
    let mut kinds: BTreeMap<Kind, (usize, Vec<String>)> = BTreeMap::new();
    let mut after = None;
    loop {
        let some = handle.clients_after(after, IN_ONE_LOOK);
        for (client, has_tls) in some.clients {
            count(&mut part, &client, has_tls);
            let (count, examples) = kinds.entry(Kind::of(&client.habits)).or_default();
            *count += 1;
            if examples.len() < EXAMPLES_MAX {
                examples.push(client.peer.to_string());
            }
        }
        after = some.next;
        if after.is_none() {
            break;
        }
        list::let_others();
    }
    part.kinds =
        kinds.into_iter().map(|(kind, (count, examples))| KindRow { kind, count, examples }).collect();
    note(&mut part, handle.inspect(|server| server.client_notes(ENTRIES_MAX)));
    part
}

fn count(part: &mut ClientsPart, client: &CountedClient, has_tls: bool) {
    part.tls += usize::from(has_tls);
    part.plaintext += usize::from(!has_tls);
    if let Some(id) = &client.digest_only {
        part.digest_only_count += 1;
        if part.digest_only.len() < ENTRIES_MAX {
            let id = id.strip_prefix("digest:").unwrap_or(id).to_owned();
            part.digest_only.push(DigestRow { id, address: client.peer.to_string() });
        }
    }
}

fn note(part: &mut ClientsPart, notes: ClientNotesReport) {
    let refused = |((code, error, address), count): ((i32, i32, std::net::IpAddr), u64)| RefusedRow {
        code: ErrorCode::from_code(error)
            .map_or_else(|| error.to_string(), |error| format!("{error:?}").to_uppercase()),
        operation: operation(code),
        address: address.to_string(),
        count,
    };
    part.refused = notes.refused.into_iter().map(refused).collect();
    let large =
        |(address, bytes): (std::net::IpAddr, usize)| LargeRow { address: address.to_string(), bytes };
    part.near_limit = notes.large.into_iter().map(large).collect();
    let cut = |CutTimeout { address, asked_ms, got_ms }| TimeoutRow {
        address: address.to_string(),
        asked_ms,
        got_ms,
    };
    part.short_timeouts = notes.cut.into_iter().map(cut).collect();
}

/// The name of an operation, as in `getData`.
fn operation(code: i32) -> String {
    let Some(op) = Op::from_code(code) else { return format!("operation {code}") };
    let name = format!("{op:?}");
    let mut letters = name.chars();
    letters.next().map_or_else(String::new, |first| first.to_lowercase().chain(letters).collect())
}

/// The parts of several servers as one.
fn merge(parts: Vec<ClientsPart>) -> ClientsPart {
    let mut merged = ClientsPart::default();
    let mut kinds: BTreeMap<Kind, KindRow> = BTreeMap::new();
    let mut refused: BTreeMap<(String, String, String), u64> = BTreeMap::new();
    for part in parts {
        for row in part.kinds {
            let of = kinds.entry(row.kind).or_insert_with(|| KindRow {
                count: 0,
                examples: Vec::new(),
                ..row.clone()
            });
            of.count += row.count;
            of.examples.extend(row.examples);
            of.examples.truncate(EXAMPLES_MAX);
        }
        for row in part.refused {
            *refused.entry((row.code, row.operation, row.address)).or_default() += row.count;
        }
        merged.near_limit.extend(part.near_limit);
        merged.short_timeouts.extend(part.short_timeouts);
        merged.digest_only.extend(part.digest_only);
        merged.digest_only_count += part.digest_only_count;
        merged.plaintext += part.plaintext;
        merged.tls += part.tls;
    }
    merged.kinds = kinds.into_values().collect();
    merged.kinds.sort_by_key(|row| std::cmp::Reverse(row.count));
    let row = |((code, operation, address), count)| RefusedRow { code, operation, address, count };
    merged.refused = refused.into_iter().map(row).collect();
    merged.refused.sort_by_key(|row| std::cmp::Reverse(row.count));
    merged.near_limit.sort_by_key(|row| std::cmp::Reverse(row.bytes));
    merged.refused.truncate(ENTRIES_MAX);
    merged.near_limit.truncate(ENTRIES_MAX);
    merged.short_timeouts.truncate(ENTRIES_MAX);
    merged.digest_only.truncate(ENTRIES_MAX);
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_added() {
        let part = |kind, count, plaintext| ClientsPart {
            kinds: vec![KindRow { kind, count, examples: vec!["10.0.0.1:1".into(); 4] }],
            refused: vec![RefusedRow {
                code: "NOAUTH".into(),
                operation: "getData".into(),
                address: "10.0.0.1".into(),
                count: 2,
            }],
            plaintext,
            ..ClientsPart::default()
        };
        let merged = merge(vec![part(Kind::C, 3, 3), part(Kind::Java, 4, 1), part(Kind::C, 2, 0)]);
        let kinds: Vec<_> =
            merged.kinds.iter().map(|row| (row.kind, row.count, row.examples.len())).collect();
        assert_eq!(kinds, [(Kind::C, 5, EXAMPLES_MAX), (Kind::Java, 4, 4)]);
        assert_eq!((merged.refused.len(), merged.refused[0].count, merged.plaintext), (1, 6, 4));
        assert_eq!((operation(4), operation(4711)), ("getData".into(), "operation 4711".into()));
    }
}
