//! Time that only goes forward.

use core::{
    ops::{Add, Sub},
    time::Duration,
};

/// A moment of the client's monotonic clock, counted from wherever the shell began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Mono(pub Duration);

impl Mono {
    /// Where the shell began to count.
    pub const START: Mono = Mono(Duration::ZERO);

    /// How long ago `earlier` was; zero if it is still to come.
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
