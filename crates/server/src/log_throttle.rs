//! Limits log lines about events that repeat.

use std::time::{Duration, Instant};

/// The least time between two log lines about the same event.
const LOG_AGAIN_AFTER: Duration = Duration::from_secs(60);

/// The time of the last log line about an event.
#[derive(Debug, Clone, Default)]
pub(crate) struct LogThrottle(Option<Instant>);

impl LogThrottle {
    /// Returns true, and begins a new interval, if a log line is due; false if the last one is less than a minute old.
    pub(crate) fn take_turn(&mut self) -> bool {
        let is_due = self.0.is_none_or(|at| at.elapsed() >= LOG_AGAIN_AFTER);
        if is_due {
            self.0 = Some(Instant::now());
        }
        is_due
    }
}
