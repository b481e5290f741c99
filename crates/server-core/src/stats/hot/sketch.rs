//! A space-saving sketch: the most frequent keys of a stream, in a fixed number of counters.

use core::hash::Hash;
use hashbrown::{Equivalent, HashMap};
use rustc_hash::FxBuildHasher;

/// The number of counters. Each key that is more than this part of the stream has one.
pub(crate) const COUNTERS: usize = 128;

/// A counter of a key. The key came at most `count` times, and at least `count - error` times.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counter {
    pub(crate) count: u64,
    pub(crate) error: u64,
}

/// Counters of the keys that came most often.
#[derive(Debug)]
pub(crate) struct Sketch<K> {
    counters: HashMap<K, Counter, FxBuildHasher>,
}

impl<K> Default for Sketch<K> {
    fn default() -> Self {
        Sketch { counters: HashMap::default() }
    }
}

impl<K: Hash + Eq + Clone> Sketch<K> {
    /// Counts a key. A key without a counter takes the one that counts least, with its count as the error.
    pub(crate) fn add<Q: Hash + Equivalent<K> + ?Sized>(&mut self, key: &Q, make: impl FnOnce() -> K) {
        if let Some(counter) = self.counters.get_mut(key) {
            counter.count += 1;
            return;
        }
        let mut error = 0;
        if self.counters.len() == COUNTERS
            && let Some((least, counter)) = self.counters.iter().min_by_key(|(_, counter)| counter.count)
        {
            error = counter.count;
            let least = least.clone();
            self.counters.remove(&least);
        }
        self.counters.insert(make(), Counter { count: error + 1, error });
    }

    /// The counter of a key; zero without one.
    pub(crate) fn get<Q: Hash + Equivalent<K> + ?Sized>(&self, key: &Q) -> Counter {
        self.counters.get(key).copied().unwrap_or_default()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&K, &Counter)> {
        self.counters.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeMap;
    use rand_xoshiro::{
        Xoshiro256PlusPlus,
        rand_core::{RngCore, SeedableRng},
    };

    /// Every key that is more than one part in `COUNTERS` of the stream is in the sketch, and its bounds hold, whatever the
    /// order and the shares.
    #[test]
    fn every_frequent_key_is_counted_within_its_bounds() {
        for seed in 0..60 {
            let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
            let mut sketch = Sketch::default();
            let mut truth: BTreeMap<u32, u64> = BTreeMap::new();
            let keys = 1 + random.next_u64() % 5000;
            let length = 1 + random.next_u64() % 30_000;
            for at in 0..length {
                // Small keys come often, more so with some seeds; some streams end with new keys only.
                let (a, b) = (random.next_u64() % keys, random.next_u64() % keys);
                let key = match seed % 3 {
                    0 => a,
                    1 => a * b / keys,
                    _ if at > length / 2 => keys + at,
                    _ => a * a / keys / 8,
                } as u32;
                sketch.add(&key, || key);
                *truth.entry(key).or_default() += 1;
            }
            for (key, count) in &truth {
                let counter = sketch.get(key);
                if *count > length / COUNTERS as u64 {
                    assert!(counter.count > 0, "seed {seed}: {key} came {count} of {length} times");
                }
                if counter.count > 0 {
                    let least = counter.count - counter.error;
                    assert!(
                        (least..=counter.count).contains(count),
                        "seed {seed}: {key} {count} {counter:?}"
                    );
                }
            }
            assert!(sketch.iter().count() <= COUNTERS);
            assert_eq!(sketch.iter().map(|(_, counter)| counter.count).sum::<u64>(), length);
        }
    }
}
