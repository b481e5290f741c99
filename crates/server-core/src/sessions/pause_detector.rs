//! Detects that the process did not run for a while: it was stopped, or the machine was overloaded.
//!
//! The bytes that clients sent during the pause wait in the sockets, and the timer may be served before them. After a pause the
//! member must not expire a session: its pings may be among the bytes that are not read yet.

use crate::input::Mono;

/// Expects to be called twice a tick.
#[derive(Debug)]
pub(crate) struct PauseDetector {
    half_tick_ms: u64,
    next: Mono,
}

impl PauseDetector {
    pub(crate) fn new(now: Mono, tick_ms: u64) -> PauseDetector {
        let half_tick_ms = (tick_ms / 2).max(1);
        PauseDetector { half_tick_ms, next: now.after(half_tick_ms) }
    }

    /// When [`PauseDetector::beat`] has to be called at the latest.
    pub(crate) fn next_deadline(&self) -> Mono {
        self.next
    }

    /// Notes that the process runs. Returns true if it did not run for a tick. A living client is heard of more than
    /// once in two ticks, the shortest session timeout.
    pub(crate) fn beat(&mut self, now: Mono) -> bool {
        let missed = self.next.after(self.half_tick_ms) <= now;
        self.next = now.after(self.half_tick_ms);
        missed
    }
}
