//! What happens again and again is not said each time.

use std::time::{Duration, Instant};

/// Who is not wanted comes again and again: the log says so no more often than that.
const SAID_AGAIN_AFTER: Duration = Duration::from_secs(60);

/// Whether something is to be said again.
#[derive(Debug, Default)]
pub(crate) struct Said(Option<Instant>);

impl Said {
    pub(crate) fn is_due(&mut self) -> bool {
        let is_due = self.0.is_none_or(|at| at.elapsed() >= SAID_AGAIN_AFTER);
        if is_due {
            self.0 = Some(Instant::now());
        }
        is_due
    }
}
