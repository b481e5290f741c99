//! The tree: reads by the checks that a client with the caller's identities meets, and changes through such a client.
//!
//! Reads look at the core directly ([`look`]), each time for less than a millisecond. Everything that takes longer is put
//! together of several looks, on a thread that may wait.

mod batch;
mod children;
mod copy;
mod cursor;
mod glob;
mod history;
mod idle;
mod listing;
mod node;
mod params;
mod plan;
mod refusal;
mod runs;
mod search;
mod seen;
mod shown;
#[cfg(test)]
mod test_site;
mod whole;
mod write;

use crate::{
    error::{ApiError, Code},
    rights::Caller,
    state::Console,
};
use axum::{
    Router,
    routing::{get, post},
};
use ostler_proto::acl::Id;
use ostler_server::admin::AdminHandle;
use ostler_server_core::Server;
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::task::spawn_blocking;

/// The pause between two looks of one reader. A thread that releases a lock and takes it again at once keeps waiting
/// threads out.
const BETWEEN_LOOKS: Duration = Duration::from_micros(200);

/// The parts of the console that only the tree needs.
#[derive(Default)]
pub(crate) struct TreeState {
    lists: Arc<listing::Lists>,
    plans: plan::Plans,
    runs: runs::Runs,
    search: idle::Turn,
    history: idle::Turn,
    /// The longest time, in microseconds, for which a look has held the core.
    longest_look_us: AtomicU64,
}

/// The paths that show the tree.
pub(crate) fn reads(api: Router<Arc<Console>>) -> Router<Arc<Console>> {
    api.route("/tree/node", get(node::node))
        .route("/tree/data", get(node::data))
        .route("/tree/children", get(children::children))
        .route("/tree/plan", get(plan::plan))
        .route("/tree/runs", get(runs::state))
        .route("/tree/search", get(search::search))
        .route("/tree/history", get(history::of_znode))
}

/// The paths that change the tree.
pub(crate) fn changes(api: Router<Arc<Console>>) -> Router<Arc<Console>> {
    api.route("/tree/create", post(write::create))
        .route("/tree/set", post(write::set))
        .route("/tree/delete", post(write::delete))
        .route("/tree/set-acl", post(write::set_acl))
        .route("/tree/try-acl", post(write::try_acl))
        .route("/tree/delete-all", post(whole::delete_all))
        .route("/tree/set-acl-all", post(whole::set_acl_all))
        .route("/tree/copy", post(copy::copy))
        .route("/tree/stop-run", post(runs::stop))
}

/// Looks at the core, for less than a millisecond.
fn look<T>(console: &Console, look: impl FnOnce(&Server) -> T) -> T {
    let handle: &AdminHandle = &console.handle;
    let (seen, took) = handle.inspect(|server| {
        let began = Instant::now();
        (look(server), began.elapsed())
    });
    let us = took.as_micros() as u64;
    tracing::trace!(us, "a look of the console at the tree");
    if console.tree.longest_look_us.fetch_max(us, Ordering::Relaxed) < us {
        tracing::debug!(us, "the longest look of the console at the tree so far");
    }
    seen
}

/// Does something on a thread that may wait.
async fn aside<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    let failed = |_| ApiError::new(Code::Server, "The server has failed to make the answer. See its log.");
    spawn_blocking(work).await.map_err(failed)?
}

/// The person to whom plans and runs belong: their identities, without the address if there are others.
fn identity(caller: &Caller) -> Vec<Id> {
    let mut ids: Vec<Id> = caller.ids.iter().filter(|id| id.scheme != "ip").cloned().collect();
    if ids.is_empty() {
        ids = caller.ids.clone();
    }
    ids.sort();
    ids
}
