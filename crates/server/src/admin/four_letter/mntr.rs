//! The word `mntr`: lines `zk_<key>⇥<value>`, in the order in which a Java server prints them.

use std::collections::HashMap;
use std::fmt::{self, Display, Write};

use super::java_text::{Double, mean_of_four_decimals};
use super::metric_names::{METRICS, MetricKind, NAMESPACED_METRICS};
use super::view::{
    LeaderGauges, MessageSizes, MetricValue, Metrics, NamespaceQuota, Percentiles, ServerView, Summary,
};
use ostler_server_core::stats::Buckets;

pub(super) fn write(out: &mut String, view: &ServerView) -> fmt::Result {
    line(out, "version", &view.version)?;
    line(out, "server_state", view.mode.name())?;
    if let Some(quorum) = &view.gauges.quorum {
        line(out, "peer_state", quorum.peer_state)?;
        line_if(out, "observer_master_id", quorum.observer_master_id)?;
    }
    write_gauges(out, view)?;
    write_quotas(out, &view.gauges.quotas)?;
    write_metrics(out, &view.metrics)
}

fn line(out: &mut String, key: &str, value: impl Display) -> fmt::Result {
    writeln!(out, "zk_{key}\t{value}")
}

fn line_if(out: &mut String, key: &str, value: Option<impl Display>) -> fmt::Result {
    value.map_or(Ok(()), |value| line(out, key, value))
}

fn write_gauges(out: &mut String, view: &ServerView) -> fmt::Result {
    for (name, value) in gauges(view) {
        match value {
            Gauge::Whole(value) => line(out, name, value)?,
            Gauge::Real(value) => line(out, name, Double(value))?,
        }
    }
    Ok(())
}

/// The value of a gauge.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Gauge {
    Whole(i64),
    Real(f64),
}

/// The gauges that this server has in its role, in upstream's order.
pub(crate) fn gauges(view: &ServerView) -> Vec<(&'static str, Gauge)> {
    let gauges = &view.gauges;
    let sizes = gauges.client_response_sizes;
    let quorum = gauges.quorum.as_ref();
    let leader = quorum.and_then(|quorum| quorum.leader);
    let proposals = leader.map(|_| view.proposal_sizes);
    let count = |value: u64| Some(Gauge::Whole(i64::try_from(value).unwrap_or(i64::MAX)));
    let size = |value: i64| Some(Gauge::Whole(value));
    let of_leader = |value: fn(&LeaderGauges) -> u64| leader.as_ref().and_then(|leader| count(value(leader)));
    let of_proposals =
        |value: fn(&MessageSizes) -> i64| proposals.as_ref().and_then(|sizes| size(value(sizes)));
    let mean = mean_of_four_decimals(view.latency.sum_ms, view.latency.count);
    let all = [
        ("ephemerals_count", count(gauges.ephemerals_count)),
        ("num_alive_connections", count(view.connections_alive)),
        ("avg_latency", Some(Gauge::Real(mean))),
        ("min_proposal_size", of_proposals(|sizes| sizes.min)),
        ("outstanding_requests", count(view.outstanding)),
        ("znode_count", count(view.znode_count)),
        ("global_sessions", count(gauges.global_sessions)),
        ("non_mtls_remote_conn_count", count(gauges.non_mtls_remote_conn_count)),
        ("last_client_response_size", size(sizes.last)),
        ("packets_sent", count(view.packets_sent)),
        ("packets_received", count(view.packets_received)),
        ("max_proposal_size", of_proposals(|sizes| sizes.max)),
        ("max_client_response_size", size(sizes.max)),
        ("synced_followers", of_leader(|leader| leader.synced_followers)),
        ("connection_drop_probability", Some(Gauge::Real(gauges.connection_drop_probability))),
        ("watch_count", count(gauges.watch_count)),
        ("synced_non_voting_followers", of_leader(|leader| leader.synced_non_voting_followers)),
        ("synced_observers", quorum.and_then(|quorum| quorum.synced_observers).and_then(count)),
        ("auth_failed_count", count(gauges.auth_failed_count)),
        ("min_latency", count(view.latency.min_ms)),
        ("max_file_descriptor_count", count(gauges.max_file_descriptor_count)),
        ("approximate_data_size", count(gauges.approximate_data_size)),
        ("open_file_descriptor_count", count(gauges.open_file_descriptor_count)),
        ("last_proposal_size", of_proposals(|sizes| sizes.last)),
        ("pending_syncs", of_leader(|leader| leader.pending_syncs)),
        ("leader_uptime", of_leader(|leader| leader.uptime_ms)),
        ("local_sessions", count(gauges.local_sessions)),
        ("uptime", count(gauges.uptime_ms)),
        ("max_latency", count(view.latency.max_ms)),
        ("outstanding_tls_handshake", count(gauges.outstanding_tls_handshake)),
        ("learners", of_leader(|leader| leader.learners)),
        ("min_client_response_size", size(sizes.min)),
        ("non_mtls_local_conn_count", count(gauges.non_mtls_local_conn_count)),
        ("quorum_size", quorum.and_then(|quorum| count(quorum.size))),
    ];
    all.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

pub(crate) type QuotaNumber = fn(&NamespaceQuota) -> Option<i64>;

/// The sets of gauges with a line for each namespace.
pub(crate) const QUOTA_SETS: [(&str, QuotaNumber); 4] = [
    ("quota_bytes_limit_per_namespace", |quota| quota.bytes_limit),
    ("quota_count_usage_per_namespace", |quota| quota.count_usage),
    ("quota_count_limit_per_namespace", |quota| quota.count_limit),
    ("quota_bytes_usage_per_namespace", |quota| quota.bytes_usage),
];

fn write_quotas(out: &mut String, quotas: &[NamespaceQuota]) -> fmt::Result {
    for (set, number) in QUOTA_SETS {
        for quota in quotas {
            if let Some(value) = number(quota) {
                line(out, &format!("{}_{set}", quota.namespace), value)?;
            }
        }
    }
    Ok(())
}

/// Upstream's groups follow each other: a kind's single metrics, then its sets, except that all sets of
/// summaries come after all single summaries.
fn write_metrics(out: &mut String, metrics: &Metrics) -> fmt::Result {
    let values: HashMap<&str, MetricValue> = metrics.values.iter().copied().collect();
    debug_assert!(
        values.keys().all(|name| METRICS.iter().any(|(known, _)| known == name)),
        "every metric that the server counts is in the table of names, or it would not be printed"
    );
    write_singles(out, &values, MetricKind::Counter)?;
    write_sets(out, metrics, MetricKind::Counter)?;
    write_singles(out, &values, MetricKind::Summary)?;
    write_singles(out, &values, MetricKind::AdvancedSummary)?;
    write_sets(out, metrics, MetricKind::Summary)?;
    write_sets(out, metrics, MetricKind::AdvancedSummary)
}

fn write_singles(out: &mut String, values: &HashMap<&str, MetricValue>, kind: MetricKind) -> fmt::Result {
    for (name, _) in METRICS.iter().filter(|(_, of)| *of == kind) {
        let value = values.get(name).copied().unwrap_or_else(|| zero(kind));
        write_value(out, name, value)?;
    }
    Ok(())
}

fn write_sets(out: &mut String, metrics: &Metrics, kind: MetricKind) -> fmt::Result {
    for (set, _) in NAMESPACED_METRICS.iter().filter(|(_, of)| *of == kind) {
        for member in metrics.namespaced.iter().filter(|member| member.set == *set) {
            write_value(out, &format!("{}_{set}", member.key), member.value)?;
        }
    }
    Ok(())
}

fn zero(kind: MetricKind) -> MetricValue {
    match kind {
        MetricKind::Counter => MetricValue::Counter(0),
        MetricKind::Summary => MetricValue::Summary(Summary::default()),
        MetricKind::AdvancedSummary => {
            MetricValue::AdvancedSummary(Summary::default(), Percentiles::default(), Buckets::default())
        }
    }
}

fn write_value(out: &mut String, name: &str, value: MetricValue) -> fmt::Result {
    match value {
        MetricValue::Counter(count) => line(out, name, count),
        MetricValue::Summary(summary) => write_summary(out, name, summary),
        MetricValue::AdvancedSummary(summary, percentiles, _) => {
            write_summary(out, name, summary)?;
            write_percentiles(out, name, percentiles)
        }
    }
}

fn write_summary(out: &mut String, name: &str, summary: Summary) -> fmt::Result {
    let mean = Double(mean_of_four_decimals(summary.sum, summary.count));
    writeln!(out, "zk_avg_{name}\t{mean}")?;
    writeln!(out, "zk_min_{name}\t{}", summary.min)?;
    writeln!(out, "zk_max_{name}\t{}", summary.max)?;
    writeln!(out, "zk_cnt_{name}\t{}", summary.count)?;
    writeln!(out, "zk_sum_{name}\t{}", summary.sum)
}

fn write_percentiles(out: &mut String, name: &str, percentiles: Percentiles) -> fmt::Result {
    writeln!(out, "zk_p50_{name}\t{}", percentiles.p50)?;
    writeln!(out, "zk_p95_{name}\t{}", percentiles.p95)?;
    writeln!(out, "zk_p99_{name}\t{}", percentiles.p99)?;
    writeln!(out, "zk_p999_{name}\t{}", percentiles.p999)
}

#[cfg(test)]
mod tests {
    use super::super::view::{Gauges, Mode, Quorum};
    use super::*;

    #[track_caller]
    fn check(mode: Mode, quorum: Quorum, expected: &str) {
        let gauges = Gauges { quorum: Some(quorum), ..Gauges::default() };
        let view = ServerView { mode, gauges, ..ServerView::default() };
        let mut out = String::new();
        write(&mut out, &view).unwrap();
        let keys = out.lines().map(|line| line["zk_".len()..].split('\t').next().unwrap());
        let of_quorum = |key: &&str| expected.split(' ').any(|of| of == *key);
        let before =
            ["num_alive_connections", "packets_received", "watch_count", "open_file_descriptor_count"];
        let shown: Vec<&str> = keys.filter(|key| of_quorum(key) || before.contains(key)).collect();
        assert_eq!(shown.join(" "), expected);
    }

    /// As a Java 3.9 server of each kind orders them.
    #[test]
    fn mntr_of_a_member_shows_its_role() {
        let leader = LeaderGauges { learners: 2, synced_followers: 2, ..LeaderGauges::default() };
        let of_leader = Quorum { synced_observers: Some(0), leader: Some(leader), ..Quorum::default() };
        check(
            Mode::Leader,
            of_leader,
            "peer_state num_alive_connections min_proposal_size packets_received max_proposal_size synced_followers \
             watch_count synced_non_voting_followers synced_observers open_file_descriptor_count last_proposal_size \
             pending_syncs leader_uptime learners quorum_size",
        );
        let of_follower = Quorum { synced_observers: Some(1), ..Quorum::default() };
        check(
            Mode::Follower,
            of_follower,
            "peer_state num_alive_connections packets_received watch_count synced_observers \
             open_file_descriptor_count quorum_size",
        );
        let of_observer = Quorum { observer_master_id: Some(2), ..Quorum::default() };
        check(
            Mode::Observer,
            of_observer,
            "peer_state observer_master_id num_alive_connections packets_received watch_count \
             open_file_descriptor_count quorum_size",
        );
    }
}
