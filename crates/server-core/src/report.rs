//! Data for the four-letter words and the admin interface, taken in one moment.

use crate::{
    input::{ConnId, Mono},
    server::Server,
    session::Scope,
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
    /// Its number.
    pub conn: ConnId,
    /// Where it comes from.
    pub peer: SocketAddr,
    /// Its session and that session's timeout, after the handshake.
    pub session: Option<(SessionId, i32)>,
    /// Its counts.
    pub stats: ConnStats,
    /// Requests not answered yet.
    pub outstanding: usize,
}

/// A server's state in numbers; cheap to take.
#[derive(Debug, Clone)]
pub struct Summary {
    /// Counts.
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
    /// Sessions that all servers know.
    pub sessions: usize,
    /// Sessions that only this one knows.
    pub local_sessions: usize,
    /// Connections.
    pub connections: usize,
    /// Transactions whose digest did not fit.
    pub digest_mismatches: u64,
}

/// A member's place in its ensemble.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuorumReport {
    /// How many vote.
    pub voters: usize,
    /// Learners that have the history, by what they are; of a leader, or of a follower that observers follow.
    pub learners: LearnerCounts,
    /// The followers among them that have a vote in no configuration, if this server leads.
    pub non_voting_followers: usize,
    /// Syncs of clients that wait for what was proposed before them.
    pub pending_syncs: usize,
    /// Whom an observer follows, or is to follow.
    pub master: Option<ServerId>,
    /// When this server's present part in an epoch began.
    pub serves_since: Option<Mono>,
}

impl Server {
    /// A member's place in its ensemble; `None` for a standalone server.
    pub fn quorum(&self) -> Option<QuorumReport> {
        let ensemble = self.ensemble.as_ref()?;
        Some(ensemble.report(self.syncs.len()))
    }

    /// The numbers.
    pub fn summary(&self) -> Summary {
        Summary {
            stats: self.stats.clone(),
            outstanding: self.conns.values().map(|conn| conn.fifo.len()).sum(),
            zxid: self.tree.last_processed(),
            node_count: self.tree.node_count() + 1,
            watch_count: self.watches.count(),
            ephemerals_count: self.tree.ephemeral_count(),
            data_size: self.tree.data_size(),
            sessions: self.tree.session_count(),
            local_sessions: self.sessions.count(Scope::Local),
            connections: self.conns.values().filter(|conn| !conn.is_closed()).count(),
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

    /// Whether another server keeps the global sessions alive, so that this one only knows them.
    pub fn learns_sessions(&self) -> bool {
        self.proposals.is_none()
    }

    /// Sessions that only this server knows by the time at which they expire, if there can be any.
    pub fn local_session_buckets(&self) -> Option<Vec<(u64, Vec<SessionId>)>> {
        self.has_local_sessions().then(|| self.session_buckets(Scope::Local))
    }

    /// Ephemerals by session.
    pub fn ephemerals(&self) -> Vec<(SessionId, Vec<String>)> {
        let all = self.tree.ephemerals_by_session();
        all.map(|(id, paths)| (id, paths.iter().map(Cow::into_owned).collect())).collect()
    }

    /// Connections that watch, watched paths, watches.
    pub fn watch_summary(&self) -> (usize, usize, usize) {
        self.watches.data_summary()
    }

    /// The digest log.
    pub fn digest_log(&self) -> Vec<DigestEntry> {
        self.tree.digest_log().copied().collect()
    }

    /// A four-letter word has come.
    pub fn count_word(&mut self, conn: ConnId) {
        self.stats.packets_received += 1;
        if let Some(state) = self.conns.get_mut(&conn) {
            state.stats.received += 1;
        }
    }

    /// It is answered, in this number of parts.
    pub fn count_word_answered(&mut self, conn: ConnId, parts: u64) {
        self.stats.packets_sent += parts;
        if let Some(state) = self.conns.get_mut(&conn) {
            state.stats.sent += parts;
        }
    }

    /// Forgets the server's counts (`srst`).
    pub fn reset_stats(&mut self) {
        self.stats = Stats::default();
    }

    /// Forgets the connections' counts (`crst`).
    pub fn reset_conn_stats(&mut self) {
        for conn in self.conns.values_mut() {
            conn.stats.reset();
        }
    }
}
