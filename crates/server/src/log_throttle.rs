//! What happens again and again is not said each time.

use std::time::{Duration, Instant};

/// Unwanted callers come again and again: the log says so no more often than that.
const SAID_AGAIN_AFTER: Duration = Duration::from_secs(60);

/// Whether something is to be said again.
#[derive(Debug, Default)]
pub(crate) struct LogThrottle(Option<Instant>);

impl LogThrottle {
    /// Takes the turn to say it; `false` if the last one was a short while ago.
    pub(crate) fn take_turn(&mut self) -> bool {
        let is_due = self.0.is_none_or(|at| at.elapsed() >= SAID_AGAIN_AFTER);
        if is_due {
            self.0 = Some(Instant::now());
        }
        is_due
    }
}
