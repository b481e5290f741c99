//! Instances that have failed, and are not given out for a while.

use std::{collections::HashMap, time::Duration};
use tokio::time::Instant;

/// When an instance that has failed is not given out any more. Curator's `DownInstancePolicy`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DownInstancePolicy {
    /// For how long after its first error an instance's errors count.
    pub timeout: Duration,
    /// An instance with this number of errors is not given out.
    pub error_threshold: u32,
}

impl Default for DownInstancePolicy {
    /// Two errors, for 30 s.
    fn default() -> Self {
        DownInstancePolicy { timeout: Duration::from_secs(30), error_threshold: 2 }
    }
}

/// An instance's id and time of registration: an instance that is registered again counts as another one.
pub(crate) type Key = (String, i64);

#[derive(Debug)]
pub(crate) struct DownInstances {
    policy: DownInstancePolicy,
    /// The time of an instance's first error, and the number of its errors.
    errors: HashMap<Key, (Instant, u32)>,
}

impl DownInstances {
    pub(crate) fn new(policy: DownInstancePolicy) -> DownInstances {
        DownInstances { policy, errors: HashMap::new() }
    }

    /// Notes that an instance has failed.
    pub(crate) fn note(&mut self, key: Key, now: Instant) {
        self.forget_old(now);
        self.errors.entry(key).or_insert((now, 0)).1 += 1;
    }

    /// Whether the instance may be given out.
    pub(crate) fn is_up(&self, key: &Key, now: Instant) -> bool {
        self.errors.get(key).is_none_or(|(first, errors)| {
            now.duration_since(*first) >= self.policy.timeout || *errors < self.policy.error_threshold
        })
    }

    fn forget_old(&mut self, now: Instant) {
        let timeout = self.policy.timeout;
        self.errors.retain(|_, (first, _)| now.duration_since(*first) < timeout);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instance_with_two_errors_is_down_for_the_timeout() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let key = |registered| ("i".to_owned(), registered);
        let mut down = DownInstances::new(DownInstancePolicy::default());
        down.note(key(1), at(0));
        assert!(down.is_up(&key(1), at(0)));
        down.note(key(1), at(20));
        assert!(!down.is_up(&key(1), at(29)));
        assert!(down.is_up(&key(2), at(29)), "registered again");
        assert!(down.is_up(&key(1), at(30)));
        down.note(key(1), at(31));
        assert!(down.is_up(&key(1), at(31)), "counted anew");
    }
}
