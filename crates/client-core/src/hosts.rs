//! Decides which server to try next, and how long to wait before.

use alloc::vec::Vec;
use core::time::Duration;
use rand_xoshiro::{
    SplitMix64,
    rand_core::{RngCore, SeedableRng},
};

/// The first wait, after each server was tried without success.
const WAIT_MIN: Duration = Duration::from_millis(50);
/// The longest wait between attempts.
const WAIT_MAX: Duration = Duration::from_secs(2);

/// The servers in an order that differs from client to client, so that many clients spread over all of them.
#[derive(Debug)]
pub(crate) struct Hosts {
    order: Vec<usize>,
    /// The index in `order` of the next attempt.
    next: usize,
    /// Attempts since the last connection that held.
    failures: u32,
    random: SplitMix64,
}

impl Hosts {
    pub(crate) fn new(count: usize, seed: u64) -> Hosts {
        let mut random = SplitMix64::seed_from_u64(seed);
        let mut order: Vec<usize> = (0..count).collect();
        for last in (1..count).rev() {
            order.swap(last, below(&mut random, last as u64 + 1) as usize);
        }
        Hosts { order, next: 0, failures: 0, random }
    }

    /// The server to try now.
    pub(crate) fn take(&mut self) -> usize {
        let host = self.order[self.next];
        self.next = (self.next + 1) % self.order.len();
        host
    }

    /// Makes `host` the next one.
    pub(crate) fn prefer(&mut self, host: usize) {
        if let Some(place) = self.order.iter().position(|other| *other == host) {
            self.next = place;
        }
    }

    /// Notes that a connection has lasted for a while: the waits begin again with the shortest.
    pub(crate) fn settled(&mut self) {
        self.failures = 0;
    }

    /// The wait before the next attempt: none until each server was tried once, then longer and longer. Each wait is
    /// random, between half of the value and all of it.
    pub(crate) fn wait(&mut self) -> Duration {
        let rounds = self.failures / self.order.len() as u32;
        self.failures = self.failures.saturating_add(1);
        if rounds == 0 {
            return Duration::ZERO;
        }
        let whole = WAIT_MAX.min(WAIT_MIN * 2_u32.pow((rounds - 1).min(10)));
        let half = whole / 2;
        half + Duration::from_micros(below(&mut self.random, half.as_micros() as u64 + 1))
    }

    /// The number of the next attempt. No number is used twice.
    pub(crate) fn nonce(&mut self) -> u64 {
        self.random.next_u64()
    }
}

fn below(random: &mut SplitMix64, limit: u64) -> u64 {
    random.next_u64() % limit
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_round_tries_every_server_in_the_order_of_the_seed() {
        let round = |seed| {
            let mut hosts = Hosts::new(5, seed);
            (0..5).map(|_| hosts.take()).collect::<Vec<_>>()
        };
        let mut sorted = round(1);
        assert_eq!(round(1), sorted);
        assert!((2..9).any(|seed| round(seed) != sorted));
        sorted.sort_unstable();
        assert_eq!(sorted, [0, 1, 2, 3, 4]);
    }

    #[test]
    fn the_first_round_has_no_waits_and_later_ones_have_growing_but_limited_waits() {
        let mut hosts = Hosts::new(3, 7);
        assert!((0..3).all(|_| hosts.wait().is_zero()));
        let first = hosts.wait();
        assert!(first >= WAIT_MIN / 2 && first <= WAIT_MIN);
        let late = (0..100).map(|_| hosts.wait()).last().unwrap();
        assert!(late >= WAIT_MAX / 2 && late <= WAIT_MAX);
        hosts.settled();
        assert!(hosts.wait().is_zero());
    }

    #[test]
    fn a_preferred_server_is_next() {
        let mut hosts = Hosts::new(4, 3);
        hosts.prefer(2);
        assert_eq!(hosts.take(), 2);
    }
}
