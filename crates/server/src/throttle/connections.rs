//! The limit of new connections over time (`connection_throttle_*`): a bucket of tokens, and before it a probability with
//! which connections are refused, which rises while the bucket is empty.

use crate::config::{ConnectionThrottleSettings, DropSettings};
use ostler_server_core::input::Mono;

/// The kind of a new connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConnectionKind {
    Global,
    Local,
    Renewed,
}

/// The bucket, and the probability of being refused.
#[derive(Debug)]
pub(crate) struct ConnectionThrottle {
    settings: ConnectionThrottleSettings,
    full: u64,
    fill_count: u64,
    tokens: u64,
    /// The time for which tokens have come back.
    filled: Mono,
    /// The last change of the probability.
    frozen: Mono,
    probability: f64,
}

impl ConnectionThrottle {
    /// A full bucket.
    pub(crate) fn new(settings: ConnectionThrottleSettings, now: Mono) -> ConnectionThrottle {
        let times = settings.weights.map_or(1, |weights| u64::from(weights.global_session));
        let full = u64::from(settings.tokens) * times;
        ConnectionThrottle {
            settings,
            full,
            fill_count: u64::from(settings.fill_count) * times,
            tokens: full,
            filled: now,
            frozen: now,
            probability: 0.0,
        }
    }

    /// Whether a connection is let in; it has paid then. `chance`: 64 random bits.
    pub(crate) fn admits(&mut self, now: Mono, kind: ConnectionKind, chance: u64) -> bool {
        self.fill(now);
        if let Some(drop) = self.settings.drop {
            self.adjust(now, drop);
            // 53 bits make a fraction from 0 up to, not including, 1.
            if ((chance >> 11) as f64) / ((1_u64 << 53) as f64) < self.probability {
                return false;
            }
        }
        let cost = self.cost(kind);
        let has_enough = self.tokens >= cost;
        if has_enough {
            self.tokens -= cost;
        }
        has_enough
    }

    /// The tokens that are missing in the bucket.
    pub(crate) fn deficit(&self) -> u64 {
        self.full - self.tokens
    }

    /// The probability with which a connection is refused before its tokens are counted.
    pub(crate) fn drop_probability(&self) -> f64 {
        self.probability
    }

    fn cost(&self, kind: ConnectionKind) -> u64 {
        let Some(weights) = self.settings.weights else { return 1 };
        u64::from(match kind {
            ConnectionKind::Global => weights.global_session,
            ConnectionKind::Local => weights.local_session,
            ConnectionKind::Renewed => weights.renewed_session,
        })
    }

    /// Puts back the tokens that the time since the last call gives. ZooKeeper 3.9 counts them in 32 bits: after weeks
    /// without a connection their number is negative there, and no connection is let in any more (ZOOKEEPER-4933).
    fn fill(&mut self, now: Mono) {
        let fill_ms = u64::from(self.settings.fill_ms.max(1));
        let passed = now.0.saturating_sub(self.filled.0);
        let back = u128::from(passed) * u128::from(self.fill_count) / u128::from(fill_ms);
        let missing = u128::from(self.full - self.tokens);
        if back >= missing {
            self.tokens = self.full;
            self.filled = now;
        } else if back > 0 {
            // Less than what is missing, which is 64 bits long. The rest of the time counts for the next token.
            let back = back as u64;
            self.tokens += back;
            self.filled = Mono(self.filled.0 + back * fill_ms / self.fill_count);
        }
    }

    fn adjust(&mut self, now: Mono, drop: DropSettings) {
        if now.0.saturating_sub(self.frozen.0) <= u64::from(drop.freeze_ms) {
            return;
        }
        let may_be_missing = (self.full as f64 * drop.decrease_ratio).round();
        if self.tokens == 0 {
            self.probability = within_bounds(self.probability + drop.increase);
        } else if self.deficit() as f64 <= may_be_missing {
            self.probability = within_bounds(self.probability - drop.decrease);
        }
        self.frozen = now;
    }
}

/// The nearest probability; 0 for what is no number, so that nobody is refused by it.
fn within_bounds(probability: f64) -> f64 {
    if probability.is_nan() { 0.0 } else { probability.clamp(0.0, 1.0) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ConnectionWeights;

    const NEVER_BY_CHANCE: u64 = u64::MAX;

    fn settings() -> ConnectionThrottleSettings {
        ConnectionThrottleSettings { tokens: 10, fill_count: 1, fill_ms: 100, drop: None, weights: None }
    }

    fn admitted(throttle: &mut ConnectionThrottle, now: u64, tries: usize, kind: ConnectionKind) -> usize {
        (0..tries).filter(|_| throttle.admits(Mono(now), kind, NEVER_BY_CHANCE)).count()
    }

    #[test]
    fn connections_pass_until_the_bucket_is_empty_and_as_it_fills_again() {
        let mut throttle = ConnectionThrottle::new(settings(), Mono(0));
        let new = ConnectionKind::Global;
        assert_eq!(admitted(&mut throttle, 0, 30, new), 10);
        assert_eq!(throttle.deficit(), 10);
        assert_eq!(admitted(&mut throttle, 99, 5, new), 0);
        assert_eq!(admitted(&mut throttle, 100, 5, new), 1);
        assert_eq!(admitted(&mut throttle, 450, 5, new), 3);
        assert_eq!(admitted(&mut throttle, 500, 5, new), 1, "the half token of before counts");
        assert_eq!(admitted(&mut throttle, 100_000, 30, new), 10, "no more than a full bucket");
    }

    /// ZOOKEEPER-4933.
    #[test]
    fn a_bucket_is_full_after_any_time_without_a_connection() {
        let rates = [(1, 1), (u32::MAX, 1), (1_000, 1), (1, u32::MAX)];
        for (fill_count, fill_ms) in rates {
            for idle in [i32::MAX as u64, u32::MAX as u64 + 7, 1 << 40, u64::MAX - 5] {
                let settings = ConnectionThrottleSettings { fill_count, fill_ms, ..settings() };
                let mut throttle = ConnectionThrottle::new(settings, Mono(5));
                assert_eq!(admitted(&mut throttle, 5, 20, ConnectionKind::Global), 10);
                let back = admitted(&mut throttle, idle, 20, ConnectionKind::Global);
                let expected = u128::from(idle - 5) * u128::from(fill_count) / u128::from(fill_ms);
                assert_eq!(back as u128, expected.min(10), "{fill_count} in {fill_ms} ms, after {idle} ms");
            }
        }
    }

    #[test]
    fn tokens_of_weighted_connections_count_new_sessions_that_all_servers_know() {
        let weights = ConnectionWeights { global_session: 3, local_session: 1, renewed_session: 2 };
        let settings = ConnectionThrottleSettings { weights: Some(weights), fill_count: 0, ..settings() };
        for (kind, count) in
            [(ConnectionKind::Global, 10), (ConnectionKind::Renewed, 15), (ConnectionKind::Local, 30)]
        {
            let mut throttle = ConnectionThrottle::new(settings, Mono(0));
            assert_eq!(admitted(&mut throttle, 0, 100, kind), count, "{kind:?}");
        }
    }

    #[test]
    fn the_probability_rises_while_the_bucket_is_empty_and_falls_when_it_is_full() {
        let drop = DropSettings { freeze_ms: 10, increase: 0.25, decrease: 0.5, decrease_ratio: 0.0 };
        let settings = ConnectionThrottleSettings { drop: Some(drop), fill_count: 0, ..settings() };
        let mut throttle = ConnectionThrottle::new(settings, Mono(0));
        let new = ConnectionKind::Global;
        assert_eq!(admitted(&mut throttle, 0, 20, new), 10);
        assert!(throttle.drop_probability() == 0.0, "not within the freeze time");
        for (now, probability) in [(11, 0.25), (21, 0.25), (22, 0.5), (33, 0.75), (44, 1.0), (60, 1.0)] {
            admitted(&mut throttle, now, 3, new);
            assert!((throttle.drop_probability() - probability).abs() < 1e-9, "at {now} ms");
        }
        throttle.tokens = throttle.full;
        assert!(!throttle.admits(Mono(71), new, u64::MAX >> 2), "a quarter is below a half");
        assert!((throttle.drop_probability() - 0.5).abs() < 1e-9);
        assert!(throttle.admits(Mono(72), new, u64::MAX), "by chance");
        assert!(!throttle.admits(Mono(73), new, 0), "by chance");
    }

    #[test]
    fn numbers_that_are_no_probabilities_do_no_harm() {
        for (increase, decrease) in [(1e300, f64::INFINITY), (f64::NAN, -3.0), (-1.0, 0.0)] {
            let drop = DropSettings { freeze_ms: 0, increase, decrease, decrease_ratio: f64::NAN };
            let settings = ConnectionThrottleSettings { drop: Some(drop), ..settings() };
            let mut throttle = ConnectionThrottle::new(settings, Mono(0));
            for now in 0..50 {
                throttle.admits(Mono(now), ConnectionKind::Renewed, now << 58);
                let probability = throttle.drop_probability();
                assert!((0.0..=1.0).contains(&probability));
            }
        }
    }
}
