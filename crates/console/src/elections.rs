//! `/api/v1/elections`: the last elections of the ensemble, put together from the records of all members.

use crate::{
    error::{ApiError, Code},
    fan_out::{self, Asked, Freshness, Silence, SilenceKind, now_ms, words},
    rights::Viewer,
    state::Console,
};
use axum::{
    Json,
    extract::{Query, State},
};
use ostler_explain::{
    ensemble::ServerKind,
    file::{AskedServer, ElectionsFile},
    occasion::occasions,
    records::Elections,
    witness::{TimedRecord, witnesses},
};
use ostler_proto::id::ServerId;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::task::{JoinSet, spawn_blocking};

/// Elections in an answer by default, which is the number of searches that a server keeps.
pub(crate) const LAST: usize = 16;
/// The most that are asked for. Several servers together may know of more than one does.
const LAST_MAX: usize = 64;
/// The bytes of a record that goes to another member, which takes a mebibyte.
const RECORD_MAX: usize = 900_000;

/// The parameters.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Wanted {
    last: Option<usize>,
    local: Option<String>,
    /// The server's own record and nothing else: how members ask each other.
    record: Option<String>,
}

fn is_set(parameter: Option<&String>) -> bool {
    parameter.is_some_and(|value| value != "0")
}

/// A member's answer with its record.
#[derive(Deserialize)]
struct WithRecord {
    record: Elections,
}

/// The page.
pub(crate) async fn get(
    State(console): State<Arc<Console>>,
    Query(wanted): Query<Wanted>,
    _viewer: Viewer,
) -> Result<Json<Value>, ApiError> {
    let last = wanted.last.unwrap_or(LAST).clamp(1, LAST_MAX);
    if is_set(wanted.record.as_ref()) {
        let record = shortened(own_record(&console), RECORD_MAX);
        return Ok(Json(json!({ "servers": [fan_out::own_row(&console)], "record": record })));
    }
    let scope = if is_set(wanted.local.as_ref()) { None } else { Some(Freshness::Kept) };
    page(&console, last, scope).await.map(Json)
}

/// The page as JSON; of this server alone without a freshness of the others' answers.
pub(crate) async fn page(
    console: &Arc<Console>,
    last: usize,
    others: Option<Freshness>,
) -> Result<Value, ApiError> {
    let asked_ms = now_ms();
    let own = TimedRecord { elections: own_record(console), asked_ms, answered_ms: asked_ms };
    let (mut records, mut silent) = (vec![own], Vec::new());
    if let Some(freshness) = others {
        for (member, answer) in known_others(console, freshness).await {
            match answer {
                Ok(record) => records.push(record),
                Err(silence) => silent.push(AskedServer::silent(
                    Some(member.id),
                    member.name(),
                    silence.state(),
                    silence.reason,
                )),
            }
        }
    }
    let made = spawn_blocking(move || {
        let witnesses = witnesses(records);
        let occasions = occasions(&witnesses);
        json!(ElectionsFile::new(&occasions, last, (&witnesses, silent), asked_ms))
    });
    made.await.map_err(|_| ApiError::new(Code::Server, "The records of the elections could not be read."))
}

fn own_record(console: &Console) -> Elections {
    let now = now_ms();
    match console.handle.inspect(|server| server.elections()) {
        Some(all) => Elections::of(all, now),
        None => Elections { server: ServerId(0), now_ms: now, ..Elections::default() },
    }
}

/// The newest searches of a record that fit.
fn shortened(mut record: Elections, bytes_max: usize) -> Elections {
    let mut bytes = 0;
    let fits = |search: &_| {
        bytes += serde_json::to_vec(search).map_or(bytes_max, |text| text.len());
        bytes < bytes_max
    };
    let kept = record.searches.iter().rev().map(fits).take_while(|fits| *fits).count();
    record.searches.drain(..record.searches.len() - kept);
    record
}

type Answer = (fan_out::Member, Result<TimedRecord, Silence>);

async fn known_others(console: &Arc<Console>, freshness: Freshness) -> Vec<Answer> {
    let asked = fan_out::ask(console, "elections?local=1&record=1", freshness).await;
    let mut all = JoinSet::new();
    for asked in asked.iter().cloned() {
        all.spawn(async move {
            let answer = record(&asked).await;
            (asked.member, answer)
        });
    }
    let mut all = all.join_all().await;
    all.sort_by_key(|(member, _)| member.id);
    all
}

/// A member's record by its console, or else by the word `elec`.
async fn record(asked: &Asked) -> Result<TimedRecord, Silence> {
    let at = || asked.member.at();
    let silence = match asked.read::<WithRecord>() {
        Ok(WithRecord { record }) if record.server == asked.member.id => {
            let sound = record.check().map_err(|error| Silence::silent(format!("{}: {error}.", at())));
            return sound.map(|()| TimedRecord {
                elections: record,
                asked_ms: asked.asked_ms,
                answered_ms: asked.answered_ms,
            });
        }
        Ok(_) => {
            Silence { kind: SilenceKind::Foreign, reason: format!("{} has another server's record.", at()) }
        }
        Err(silence) => silence,
    };
    if let Some(record) = words::elections(&asked.member).await {
        return Ok(record);
    }
    let state = words::state(&asked.member).await;
    if state.is_some_and(|state| state.kind == ServerKind::Java) {
        let reason = format!("{} is a server of Java, which keeps no record of its elections.", at());
        return Err(Silence { kind: SilenceKind::NoConsole, reason });
    }
    // A port without a console whose words tell nothing either.
    Err(Silence { kind: silence.kind.without_words(), ..silence })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ostler_explain::records::Search;
    use ostler_proto::id::Zxid;
    use ostler_server_core::quorum::election_history::SearchReason;

    fn search(began_ms: i64) -> Search {
        Search {
            began_ms,
            why: SearchReason::Started,
            before: None,
            silent_ms: None,
            last: Zxid(0),
            elected: None,
            connected_ms: None,
            discovered: None,
            takeover: None,
            synchronised_ms: None,
            first_commit: None,
            moments: Vec::new(),
            left_out: 0,
            left_out_since: 0,
        }
    }

    #[test]
    fn the_oldest_searches_of_a_long_record_stay_here() {
        let record = Elections { searches: (0..10).map(search).collect(), ..Elections::default() };
        let one = serde_json::to_vec(&record.searches[0]).unwrap().len();
        let kept = shortened(record.clone(), 3 * one + 1);
        assert_eq!(kept.searches.iter().map(|search| search.began_ms).collect::<Vec<_>>(), [7, 8, 9]);
        assert_eq!(shortened(record.clone(), usize::MAX), record);
        assert!(shortened(record, 1).searches.is_empty());
    }
}
