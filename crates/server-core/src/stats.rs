//! The core's counts. The shell shows them as `mntr`, metrics and `cons`.

pub mod client_notes;
pub mod hot;
pub mod namespaces;
pub mod slow_requests;
pub mod stages;
pub mod traced;

use crate::{
    input::{Now, RequestHead},
    stats::namespaces::Namespaces,
};
use alloc::{collections::BTreeMap, vec::Vec};
use core::cmp::Ordering;
use ostler_proto::id::{ServerId, Zxid};

/// The first values, all of which move the median.
const MEDIAN_OF_ALL: u64 = 64;

/// A running minimum, average and maximum.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Summary {
    /// Smallest value, 0 before the first.
    pub min: u64,
    /// Largest value.
    pub max: u64,
    /// Sum of the values.
    pub sum: u64,
    /// The number of values.
    pub count: u64,
    /// An estimate of the median: a value above it raises it by a sixteenth, but at least by 1, and a value below it lowers
    /// it likewise. Half of the values do each once it is near. No sample has to be kept. After the first 64 values it
    /// looks at one in eight.
    pub median: u64,
}

impl Summary {
    /// A summary of one value.
    pub fn of(value: u64) -> Summary {
        let mut summary = Summary::default();
        summary.add(value);
        summary
    }

    /// Adds a value.
    pub fn add(&mut self, value: u64) {
        self.min = if self.count == 0 { value } else { self.min.min(value) };
        self.max = self.max.max(value);
        // Half of the values are above the median and half below, which no processor predicts. So an eighth has to do.
        if self.count < MEDIAN_OF_ALL || self.count.is_multiple_of(8) {
            self.move_median(value);
        }
        self.sum += value;
        self.count += 1;
    }

    fn move_median(&mut self, value: u64) {
        self.median = match (self.count, value.cmp(&self.median)) {
            (0, _) => value,
            (_, Ordering::Greater) => value.min(self.median + 1 + self.median / 16),
            (_, Ordering::Less) => value.max(self.median.saturating_sub(1 + self.median / 16)),
            (_, Ordering::Equal) => value,
        };
    }
}

/// The number of values in each range: 0, 1, 2, 3 to 4, 5 to 8 and so on; the last one has all above 8,192.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Buckets(pub [u64; Buckets::COUNT]);

impl Buckets {
    /// The number of ranges.
    pub const COUNT: usize = 16;

    /// The largest value of a range; `None` for the last range.
    pub fn bound(at: usize) -> Option<u64> {
        match at {
            0 => Some(0),
            _ if at < Buckets::COUNT - 1 => Some(1 << (at - 1)),
            _ => None,
        }
    }

    fn add(&mut self, value: u64) {
        let at = match value {
            0 => 0,
            _ => 1 + (u64::BITS - (value - 1).leading_zeros()) as usize,
        };
        self.0[at.min(Buckets::COUNT - 1)] += 1;
    }
}

/// A summary and a sample of its values, all equally likely to be in it, from which percentiles are taken: upstream's
/// reservoir of 4,096 (`AvgMinMaxPercentileCounter`).
#[derive(Debug, Clone, Default)]
pub struct Sampled {
    /// Of all values.
    pub summary: Summary,
    /// Of all values.
    pub buckets: Buckets,
    sample: Vec<u32>,
    random: u64,
}

const SAMPLE: usize = 4096;

impl Sampled {
    /// Adds a value.
    pub fn add(&mut self, value: u64) {
        self.summary.add(value);
        self.buckets.add(value);
        let value = u32::try_from(value).unwrap_or(u32::MAX);
        if self.sample.len() < SAMPLE {
            return self.sample.push(value);
        }
        // A simple generator is enough.
        self.random =
            self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let at = ((u128::from(self.random) * u128::from(self.summary.count)) >> 64) as usize;
        if let Some(old) = self.sample.get_mut(at) {
            *old = value;
        }
    }

    /// The values below which these shares of all are (0.99: 99%), between two values of the sample where it falls there.
    pub fn percentiles<const N: usize>(&self, shares: [f64; N]) -> [u64; N] {
        let mut sorted = self.sample.clone();
        sorted.sort_unstable();
        shares.map(|share| percentile(&sorted, share))
    }
}

fn percentile(sorted: &[u32], share: f64) -> u64 {
    let (Some(first), Some(last)) = (sorted.first(), sorted.last()) else { return 0 };
    let place = share * (sorted.len() + 1) as f64;
    let below = place as usize;
    match below {
        0 => u64::from(*first),
        _ if below >= sorted.len() => u64::from(*last),
        _ => {
            let (low, high) = (f64::from(sorted[below - 1]), f64::from(sorted[below]));
            (low + (place - below as f64) * (high - low) + 0.5) as u64
        }
    }
}

/// Counts of elections, and times without service in ms. Names in brackets are those of upstream's `mntr`.
#[derive(Debug, Clone, Default)]
pub struct ElectionStats {
    /// Searches for a leader (`looking_count`).
    pub searches: u64,
    /// From the beginning of an election to its end, at voters.
    pub election_ms: Summary,
    /// From the end of serving clients to its next beginning.
    pub unavailable_ms: Summary,
    /// The same, if this server leads then.
    pub leader_unavailable_ms: Summary,
    /// From the promise of the epoch to serving clients, as a follower.
    pub follower_sync_ms: Summary,
    /// The same, as an observer.
    pub observer_sync_ms: Summary,
}

/// Counts of how learners of this server got its history.
#[derive(Debug, Clone, Default)]
pub struct SyncStats {
    /// Synchronizations by DIFF or TRUNC (`diff_count`).
    pub without_tree: u64,
    /// Synchronizations by SNAP (`snap_count`).
    pub trees: u64,
    /// The number of DIFF and TRUNC under way, whenever one began or ended.
    pub without_tree_under_way: Summary,
    /// The same for SNAP.
    pub trees_under_way: Summary,
    /// Questions of learners whether a session lives.
    pub revalidations: u64,
}

/// Counts of transactions, and times in ms since they were made at the leader. The times compare the wall clocks of two
/// servers.
#[derive(Debug, Clone, Default)]
pub struct WriteStats {
    /// Until a quorum had the transaction, at a leader.
    pub quorum_ms: Sampled,
    /// Until the transaction was applied here.
    pub propagation_ms: Sampled,
    /// Until the proposal came, at a follower.
    pub proposal_ms: Sampled,
    /// Until the commit came, at a learner.
    pub commit_propagation_ms: Sampled,
    /// Proposals that came while this server followed.
    pub proposals_received: u64,
    /// Commits that came while this server followed.
    pub commits_received: u64,
    /// Commits as the leader of an ensemble.
    pub led_commits: u64,
    /// Until this server acknowledged the transaction, in an ensemble.
    pub own_ack_ms: Sampled,
    /// Until the acknowledgement of each server came, at a leader, for one proposal in a thousand.
    pub ack_ms: BTreeMap<ServerId, Sampled>,
    /// Pending changes of znodes that were noted, at a leader or a standalone server.
    pub changes_noted: u64,
    /// Pending changes that have committed.
    pub changes_made: u64,
    /// Requests to prepare, at a leader or a standalone server: all requests of its own clients, and the writes and
    /// syncs of learners' clients (`prep_processor_request_queued`).
    pub to_prepare: u64,
}

/// Auth requests of the scheme `ensemble`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EnsembleAuthCounts {
    /// The client named this ensemble.
    pub right: u64,
    /// The client named another ensemble.
    pub wrong: u64,
    /// The client gave no name, or this ensemble has none.
    pub skipped: u64,
}

/// A server's counts since its start or their reset.
#[derive(Debug, Clone, Default)]
pub struct Stats {
    /// Requests taken in, handshakes and four-letter words included.
    pub packets_received: u64,
    /// Replies and notifications, and the parts of answers to four-letter words.
    pub packets_sent: u64,
    /// From a request's arrival to its reply, ms.
    pub latency_ms: Summary,
    /// The same for reads only.
    pub read_latency_ms: Sampled,
    /// The same for writes only.
    pub update_latency_ms: Sampled,
    /// Counts of elections, and times without service.
    pub elections: ElectionStats,
    /// Counts of synchronizations of learners.
    pub syncs: SyncStats,
    /// Counts and times of transactions.
    pub writes: WriteStats,
    /// Notifications by event type.
    pub node_created_watches: Summary,
    pub node_deleted_watches: Summary,
    pub node_changed_watches: Summary,
    pub node_children_watches: Summary,
    /// Transactions committed.
    pub commits: u64,
    /// Transactions proposed.
    pub proposals: u64,
    /// Bytes of each proposed transaction.
    pub proposal_bytes: Summary,
    /// Bytes of the last proposed transaction.
    pub last_proposal_bytes: u64,
    /// Handshakes.
    pub connection_requests: u64,
    /// Sessions that came back.
    pub connection_revalidations: u64,
    /// Sessions that expired.
    pub stale_sessions_expired: u64,
    /// Auth requests that failed.
    pub auth_failed: u64,
    /// Auth requests of the scheme `ensemble`.
    pub ensemble_auth: EnsembleAuthCounts,
    /// Writes beyond a quota: refused by a hard one, let through by a soft one.
    pub quota_exceeded: u64,
    /// Reads, changes and refusals by the first name of their paths.
    pub namespaces: Namespaces,
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
    /// The operation number of the last reply; `None` before the first one, and after a refused write.
    pub last_op: Option<i32>,
    /// The last client xid answered.
    pub last_cxid: i32,
    /// Zxid of the last reply.
    pub last_zxid: i64,
    /// When the last reply was made, on the monotonic clock.
    pub last_response_mono_ms: u64,
    /// Latency of the last reply, ms.
    pub last_latency_ms: u64,
    /// Latency of all replies, ms.
    pub latency_ms: Summary,
    /// When it connected, wall clock.
    pub established_wall_ms: i64,
}

impl ConnStats {
    /// A request is answered: its operation, its number and the zxid that went along.
    pub(crate) fn answered(&mut self, now: Now, head: &RequestHead, zxid: Zxid) {
        self.last_op = Some(head.code);
        // Pings and the like have negative xids, which are not the client's own numbers.
        if head.xid.0 >= 0 {
            self.last_cxid = head.xid.0;
        }
        self.last_zxid = zxid.to_wire();
        self.last_response_mono_ms = now.mono.0;
        self.last_latency_ms = head.age_ms(now.mono);
        self.latency_ms.add(self.last_latency_ms);
    }

    /// Resets the counts, as `crst` does.
    pub(crate) fn reset(&mut self) {
        let established_wall_ms = self.established_wall_ms;
        *self = ConnStats { established_wall_ms, last_cxid: -1, last_zxid: -1, ..ConnStats::default() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `UniformSnapshot` of the library that upstream uses.
    #[test]
    fn percentiles_fall_between_values() {
        let mut sampled = Sampled::default();
        assert_eq!(sampled.percentiles([0.5, 0.99]), [0, 0]);
        (1..=4).for_each(|value| sampled.add(value * 10));
        assert_eq!(sampled.percentiles([0.01, 0.5, 0.75, 0.99]), [10, 25, 38, 40]);
    }

    #[test]
    fn a_full_sample_still_changes_with_what_comes() {
        let mut sampled = Sampled::default();
        (0..SAMPLE as u64).for_each(|_| sampled.add(1));
        (0..SAMPLE as u64 * 9).for_each(|_| sampled.add(100));
        assert_eq!(sampled.summary.count, SAMPLE as u64 * 10);
        let old = sampled.sample.iter().filter(|value| **value == 1).count();
        assert!((SAMPLE / 20..SAMPLE / 5).contains(&old), "{old} of the first tenth are left");
    }
}
