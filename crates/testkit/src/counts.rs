//! The counters of a server, and its clients' connections.

use ostler_proto::id::{SessionId, Zxid};
use ostler_server_core::Server;
use std::net::SocketAddr;

/// The counters of a server at one time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Counts {
    /// Open connections, including those without a session.
    pub connections: usize,
    /// Sessions that this server knows: all global sessions of the ensemble, and its own local sessions.
    pub sessions: usize,
    /// Local sessions, which no other member knows.
    pub local_sessions: usize,
    /// Watches: one for each pair of path and connection.
    pub watches: usize,
    /// Ephemeral znodes.
    pub ephemerals: usize,
    /// Znodes, including the root and those of /zookeeper.
    pub znodes: usize,
    /// Requests that are not answered yet.
    pub outstanding: usize,
    /// Requests received since the start, including handshakes and pings.
    pub requests: u64,
    /// Watch events sent since the start.
    pub events: u64,
    /// Transactions applied since the start.
    pub commits: u64,
    /// The zxid of the last applied transaction.
    pub zxid: Zxid,
}

impl Counts {
    pub(crate) fn of(server: &Server) -> Counts {
        let summary = server.summary();
        let stats = &summary.stats;
        let events = [
            stats.node_created_watches,
            stats.node_deleted_watches,
            stats.node_changed_watches,
            stats.node_children_watches,
        ];
        Counts {
            connections: summary.connections,
            sessions: summary.sessions + summary.local_sessions,
            local_sessions: summary.local_sessions,
            watches: summary.watch_count,
            ephemerals: summary.ephemerals_count,
            znodes: server.tree().node_count(),
            outstanding: summary.outstanding,
            requests: stats.packets_received,
            events: events.iter().map(|of_type| of_type.sum).sum(),
            commits: stats.commits,
            zxid: summary.zxid,
        }
    }

    /// The counters of an ensemble: the sum of what the members hold for their own clients, and the tree of the member that
    /// has applied the most. `None` without members.
    pub(crate) fn together(members: &[Counts]) -> Option<Counts> {
        let furthest = *members.iter().max_by_key(|counts| counts.zxid)?;
        let sum = |of_one: fn(&Counts) -> usize| members.iter().map(of_one).sum();
        let local_sessions: usize = sum(|counts| counts.local_sessions);
        Some(Counts {
            connections: sum(|counts| counts.connections),
            sessions: furthest.sessions - furthest.local_sessions + local_sessions,
            local_sessions,
            watches: sum(|counts| counts.watches),
            outstanding: sum(|counts| counts.outstanding),
            requests: members.iter().map(|counts| counts.requests).sum(),
            events: members.iter().map(|counts| counts.events).sum(),
            ..furthest
        })
    }
}

/// A client's connection as its server sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Connection {
    /// The address of the other end: the client's or a proxy's.
    pub peer: SocketAddr,
    /// The session; `None` before the handshake.
    pub session: Option<SessionId>,
    /// Requests received on the connection, including the handshake and pings.
    pub requests: u64,
}

impl Connection {
    pub(crate) fn all(server: &Server) -> Vec<Connection> {
        let connection = |report: ostler_server_core::report::ConnReport| Connection {
            peer: report.peer,
            session: report.session.map(|(id, _)| id),
            requests: report.stats.received,
        };
        server.connections().into_iter().map(connection).collect()
    }
}
