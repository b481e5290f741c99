//! Times of a monotonic clock.

use core::{
    ops::{Add, Sub},
    time::Duration,
};

/// A moment of the client's monotonic clock, as the time since the clock's start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Mono(pub Duration);

impl Mono {
    /// The clock's start.
    pub const START: Mono = Mono(Duration::ZERO);

    /// The time from `earlier` to this moment; zero if `earlier` is later.
    pub fn since(self, earlier: Mono) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<Duration> for Mono {
    type Output = Mono;

    fn add(self, wait: Duration) -> Mono {
        Mono(self.0.saturating_add(wait))
    }
}

impl Sub<Duration> for Mono {
    type Output = Mono;

    fn sub(self, wait: Duration) -> Mono {
        Mono(self.0.saturating_sub(wait))
    }
}
