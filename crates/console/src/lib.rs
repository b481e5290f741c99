//! The console: pages about a server, its ensemble and its tree, for a browser, and the JSON behind them.
//!
//! The pages are in `assets`, and are part of the program. They ask only `/api/v1` of the server that they come from.
//! [`routes`] makes the paths for the admin server.
//!
//! *Rights.* Pages about the server are for whoever may ask the admin server's commands ([`rights::Viewer`]). The tree is
//! shown as the ACLs of its znodes allow it to the person who has signed in ([`rights::Caller`]). Changes exist only with
//! `admin.readOnly=false` ([`rights::Writer`], [`rights::Operator`]).

mod assets;
mod clients;
mod configuration;
mod disk;
mod elections;
mod ensemble;
mod error;
mod events;
mod fan_out;
mod identity;
mod inner_client;
mod list;
mod metrics;
mod operations;
mod people;
mod recipes;
pub mod rights;
mod security;
mod sessions;
mod state;
mod tree;
mod watches;

use axum::{Router, middleware, routing::get, routing::post};
use ostler_server::admin::AdminHandle;
use state::Console;
use std::sync::Arc;

pub use error::{ApiError, Code};

/// The paths of the console. An admin server whose commands are at one of these paths has no console.
pub fn routes(handle: AdminHandle) -> Router {
    let url = handle.command_url().to_owned();
    if ["/", "/console", "/api"]
        .iter()
        .any(|own| url == *own || url.starts_with(&format!("{own}/")) && *own != "/")
    {
        tracing::warn!(admin.commandURL = %url, "there is no console, because the commands are at its paths");
        return Router::new();
    }
    let is_read_only = handle.is_read_only();
    let Some(console) = Console::new(handle) else {
        tracing::warn!("there is no console, because the system gives no random numbers");
        return Router::new();
    };
    let console = Arc::new(console);
    metrics::start_sampling(&console);
    let mut api = Router::new()
        .route("/me", get(identity::me))
        .route("/sign-in", post(identity::sign_in))
        .route("/sign-out", post(identity::sign_out));
    api = reads(api);
    if !is_read_only {
        api = changes(api);
    }
    Router::new()
        .merge(assets::routes())
        .nest("/api/v1", api.fallback(error::unknown_path))
        .layer(middleware::map_response(security::headers))
        .with_state(console)
}

/// Paths that show something.
fn reads(api: Router<Arc<Console>>) -> Router<Arc<Console>> {
    let api = recipes::reads(tree::reads(api));
    let api = clients::reads(watches::reads(operations::reads(sessions::reads(api))));
    api.route("/ensemble", get(ensemble::get))
        .route("/elections", get(elections::get))
        .route("/events", get(events::get))
        .route("/metrics", get(metrics::show))
        .route("/config", get(configuration::show))
        .route("/disk", get(disk::show))
}

/// Paths that change something. Without `admin.readOnly=false` these paths do not exist.
fn changes(api: Router<Arc<Console>>) -> Router<Arc<Console>> {
    let api = recipes::changes(tree::changes(api));
    let api = operations::changes(sessions::changes(api));
    api.route("/disk/snapshot", get(disk::send_snapshot).post(disk::take_snapshot))
        .route("/disk/purge", post(disk::purge))
}
