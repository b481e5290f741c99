//! Limits log lines about events that repeat.

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

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

/// Limits log lines about single events that an attacker can cause without end.
#[derive(Debug, Default)]
pub(crate) struct LogBudget {
    begun: Option<Instant>,
    lines: u32,
}

/// The most lines of a [`LogBudget`] in [`LOG_AGAIN_AFTER`].
const LINES_MAX: u32 = 20;

/// Whether an event may have a log line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LogTurn {
    Line,
    /// The last line for a while: it has to say so.
    LastLine,
    None,
}

impl LogTurn {
    /// The end of the line, after which the last one says that no more follow; `None` if there is no line.
    pub(crate) fn ending(self) -> Option<&'static str> {
        match self {
            LogTurn::Line => Some(""),
            LogTurn::LastLine => Some("; for a minute the next ones have no line"),
            LogTurn::None => None,
        }
    }
}

/// A [`LogBudget`] of several tasks.
#[derive(Debug, Default)]
pub(crate) struct SharedLogBudget(Mutex<LogBudget>);

impl SharedLogBudget {
    pub(crate) fn take_line(&self) -> LogTurn {
        // A panic aborts the process, so a poisoned lock is never met.
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take_line()
    }
}

impl LogBudget {
    /// Takes a line, if there is one left.
    pub(crate) fn take_line(&mut self) -> LogTurn {
        if self.begun.is_none_or(|at| at.elapsed() >= LOG_AGAIN_AFTER) {
            (self.begun, self.lines) = (Some(Instant::now()), 0);
        }
        self.lines = self.lines.saturating_add(1);
        match self.lines {
            ..LINES_MAX => LogTurn::Line,
            LINES_MAX => LogTurn::LastLine,
            _ => LogTurn::None,
        }
    }
}

/// The log of a test.
#[cfg(test)]
pub(crate) mod captured {
    use std::{
        io,
        sync::{Arc, Mutex},
    };
    use tracing::subscriber::DefaultGuard;

    /// The lines that this thread logs until it is dropped.
    pub(crate) struct CapturedLog {
        bytes: Arc<Mutex<Vec<u8>>>,
        _guard: DefaultGuard,
    }

    struct Bytes(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Bytes {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl CapturedLog {
        pub(crate) fn begin() -> CapturedLog {
            let bytes = Arc::new(Mutex::new(Vec::new()));
            let into = bytes.clone();
            let subscriber = tracing_subscriber::fmt()
                .with_ansi(false)
                .with_max_level(tracing::Level::INFO)
                .with_writer(move || Bytes(into.clone()))
                .finish();
            CapturedLog { bytes, _guard: tracing::subscriber::set_default(subscriber) }
        }

        pub(crate) fn text(&self) -> String {
            String::from_utf8(self.bytes.lock().unwrap().clone()).unwrap()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_events_has_few_lines() {
        let mut budget = LogBudget::default();
        let turns: Vec<LogTurn> = (0..1000).map(|_| budget.take_line()).collect();
        assert_eq!(turns.iter().filter(|turn| **turn == LogTurn::Line).count(), LINES_MAX as usize - 1);
        assert_eq!(turns.iter().filter(|turn| **turn == LogTurn::LastLine).count(), 1);
    }
}
