//! How a member finds that its process did not run for a while: it was stopped, or its machine had no time for it.
//!
//! What came in meanwhile waits to be read, and nothing says that it is read before the timer is minded. So who has a
//! pulse knows that it may not have heard yet what it was told.

use crate::input::Mono;

/// Beats twice a tick, as long as the process runs.
#[derive(Debug)]
pub(crate) struct Pulse {
    half_tick_ms: u64,
    next: Mono,
}

impl Pulse {
    pub(crate) fn new(now: Mono, tick_ms: u64) -> Pulse {
        let half_tick_ms = (tick_ms / 2).max(1);
        Pulse { half_tick_ms, next: now.after(half_tick_ms) }
    }

    /// When it is to beat at the latest.
    pub(crate) fn next_deadline(&self) -> Mono {
        self.next
    }

    /// The process runs. Whether it did not for a tick: every session that a client keeps alive is heard of more than
    /// once in the two ticks that it has at least.
    pub(crate) fn beat(&mut self, now: Mono) -> bool {
        let missed = self.next.after(self.half_tick_ms) <= now;
        self.next = now.after(self.half_tick_ms);
        missed
    }
}
