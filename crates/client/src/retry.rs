//! How often to try again, and how long to wait in between.

use crate::error::{Error, Result};
use rand_xoshiro::{
    SplitMix64,
    rand_core::{RngCore, SeedableRng},
};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How often to try again after connection trouble, and how long to wait in between.
///
/// What is tried again by itself is what does no harm if it is done twice: reads, `sync`, and writes that say so
/// (`idempotent`, `protected`, `guaranteed`). Any other write gives [`Error::ConnectionLoss`] to the caller, who
/// alone knows what doing it twice would mean. If it then ends otherwise than by being done, the error still says that
/// an earlier try may have been done: [`Error::Undecided`].
///
/// [`Error::ConnectionLoss`]: crate::Error::ConnectionLoss
/// [`Error::Undecided`]: crate::Error::Undecided
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    first: Duration,
    longest: Duration,
    doubling: bool,
    jitter: bool,
    times: Option<u32>,
    elapsed: Option<Duration>,
}

impl RetryPolicy {
    const fn steady(wait: Duration) -> RetryPolicy {
        RetryPolicy { first: wait, longest: wait, doubling: false, jitter: false, times: None, elapsed: None }
    }

    /// Never again.
    pub const fn none() -> RetryPolicy {
        RetryPolicy::times(0, Duration::ZERO)
    }

    /// Once more, after `wait`.
    pub const fn once(wait: Duration) -> RetryPolicy {
        RetryPolicy::times(1, wait)
    }

    /// `times` more, each after `wait`.
    pub const fn times(times: u32, wait: Duration) -> RetryPolicy {
        RetryPolicy { times: Some(times), ..RetryPolicy::steady(wait) }
    }

    /// Until `limit` has passed since the first try, each after `wait`.
    pub const fn until_elapsed(limit: Duration, wait: Duration) -> RetryPolicy {
        RetryPolicy { elapsed: Some(limit), ..RetryPolicy::steady(wait) }
    }

    /// Without end, each after `wait`.
    pub const fn forever(wait: Duration) -> RetryPolicy {
        RetryPolicy::steady(wait)
    }

    /// `times` more; the wait is `first`, then twice that, and so on up to `longest`, each shortened by chance
    /// to between half of it and all of it, so that many clients do not come back at once.
    pub const fn exponential(first: Duration, longest: Duration, times: u32) -> RetryPolicy {
        RetryPolicy { first, longest, doubling: true, jitter: true, times: Some(times), elapsed: None }
    }

    /// Not beyond `limit` since the first try.
    pub const fn at_most(self, limit: Duration) -> RetryPolicy {
        RetryPolicy { elapsed: Some(limit), ..self }
    }

    /// Without the shortening by chance, or with it.
    pub const fn with_jitter(self, jitter: bool) -> RetryPolicy {
        RetryPolicy { jitter, ..self }
    }

    /// How long to wait before try number `tries` + 1, when the first was `elapsed` ago; `None` to give up.
    /// `chance` decides how much of the wait is cut off.
    pub fn wait(&self, tries: u32, elapsed: Duration, chance: u64) -> Option<Duration> {
        if self.times.is_some_and(|times| tries > times) {
            return None;
        }
        let growth = if self.doubling { 2_u32.saturating_pow(tries.saturating_sub(1)) } else { 1 };
        let whole = self.first.saturating_mul(growth).min(self.longest);
        let wait = if self.jitter { shortened(whole, chance) } else { whole };
        match self.elapsed {
            Some(limit) if elapsed.saturating_add(wait) > limit => None,
            _ => Some(wait),
        }
    }
}

fn shortened(whole: Duration, chance: u64) -> Duration {
    let half = whole / 2;
    let micros = u64::try_from(half.as_micros()).unwrap_or(u64::MAX - 1);
    half + Duration::from_micros(SplitMix64::seed_from_u64(chance).next_u64() % (micros + 1))
}

impl Default for RetryPolicy {
    /// Ten times, from 50 ms up to 2 s.
    fn default() -> Self {
        RetryPolicy::exponential(Duration::from_millis(50), Duration::from_secs(2), 10)
    }
}

/// How to go about connection trouble.
pub(crate) struct Tries {
    policy: RetryPolicy,
    begun: Instant,
    tries: u32,
    /// An earlier try may have been done.
    pub(crate) unknown: bool,
}

impl Tries {
    pub(crate) fn new(policy: RetryPolicy) -> Tries {
        Tries { policy, begun: Instant::now(), tries: 0, unknown: false }
    }

    /// Waits before another try; if there is to be none, gives the error that it ends with.
    pub(crate) async fn wait(&mut self, error: Error) -> Result<()> {
        self.tries += 1;
        let chance = self.begun.elapsed().subsec_nanos().into();
        match self.policy.wait(self.tries, self.begun.elapsed(), chance) {
            Some(wait) if error.is_connection_trouble() => {
                self.unknown |= error.is_outcome_unknown();
                sleep(wait).await;
                Ok(())
            }
            _ => Err(self.ended(error)),
        }
    }

    /// What it ends with, if the last try has met `error`: whatever that says of itself, an earlier one may have been
    /// done.
    pub(crate) fn ended(&mut self, error: Error) -> Error {
        if error.is_outcome_unknown() {
            self.unknown = true;
            return error;
        }
        match self.unknown {
            true => Error::Undecided { last: Box::new(error) },
            false => error,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn waits(policy: RetryPolicy, tries: u32) -> Vec<Option<u128>> {
        (1..=tries).map(|n| policy.wait(n, Duration::ZERO, 1).map(|wait| wait.as_millis())).collect()
    }

    #[test]
    fn each_policy_ends_when_it_says() {
        assert_eq!(waits(RetryPolicy::none(), 1), [None]);
        assert_eq!(waits(RetryPolicy::once(5 * MS), 2), [Some(5), None]);
        assert_eq!(waits(RetryPolicy::times(2, 5 * MS), 3), [Some(5), Some(5), None]);
        assert_eq!(waits(RetryPolicy::forever(MS), 1000)[999], Some(1));
        let exponential = RetryPolicy::exponential(10 * MS, 35 * MS, 4).with_jitter(false);
        assert_eq!(waits(exponential, 5), [Some(10), Some(20), Some(35), Some(35), None]);
        let longest = RetryPolicy::exponential(Duration::MAX, Duration::MAX, u32::MAX);
        assert!(longest.wait(u32::MAX, Duration::MAX, 1).is_some());
    }

    #[test]
    fn elapsed_counts_the_wait_too() {
        let policy = RetryPolicy::until_elapsed(100 * MS, 30 * MS);
        assert_eq!(policy.wait(9, 70 * MS, 0), Some(30 * MS));
        assert_eq!(policy.wait(9, 71 * MS, 0), None);
        assert_eq!(RetryPolicy::forever(MS).at_most(5 * MS).wait(1, 5 * MS, 0), None);
    }

    #[test]
    fn jitter_stays_between_half_and_whole() {
        let policy = RetryPolicy::exponential(100 * MS, 100 * MS, 9);
        let drawn: Vec<Duration> = (0..50).map(|n| policy.wait(1, Duration::ZERO, n).unwrap()).collect();
        assert!(drawn.iter().all(|wait| (50 * MS..=100 * MS).contains(wait)));
        assert!(drawn.iter().any(|wait| *wait != drawn[0]));
        assert!(policy.wait(u32::MAX - 1, Duration::ZERO, 0).is_none());
    }
}
