//! The lines of the charts: what samples mean, and how those of a longer step are one value.

use super::ring::Sample;

/// The samples of one step, added up.
#[derive(Debug, Clone, Copy)]
pub(super) struct Step(Sample);

impl Step {
    pub(super) fn of(sample: &Sample) -> Step {
        Step(*sample)
    }

    /// Adds the sample that follows. Counts add up, the most requests that waited count, and the size is that at the end.
    pub(super) fn add(&mut self, sample: &Sample) {
        let Step(all) = self;
        let mut latency = all.latency;
        latency.add(&sample.latency);
        *all = Sample {
            span_ms: all.span_ms.saturating_add(sample.span_ms),
            operations: all.operations.saturating_add(sample.operations),
            latency,
            syncs: all.syncs.saturating_add(sample.syncs),
            sync_ms: all.sync_ms.saturating_add(sample.sync_ms),
            outstanding: all.outstanding.max(sample.outstanding),
            ..*sample
        };
    }
}

/// A line: its name, its unit, and its value in a step; `None` if there is none, as the latency of no requests.
pub(super) struct Line {
    pub(super) name: &'static str,
    pub(super) unit: &'static str,
    value: fn(&Sample) -> Option<f64>,
}

impl Line {
    /// The value in a step, in tenths at most.
    pub(super) fn value(&self, Step(sample): &Step) -> Option<f64> {
        (self.value)(sample).map(|value| (value * 10.0).round() / 10.0)
    }
}

const fn line(name: &'static str, unit: &'static str, value: fn(&Sample) -> Option<f64>) -> Line {
    Line { name, unit, value }
}

/// All lines, in the order of the page.
pub(super) const LINES: [Line; 13] = [
    line("operations", "per_second", |of| share(of.operations, of.span_ms).map(|per_ms| per_ms * 1000.0)),
    line("latency_p50", "ms", |of| of.latency.within(0.5)),
    line("latency_p99", "ms", |of| of.latency.within(0.99)),
    line("latency_max", "ms", |of| of.latency.max()),
    line("outstanding", "count", |of| Some(of.outstanding.into())),
    line("sync_time", "ms", |of| share(of.sync_ms, of.syncs)),
    line("connections", "count", |of| Some(of.connections.into())),
    line("sessions", "count", |of| Some(of.sessions.into())),
    line("znodes", "count", |of| Some(of.znodes as f64)),
    line("bytes", "bytes", |of| Some(of.bytes as f64)),
    line("watches", "count", |of| Some(of.watches.into())),
    line("memory", "bytes", |of| Some(of.memory as f64)),
    line("descriptors", "count", |of| Some(of.descriptors.into())),
];

fn share(part: u32, of: u32) -> Option<f64> {
    (of > 0).then(|| f64::from(part) / f64::from(of))
}
