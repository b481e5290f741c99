//! The latency of the requests in a span of time, from the counts of ranges that the server keeps.

use super::ring::grown;
use ostler_server_core::stats::Buckets;

/// The number of requests in each range of [`Buckets`], and the slowest one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Ranges {
    counts: [u32; Buckets::COUNT],
    max_ms: u32,
}

impl Ranges {
    /// The requests between two moments, from the counts and the slowest request since the start at each.
    pub(super) fn between((before, max_before): (&Buckets, u64), (now, max): (&Buckets, u64)) -> Ranges {
        let small = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
        let mut counts = [0; Buckets::COUNT];
        for (count, (before, now)) in counts.iter_mut().zip(before.0.into_iter().zip(now.0)) {
            *count = small(grown(before, now));
        }
        let slowest = counts.iter().rposition(|count| *count > 0);
        let bound = slowest.map_or(0, |at| Buckets::bound(at).unwrap_or(max));
        // A new maximum is exact. Otherwise only the range of the slowest request is known.
        let max_ms = small(if max > max_before { max } else { bound.min(max) });
        Ranges { counts, max_ms }
    }

    /// Adds the requests of another span.
    pub(super) fn add(&mut self, other: &Ranges) {
        for (count, more) in self.counts.iter_mut().zip(other.counts) {
            *count = count.saturating_add(more);
        }
        self.max_ms = self.max_ms.max(other.max_ms);
    }

    /// The slowest request, ms, or the end of its range; `None` without requests.
    pub(super) fn max(&self) -> Option<f64> {
        self.counts.iter().any(|count| *count > 0).then_some(f64::from(self.max_ms))
    }

    /// The time in ms within which this share of the requests was answered, as if they were spread evenly in their range;
    /// `None` without requests.
    pub(super) fn within(&self, share: f64) -> Option<f64> {
        let all: u64 = self.counts.iter().map(|count| u64::from(*count)).sum();
        if all == 0 {
            return None;
        }
        let wanted = share * all as f64;
        let mut before = 0.0;
        for (at, count) in self.counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            let count = f64::from(*count);
            if before + count >= wanted {
                let (low, high) = self.ends(at);
                return Some(low + (high - low) * ((wanted - before) / count));
            }
            before += count;
        }
        self.max()
    }

    /// The least and the greatest time of a range.
    fn ends(&self, at: usize) -> (f64, f64) {
        let max = f64::from(self.max_ms);
        let bound = |at: usize| Buckets::bound(at).map_or(max, |bound| bound as f64);
        let low = if at == 0 { 0.0 } else { bound(at - 1) + 1.0 };
        (low.min(max), bound(at).min(max))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranges(counts: &[(usize, u64)], max: u64) -> Ranges {
        let mut now = Buckets::default();
        counts.iter().for_each(|(at, count)| now.0[*at] = *count);
        Ranges::between((&Buckets::default(), 0), (&now, max))
    }

    #[test]
    fn without_requests_there_is_no_latency() {
        let none = ranges(&[], 0);
        assert_eq!((none.within(0.5), none.max()), (None, None));
    }

    #[test]
    fn shares_fall_into_their_ranges() {
        // 90 requests of 0 ms, 9 of 5 to 8 ms, one of 40 ms.
        let of = ranges(&[(0, 90), (4, 9), (7, 1)], 40);
        assert_eq!(of.within(0.5), Some(0.0));
        assert_eq!(of.within(0.99), Some(8.0));
        assert!(of.within(0.95).is_some_and(|ms| (5.0..8.0).contains(&ms)));
        assert_eq!(of.within(1.0), Some(40.0));
        assert_eq!(of.max(), Some(40.0));
        assert_eq!(ranges(&[(1, 4)], 1).within(0.5), Some(1.0));
        // Beyond the last range only the slowest of all is known.
        assert_eq!(ranges(&[(15, 1)], 20_000).within(1.0), Some(20_000.0));
    }

    #[test]
    fn the_slowest_since_the_start_is_not_the_slowest_of_now() {
        let mut before = Buckets::default();
        before.0[10] = 1;
        let mut now = before;
        now.0[3] = 5;
        let of = Ranges::between((&before, 300), (&now, 300));
        assert_eq!(of.max(), Some(4.0));
        let after = Ranges::between((&before, 300), (&Buckets([1; 16]), 9_000));
        assert_eq!(after.max(), Some(9_000.0));
    }

    #[test]
    fn spans_add_up() {
        let mut all = ranges(&[(0, 1)], 0);
        all.add(&ranges(&[(3, 1)], 3));
        assert_eq!((all.within(0.5), all.max()), (Some(0.0), Some(3.0)));
    }
}
