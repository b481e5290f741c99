//! A server's clocks. The clocks of two servers differ.

use ostler_server_core::{Now, input::Mono};

const EPOCH_MS: i64 = 1_700_000_000_000;
const MILLION: u64 = 1_000_000;

/// The monotonic and the wall clock of one server.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    /// Speed: milliseconds that the clock shows in 1,000,000 ms of virtual time.
    rate: u64,
    /// The reading of the monotonic clock when its rate last changed, and the virtual time of that change.
    since: (u64, u64),
    /// How far the wall clock is ahead of the monotonic one, ms.
    pub(crate) ahead_ms: i64,
}

impl Clock {
    pub(crate) fn of(id: i64) -> Clock {
        Clock { rate: MILLION, since: (0, 0), ahead_ms: 13 * id }
    }

    /// The readings of both clocks at a virtual time.
    pub(crate) fn at(&self, now: u64) -> Now {
        let mono = self.mono(now);
        Now { mono: Mono(mono), wall_ms: EPOCH_MS + mono as i64 + self.ahead_ms, us: 0 }
    }

    fn mono(&self, now: u64) -> u64 {
        let (mono, since) = self.since;
        mono + (now - since) * self.rate / MILLION
    }

    /// The first virtual time at which the monotonic clock shows this or more.
    pub(crate) fn when(&self, shown: Mono) -> u64 {
        let (mono, since) = self.since;
        if shown.0 == u64::MAX {
            return u64::MAX;
        }
        since + (shown.0.saturating_sub(mono) * MILLION).div_ceil(self.rate)
    }

    /// Changes the rate from now on.
    pub(crate) fn drift(&mut self, now: u64, rate: u64) {
        (self.since, self.rate) = ((self.mono(now), now), rate);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_a_reading_is_found_at_every_rate() {
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
