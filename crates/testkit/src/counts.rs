//! What a server holds and has done, as it sees it itself.

use ostler_proto::id::SessionId;
use ostler_server_core::Server;
use std::net::SocketAddr;

/// A server in numbers, at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Open connections, those without a session included.
    pub connections: usize,
    /// Sessions that this server knows of: all of the ensemble, whichever member their clients are at, and its own local
    /// ones.
    pub sessions: usize,
    /// Those of them that no other member knows of.
    pub local_sessions: usize,
    /// Watches: one for each path and connection, whatever its kind.
    pub watches: usize,
    /// Ephemeral znodes.
    pub ephemerals: usize,
    /// Znodes, the root and those of /zookeeper included.
    pub znodes: usize,
    /// Requests that are not answered.
    pub outstanding: usize,
    /// Requests taken since the start, handshakes and pings included.
    pub requests: u64,
    /// Watch events given out since the start.
    pub events: u64,
    /// Transactions applied since the start.
    pub commits: u64,
    /// The last transaction applied.
    pub zxid: u64,
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
            zxid: summary.zxid.0,
        }
    }

    /// Of several members: what they hold for their own clients together, and the tree of the one that is furthest.
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
pub struct Connection {
    /// Where it comes from: the client's own address, or a proxy's.
    pub peer: SocketAddr,
    /// Its session; `None` before the handshake.
    pub session: Option<SessionId>,
    /// Requests taken on it, the handshake and pings included.
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
