//! The state of one server, from the answers of its admin server.

use crate::admin_http::{AdminClient, AdminError};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// A server that was asked.
#[derive(Debug, Serialize)]
pub(super) struct Observed {
    /// Its URL.
    pub(super) url: String,
    /// Its state, or why it is not known.
    pub(super) answer: Result<ServerState, String>,
}

/// The state of a server.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(super) struct ServerState {
    /// Its number; 0 for a standalone server.
    pub(super) id: i64,
    pub(super) version: String,
    /// `leader`, `follower`, `observer`, `read-only` or `standalone`.
    pub(super) mode: String,
    /// `election`, `discovery` or `broadcast`; empty for a standalone server.
    pub(super) stage: String,
    /// Whether it serves clients.
    pub(super) serves: bool,
    pub(super) zxid: u64,
    /// The voters of the configuration in force, by their numbers, with their addresses for the other servers.
    pub(super) voters: BTreeMap<i64, String>,
    /// The figures of `monitor`.
    pub(super) figures: BTreeMap<String, f64>,
    /// Its wall clock, less that of the one who asks, in ms.
    pub(super) clock_off_ms: i64,
    /// When its process or its disk stood still last, ms before now.
    pub(super) paused_before_ms: Option<i64>,
    pub(super) disk_stalled_before_ms: Option<i64>,
    /// Sessions that expired in the last five minutes.
    pub(super) expired: usize,
}

/// Sessions that expired within this time are counted.
const LATELY_MS: i64 = 300_000;

impl ServerState {
    /// A figure; 0 if the server does not have it.
    pub(super) fn figure(&self, name: &str) -> f64 {
        self.figures.get(name).copied().unwrap_or(0.0)
    }

    /// Such as `server 2, leader, zxid 0x100000005, 12 connections`.
    pub(super) fn headline(&self) -> String {
        let name = if self.id == 0 { String::new() } else { format!("server {}, ", self.id) };
        let role = if self.serves { self.mode.clone() } else { format!("serves nobody ({})", self.stage) };
        let connections = self.figure("num_alive_connections");
        format!("{name}{role}, zxid 0x{:x}, {connections} connections, version {}", self.zxid, self.version)
    }
}

/// Asks a server.
pub(super) fn observe(client: &AdminClient, url: &str) -> Result<ServerState, String> {
    let asked = |error: AdminError| match error {
        AdminError::Status(401 | 403) => {
            "shows its state to nobody without an identity: ask it on its own machine, or by \
                                          HTTPS"
                .into()
        }
        error => error.to_string(),
    };
    let get = |command: &str| client.get::<Value>(url, command, &[]).map_err(asked);
    let (monitor, place) = (get("monitor")?, get("zabstate")?);
    let before = now_ms();
    let ends = get("session_ends").unwrap_or(Value::Null);
    let asked_at = before + (now_ms() - before) / 2;
    let view = get("voting_view")?;
    Ok(state(&monitor, &place, &view, (&ends, asked_at)))
}

fn now_ms() -> i64 {
    let now = std::time::SystemTime::now().duration_since(std::time::SystemTime::UNIX_EPOCH);
    now.map_or(0, |now| i64::try_from(now.as_millis()).unwrap_or(i64::MAX))
}

/// Reads the answers. `ends` comes with the time at which it was asked for.
fn state(monitor: &Value, place: &Value, view: &Value, (ends, asked_at): (&Value, i64)) -> ServerState {
    let text = |of: &Value, name: &str| of[name].as_str().unwrap_or_default().to_owned();
    let figures = monitor.as_object().into_iter().flatten();
    let figures: BTreeMap<String, f64> =
        figures.filter_map(|(name, value)| Some((name.clone(), value.as_f64()?))).collect();
    let stage = text(place, "zabstate");
    let voters = view["current_config"].as_object().into_iter().flatten();
    let address = |server: &Value| server["server_addresses"][0].as_str().unwrap_or_default().to_owned();
    let now = ends["now_ms"].as_i64();
    ServerState {
        id: place["myid"].as_i64().unwrap_or(0),
        version: text(monitor, "version").split(',').next().unwrap_or_default().to_owned(),
        mode: text(monitor, "server_state"),
        serves: figures.contains_key("znode_count"),
        zxid: u64::from_str_radix(text(place, "last_zxid").trim_start_matches("0x"), 16).unwrap_or(0),
        voters: voters.filter_map(|(id, server)| Some((id.parse().ok()?, address(server)))).collect(),
        clock_off_ms: now.map_or(0, |now| now - asked_at),
        paused_before_ms: last_stretch(&ends["pauses"], now),
        disk_stalled_before_ms: last_stretch(&ends["disk_stalls"], now),
        expired: expired(&ends["ends"], now),
        figures,
        stage,
    }
}

fn last_stretch(all: &Value, now: Option<i64>) -> Option<i64> {
    Some(now? - all.as_array()?.last()?["to_ms"].as_i64()?)
}

fn expired(ends: &Value, now: Option<i64>) -> usize {
    let Some(now) = now else { return 0 };
    let is_expiry = |end: &&Value| {
        let cause = end["cause"].to_string().to_ascii_lowercase();
        cause.contains("expired") && end["ended_ms"].as_i64().is_some_and(|at| now - at < LATELY_MS)
    };
    ends.as_array().into_iter().flatten().filter(is_expiry).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn answers_are_read() {
        let monitor = json!({ "version": "3.9.5-ostler-0.1.0, built on x", "server_state": "follower", "znode_count": 5 });
        let place = json!({ "myid": 2, "last_zxid": "0x100000003", "zabstate": "broadcast" });
        let view = json!({ "current_config": { "1": { "server_addresses": ["h1:2888"] } } });
        let ends = json!({
            "now_ms": 10_000,
            "pauses": [{ "from_ms": 1000, "to_ms": 4000 }],
            "disk_stalls": [],
            "ends": [{ "ended_ms": 9000, "cause": { "expired": {} } }, { "ended_ms": 9000, "cause": "closed" }],
        });
        let state = state(&monitor, &place, &view, (&ends, 9990));
        assert_eq!((state.id, state.zxid, state.serves), (2, 0x1_0000_0003, true));
        assert_eq!(state.voters[&1], "h1:2888");
        assert_eq!(
            (state.clock_off_ms, state.paused_before_ms, state.disk_stalled_before_ms),
            (10, Some(6000), None)
        );
        assert_eq!(state.expired, 1);
        assert_eq!(
            state.headline(),
            "server 2, follower, zxid 0x100000003, 0 connections, version 3.9.5-ostler-0.1.0"
        );
    }
}
