//! `/api/v1/ensemble`: the state of all members, what is wrong, and the way out.

mod links;
mod own;
mod rows;

use crate::{
    error::{ApiError, Code},
    fan_out::{self, Asked, Freshness, now_ms, words},
    rights::Viewer,
    state::Console,
};
use axum::{
    Json,
    extract::{Query, State},
};
use ostler_explain::ensemble::{
    Finding, Level, Observed, ServerState, findings, quorum_count, verdict, verdict::leader_of,
};
pub(crate) use own::RecentEnds;
use rows::{EpochRow, Row};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::task::{JoinSet, spawn_blocking};

/// The parameters of a path that asks other members.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Scope {
    /// `1`: this server only.
    pub(crate) local: Option<String>,
}

impl Scope {
    pub(crate) fn is_local(&self) -> bool {
        self.local.as_deref().is_some_and(|local| local != "0")
    }
}

/// A member with all that is known of it.
struct Known {
    row: Row,
    /// Its state, if it is known.
    observed: Observed,
    links: Vec<links::LinkRow>,
    epochs: Vec<EpochRow>,
}

/// The part of a member's answer that is about itself, beside the page.
#[derive(Debug, Serialize, Deserialize)]
struct OwnPart {
    as_of_ms: i64,
    states: Vec<ServerState>,
    links: Vec<links::LinkRow>,
    epochs: Vec<EpochRow>,
}

/// The page.
pub(crate) async fn get(
    State(console): State<Arc<Console>>,
    Query(scope): Query<Scope>,
    _viewer: Viewer,
) -> Result<Json<Value>, ApiError> {
    let others = if scope.is_local() { None } else { Some(Freshness::Kept) };
    Ok(Json(page(&console, others).await?))
}

/// The page as JSON; of this server alone without a freshness of the others' answers.
pub(crate) async fn page(console: &Arc<Console>, others: Option<Freshness>) -> Result<Value, ApiError> {
    let of = console.clone();
    let own = spawn_blocking(move || own::part(&of))
        .await
        .map_err(|_| ApiError::new(Code::Server, "The state of the server could not be read."))?;
    let mut all = vec![known_self(console, &own)];
    if let Some(freshness) = others {
        all.extend(known_others(console, freshness).await);
    }
    let mut page = merged(console, all);
    if let (None, Some(page)) = (others, page.as_object_mut()) {
        page.insert("states".into(), json!(own.states));
    }
    Ok(page)
}

fn known_self(console: &Console, own: &OwnPart) -> Known {
    let name = fan_out::own_name(console);
    let state = own.states.first().cloned().unwrap_or_default();
    let id = console.handle.id().map_or(0, |id| id.0);
    Known {
        row: Row::answered(id, name.clone(), &state),
        observed: Observed { url: capital(&name), id: Some(id), answer: Ok(state) },
        links: own.links.clone(),
        epochs: own.epochs.clone(),
    }
}

async fn known_others(console: &Arc<Console>, freshness: Freshness) -> Vec<Known> {
    let asked = fan_out::ask(console, "ensemble?local=1", freshness).await;
    let mut all = JoinSet::new();
    for asked in asked.iter().cloned() {
        all.spawn(known(asked));
    }
    all.join_all().await
}

/// A member by its answer, or else by its four-letter words.
async fn known(asked: Asked) -> Known {
    let (id, name) = (asked.member.id.0, asked.member.name());
    let silence = match asked.read::<OwnPart>() {
        Ok(part) => match rows::checked(part, id) {
            Some(part) => return by_console(&asked, part),
            None => {
                fan_out::Silence::silent(format!("{} answered what no server answers.", asked.member.at()))
            }
        },
        Err(silence) => silence,
    };
    if let Some(state) = words::state(&asked.member).await {
        let row = Row::by_words(id, name.clone(), &state, &silence);
        let observed = Observed { url: capital(&name), id: Some(id), answer: Ok(state) };
        return Known { row, observed, links: Vec::new(), epochs: Vec::new() };
    }
    // Its sentence begins with the name of the server already.
    let problem = silence.reason.split_once(") ").map_or(&*silence.reason, |(_, rest)| rest);
    let observed = Observed {
        url: asked.member.at(),
        id: Some(id),
        answer: Err(problem.trim_end_matches('.').to_owned()),
    };
    Known { row: Row::silent(id, name, &silence), observed, links: Vec::new(), epochs: Vec::new() }
}

fn by_console(asked: &Asked, part: OwnPart) -> Known {
    let mut state = part.states.into_iter().next().unwrap_or_default();
    state.note_clock(part.as_of_ms, asked.asked_ms, asked.answered_ms);
    let (id, name) = (asked.member.id.0, asked.member.name());
    Known {
        row: Row::answered(id, name.clone(), &state),
        observed: Observed { url: capital(&name), id: Some(id), answer: Ok(state) },
        links: part.links,
        epochs: part.epochs,
    }
}

fn capital(name: &str) -> String {
    let mut chars = name.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

/// The page of all members.
fn merged(console: &Console, mut all: Vec<Known>) -> Value {
    all.sort_by_key(|known| known.row.id);
    let observed: Vec<Observed> = all.iter().map(|known| known.observed.clone()).collect();
    let mut found = findings(&observed);
    found.extend(missing_links(&all));
    found.sort_by_key(|finding| finding.gravity);
    let verdict = verdict(&observed, &found);
    let count = quorum_count(&observed);
    let epochs = rows::epochs(all.iter().flat_map(|known| &known.epochs));
    let leader = leader_of(&observed);
    let config = console.handle.inspect(|server| server.member_report()).map(|report| report.membership);
    for known in &mut all {
        known.row.compare(known.observed.answer.as_ref().ok(), leader);
        known.row.add_configured(config.as_ref());
    }
    let leads_since = |id: i64| {
        let now = epochs.iter().rev().find(|epoch| epoch.leader == id && epoch.to_ms.is_none());
        now.map(|epoch| epoch.from_ms)
    };
    let as_of_zxid = console.handle.inspect(|server| server.tree().last_processed());
    json!({
        "as_of_ms": now_ms(),
        "as_of_zxid": as_of_zxid,
        "name": rows::ensemble_name(console, config.as_ref()),
        "served_by": console.handle.id().map_or(0, |id| id.0),
        "verdict": verdict,
        "findings": found.iter().map(finding).collect::<Vec<_>>(),
        "leader": leader.map(|of| json!({
            "id": of.id,
            "epoch": of.epoch.unwrap_or((of.zxid.0 >> 32) as u32),
            "since_ms": leads_since(of.id),
        })),
        "quorum": count,
        "servers": all.iter().map(|known| &known.row).collect::<Vec<_>>(),
        "links": all.iter().flat_map(|known| &known.links).collect::<Vec<_>>(),
        "epochs": epochs,
    })
}

/// The connections that should be there: with a leader, those of the election port between servers that follow it.
fn missing_links(all: &[Known]) -> Vec<Finding> {
    let works = |id: i64| {
        all.iter().any(|known| {
            known.row.id == id && known.observed.answer.as_ref().is_ok_and(ServerState::is_in_quorum)
        })
    };
    let links = all.iter().flat_map(|known| &known.links).filter(|link| works(link.from) && works(link.to));
    links.filter_map(links::LinkRow::missing).map(|missing| missing.finding()).collect()
}

fn finding(of: &Finding) -> Value {
    let level = Level::from(of.gravity);
    let way_out = Some(&of.way_out).filter(|way_out| !way_out.is_empty());
    json!({ "level": level, "sentence": of.sentence, "way_out": way_out, "servers": of.servers })
}
