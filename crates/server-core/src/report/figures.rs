//! The numbers that charts show, of one moment.

use crate::{
    server::Server,
    sessions::Scope,
    stats::{Buckets, Summary},
};

/// A server's load and size. Cheaper to compute than [`Summary`](super::Summary): no sample of values is copied.
#[derive(Debug, Clone, Copy, Default)]
pub struct Figures {
    /// From the arrival of requests to their replies, ms.
    pub latency_ms: Summary,
    /// The same by ranges, for reads and writes.
    pub latency_ranges: Buckets,
    /// Requests not answered yet, over all connections.
    pub outstanding: usize,
    /// Connections that are not closed.
    pub connections: usize,
    /// Global and local sessions.
    pub sessions: usize,
    /// Znodes, the root twice as upstream counts it.
    pub znodes: usize,
    /// Bytes of paths and data.
    pub bytes: u64,
    /// Watch entries.
    pub watches: usize,
}

impl Server {
    /// The numbers that charts show.
    pub fn figures(&self) -> Figures {
        let (Buckets(reads), Buckets(writes)) =
            (self.stats.read_latency_ms.buckets, self.stats.update_latency_ms.buckets);
        let mut ranges = reads;
        ranges.iter_mut().zip(writes).for_each(|(range, more)| *range += more);
        Figures {
            latency_ms: self.stats.latency_ms,
            latency_ranges: Buckets(ranges),
            outstanding: self.connections.waiting_count(),
            connections: self.connections.open_count(),
            sessions: self.tree.session_count() + self.sessions.count(Scope::Local),
            znodes: self.tree.node_count() + 1,
            bytes: self.tree.data_size().max(0) as u64,
            watches: self.watches.count(),
        }
    }
}
