//! A server's clocks: no two agree.

use ostler_server_core::{Now, input::Mono};

const EPOCH_MS: i64 = 1_700_000_000_000;
const MILLION: u64 = 1_000_000;

/// How a server's clocks go.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    /// How much of a second its seconds are, in millionths.
    rate: u64,
    /// Where the monotonic clock was when its rate changed, and when that was.
    since: (u64, u64),
    /// The wall clock is so much ahead, ms.
    pub(crate) ahead_ms: i64,
}

impl Clock {
    pub(crate) fn of(id: i64) -> Clock {
        Clock { rate: MILLION, since: (0, 0), ahead_ms: 13 * id }
    }

    /// What it shows.
    pub(crate) fn at(&self, now: u64) -> Now {
        let mono = self.mono(now);
        Now { mono: Mono(mono), wall_ms: EPOCH_MS + mono as i64 + self.ahead_ms }
    }

    fn mono(&self, now: u64) -> u64 {
        let (mono, since) = self.since;
        mono + (now - since) * self.rate / MILLION
    }

    /// The first moment at which it shows this or more.
    pub(crate) fn when(&self, shown: Mono) -> u64 {
        let (mono, since) = self.since;
        if shown.0 == u64::MAX {
            return u64::MAX;
        }
        since + (shown.0.saturating_sub(mono) * MILLION).div_ceil(self.rate)
    }

    /// From now on it goes so fast.
    pub(crate) fn drift(&mut self, now: u64, rate: u64) {
        (self.since, self.rate) = ((self.mono(now), now), rate);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_found_again_whatever_the_rate() {
        let mut clock = Clock::of(1);
        for (now, rate) in [(1_000, 1_013_000), (5_000, 987_001), (9_000, MILLION)] {
            clock.drift(now, rate);
            for shown in clock.mono(now)..clock.mono(now) + 500 {
                let when = clock.when(Mono(shown));
                assert!(clock.mono(when) >= shown);
                assert!(when <= now || clock.mono(when - 1) < shown, "{shown} at {when}");
            }
        }
    }
}
