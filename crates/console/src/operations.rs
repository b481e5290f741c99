//! Slow requests, hot paths and clients, and times in which a server stood still.

mod hot;
mod pauses;
mod slow;

use crate::state::Console;
use axum::{
    Router,
    routing::{get, post},
};
use std::sync::Arc;

/// The paths that show them.
pub(crate) fn reads(api: Router<Arc<Console>>) -> Router<Arc<Console>> {
    api.route("/slow", get(slow::slow)).route("/hot", get(hot::hot)).route("/pauses", get(pauses::pauses))
}

/// The paths that change what is counted.
pub(crate) fn changes(api: Router<Arc<Console>>) -> Router<Arc<Console>> {
    api.route("/hot/measure", post(hot::measure))
}
