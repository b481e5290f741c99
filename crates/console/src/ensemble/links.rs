//! The connections between members, as this server knows its own.

use ostler_server::admin::AdminHandle;
use ostler_server_core::quorum::MemberReport;
use serde::{Deserialize, Serialize};

/// The connections of one member to another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct LinkRow {
    pub(crate) from: i64,
    pub(crate) to: i64,
    pub(crate) election: LinkState,
    /// `None` where there should be none: only a leader and its learners have one.
    pub(crate) quorum: Option<QuorumLinkState>,
}

/// A connection of the election port.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct LinkState {
    pub(crate) up: bool,
    /// Since when it is so.
    pub(crate) since_ms: Option<i64>,
    /// Why it is down, or was last.
    pub(crate) error: Option<String>,
}

/// A connection of the quorum port.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct QuorumLinkState {
    pub(crate) up: bool,
    pub(crate) since_ms: Option<i64>,
    pub(crate) error: Option<String>,
    /// Of the last ping of the leader, as the leader measured.
    pub(crate) round_trip_ms: Option<f64>,
}

/// This server's connections.
pub(super) fn own(_handle: &AdminHandle, _member: Option<&MemberReport>) -> Vec<LinkRow> {
    Vec::new()
}
