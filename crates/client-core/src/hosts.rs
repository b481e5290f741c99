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

/// A server that the client may connect to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RankedHost {
    /// The caller's number of the server. Effects name the server by it.
    pub host: usize,
    /// Servers of a lower rank are tried first.
    pub rank: u8,
}

/// The servers in an order that differs from client to client, so that many clients spread over all of them. Servers of
/// a lower rank come first.
#[derive(Debug)]
pub(crate) struct Hosts {
    order: Vec<RankedHost>,
    /// The index in `order` of the next attempt.
    next: usize,
    /// Attempts since the last connection that held.
    failures: u32,
    random: SplitMix64,
}

impl Hosts {
    pub(crate) fn new(servers: impl Iterator<Item = RankedHost>, seed: u64) -> Hosts {
        let random = SplitMix64::seed_from_u64(seed);
        let mut hosts = Hosts { order: servers.collect(), next: 0, failures: 0, random };
        hosts.arrange();
        hosts
    }

    fn arrange(&mut self) {
        for last in (1..self.order.len()).rev() {
            self.order.swap(last, below(&mut self.random, last as u64 + 1) as usize);
        }
        self.order.sort_by_key(|server| server.rank);
        self.next = 0;
    }

    /// Whether no server is known yet.
    pub(crate) fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// The number of servers.
    pub(crate) fn len(&self) -> usize {
        self.order.len()
    }

    /// Replaces the servers. The next attempt is at the first one of the new order.
    pub(crate) fn replace(&mut self, servers: &[RankedHost]) {
        self.order = servers.to_vec();
        self.arrange();
    }

    /// Replaces the servers, and decides as ZooKeeper's client does whether a client that is connected to `current` moves
    /// to another server. If each client decides so, all servers of the new list have equally many clients.
    pub(crate) fn rebalance(&mut self, servers: &[RankedHost], current: usize) -> bool {
        let former: Vec<usize> = self.order.iter().map(|server| server.host).collect();
        self.replace(servers);
        let (before, after) = (former.len() as u64, self.order.len() as u64);
        let kept = self.order.iter().filter(|server| former.contains(&server.host)).count() as u64;
        let stays = self.order.iter().any(|server| server.host == current);
        let grows = after > before;
        if stays && !(grows && self.chance(after - before, after)) {
            self.skip(current);
            return false;
        }
        if !self.is_ranked() {
            // Servers that the list had before get clients of the removed ones, but fewer than the new ones do.
            let to_kept = match grows {
                true => false,
                false => self.chance(kept * (before - after), after * (before - kept)),
            };
            let wanted = |server: &RankedHost| former.contains(&server.host) == to_kept;
            self.next = self.order.iter().position(wanted).unwrap_or(0);
        }
        true
    }

    /// True with the probability `of / all`.
    fn chance(&mut self, of: u64, all: u64) -> bool {
        all > 0 && below(&mut self.random, all) < of
    }

    /// The server to try now. There must be one.
    pub(crate) fn take(&mut self) -> usize {
        let host = self.order[self.next].host;
        self.next = (self.next + 1) % self.order.len();
        host
    }

    /// Makes `host` the next one.
    pub(crate) fn prefer(&mut self, host: usize) {
        if let Some(place) = self.order.iter().position(|other| other.host == host) {
            self.next = place;
        }
    }

    /// Makes another server than `host` the next one, if there is another one. Returns false otherwise.
    pub(crate) fn skip(&mut self, host: usize) -> bool {
        self.begin_with_best();
        if self.order.get(self.next).is_some_and(|next| next.host == host) {
            self.next = (self.next + 1) % self.order.len();
        }
        self.order.get(self.next).is_some_and(|next| next.host != host)
    }

    /// If the servers differ in rank, makes the first one the next.
    fn begin_with_best(&mut self) {
        if self.is_ranked() {
            self.next = 0;
        }
    }

    fn is_ranked(&self) -> bool {
        self.order.first().map(|best| best.rank) != self.order.last().map(|last| last.rank)
    }

    /// Notes that a connection to `host` has lasted for a while, and is lost now: the waits begin again with the shortest,
    /// and the attempts with the lowest rank.
    pub(crate) fn settled(&mut self, host: usize) {
        self.failures = 0;
        if self.is_ranked() {
            self.skip(host);
        }
    }

    /// The wait before the next attempt: none until each server was tried once, then longer and longer. Each wait is
    /// random, between half of the value and all of it.
    pub(crate) fn wait(&mut self) -> Duration {
        let rounds = self.failures / (self.order.len() as u32).max(1);
        self.failures = self.failures.saturating_add(1);
        if rounds == 0 {
            return Duration::ZERO;
        }
        let whole = WAIT_MAX.min(WAIT_MIN * 2_u32.pow((rounds - 1).min(10)));
        let half = whole / 2;
        half + Duration::from_micros(below(&mut self.random, half.as_micros() as u64 + 1))
    }

    /// Whether each server was tried as often as the others since the last connection that held: a round has ended.
    pub(crate) fn is_round_over(&self) -> bool {
        self.failures % (self.order.len() as u32).max(1) == 0
    }

    /// The number of the next attempt. No number is used twice.
    #[cfg(feature = "sasl")]
    pub(crate) fn nonce(&mut self) -> u64 {
        self.random.next_u64()
    }
}

fn below(random: &mut SplitMix64, limit: u64) -> u64 {
    random.next_u64() % limit
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use alloc::vec;
    use std::collections::HashMap;

    fn alike(hosts: impl IntoIterator<Item = usize>) -> Vec<RankedHost> {
        hosts.into_iter().map(|host| RankedHost { host, rank: 0 }).collect()
    }

    fn round(hosts: &mut Hosts) -> Vec<usize> {
        (0..hosts.order.len()).map(|_| hosts.take()).collect()
    }

    #[test]
    fn each_round_tries_every_server_in_the_order_of_the_seed() {
        let round = |seed| round(&mut Hosts::new(alike(0..5).into_iter(), seed));
        let mut sorted = round(1);
        assert_eq!(round(1), sorted);
        assert!((2..9).any(|seed| round(seed) != sorted));
        sorted.sort_unstable();
        assert_eq!(sorted, [0, 1, 2, 3, 4]);
    }

    #[test]
    fn the_first_round_has_no_waits_and_later_ones_have_growing_but_limited_waits() {
        let mut hosts = Hosts::new(alike(0..3).into_iter(), 7);
        assert!((0..3).all(|_| hosts.wait().is_zero()));
        assert!(hosts.is_round_over());
        let first = hosts.wait();
        assert!(!hosts.is_round_over());
        assert!(first >= WAIT_MIN / 2 && first <= WAIT_MIN);
        let late = (0..100).map(|_| hosts.wait()).last().unwrap();
        assert!(late >= WAIT_MAX / 2 && late <= WAIT_MAX);
        hosts.settled(0);
        assert!(hosts.wait().is_zero());
    }

    #[test]
    fn a_preferred_server_is_next() {
        let mut hosts = Hosts::new(alike(0..4).into_iter(), 3);
        hosts.prefer(2);
        assert_eq!(hosts.take(), 2);
    }

    #[test]
    fn servers_of_a_lower_rank_come_first_and_again_after_a_loss() {
        let ranked = |host: usize| RankedHost { host, rank: u8::from(host < 3) };
        for seed in 0..20 {
            let mut hosts = Hosts::new((0..5).map(ranked), seed);
            let mut order = round(&mut hosts);
            order[..2].sort_unstable();
            order[2..].sort_unstable();
            assert_eq!(order, [3, 4, 0, 1, 2]);
            for lost in 0..5 {
                hosts.settled(lost);
                let next = hosts.take();
                assert!(next >= 3 && next != lost, "{next} after {lost}");
            }
        }
    }

    #[test]
    fn a_skipped_server_is_not_the_next_one() {
        for seed in 0..20 {
            let mut hosts = Hosts::new(alike(0..3).into_iter(), seed);
            for host in [0, 1, 2, 2, 1, 0] {
                assert!(hosts.skip(host));
                assert_ne!(hosts.take(), host);
            }
        }
        assert!(!Hosts::new(alike([0]).into_iter(), 1).skip(0));
    }

    /// Many clients are spread evenly over the old servers. Each decides for itself, as ZooKeeper's clients do.
    #[test]
    fn rebalanced_clients_are_spread_evenly_over_the_new_servers() {
        const CLIENTS: usize = 12_000;
        for (old, new) in [
            (vec![0, 1, 2], vec![0, 1, 2, 3, 4]),
            (vec![0, 1, 2, 3, 4], vec![0, 1, 2]),
            (vec![0, 1, 2], vec![2, 3, 4]),
            (vec![0, 1, 2], vec![3, 4, 5, 6]),
            (vec![0, 1, 2, 3], vec![3, 4]),
            (vec![0], vec![0, 1, 2]),
            (vec![0, 1, 2], vec![0, 1, 2]),
        ] {
            let (mut load, mut moved) = (HashMap::new(), 0);
            for client in 0..CLIENTS {
                let current = old[client % old.len()];
                let mut hosts = Hosts::new(alike(old.iter().copied()).into_iter(), client as u64);
                let moves = hosts.rebalance(&alike(new.iter().copied()), current);
                let lives_on = new.contains(&current);
                assert!(moves || lives_on, "{current} is gone");
                moved += usize::from(moves);
                *load.entry(if moves { hosts.take() } else { current }).or_insert(0) += 1;
            }
            let fair = CLIENTS / new.len();
            for host in &new {
                let has: usize = load[host];
                assert!(has.abs_diff(fair) < fair / 10, "{old:?} to {new:?}: {load:?}");
            }
            if old.iter().all(|host| new.contains(host)) {
                let fewest = CLIENTS * (new.len() - old.len()) / new.len();
                assert!(moved.abs_diff(fewest) <= CLIENTS / 50, "{old:?} to {new:?}: {moved} move");
            }
        }
    }
}
