//! Times in which a server's process did not run, or its disk stood still, the newest first.

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
use ostler_server::admin::AdminHandle;
use ostler_server_core::sessions::ends::Stretch;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A pause.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Pause {
    server: i64,
    at_ms: i64,
    for_ms: i64,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Process,
    Disk,
}

/// One server's part.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct PausesPart {
    items: Vec<Pause>,
}

pub(super) async fn pauses(
    State(console): State<Arc<Console>>,
    _viewer: Viewer,
    Query(parameters): Query<Parameters>,
) -> Result<Response, ApiError> {
    let limit = list::limit(&parameters)?;
    let own = part(&console.handle);
    let all = list::with_others(&console, "pauses", &parameters, own).await;
    let parts = all.parts.into_iter().map(|part: PausesPart| (part.items, false)).collect();
    let (items, truncated) = list::merge_down(parts, limit, |pause| (pause.at_ms, pause.server, pause.kind));
    Ok(all.servers.answer(List { items, next: None, truncated }))
}

/// This server's part. It keeps at most 64 of each kind.
fn part(handle: &AdminHandle) -> PausesPart {
    let report = handle.ends_numbered(&[]);
    let server = list::own_id(handle);
    let pause =
        |kind| move |of: &Stretch| Pause { server, at_ms: of.from_ms, for_ms: of.to_ms - of.from_ms, kind };
    let process = report.pauses.iter().map(pause(Kind::Process));
    PausesPart { items: process.chain(report.disk_stalls.iter().map(pause(Kind::Disk))).collect() }
}
