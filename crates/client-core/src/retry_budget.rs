//! A budget of retries, so that they do not multiply the load in an outage.

use crate::time::Mono;

/// The part of a retry in which tokens are counted.
const TOKEN: u64 = 1_000_000;

/// How many retries a client may do in all, whatever its retry policy allows for each operation.
///
/// Without a budget an outage multiplies the load: each operation of each client is sent again and again. With one, the
/// retries are at most a share of the requests, and a few per second beyond that. An operation whose retry is not covered
/// fails with the error of its last try. A program that uses the client has it as `ostler_client::RetryBudget`.
///
/// ```
/// # use ostler_client_core::RetryBudget;
/// // One retry for each ten requests, five more each second, and no more than fifty saved up.
/// let budget = RetryBudget::new().percent(10).per_second(5).saved_max(50);
/// # let _ = budget;
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryBudget {
    percent: u32,
    per_second: u32,
    saved_max: u32,
}

impl RetryBudget {
    /// One retry for each five requests, ten more each second, and no more than a hundred saved up.
    pub const fn new() -> RetryBudget {
        RetryBudget { percent: 20, per_second: 10, saved_max: 100 }
    }

    /// The number of retries for each hundred requests; 20 by default.
    #[must_use]
    pub const fn percent(self, percent: u32) -> RetryBudget {
        RetryBudget { percent, ..self }
    }

    /// The number of retries per second beyond the share of the requests; 10 by default. They are for clients with few
    /// requests.
    #[must_use]
    pub const fn per_second(self, retries: u32) -> RetryBudget {
        RetryBudget { per_second: retries, ..self }
    }

    /// How many retries can be saved up for an outage; 100 by default. This is also the number at the start.
    #[must_use]
    pub const fn saved_max(self, retries: u32) -> RetryBudget {
        RetryBudget { saved_max: retries, ..self }
    }
}

impl Default for RetryBudget {
    fn default() -> Self {
        RetryBudget::new()
    }
}

/// The retries that are left of a [`RetryBudget`]. It uses no clock: the time comes with each call.
#[derive(Debug, Clone)]
pub struct RetryTokens {
    budget: RetryBudget,
    /// In millionths of a retry.
    saved: u64,
    /// The time of the last call.
    at: Mono,
    /// The number of requests at the last call.
    requests: u64,
    /// Retries since the last call, which are no reason for further retries.
    retried: u64,
}

impl RetryTokens {
    /// With everything saved up that the budget allows.
    pub fn new(budget: RetryBudget, now: Mono) -> RetryTokens {
        let saved = u64::from(budget.saved_max) * TOKEN;
        RetryTokens { budget, saved, at: now, requests: 0, retried: 0 }
    }

    /// Takes one retry, if the budget covers it. `requests` is the number of all requests so far, retries among them.
    pub fn take(&mut self, now: Mono, requests: u64) -> bool {
        let fresh = requests.saturating_sub(self.requests).saturating_sub(self.retried);
        let by_requests = fresh.saturating_mul(u64::from(self.budget.percent) * (TOKEN / 100));
        let passed_us = u64::try_from(now.since(self.at).as_micros()).unwrap_or(u64::MAX);
        let by_time = passed_us.saturating_mul(self.budget.per_second.into());
        let all = self.saved.saturating_add(by_requests).saturating_add(by_time);
        self.saved = all.min(u64::from(self.budget.saved_max) * TOKEN);
        (self.at, self.requests, self.retried) = (self.at.max(now), self.requests.max(requests), 0);
        let covered = self.saved >= TOKEN;
        if covered {
            self.saved -= TOKEN;
            self.retried = 1;
        }
        covered
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use core::time::Duration;
    use proptest::prelude::*;
    use std::vec::Vec;

    fn at(ms: u64) -> Mono {
        Mono(Duration::from_millis(ms))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        /// From any call to any later one.
        #[test]
        fn no_span_of_time_has_more_retries_than_the_budget(
            (percent, per_second, saved_max) in (0_u32..150, 0_u32..50, 0_u32..40),
            calls in proptest::collection::vec((0_u64..400, 0_u64..20), 1..60),
        ) {
            let budget = RetryBudget::new().percent(percent).per_second(per_second).saved_max(saved_max);
            let mut tokens = RetryTokens::new(budget, at(0));
            let (mut ms, mut requests, mut retries) = (0, 0, 0);
            let mut seen: Vec<(u64, u64, u64)> = std::vec![(0, 0, 0)];
            for (pause, fresh) in calls {
                ms += pause;
                requests += fresh;
                // A retry that is granted is a request, too.
                retries += u64::from(tokens.take(at(ms), requests + retries));
                for (since, before, done) in &seen {
                    let allowed = u64::from(saved_max) * 100_000
                        + (ms - since) * u64::from(per_second) * 100
                        + (requests - before) * u64::from(percent) * 1000;
                    prop_assert!((retries - done) * 100_000 <= allowed, "{retries} at {ms} since {since}");
                }
                seen.push((ms, requests, retries));
            }
        }

        #[test]
        fn a_client_that_waits_gets_its_retries_again(
            per_second in 1_u32..50,
            saved_max in 1_u32..40,
            calls in 0_u32..200,
        ) {
            let budget = RetryBudget::new().percent(0).per_second(per_second).saved_max(saved_max);
            let mut tokens = RetryTokens::new(budget, at(0));
            let at_once = (0..calls).filter(|_| tokens.take(at(0), 0)).count();
            prop_assert_eq!(at_once as u32, calls.min(saved_max));
            for second in 1..5 {
                let granted = (0..100).filter(|_| tokens.take(at(second * 1000), 0)).count() as u32;
                prop_assert!(granted >= per_second.min(saved_max));
            }
        }
    }

    /// Time earns nothing, and one retry is saved up at most.
    fn by_requests(percent: u32) -> RetryTokens {
        RetryTokens::new(RetryBudget::new().percent(percent).per_second(0).saved_max(1), at(0))
    }

    #[test]
    fn retries_earn_no_further_retries() {
        let mut tokens = by_requests(100);
        assert!(tokens.take(at(0), 10));
        assert!(!tokens.take(at(0), 11), "the one request since is the retry");
        assert!(tokens.take(at(0), 12));
    }

    #[test]
    fn ten_percent_are_one_retry_for_ten_requests() {
        let mut tokens = by_requests(10);
        assert!(tokens.take(at(0), 10));
        // The retry is one of the requests.
        assert!(!tokens.take(at(0), 20), "nine requests");
        assert!(tokens.take(at(0), 21), "the tenth");
    }

    #[test]
    fn extreme_values_do_no_harm() {
        let all = RetryBudget::new().percent(u32::MAX).per_second(u32::MAX).saved_max(u32::MAX);
        let mut tokens = RetryTokens::new(all, at(5));
        assert!(tokens.take(Mono(Duration::MAX), u64::MAX));
        assert!(tokens.take(at(0), 0), "a clock and a count that go back");
        assert!(!RetryTokens::new(all.saved_max(0), at(0)).take(at(1), 1));
    }
}
