//! `/metrics`: the figures of `mntr` under the names and types of ZooKeeper 3.9's exporter, and Ostler's own histograms.
//!
//! The crate `prometheus` writes the text, and not `prometheus-client`: that one has no summaries, and ends the names of
//! counters in `_total`, which ZooKeeper 3.9 does not.

use crate::{
    admin::{
        four_letter::{
            Gauge, METRICS, MetricKind, MetricValue, NAMESPACED_METRICS, Percentiles, QUOTA_SETS, ServerView,
            Summary, Word, gauges,
        },
        process_metrics,
        reports::Reports,
    },
    driver::Driver,
};
use axum::{
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use ostler_server_core::stats::Buckets;
use prometheus::{
    TextEncoder,
    proto::{self, LabelPair, Metric, MetricFamily, MetricType, Quantile},
};
use std::{collections::HashMap, sync::Arc, time::Instant};
use tokio::task::spawn_blocking;

/// The type of the text, as Java names it.
const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Shows metrics.
pub(crate) struct Exporter {
    driver: Arc<Driver>,
    reports: Arc<Reports>,
    /// Whether the figures of the process are shown.
    with_process: bool,
    /// The figures of the last scrape, and when it began.
    last: tokio::sync::Mutex<Option<(Instant, Arc<Vec<MetricFamily>>)>>,
}

impl Exporter {
    pub(crate) fn new(driver: Arc<Driver>, reports: Arc<Reports>, with_process: bool) -> Exporter {
        Exporter { driver, reports, with_process, last: tokio::sync::Mutex::default() }
    }

    /// The answer to a scrape; `name[]` asks for some of the names.
    pub(crate) async fn scrape(self: Arc<Self>, query: Vec<(String, String)>) -> Response {
        let Some(families) = self.figures().await else {
            return StatusCode::INTERNAL_SERVER_ERROR.into_response();
        };
        match spawn_blocking(move || text(&families, &query)).await {
            Ok(text) => ([(header::CONTENT_TYPE, HeaderValue::from_static(TEXT))], text).into_response(),
            Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        }
    }
}

impl Exporter {
    /// The figures of a moment after the question. One scrape gathers them at a time; those who have waited for it share
    /// the next ones. `None` if its thread has ended early.
    async fn figures(self: Arc<Self>) -> Option<Arc<Vec<MetricFamily>>> {
        let asked = Instant::now();
        let mut last = self.last.lock().await;
        if let Some((began, families)) = &*last
            && *began >= asked
        {
            return Some(families.clone());
        }
        let began = Instant::now();
        let _turn = self.reports.turns.figures().await;
        let of = self.clone();
        // Figures of files and of quotas are gathered, too, so this is not for a thread that serves clients.
        let families = Arc::new(spawn_blocking(move || of.gather()).await.ok()?);
        *last = Some((began, families.clone()));
        Some(families)
    }

    fn gather(&self) -> Vec<MetricFamily> {
        let view = self.reports.view(&self.driver, Word::Mntr);
        let mut families = families(&view);
        if self.with_process {
            families.extend(process_metrics::families(view.gauges.uptime_ms));
        }
        families
    }
}

/// Writes those families that the query asks for.
fn text(families: &[MetricFamily], query: &[(String, String)]) -> String {
    let asked: Vec<&str> = query.iter().filter(|(key, _)| key == "name[]").map(|(_, name)| &**name).collect();
    let is_asked = |family: &&MetricFamily| asked.is_empty() || asked.iter().any(|name| is_of(family, name));
    let mut out = String::new();
    for family in families.iter().filter(is_asked) {
        if family.get_metric().is_empty() {
            // A set without members: the crate refuses it.
            let kind = format!("{:?}", family.get_field_type()).to_lowercase();
            out += &format!("# HELP {0} {0}\n# TYPE {0} {kind}\n", family.name());
        } else {
            TextEncoder::new()
                .encode_utf8(std::slice::from_ref(family), &mut out)
                .expect("a family with a name and members is written into memory");
        }
    }
    out
}

/// Whether a name is one of a family's.
fn is_of(family: &MetricFamily, name: &str) -> bool {
    name.strip_prefix(family.name()).is_some_and(|end| matches!(end, "" | "_sum" | "_count" | "_bucket"))
}

/// All families of this server in its role.
fn families(view: &ServerView) -> Vec<MetricFamily> {
    let mut all: Vec<MetricFamily> = gauges(view)
        .into_iter()
        .map(|(name, value)| family(name, MetricType::GAUGE, vec![gauge(value)]))
        .collect();
    all.extend(quotas(view));
    all.extend(singles(view));
    all.extend(sets(view));
    all
}

/// A family. The help is the name, as in Java.
pub(super) fn family(name: &str, kind: MetricType, members: Vec<Metric>) -> MetricFamily {
    let mut family = MetricFamily::default();
    family.set_name(name.into());
    family.set_help(name.into());
    family.set_field_type(kind);
    family.set_metric(members);
    family
}

fn gauge(value: Gauge) -> Metric {
    gauge_of(match value {
        Gauge::Whole(value) => value as f64,
        Gauge::Real(value) => value,
    })
}

pub(super) fn gauge_of(value: f64) -> Metric {
    let mut gauge = proto::Gauge::default();
    gauge.set_value(value);
    Metric::from_gauge(gauge)
}

pub(super) fn counter_of(value: f64) -> Metric {
    let mut counter = proto::Counter::default();
    counter.set_value(value);
    let mut metric = Metric::default();
    metric.set_counter(counter);
    metric
}

pub(super) fn labelled(mut metric: Metric, name: &str, value: &str) -> Metric {
    let mut label = LabelPair::default();
    label.set_name(name.into());
    label.set_value(value.into());
    metric.set_label(vec![label]);
    metric
}

fn quotas(view: &ServerView) -> impl Iterator<Item = MetricFamily> + '_ {
    QUOTA_SETS.iter().map(|(name, number)| {
        let members = view
            .gauges
            .quotas
            .iter()
            .filter_map(|quota| Some(labelled(gauge_of(number(quota)? as f64), "key", &quota.namespace)));
        family(name, MetricType::GAUGE, members.collect())
    })
}

/// Counters and summaries without a key, all of them: one that this server does not count stays at 0.
fn singles(view: &ServerView) -> Vec<MetricFamily> {
    let values: HashMap<&str, MetricValue> = view.metrics.values.iter().copied().collect();
    let mut all = Vec::new();
    for (name, kind) in METRICS {
        let value = values.get(name).copied().unwrap_or_else(|| zero(kind));
        all.push(family(name, type_of(kind), vec![member(value)]));
        if let MetricValue::AdvancedSummary(summary, _, buckets) = value {
            all.push(family(&histogram_name(name), MetricType::HISTOGRAM, vec![histogram(summary, buckets)]));
        }
    }
    all
}

/// The name of the histogram beside a summary: the unit is at its end.
fn histogram_name(summary: &str) -> String {
    format!("ostler_{}_milliseconds", summary.trim_end_matches("_ms"))
}

fn sets(view: &ServerView) -> impl Iterator<Item = MetricFamily> + '_ {
    NAMESPACED_METRICS.iter().map(|(name, kind)| {
        let members = view.metrics.namespaced.iter().filter(|of| of.set == *name);
        let members = members.map(|of| labelled(member(of.value), "key", &of.key));
        family(name, type_of(*kind), members.collect())
    })
}

fn type_of(kind: MetricKind) -> MetricType {
    match kind {
        MetricKind::Counter => MetricType::COUNTER,
        MetricKind::Summary | MetricKind::AdvancedSummary => MetricType::SUMMARY,
    }
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

fn member(value: MetricValue) -> Metric {
    match value {
        MetricValue::Counter(count) => counter_of(count as f64),
        MetricValue::Summary(of) => summary(of, &[(0.5, of.median)]),
        MetricValue::AdvancedSummary(of, percentiles, _) => {
            let Percentiles { p50, p90, p99, .. } = percentiles;
            summary(of, &[(0.5, p50), (0.9, p90), (0.99, p99)])
        }
    }
}

/// Without a value the quantiles are not a number, as in Java.
fn summary(of: Summary, quantiles: &[(f64, u64)]) -> Metric {
    let quantile = |(share, value): &(f64, u64)| {
        let mut quantile = Quantile::default();
        quantile.set_quantile(*share);
        quantile.set_value(if of.count == 0 { f64::NAN } else { *value as f64 });
        quantile
    };
    let mut summary = proto::Summary::default();
    summary.set_quantile(quantiles.iter().map(quantile).collect());
    summary.set_sample_count(of.count);
    summary.set_sample_sum(of.sum as f64);
    let mut metric = Metric::default();
    metric.set_summary(summary);
    metric
}

fn histogram(of: Summary, Buckets(counts): Buckets) -> Metric {
    let mut so_far = 0;
    let mut buckets = Vec::new();
    for (at, count) in counts.into_iter().enumerate() {
        so_far += count;
        if let Some(bound) = Buckets::bound(at) {
            let mut bucket = proto::Bucket::default();
            bucket.set_upper_bound(bound as f64);
            bucket.set_cumulative_count(so_far);
            buckets.push(bucket);
        }
    }
    let mut histogram = proto::Histogram::default();
    histogram.set_bucket(buckets);
    histogram.set_sample_count(of.count);
    histogram.set_sample_sum(of.sum as f64);
    let mut metric = Metric::default();
    metric.set_histogram(histogram);
    metric
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::four_letter::{Metrics, NamespacedMetric};

    fn view() -> ServerView {
        let summary = Summary { min: 1, max: 9, count: 3, sum: 12, median: 2 };
        let percentiles = Percentiles { p50: 2, p90: 9, p95: 9, p99: 9, p999: 9 };
        let mut counts = [0; Buckets::COUNT];
        (counts[1], counts[2], counts[5]) = (1, 1, 1);
        let values = vec![
            ("fsynctime", MetricValue::Summary(summary)),
            ("readlatency", MetricValue::AdvancedSummary(summary, percentiles, Buckets(counts))),
            ("commit_count", MetricValue::Counter(7)),
        ];
        let namespaced = vec![NamespacedMetric {
            set: "write_per_namespace",
            key: "a\"b".into(),
            value: MetricValue::Summary(summary),
        }];
        ServerView { metrics: Metrics { values, namespaced }, ..ServerView::default() }
    }

    #[test]
    fn each_kind_has_the_lines_of_java() {
        let ask = |name: &str| text(&families(&view()), &[("name[]".into(), name.into())]);
        assert_eq!(
            ask("commit_count"),
            "# HELP commit_count commit_count\n# TYPE commit_count counter\ncommit_count 7\n"
        );
        assert_eq!(
            ask("fsynctime_sum"),
            "# HELP fsynctime fsynctime\n# TYPE fsynctime summary\nfsynctime{quantile=\"0.5\"} 2\nfsynctime_sum 12\n\
             fsynctime_count 3\n"
        );
        assert!(ask("readlatency").contains("readlatency{quantile=\"0.9\"} 9\n"));
        assert!(ask("updatelatency").contains("updatelatency{quantile=\"0.99\"} NaN\n"));
        assert!(ask("write_per_namespace").contains("write_per_namespace_count{key=\"a\\\"b\"} 3\n"));
        assert_eq!(
            ask("quota_bytes_limit_per_namespace"),
            "# HELP quota_bytes_limit_per_namespace quota_bytes_limit_per_namespace\n# TYPE \
             quota_bytes_limit_per_namespace gauge\n"
        );
    }

    #[test]
    fn a_histogram_counts_up_to_each_bound() {
        let shown = text(&families(&view()), &[("name[]".into(), "ostler_readlatency_milliseconds".into())]);
        for line in
            ["le=\"0\"} 0", "le=\"1\"} 1", "le=\"2\"} 2", "le=\"8\"} 2", "le=\"16\"} 3", "le=\"+Inf\"} 3"]
        {
            assert!(shown.contains(line), "{line} in {shown}");
        }
    }

    #[test]
    fn no_family_comes_twice() {
        let all = families(&ServerView::default());
        let mut names: Vec<&str> = all.iter().map(|family| family.name()).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
