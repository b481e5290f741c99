//! Retry policies: how often to try again, and how long to wait before each try.

use crate::{
    client::Client,
    error::{Error, Result},
    shared::Shared,
    tracing,
};
use rand_xoshiro::{
    SplitMix64,
    rand_core::{RngCore, SeedableRng},
};
use std::{sync::Arc, time::Duration};
use tokio::time::{Instant, sleep};

/// How often to try again after connection trouble
/// ([`Error::is_connection_trouble`](crate::Error::is_connection_trouble)), and how long to wait before each try.
///
/// The client tries again only operations that do no harm if they are done twice: reads, `sync`, and writes with
/// `idempotent`, `protected` or `guaranteed`. Any other write fails with [`Error::ConnectionLoss`], because only the
/// caller knows whether it may be repeated. If a retried write ends with another error after a lost connection, the
/// error is [`Error::Undecided`]: an earlier try may have been done.
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

    /// No retry.
    pub const fn none() -> RetryPolicy {
        RetryPolicy::times(0, Duration::ZERO)
    }

    /// One retry after `wait`. Curator's `RetryOneTime`.
    pub const fn once(wait: Duration) -> RetryPolicy {
        RetryPolicy::times(1, wait)
    }

    /// Up to `times` retries, each after `wait`. Curator's `RetryNTimes`.
    pub const fn times(times: u32, wait: Duration) -> RetryPolicy {
        RetryPolicy { times: Some(times), ..RetryPolicy::steady(wait) }
    }

    /// Retries until `limit` has passed since the first try, each after `wait`. Curator's `RetryUntilElapsed`.
    pub const fn until_elapsed(limit: Duration, wait: Duration) -> RetryPolicy {
        RetryPolicy { elapsed: Some(limit), ..RetryPolicy::steady(wait) }
    }

    /// Retries without end, each after `wait`. Curator's `RetryForever`.
    pub const fn forever(wait: Duration) -> RetryPolicy {
        RetryPolicy::steady(wait)
    }

    /// Up to `times` retries. The wait is `first`, then twice that, and so on up to `longest`. Each wait is shortened at
    /// random to between half and all of it, so that many clients do not come back at once. Curator's
    /// `BoundedExponentialBackoffRetry`.
    pub const fn exponential(first: Duration, longest: Duration, times: u32) -> RetryPolicy {
        RetryPolicy { first, longest, doubling: true, jitter: true, times: Some(times), elapsed: None }
    }

    /// The same policy, but no retry begins later than `limit` after the first try. A limit that the policy has already
    /// is never lengthened: the smaller one holds.
    #[must_use]
    pub const fn at_most(self, limit: Duration) -> RetryPolicy {
        let elapsed = match self.elapsed {
            Some(earlier) if earlier.as_nanos() < limit.as_nanos() => earlier,
            _ => limit,
        };
        RetryPolicy { elapsed: Some(elapsed), ..self }
    }

    /// The same policy with or without the random shortening of the waits.
    #[must_use]
    pub const fn with_jitter(self, jitter: bool) -> RetryPolicy {
        RetryPolicy { jitter, ..self }
    }

    /// How long to wait after `tries` failed tries, when the first began `elapsed` ago; `None` to give up. `random`
    /// decides by how much the wait is shortened.
    pub fn next_wait(&self, tries: u32, elapsed: Duration, random: u64) -> Option<Duration> {
        if self.times.is_some_and(|times| tries > times) {
            return None;
        }
        let growth = if self.doubling { 2_u32.saturating_pow(tries.saturating_sub(1)) } else { 1 };
        let whole = self.first.saturating_mul(growth).min(self.longest);
        let wait = if self.jitter { shortened(whole, random) } else { whole };
        match self.elapsed {
            Some(limit) if elapsed.saturating_add(wait) > limit => None,
            _ => Some(wait),
        }
    }
}

fn shortened(whole: Duration, random: u64) -> Duration {
    let half = whole / 2;
    let micros = u64::try_from(half.as_micros()).unwrap_or(u64::MAX - 1);
    half + Duration::from_micros(SplitMix64::seed_from_u64(random).next_u64() % (micros + 1))
}

impl Default for RetryPolicy {
    /// [`exponential`](RetryPolicy::exponential): up to ten retries, with waits from 50 ms to 2 s.
    fn default() -> Self {
        RetryPolicy::exponential(Duration::from_millis(50), Duration::from_secs(2), 10)
    }
}

/// The wait before this retry of an operation that began at `begun`; `None` if the policy gives up, or the budget does
/// not cover the retry.
pub(crate) fn wait_before(
    tries: u32,
    policy: RetryPolicy,
    budget: Option<&Shared>,
    begun: Instant,
) -> Option<Duration> {
    let elapsed = begun.elapsed();
    let wait = policy.next_wait(tries, elapsed, elapsed.subsec_nanos().into())?;
    if !budget.is_none_or(Shared::take_retry) {
        tracing::debug!(tries, "the budget of retries is used up");
        return None;
    }
    Some(wait)
}

/// The tries of one operation so far.
pub(crate) struct Tries {
    policy: RetryPolicy,
    /// By whose budget retries are counted.
    budget: Option<Arc<Shared>>,
    begun: Instant,
    tries: u32,
    /// An earlier try may have been done: its connection was lost before the reply.
    pub(crate) may_be_done: bool,
}

impl Tries {
    /// Without a budget.
    pub(crate) fn new(policy: RetryPolicy) -> Tries {
        Tries { policy, budget: None, begun: Instant::now(), tries: 0, may_be_done: false }
    }

    /// By the policy and the budget of a client.
    pub(crate) fn of(client: &Client) -> Tries {
        Tries { budget: Some(client.shared().clone()), ..Tries::new(client.retry) }
    }

    /// Waits before the next try.
    ///
    /// # Errors
    /// The operation's final error, if there is no further try.
    pub(crate) async fn wait(&mut self, error: Error) -> Result<()> {
        self.tries += 1;
        let next = || wait_before(self.tries, self.policy, self.budget.as_deref(), self.begun);
        match error.is_connection_trouble().then(next).flatten() {
            Some(wait) => {
                self.may_be_done |= error.is_outcome_unknown();
                sleep(wait).await;
                Ok(())
            }
            None => Err(self.ended(error)),
        }
    }

    /// The operation's final error, if the last try failed with `error`: [`Error::Undecided`], if an earlier try may
    /// have been done.
    pub(crate) fn ended(&mut self, error: Error) -> Error {
        if error.is_outcome_unknown() {
            self.may_be_done = true;
            return error;
        }
        match self.may_be_done {
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
        (1..=tries).map(|n| policy.next_wait(n, Duration::ZERO, 1).map(|wait| wait.as_millis())).collect()
    }

    #[test]
    fn each_policy_gives_up_after_its_last_retry() {
        assert_eq!(waits(RetryPolicy::none(), 1), [None]);
        assert_eq!(waits(RetryPolicy::once(5 * MS), 2), [Some(5), None]);
        assert_eq!(waits(RetryPolicy::times(2, 5 * MS), 3), [Some(5), Some(5), None]);
        assert_eq!(waits(RetryPolicy::forever(MS), 1000)[999], Some(1));
        let exponential = RetryPolicy::exponential(10 * MS, 35 * MS, 4).with_jitter(false);
        assert_eq!(waits(exponential, 5), [Some(10), Some(20), Some(35), Some(35), None]);
        let longest = RetryPolicy::exponential(Duration::MAX, Duration::MAX, u32::MAX);
        assert!(longest.next_wait(u32::MAX, Duration::MAX, 1).is_some());
    }

    #[test]
    fn a_retry_whose_wait_would_exceed_the_elapsed_limit_is_not_made() {
        let policy = RetryPolicy::until_elapsed(100 * MS, 30 * MS);
        assert_eq!(policy.next_wait(9, 70 * MS, 0), Some(30 * MS));
        assert_eq!(policy.next_wait(9, 71 * MS, 0), None);
        assert_eq!(RetryPolicy::forever(MS).at_most(5 * MS).next_wait(1, 5 * MS, 0), None);
        // The smaller of two limits holds, in either order.
        assert_eq!(policy.at_most(600 * MS), policy);
        let shorter = policy.at_most(50 * MS);
        assert_eq!(
            (shorter.next_wait(1, 20 * MS, 0), shorter.next_wait(1, 21 * MS, 0)),
            (Some(30 * MS), None)
        );
    }

    #[test]
    fn jitter_stays_between_half_and_whole() {
        let policy = RetryPolicy::exponential(100 * MS, 100 * MS, 9);
        let drawn: Vec<Duration> = (0..50).map(|n| policy.next_wait(1, Duration::ZERO, n).unwrap()).collect();
        assert!(drawn.iter().all(|wait| (50 * MS..=100 * MS).contains(wait)));
        assert!(drawn.iter().any(|wait| *wait != drawn[0]));
        assert!(policy.next_wait(u32::MAX - 1, Duration::ZERO, 0).is_none());
    }
}
