//! The counters of `mntr`, under upstream's names.

use super::four_letter::{MetricValue, Metrics, NamespacedMetric, Percentiles, Summary};
use crate::{
    disk_thread::DiskFigures,
    responses::Responses,
    throttle::{Throttles, requests::RequestThrottleCounts},
    traffic::Traffic,
};
use ostler_proto::id::ServerId;
use ostler_server_core::{
    quorum::MemberMode,
    stats::{self, Buckets, Sampled, Stats},
};
use std::{sync::atomic::Ordering, time::Duration};

/// How long the start took to load the data.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Loading {
    pub(crate) took: Duration,
    /// The time until the snapshot was read, if there was one.
    pub(crate) snapshot: Option<Duration>,
    /// Transactions of the log that were replayed.
    pub(crate) records: u64,
    /// The size of the snapshot, if there was one.
    pub(crate) snapshot_bytes: u64,
}

/// The counts of the core and of the parts around it.
pub(crate) struct Counted<'a> {
    pub(crate) stats: &'a Stats,
    /// `None` for a standalone server.
    pub(crate) mode: Option<MemberMode>,
    pub(crate) digest_mismatches: u64,
    pub(crate) responses: Responses,
    pub(crate) traffic: &'a Traffic,
    pub(crate) requests: RequestThrottleCounts,
    pub(crate) throttles: &'a Throttles,
    pub(crate) disk: &'a DiskFigures,
    pub(crate) snapshots_ms: stats::Summary,
    pub(crate) snapshots_failed: u64,
    pub(crate) loading: Option<Loading>,
    /// The learners that have this leader's history.
    pub(crate) learners: &'a [ServerId],
}

pub(crate) fn metrics(of: &Counted<'_>) -> Metrics {
    let mut values: Vec<(&'static str, MetricValue)> = Vec::new();
    values.extend(counters(of).map(|(name, count)| (name, MetricValue::Counter(count))));
    values.extend(summaries(of).map(|(name, counts)| (name, MetricValue::Summary(summary(&counts)))));
    values.extend(advanced(of).map(|(name, counts)| (name, sampled(counts))));
    let mut namespaced = sets(of.stats);
    namespaced.extend(of.learners.iter().flat_map(|learner| queues(*learner)));
    Metrics { values, namespaced }
}

fn counters(of: &Counted<'_>) -> [(&'static str, u64); 34] {
    let Stats { syncs, writes, .. } = of.stats;
    let traffic = of.traffic;
    [
        ("commit_count", writes.led_commits),
        ("looking_count", of.stats.elections.searches),
        ("diff_count", syncs.without_tree),
        ("snap_count", syncs.trees),
        ("revalidate_count", syncs.revalidations),
        ("learner_proposal_received_count", writes.proposals_received),
        ("learner_commit_received_count", writes.commits_received),
        ("sync_processor_request_queued", of.disk.batch.sum),
        ("prep_processor_request_queued", writes.to_prepare),
        ("outstanding_changes_queued", writes.changes_noted),
        ("outstanding_changes_removed", writes.changes_made),
        ("request_commit_queued", if of.mode.is_some() { of.stats.commits } else { 0 }),
        ("bytes_received_count", traffic.bytes_received.load(Ordering::Relaxed)),
        ("response_bytes", of.responses.reply_bytes),
        ("watch_bytes", of.responses.notification_bytes),
        ("connection_drop_count", traffic.dropped.load(Ordering::Relaxed)),
        ("connection_rejected", traffic.rejected.load(Ordering::Relaxed)),
        ("unsuccessful_handshake", traffic.failed_handshakes.load(Ordering::Relaxed)),
        ("sessionless_connections_expired", traffic.without_session.load(Ordering::Relaxed)),
        ("tls_handshake_exceeded", traffic.handshakes_exceeded.load(Ordering::Relaxed)),
        ("request_throttle_wait_count", of.requests.waits),
        ("throttled_ops", of.requests.refused),
        ("stale_requests", of.requests.stale),
        ("stale_requests_dropped", of.requests.stale_dropped),
        ("large_requests_rejected", of.throttles.large_requests.as_ref().map_or(0, |large| large.rejected())),
        ("proposal_count", of.stats.proposals),
        ("connection_request_count", of.stats.connection_requests),
        ("connection_revalidate_count", of.stats.connection_revalidations),
        ("stale_sessions_expired", of.stats.stale_sessions_expired),
        ("ensemble_auth_success", of.stats.ensemble_auth.right),
        ("ensemble_auth_fail", of.stats.ensemble_auth.wrong),
        ("ensemble_auth_skip", of.stats.ensemble_auth.skipped),
        ("digest_mismatches_count", of.digest_mismatches),
        ("snapshot_error_count", of.snapshots_failed),
    ]
}

fn summaries(of: &Counted<'_>) -> [(&'static str, stats::Summary); 21] {
    let Stats { elections, syncs, .. } = of.stats;
    let once = |value: Option<u64>| value.map_or_else(stats::Summary::default, stats::Summary::of);
    let ms = |took: Duration| took.as_millis() as u64;
    let loading = of.loading;
    // Without a snapshot there was no log either.
    let replaying = loading.and_then(|of| of.snapshot.map(|snapshot| (of, snapshot)));
    [
        ("election_time", elections.election_ms),
        ("unavailable_time", elections.unavailable_ms),
        ("leader_unavailable_time", elections.leader_unavailable_ms),
        ("follower_sync_time", elections.follower_sync_ms),
        ("observer_sync_time", elections.observer_sync_ms),
        ("inflight_diff_count", syncs.without_tree_under_way),
        ("inflight_snap_count", syncs.trees_under_way),
        ("fsynctime", of.disk.sync_ms.summary),
        ("sync_process_time", of.disk.write_ms),
        ("sync_processor_batch_size", of.disk.batch),
        ("sync_processor_queue_size", of.disk.waiting),
        ("snapshottime", of.snapshots_ms),
        ("dbinittime", once(loading.map(|of| ms(of.took)))),
        ("startup_snap_load_time", once(loading.map(|of| ms(of.snapshot.unwrap_or(of.took))))),
        ("startup_txns_load_time", once(replaying.map(|(of, read)| ms(of.took.saturating_sub(read))))),
        ("startup_txns_loaded", once(replaying.map(|(of, _)| of.records))),
        ("node_created_watch_count", of.stats.node_created_watches),
        ("node_deleted_watch_count", of.stats.node_deleted_watches),
        ("node_changed_watch_count", of.stats.node_changed_watches),
        ("node_children_watch_count", of.stats.node_children_watches),
        ("connection_token_deficit", token_deficits(of)),
    ]
}

/// Without a limit of new connections each of them finds all tokens, as in upstream.
fn token_deficits(of: &Counted<'_>) -> stats::Summary {
    let none_missing = || stats::Summary { count: of.stats.connection_requests, ..stats::Summary::default() };
    of.throttles.connection_figures().map_or_else(none_missing, |figures| figures.deficits)
}

fn advanced<'a>(of: &'a Counted<'_>) -> [(&'static str, Option<&'a Sampled>); 12] {
    let Stats { writes, .. } = of.stats;
    // A standalone server commits a transaction once it is on disk. It has no commit stage to measure.
    let staged = |sampled: &'a Sampled| of.mode.is_some().then_some(sampled);
    // An observer's acknowledgements do not count, so nothing waits for its disk.
    let flushed = Some(&of.disk.total_ms).filter(|_| of.mode != Some(MemberMode::Observer));
    [
        ("readlatency", Some(&of.stats.read_latency_ms)),
        ("updatelatency", Some(&of.stats.update_latency_ms)),
        ("read_commitproc_time_ms", staged(&of.stats.read_latency_ms)),
        ("write_commitproc_time_ms", staged(&of.stats.update_latency_ms)),
        ("quorum_ack_latency", Some(&writes.quorum_ms)),
        ("propagation_latency", Some(&writes.propagation_ms)),
        ("proposal_latency", Some(&writes.proposal_ms)),
        ("proposal_ack_creation_latency", Some(&writes.own_ack_ms)),
        ("commit_propagation_latency", Some(&writes.commit_propagation_ms)),
        ("sync_processor_queue_time_ms", Some(&of.disk.waited_ms)),
        ("sync_processor_queue_flush_time_ms", Some(&of.disk.sync_ms)),
        ("sync_processor_queue_and_flush_time_ms", flushed),
    ]
}

/// The queue of a learner's packets, as Java counts it. Here packets wait as bytes, and are not counted one by one.
fn queues(learner: ServerId) -> [NamespacedMetric; 2] {
    let of = |set, value| NamespacedMetric { set, key: learner.0.to_string(), value };
    [
        of("learner_handler_qp_size", MetricValue::Summary(Summary::default())),
        of("learner_handler_qp_time_ms", sampled(None)),
    ]
}

/// Metrics with a line for each key.
fn sets(stats: &Stats) -> Vec<NamespacedMetric> {
    let acks = stats.writes.ack_ms.iter().map(|(server, counts)| NamespacedMetric {
        set: "ack_latency",
        key: server.0.to_string(),
        value: sampled(Some(counts)),
    });
    let mut sets: Vec<NamespacedMetric> = acks.collect();
    for (name, of) in stats.namespaces.sorted() {
        let mut add = |set, value| sets.push(NamespacedMetric { set, key: name.to_owned(), value });
        if of.quota_refusals > 0 {
            add("quota_exceeded_error_per_namespace", MetricValue::Counter(of.quota_refusals));
        }
        if of.reads.count > 0 {
            add("read_per_namespace", MetricValue::Summary(summary(&of.reads)));
        }
        if of.writes.count > 0 {
            add("write_per_namespace", MetricValue::Summary(summary(&of.writes)));
        }
    }
    sets
}

fn summary(counts: &stats::Summary) -> Summary {
    let stats::Summary { min, max, count, sum, median } = *counts;
    Summary { min, max, count, sum, median }
}

fn sampled(counts: Option<&Sampled>) -> MetricValue {
    let Some(counts) = counts else {
        return MetricValue::AdvancedSummary(Summary::default(), Percentiles::default(), Buckets::default());
    };
    let [p50, p90, p95, p99, p999] = counts.percentiles([0.5, 0.9, 0.95, 0.99, 0.999]);
    let percentiles = Percentiles { p50, p90, p95, p99, p999 };
    MetricValue::AdvancedSummary(summary(&counts.summary), percentiles, counts.buckets)
}
