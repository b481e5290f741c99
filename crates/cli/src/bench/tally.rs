//! Counts replies, with their latencies and errors.

use hdrhistogram::Histogram;
use serde::Serialize;
use std::collections::BTreeMap;

/// The longest latency, in nanoseconds. Longer ones count as this.
const LONGEST: u64 = 600_000_000_000;

/// Replies of one kind.
#[derive(Debug, Clone)]
pub(crate) struct Tally {
    latency: Histogram<u64>,
    errors: BTreeMap<i32, u64>,
}

/// Percentiles, in microseconds.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Latency {
    pub(crate) mean: f64,
    pub(crate) p50: f64,
    pub(crate) p90: f64,
    pub(crate) p99: f64,
    #[serde(rename = "p99.9")]
    pub(crate) p999: f64,
    pub(crate) max: f64,
}

impl Tally {
    pub(crate) fn new() -> Tally {
        let latency = Histogram::new_with_bounds(100, LONGEST, 3)
            .expect("the bounds are in order and three digits are allowed");
        Tally { latency, errors: BTreeMap::new() }
    }

    /// Counts a reply that took `nanos`; `error` is 0 for success.
    pub(crate) fn count(&mut self, nanos: u64, error: i32) {
        self.latency.saturating_record(nanos.min(LONGEST));
        if error != 0 {
            *self.errors.entry(error).or_default() += 1;
        }
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.latency.reset();
        self.errors.clear();
    }

    /// Adds the counts of another tally.
    pub(crate) fn add(&mut self, other: &Tally) {
        self.latency.add(&other.latency).expect("all tallies have the same bounds");
        for (&code, count) in &other.errors {
            *self.errors.entry(code).or_default() += count;
        }
    }

    /// The number of replies, failed ones included.
    pub(crate) fn ops(&self) -> u64 {
        self.latency.len()
    }

    /// The number of failed replies, by the name of the error.
    pub(crate) fn errors(&self) -> BTreeMap<String, u64> {
        self.errors.iter().map(|(&code, &count)| (super::codes::name(code), count)).collect()
    }

    /// The latencies; `None` if nothing was counted.
    pub(crate) fn latency(&self) -> Option<Latency> {
        let micros = |nanos: u64| nanos as f64 / 1000.0;
        let at = |quantile| micros(self.latency.value_at_quantile(quantile));
        (self.ops() > 0).then(|| Latency {
            mean: self.latency.mean() / 1000.0,
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            p999: at(0.999),
            max: micros(self.latency.max()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tallies_add_up() {
        let (mut one, mut two) = (Tally::new(), Tally::new());
        assert!(one.latency().is_none());
        one.count(1_000_000, 0);
        two.count(3_000_000, -101);
        one.add(&two);
        let latency = one.latency().unwrap();
        assert!((latency.mean - 2000.0).abs() < 5.0, "{latency:?}");
        assert!((latency.max - 3000.0).abs() < 5.0, "{latency:?}");
        assert_eq!(one.errors(), BTreeMap::from([("NoNode (-101)".to_owned(), 1)]));
    }
}
