//! Data for the four-letter words and the admin interface, all of one moment.

pub mod clients;
pub mod figures;
pub mod holders;
pub mod live_sessions;
pub mod parts;
pub mod quotas;
pub mod sight;
pub mod subtree;
pub mod watch_walk;
pub mod znodes;

use crate::{
    input::{ConnId, Mono},
    server::Server,
    sessions::Scope,
    stats::{ConnStats, Stats},
};
use alloc::{borrow::Cow, string::String, vec::Vec};
use core::net::SocketAddr;
use ostler_proto::id::{ServerId, SessionId, Zxid};
use ostler_tree::digest::DigestEntry;
use ostler_zab::leading::LearnerCounts;

/// A connection as `cons` shows it.
#[derive(Debug, Clone)]
pub struct ConnReport {
    /// The number of the connection.
    pub conn: ConnId,
    /// The client's address.
    pub peer: SocketAddr,
    /// The session and its timeout in ms, after the handshake.
    pub session: Option<(SessionId, i32)>,
    /// The connection's counts.
    pub stats: ConnStats,
    /// Requests not answered yet.
    pub outstanding: usize,
}

/// A server's state in numbers. Cheap to compute.
#[derive(Debug, Clone)]
pub struct Summary {
    /// The server's counts.
    pub stats: Stats,
    /// Requests not answered yet, over all connections.
    pub outstanding: usize,
    /// The last transaction applied.
    pub zxid: Zxid,
    /// Znodes, the root twice as upstream counts it.
    pub node_count: usize,
    /// Watch entries.
    pub watch_count: usize,
    /// Ephemeral znodes.
    pub ephemerals_count: usize,
    /// Bytes of paths and data.
    pub data_size: i64,
    /// Global sessions.
    pub sessions: usize,
    /// Local sessions.
    pub local_sessions: usize,
    /// Connections that are not closed.
    pub connections: usize,
    /// Transactions after which the digest of the tree did not match.
    pub digest_mismatches: u64,
}

/// A member's place in its ensemble.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuorumReport {
    /// The number of voters.
    pub voters: usize,
    /// The numbers of learners, at a leader or an observer master.
    pub learners: LearnerCounts,
    /// The followers among them without a vote in any configuration, if this server leads.
    pub non_voting_followers: usize,
    /// Syncs of clients that wait for earlier proposals.
    pub pending_syncs: usize,
    /// The server that an observer is connected to, or tries to connect to.
    pub master: Option<ServerId>,
    /// When this server began to take part in the present epoch.
    pub serves_since: Option<Mono>,
}

impl Server {
    /// A member's place in its ensemble; `None` for a standalone server.
    pub fn quorum(&self) -> Option<QuorumReport> {
        let ensemble = self.role.ensemble()?;
        Some(ensemble.report(self.pipeline.syncs.len()))
    }

    /// The server's state in numbers.
    pub fn summary(&self) -> Summary {
        Summary {
            stats: self.stats.clone(),
            outstanding: self.connections.waiting_count(),
            zxid: self.tree.last_processed(),
            node_count: self.tree.node_count() + 1,
            watch_count: self.watches.count(),
            ephemerals_count: self.tree.ephemeral_count(),
            data_size: self.tree.data_size(),
            sessions: self.tree.session_count(),
            local_sessions: self.sessions.count(Scope::Local),
            connections: self.connections.open_count(),
            digest_mismatches: self.tree.digest_mismatches(),
        }
    }

    /// All connections that are not closed, in order of their numbers.
    pub fn connections(&self) -> Vec<ConnReport> {
        self.connection_numbers().into_iter().filter_map(|conn| self.connection(conn)).collect()
    }

    /// Sessions by the monotonic time at which they expire.
    pub fn session_buckets(&self, scope: Scope) -> Vec<(u64, Vec<SessionId>)> {
        self.sessions.buckets(scope).map(|(bucket, ids)| (bucket.0, ids.iter().copied().collect())).collect()
    }

    /// Whether another server decides when global sessions expire.
    pub fn learns_sessions(&self) -> bool {
        !self.leads()
    }

    /// Local sessions by the time at which they expire; `None` if they are not enabled.
    pub fn local_session_buckets(&self) -> Option<Vec<(u64, Vec<SessionId>)>> {
        self.has_local_sessions().then(|| self.session_buckets(Scope::Local))
    }

    /// Ephemerals by session.
    pub fn ephemerals(&self) -> Vec<(SessionId, Vec<String>)> {
        let all = self.tree.ephemerals_by_session();
        all.map(|(id, paths)| (id, paths.iter().map(Cow::into_owned).collect())).collect()
    }

    /// The numbers of connections that watch, of watched paths, and of watches.
    pub fn watch_summary(&self) -> (usize, usize, usize) {
        self.watches.data_summary()
    }

    /// The digest log.
    pub fn digest_log(&self) -> Vec<DigestEntry> {
        self.tree.digest_log().copied().collect()
    }

    /// Counts a four-letter word that has come.
    pub fn count_word(&mut self, conn: ConnId) {
        self.stats.packets_received += 1;
        if let Some(state) = self.connections.get_mut(conn) {
            state.stats.received += 1;
        }
    }

    /// Counts the answer of a four-letter word, in this number of parts.
    pub fn count_word_answered(&mut self, conn: ConnId, parts: u64) {
        self.stats.packets_sent += parts;
        if let Some(state) = self.connections.get_mut(conn) {
            state.stats.sent += parts;
        }
    }

    /// Forgets the server's counts (`srst`).
    pub fn reset_stats(&mut self) {
        self.stats = Stats::default();
    }

    /// Forgets the connections' counts (`crst`).
    pub fn reset_conn_stats(&mut self) {
        for conn in self.connections.iter_mut() {
            conn.stats.reset();
        }
    }
}
