//! Sessions that live, sessions that have ended, and the end of one by an operator.

mod live;

use crate::{
    error::ApiError,
    list::{self, Parameters},
    rights::Viewer,
    state::Console,
};
use axum::{
    Json, Router,
    extract::{Query, State},
    response::{IntoResponse, Response},
    routing::get,
};
use std::sync::Arc;

/// The paths that show sessions.
pub(crate) fn reads(api: Router<Arc<Console>>) -> Router<Arc<Console>> {
    api.route("/sessions", get(sessions))
}

async fn sessions(
    State(console): State<Arc<Console>>,
    _viewer: Viewer,
    Query(parameters): Query<Parameters>,
) -> Result<Response, ApiError> {
    let query = live::LiveQuery::of(&parameters)?;
    let part = list::aside(move || live::part(&console.handle, &query)).await?;
    Ok(Json(part.into_list()).into_response())
}
