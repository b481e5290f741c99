//! The state of one server, as it reports it.

use ostler_proto::id::Zxid;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// A server that was asked.
#[derive(Debug, Clone, Serialize)]
pub struct Observed {
    /// The URL or the name by which it was asked.
    pub url: String,
    /// Its number, if the one who asks knows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<i64>,
    /// Its state, or why it is not known.
    pub answer: Result<ServerState, String>,
}

/// The make of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ServerKind {
    /// Ostler.
    Ostler,
    /// ZooKeeper in Java.
    Java,
    /// Neither is known.
    #[default]
    Unknown,
}

/// The digest of the tree at one transaction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DigestAt {
    /// The transaction.
    pub zxid: Zxid,
    /// The digest, in hexadecimal digits.
    pub value: String,
}

/// Room in a file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskSpace {
    /// The bytes that the server may still use.
    pub free_bytes: u64,
    /// All bytes.
    pub total_bytes: u64,
}

/// The state of a server.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ServerState {
    /// Its number; 0 for a standalone server.
    pub id: i64,
    /// Its make.
    pub kind: ServerKind,
    /// Its version.
    pub version: String,
    /// `leader`, `follower`, `observer`, `read-only` or `standalone`.
    pub mode: String,
    /// `election`, `discovery` or `broadcast`; empty for a standalone server, and if it is not known.
    pub stage: String,
    /// Whether it serves clients.
    pub serves: bool,
    /// The last transaction that it has applied.
    pub zxid: Zxid,
    /// Its current epoch.
    pub epoch: Option<u32>,
    /// The server that it follows or is.
    pub leader: Option<i64>,
    /// The voters of the configuration in force, by their numbers, with their addresses for the other servers.
    pub voters: BTreeMap<i64, String>,
    /// The observers of the same.
    pub observers: BTreeMap<i64, String>,
    /// The version of that configuration.
    pub config_version: Option<String>,
    /// At a leader: the other servers that have its history.
    pub synced: Vec<i64>,
    /// Its address for clients.
    pub address: Option<String>,
    /// The URL of its admin server.
    pub admin: Option<String>,
    /// The figures of `monitor`.
    pub figures: BTreeMap<String, f64>,
    /// Digests of its tree, the newest last.
    pub digests: Vec<DigestAt>,
    /// The file system of its data.
    pub disk: Option<DiskSpace>,
    /// Its wall clock, less that of the one who asks, in ms.
    pub clock_off_ms: i64,
    /// How far that may be off.
    pub clock_unsure_ms: i64,
    /// When its process stood still last, ms before now.
    pub paused_before_ms: Option<i64>,
    /// The same of its disk.
    pub disk_stalled_before_ms: Option<i64>,
    /// Sessions that expired in the last five minutes.
    pub expired: usize,
}

/// Sessions that expired within this time are counted.
const LATELY_MS: i64 = 300_000;
/// A part of each version of Ostler.
const OSTLER: &str = "-ostler-";

/// The answers of a server's commands, from which its state is read.
#[derive(Debug, Clone, Copy)]
pub struct Commands<'a> {
    /// `monitor`.
    pub monitor: &'a Value,
    /// `zabstate`.
    pub zabstate: &'a Value,
    /// `server_stats`.
    pub stats: &'a Value,
    /// `voting_view`.
    pub voting_view: &'a Value,
    /// `session_ends`.
    pub session_ends: &'a Value,
    /// The asker's clock when it asked for `session_ends`.
    pub asked_at_ms: i64,
}

impl ServerState {
    /// Reads the answers of commands.
    pub fn of_commands(answers: Commands<'_>) -> ServerState {
        let Commands { monitor, zabstate, stats, voting_view, session_ends: ends, asked_at_ms } = answers;
        let text = |of: &Value, name: &str| of[name].as_str().unwrap_or_default().to_owned();
        let figures = monitor.as_object().into_iter().flatten();
        let figures: BTreeMap<String, f64> =
            figures.filter_map(|(name, value)| Some((name.clone(), value.as_f64()?))).collect();
        let voters = voting_view["current_config"].as_object().into_iter().flatten();
        let address = |server: &Value| server["server_addresses"][0].as_str().unwrap_or_default().to_owned();
        let now = ends["now_ms"].as_i64();
        let version = text(monitor, "version");
        let mut state = ServerState {
            id: zabstate["myid"].as_i64().unwrap_or(0),
            kind: kind_of(&version),
            version: version_of(&version),
            mode: text(monitor, "server_state"),
            stage: text(zabstate, "zabstate"),
            serves: figures.contains_key("znode_count"),
            zxid: last_zxid(zabstate, stats),
            voters: voters.filter_map(|(id, server)| Some((id.parse().ok()?, address(server)))).collect(),
            paused_before_ms: last_stretch(&ends["pauses"], now),
            disk_stalled_before_ms: last_stretch(&ends["disk_stalls"], now),
            expired: expired(&ends["ends"], now),
            figures,
            ..ServerState::default()
        };
        state.note_clock(now.unwrap_or(asked_at_ms), asked_at_ms, asked_at_ms);
        state
    }

    /// Notes the server's clock, from an answer that has it.
    pub fn note_clock(&mut self, theirs_ms: i64, asked_ms: i64, answered_ms: i64) {
        let way = answered_ms.saturating_sub(asked_ms) / 2;
        self.clock_off_ms = theirs_ms.saturating_sub(asked_ms.saturating_add(way));
        self.clock_unsure_ms = way + 1;
    }

    /// A figure; 0 if the server does not have it.
    pub fn figure(&self, name: &str) -> f64 {
        self.figures.get(name).copied().unwrap_or(0.0)
    }

    /// A figure as a count, if the server has it.
    pub fn count(&self, name: &str) -> Option<u64> {
        self.figures.get(name).map(|value| *value as u64)
    }

    /// Such as `server 2, leader, zxid 0x100000005, 12 connections`.
    pub fn headline(&self) -> String {
        let name = if self.id == 0 { String::new() } else { format!("server {}, ", self.id) };
        let role = if self.serves { self.mode.clone() } else { format!("serves nobody ({})", self.stage) };
        let connections = self.figure("num_alive_connections");
        format!("{name}{role}, zxid 0x{:x}, {connections} connections, version {}", self.zxid.0, self.version)
    }

    /// Whether it is no member of an ensemble.
    pub fn is_standalone(&self) -> bool {
        self.mode == "standalone" && self.id == 0
    }

    /// Whether it works together with a quorum.
    pub fn is_in_quorum(&self) -> bool {
        self.serves && matches!(&*self.mode, "leader" | "follower" | "observer")
    }

    /// Its role: `leading`, `following`, `observing`, `looking`, `standalone` or `read_only`.
    pub fn role(&self) -> Option<&'static str> {
        Some(match (&*self.mode, self.serves) {
            ("read-only", _) => "read_only",
            (_, false) => "looking",
            ("leader", true) => "leading",
            ("follower", true) => "following",
            ("observer", true) => "observing",
            ("standalone", true) => "standalone",
            _ => return None,
        })
    }
}

/// A standalone server has no Zab. Java's answer to `zabstate` has no zxid for it, so that of `server_stats` is taken.
fn last_zxid(zabstate: &Value, stats: &Value) -> Zxid {
    let of_zab = zabstate["last_zxid"].as_str();
    let of_zab = of_zab.and_then(|text| u64::from_str_radix(text.trim_start_matches("0x"), 16).ok());
    let of_stats = || stats["server_stats"]["last_processed_zxid"].as_u64();
    Zxid(of_zab.or_else(of_stats).unwrap_or(0))
}

/// The make of a server, by its version.
pub(crate) fn kind_of(version: &str) -> ServerKind {
    match version {
        "" => ServerKind::Unknown,
        ours if ours.contains(OSTLER) => ServerKind::Ostler,
        _ => ServerKind::Java,
    }
}

/// A version without the time of the build.
pub(crate) fn version_of(text: &str) -> String {
    text.split(',').next().unwrap_or_default().to_owned()
}

fn last_stretch(all: &Value, now: Option<i64>) -> Option<i64> {
    Some(now?.saturating_sub(all.as_array()?.last()?["to_ms"].as_i64()?))
}

fn expired(ends: &Value, now: Option<i64>) -> usize {
    let Some(now) = now else { return 0 };
    let is_expiry = |end: &&Value| {
        let cause = end["cause"].to_string().to_ascii_lowercase();
        cause.contains("expired")
            && end["ended_ms"].as_i64().is_some_and(|at| now.saturating_sub(at) < LATELY_MS)
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
        let state = ServerState::of_commands(Commands {
            monitor: &monitor,
            zabstate: &place,
            stats: &Value::Null,
            voting_view: &view,
            session_ends: &ends,
            asked_at_ms: 9990,
        });
        assert_eq!((state.id, state.zxid, state.serves), (2, Zxid(0x1_0000_0003), true));
        assert_eq!((state.kind, state.role()), (ServerKind::Ostler, Some("following")));
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

    #[test]
    fn the_zxid_of_a_standalone_server_comes_from_its_statistics() {
        let stats = json!({ "server_stats": { "last_processed_zxid": 7 } });
        assert_eq!(last_zxid(&json!({ "voting": false, "zabstate": "" }), &stats), Zxid(7));
        assert_eq!(last_zxid(&json!({ "last_zxid": "0x9" }), &stats), Zxid(9));
    }

    #[test]
    fn a_state_is_read_back_the_same_and_lacks_what_an_older_server_does_not_send() {
        let state = ServerState { id: 2, zxid: Zxid(u64::MAX), epoch: Some(3), ..ServerState::default() };
        let text = serde_json::to_string(&state).unwrap();
        assert_eq!(serde_json::from_str::<ServerState>(&text).unwrap(), state);
        assert_eq!(serde_json::from_str::<ServerState>("{}").unwrap(), ServerState::default());
    }
}
