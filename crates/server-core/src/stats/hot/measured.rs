//! Exact counts of the requests of a short time, on demand.

use super::{Client, Hot, HotReport};
use crate::input::Mono;
use alloc::{
    boxed::Box,
    string::{String, ToString},
    vec::Vec,
};
use core::{cmp::Reverse, hash::Hash, net::IpAddr};
use hashbrown::{Equivalent, HashMap};
use ostler_proto::id::SessionId;
use rustc_hash::FxBuildHasher;

/// The most keys of a kind. Up to this number of keys the counts are exact.
const KEYS_MAX: usize = 2048;
/// Counts that nobody has asked for again are forgotten after this time, ms.
const KEPT_MS: u64 = 120_000;

/// Counts of one kind. If there are more than [`KEYS_MAX`] keys, one request of each is left out of the counts to make room
/// (Misra and Gries), so that a key that comes often is never missed. Each request that is left out pays for one that was
/// counted before, so the work for each is the same on average.
#[derive(Debug)]
struct Tally<K> {
    counts: HashMap<K, u64, FxBuildHasher>,
    /// The most requests that the count of a key may lack.
    left_out: u64,
}

impl<K> Default for Tally<K> {
    fn default() -> Self {
        Tally { counts: HashMap::default(), left_out: 0 }
    }
}

impl<K: Hash + Eq + Clone> Tally<K> {
    fn add<Q: Hash + Equivalent<K> + ?Sized>(&mut self, key: &Q, make: impl FnOnce() -> K) {
        if let Some(count) = self.counts.get_mut(key) {
            *count += 1;
        } else if self.counts.len() < KEYS_MAX {
            self.counts.insert(make(), 1);
        } else {
            self.left_out += 1;
            self.counts.retain(|_, count| {
                *count -= 1;
                *count > 0
            });
        }
    }

    /// The keys with the highest counts. Only those are copied.
    fn top(&self, limit: usize) -> Vec<(K, u64)> {
        let mut all: Vec<(&K, u64)> = self.counts.iter().map(|(key, count)| (key, *count)).collect();
        if all.len() > limit {
            all.select_nth_unstable_by_key(limit, |(_, count)| Reverse(*count));
            all.truncate(limit);
        }
        all.sort_unstable_by_key(|(_, count)| Reverse(*count));
        all.into_iter().map(|(key, count)| (key.clone(), count)).collect()
    }
}

/// The requests from a moment on, each of them counted.
#[derive(Debug)]
pub(super) struct Measured {
    began: Mono,
    until: Mono,
    reads: Tally<Box<str>>,
    writes: Tally<Box<str>>,
    addresses: Tally<IpAddr>,
    sessions: Tally<SessionId>,
}

impl Measured {
    pub(super) fn new(now: Mono, ms: u64) -> Measured {
        Measured {
            began: now,
            until: now.after(ms),
            reads: Tally::default(),
            writes: Tally::default(),
            addresses: Tally::default(),
            sessions: Tally::default(),
        }
    }

    pub(super) fn is_over(&self, now: Mono) -> bool {
        now >= self.until
    }

    /// Whether nobody needs the counts any more.
    pub(super) fn is_old(&self, now: Mono) -> bool {
        now >= self.until.after(KEPT_MS)
    }

    pub(super) fn note(&mut self, (address, session): Client, path: Option<(&str, bool)>) {
        self.addresses.add(&address, || address);
        self.sessions.add(&session, || session);
        let Some((path, writes)) = path else { return };
        let of = if writes { &mut self.writes } else { &mut self.reads };
        of.add(path, || path.into());
    }

    pub(super) fn report(&self, now: Mono, limit: usize) -> MeasuredReport {
        let hot = |(name, requests): (String, u64)| Hot { name, requests, at_most_too_many: 0 };
        fn named<K: ToString>((key, count): (K, u64)) -> (String, u64) {
            (key.to_string(), count)
        }
        let end = now.min(self.until);
        let left_out =
            [self.reads.left_out, self.writes.left_out, self.addresses.left_out, self.sessions.left_out];
        MeasuredReport {
            left_ms: self.until.0.saturating_sub(now.0),
            at_most_too_few: left_out.into_iter().max().unwrap_or(0),
            hot: HotReport {
                span_ms: end.0.saturating_sub(self.began.0),
                sampled_one_in: 1,
                reads: self.reads.top(limit).into_iter().map(named).map(hot).collect(),
                writes: self.writes.top(limit).into_iter().map(named).map(hot).collect(),
                addresses: self.addresses.top(limit).into_iter().map(named).map(hot).collect(),
                sessions: self.sessions.top(limit).into_iter().map(named).map(hot).collect(),
            },
        }
    }
}

/// The counts of a measurement that goes on, or that has ended a short time ago.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MeasuredReport {
    /// For how long it goes on, ms; 0 if it is over.
    pub left_ms: u64,
    /// The most requests that each count may lack: 0 unless there were more than 2,048 paths, addresses or sessions.
    pub at_most_too_few: u64,
    /// The counts.
    pub hot: HotReport,
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_xoshiro::{
        Xoshiro256PlusPlus,
        rand_core::{RngCore, SeedableRng},
    };

    #[test]
    fn few_keys_are_counted_exactly_and_many_within_their_bound() {
        for (seed, keys) in [(1, 10), (2, KEYS_MAX as u64), (3, 3 * KEYS_MAX as u64), (4, 50_000)] {
            let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
            let mut tally = Tally::default();
            let mut truth: HashMap<u64, u64> = HashMap::new();
            for _ in 0..100_000 {
                let key = (random.next_u64() % keys) * (random.next_u64() % 2);
                tally.add(&key, || key);
                *truth.entry(key).or_default() += 1;
            }
            assert!(tally.counts.len() <= KEYS_MAX);
            assert_eq!(tally.left_out > 0, keys > KEYS_MAX as u64, "{keys}");
            for (key, count) in &truth {
                let counted = tally.counts.get(key).copied().unwrap_or(0);
                assert!(
                    (counted..=counted + tally.left_out).contains(count),
                    "{key} of {keys}: {count} {counted}"
                );
            }
            assert_eq!(tally.top(1)[0].0, 0, "half of all");
        }
    }
}
