//! Asks the admin server of one server for its state.

use crate::admin_http::{AdminClient, AdminError};
use ostler_explain::ensemble::{ServerState, state::Commands};
use serde_json::Value;

/// Asks a server.
pub(super) fn observe(client: &AdminClient, url: &str) -> Result<ServerState, String> {
    let asked = |error: AdminError| {
        match error {
        AdminError::Status(401 | 403) => {
            "shows its state to nobody without an identity that may see it: ask it on its own machine, by HTTPS, or with --auth"
                .into()
        }
        error => error.to_string(),
    }
    };
    let get = |command: &str| client.get::<Value>(url, command, &[]).map_err(asked);
    let (monitor, zabstate) = (get("monitor")?, get("zabstate")?);
    let before = now_ms();
    let ends = get("session_ends").unwrap_or(Value::Null);
    let asked_at_ms = before + (now_ms() - before) / 2;
    let voting_view = get("voting_view")?;
    let stats = get("server_stats").unwrap_or(Value::Null);
    let answers = Commands {
        monitor: &monitor,
        zabstate: &zabstate,
        stats: &stats,
        voting_view: &voting_view,
        session_ends: &ends,
        asked_at_ms,
    };
    Ok(ServerState::of_commands(answers))
}

fn now_ms() -> i64 {
    let now = std::time::SystemTime::now().duration_since(std::time::SystemTime::UNIX_EPOCH);
    now.map_or(0, |now| i64::try_from(now.as_millis()).unwrap_or(i64::MAX))
}
