//! Data for the four-letter words and the admin interface, taken in one moment.

use crate::{
    input::{ConnId, Mono},
    server::Server,
    session::Scope,
    stats::{ConnStats, Stats},
};
use alloc::{collections::BTreeMap, string::String, vec::Vec};
use core::net::SocketAddr;
use ostler_proto::{
    id::{ServerId, SessionId, Zxid},
    path,
};
use ostler_tree::{
    digest::DigestEntry,
    quota::{QuotaNode, QuotaNumbers, classify},
};
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
    /// When this server's present part in a reign began.
    pub serves_since: Option<Mono>,
}

/// The quotas below one name at the root, summed; `None` where none of them has such a znode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NamespaceQuota {
    /// Znodes; the hard limit where there is one.
    pub count_limit: Option<i64>,
    /// Bytes.
    pub bytes_limit: Option<i64>,
    /// Znodes that are there.
    pub count_usage: Option<i64>,
    /// Bytes that are there.
    pub bytes_usage: Option<i64>,
}

impl NamespaceQuota {
    fn add(&mut self, of: &QuotaNode<'_>, numbers: QuotaNumbers) {
        // A client can write any number here.
        let add = |sum: &mut Option<i64>, number: i64| *sum = Some(sum.unwrap_or(0).wrapping_add(number));
        let limit = |hard: i64, soft: i64| if hard > -1 { hard } else { soft };
        match of {
            QuotaNode::Limits(_) => {
                add(&mut self.count_limit, limit(numbers.count_hard, numbers.count));
                add(&mut self.bytes_limit, limit(numbers.bytes_hard, numbers.bytes));
            }
            QuotaNode::Stats(_) => {
                add(&mut self.count_usage, numbers.count);
                add(&mut self.bytes_usage, numbers.bytes);
            }
        }
    }
}

impl Server {
    /// A member's place in its ensemble; `None` for a lone server.
    pub fn quorum(&self) -> Option<QuorumReport> {
        let ensemble = self.ensemble.as_ref()?;
        Some(ensemble.report(self.syncs.len()))
    }

    /// Limits and usage by the first name of the paths that have quotas. As upstream looks for them: only a znode without
    /// children is a quota's.
    pub fn quotas(&self) -> BTreeMap<String, NamespaceQuota> {
        let mut by_namespace: BTreeMap<String, NamespaceQuota> = BTreeMap::new();
        let mut rest = Vec::from([String::from(path::QUOTA_ROOT)]);
        while let Some(at) = rest.pop() {
            let before = rest.len();
            rest.extend(self.tree.children(&at).map(|child| alloc::format!("{at}/{child}")));
            let namespace = at[path::QUOTA_ROOT.len()..].split('/').nth(1);
            let data = self.tree.get(&at).and_then(|node| node.data.as_deref());
            if rest.len() == before
                && let (Some(quota), Some(namespace), Some(data)) = (classify(&at), namespace, data)
            {
                by_namespace.entry(namespace.into()).or_default().add(&quota, QuotaNumbers::parse(data));
            }
        }
        by_namespace
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
        let mut all: Vec<ConnReport> = self
            .conns
            .iter()
            .filter(|(_, state)| !state.is_closed())
            .map(|(conn, state)| ConnReport {
                conn: *conn,
                peer: state.peer,
                session: state
                    .session()
                    .map(|id| (id, self.sessions.get(id).map_or(0, |session| session.timeout_ms))),
                stats: state.stats.clone(),
                outstanding: state.fifo.len(),
            })
            .collect();
        all.sort_by_key(|report| report.conn);
        all
    }

    /// Sessions by the monotonic time at which they expire.
    pub fn session_buckets(&self, scope: Scope) -> Vec<(u64, Vec<SessionId>)> {
        self.sessions.buckets(scope).map(|(bucket, ids)| (bucket.0, ids.iter().copied().collect())).collect()
    }

    /// At a server that keeps no global session alive: those that it knows, and their timeouts in ms.
    pub fn learnt_sessions(&self) -> Option<Vec<(SessionId, i32)>> {
        self.leader.is_none().then(|| self.tree.sessions().collect())
    }

    /// Sessions that only this server knows by the time at which they expire, if there can be any.
    pub fn local_session_buckets(&self) -> Option<Vec<(u64, Vec<SessionId>)>> {
        self.has_local_sessions().then(|| self.session_buckets(Scope::Local))
    }

    /// Ephemerals by session.
    pub fn ephemerals(&self) -> Vec<(SessionId, Vec<String>)> {
        let all = self.tree.ephemerals_by_session();
        all.map(|(id, paths)| (id, paths.iter().map(|path| String::from(&**path)).collect())).collect()
    }

    /// Watched paths and the sessions that watch them.
    pub fn watches_by_path(&self) -> Vec<(String, Vec<SessionId>)> {
        let all = self.watches.data_by_path();
        all.into_iter()
            .map(|(path, watchers)| {
                let sessions = watchers.into_iter().filter_map(|watcher| {
                    self.conns.get(&ConnId::from(watcher)).and_then(|conn| conn.session())
                });
                (String::from(&*path), sessions.collect())
            })
            .collect()
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

    /// It is answered, in so many parts.
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
