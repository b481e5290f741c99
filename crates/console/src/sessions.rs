//! Sessions that live, sessions that have ended, and the end of one by an operator.

mod clock;
mod ended;
mod expire;
mod live;
mod one;

use crate::{
    error::ApiError,
    list::{self, List, Parameters},
    rights::Viewer,
    state::Console,
};
use axum::{
    Json, Router,
    extract::{Query, State},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use ended::{EndedQuery, EndedRecords};
use live::{LivePart, LiveQuery};
use serde_json::json;
use std::sync::Arc;

/// The paths that show sessions.
pub(crate) fn reads(api: Router<Arc<Console>>) -> Router<Arc<Console>> {
    api.route("/sessions", get(sessions)).route("/sessions/{id}", get(one::one))
}

/// The paths that end sessions.
pub(crate) fn changes(api: Router<Arc<Console>>) -> Router<Arc<Console>> {
    api.route("/sessions/{id}/expire", post(expire::expire))
}

async fn sessions(
    State(console): State<Arc<Console>>,
    Viewer(caller): Viewer,
    Query(parameters): Query<Parameters>,
) -> Result<Response, ApiError> {
    match list::text(&parameters, "state").unwrap_or("live") {
        "live" => living(console, parameters).await,
        "ended" => {
            let query = EndedQuery::of(&parameters)?;
            ended(console, (parameters, query), caller.ids).await
        }
        other => Err(ApiError::bad(format!("state={other} is not allowed: live or ended."))),
    }
}

async fn living(console: Arc<Console>, parameters: Parameters) -> Result<Response, ApiError> {
    let query = LiveQuery::of(&parameters)?;
    let (of, asked) = (console.clone(), query.clone());
    let own = list::aside(&console, move || live::part(&of.handle, &asked)).await?;
    let all = list::with_others::<LivePart>(&console, "sessions", &parameters, own).await;
    let part = live::merge(all.parts, query.limit());
    let list = List { items: part.items, next: part.next, truncated: false };
    Ok(all.servers.answer(list))
}

async fn ended(
    console: Arc<Console>,
    (parameters, query): (Parameters, EndedQuery),
    ids: Vec<ostler_proto::acl::Id>,
) -> Result<Response, ApiError> {
    let (of, asked) = (console.clone(), query.clone());
    let own = list::aside(&console, move || ended::part(&of.handle, &asked, &ids)).await?;
    // For another server that judges with all records.
    let records = list::is_local(&parameters).then(|| own.clone());
    let all = list::with_others::<EndedRecords>(&console, "sessions", &parameters, own).await;
    let has_forgotten = all.parts.iter().any(|part| part.report.has_forgotten);
    let servers = all.servers;
    let parts = all.parts;
    let (mut items, next) = list::aside(&console, move || ended::merge(parts, query.limit)).await?;
    items.iter_mut().for_each(|item| item.show_server(&console.handle));
    let truncated = next.is_none() && has_forgotten;
    let mut answer = servers.value(List { items, next, truncated });
    if let (Some(records), Some(members)) = (records, answer.as_object_mut()) {
        members.insert("report".into(), json!(records.report));
    }
    Ok(Json(answer).into_response())
}
