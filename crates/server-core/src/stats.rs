//! Counts of what was done; the shell shows them in its own forms.

/// A running minimum, average and maximum.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Summary {
    /// Smallest value, 0 before the first.
    pub min: u64,
    /// Largest value.
    pub max: u64,
    /// Sum of the values.
    pub sum: u64,
    /// How many.
    pub count: u64,
}

impl Summary {
    /// Adds a value.
    pub fn add(&mut self, value: u64) {
        self.min = if self.count == 0 { value } else { self.min.min(value) };
        self.max = self.max.max(value);
        self.sum += value;
        self.count += 1;
    }
}

/// A server's counts since its start or their reset.
#[derive(Debug, Clone, Default)]
pub struct Stats {
    /// Requests taken in, handshakes included.
    pub packets_received: u64,
    /// Replies and notifications given out.
    pub packets_sent: u64,
    /// From a request's arrival to its reply, ms.
    pub latency_ms: Summary,
    /// The same, reads alone.
    pub read_latency_ms: Summary,
    /// The same, writes alone.
    pub update_latency_ms: Summary,
    /// Notifications by event type.
    pub node_created_watches: Summary,
    pub node_deleted_watches: Summary,
    pub node_changed_watches: Summary,
    pub node_children_watches: Summary,
    /// Transactions committed.
    pub commits: u64,
    /// Transactions proposed.
    pub proposals: u64,
    /// Bytes of each.
    pub proposal_bytes: Summary,
    /// Bytes of the last one.
    pub last_proposal_bytes: u64,
    /// Handshakes.
    pub connection_requests: u64,
    /// Sessions that came back.
    pub connection_revalidations: u64,
    /// Sessions that expired.
    pub stale_sessions_expired: u64,
    /// Auth packets that proved nothing.
    pub auth_failed: u64,
    /// Writes beyond a quota: refused by a hard one, let through by a soft one.
    pub quota_exceeded: u64,
    /// Snapshots begun.
    pub snapshots: u64,
}

/// A connection's counts, for `cons`.
#[derive(Debug, Clone, Default)]
pub struct ConnStats {
    /// Requests taken in.
    pub received: u64,
    /// Replies given out. Notifications are counted where they are queued: a change that thousands watch
    /// need not look each of them up here.
    pub sent: u64,
    /// Operation number of the last reply; `None` before the first.
    pub last_op: Option<i32>,
    /// The last client xid answered.
    pub last_cxid: i32,
    /// Zxid of the last reply.
    pub last_zxid: i64,
    /// When the last reply was made, on the monotonic clock.
    pub last_response_mono_ms: u64,
    /// Latency of the last reply.
    pub last_latency_ms: u64,
    /// Latency of all.
    pub latency_ms: Summary,
    /// When it connected, wall clock.
    pub established_wall_ms: i64,
}
