//! The connections between members, as this server knows its own.

use crate::fan_out::now_ms;
use ostler_explain::ensemble::MissingLink;
use ostler_proto::id::ServerId;
use ostler_server::admin::{AdminHandle, ElectionLinkReport};
use ostler_server_core::quorum::{MemberReport, QuorumLink};
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

/// A connection that has been missing for this time is named: after an election they are made anew.
const MISSING_FOR_MS: i64 = 10_000;

impl LinkRow {
    /// The connection of the election port, if it has been missing for long.
    pub(super) fn missing(&self) -> Option<MissingLink> {
        let LinkState { up, since_ms, error } = &self.election;
        let is_missing = !up && since_ms.is_some_and(|since| now_ms().saturating_sub(since) > MISSING_FOR_MS);
        let (from, to, error) = (self.from, self.to, error.clone());
        is_missing.then_some(MissingLink { from, to, port: "election", error })
    }
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
pub(super) fn own(handle: &AdminHandle, member: Option<&MemberReport>) -> Vec<LinkRow> {
    let Some(member) = member else { return Vec::new() };
    let (election, quorum) = (handle.election_links(), handle.inspect(|server| server.quorum_links()));
    let others = member.membership.servers.keys().filter(|id| **id != member.me);
    let row = |to: &ServerId| LinkRow {
        from: member.me.0,
        to: to.0,
        election: election.iter().find(|link| link.peer == *to).map_or(LinkState::UNKNOWN, LinkState::of),
        quorum: quorum
            .iter()
            .find(|link| link.peer == *to)
            .map(QuorumLinkState::of)
            .or_else(|| is_expected(member, *to).then_some(QuorumLinkState::DOWN)),
    };
    others.map(row).collect()
}

/// Whether there should be a connection of the quorum port.
fn is_expected(member: &MemberReport, to: ServerId) -> bool {
    match member.leader {
        Some(leader) if leader == member.me => !is_observer(member, to),
        Some(leader) => leader == to && !is_observer(member, member.me),
        None => false,
    }
}

/// An observer may be connected to another server than the leader.
fn is_observer(member: &MemberReport, id: ServerId) -> bool {
    member.membership.servers.get(&id).is_some_and(|server| server.observer)
}

impl LinkState {
    const UNKNOWN: LinkState = LinkState { up: false, since_ms: None, error: None };

    fn of(link: &ElectionLinkReport) -> LinkState {
        LinkState { up: link.up, since_ms: link.since_ms, error: link.error.clone() }
    }
}

impl QuorumLinkState {
    const DOWN: QuorumLinkState =
        QuorumLinkState { up: false, since_ms: None, error: None, round_trip_ms: None };

    fn of(link: &QuorumLink) -> QuorumLinkState {
        QuorumLinkState {
            up: true,
            since_ms: Some(link.since_ms),
            error: None,
            round_trip_ms: link.round_trip_us.map(|us| us as f64 / 1000.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_that_is_missing_for_long_is_named() {
        let row = |up, ago_ms| LinkRow {
            from: 1,
            to: 2,
            election: LinkState { up, since_ms: Some(now_ms() - ago_ms), error: Some("refused".into()) },
            quorum: None,
        };
        assert_eq!(row(true, 60_000).missing(), None);
        assert_eq!(row(false, 1_000).missing(), None);
        let missing = row(false, 60_000).missing().unwrap();
        assert_eq!(
            missing.finding().sentence,
            "Server 1 has no connection to server 2 at the election port: refused."
        );
    }
}
