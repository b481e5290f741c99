//! The outcome of a step, and the line that reports it.

use crate::tally::Tally;
use std::time::Duration;

/// The outcome of a step.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Outcome {
    /// The numbers of its tests.
    pub(crate) tally: Tally,
    /// A few words after the step's name.
    pub(crate) reason: String,
    /// Text below the line: everything that a failed step has printed.
    pub(crate) details: String,
}

impl Outcome {
    pub(crate) fn ok(reason: impl Into<String>) -> Outcome {
        Outcome {
            tally: Tally { passed: 1, ..Tally::default() },
            reason: reason.into(),
            ..Outcome::default()
        }
    }

    pub(crate) fn failed(reason: impl Into<String>, details: String) -> Outcome {
        Outcome { tally: Tally { failed: 1, ..Tally::default() }, reason: reason.into(), details }
    }

    pub(crate) fn skipped(reason: impl Into<String>) -> Outcome {
        Outcome {
            tally: Tally { skipped: 1, ..Tally::default() },
            reason: reason.into(),
            ..Outcome::default()
        }
    }

    /// The outcome of a check: it passes if there are no complaints.
    pub(crate) fn of_complaints(complaints: &[String], reason: String) -> Outcome {
        match complaints.len() {
            0 => Outcome::ok(reason),
            1 => Outcome::failed("1 complaint", complaints.join("\n")),
            n => Outcome::failed(format!("{n} complaints"), complaints.join("\n")),
        }
    }

    /// Counts skipped tests as failed, for CI, where nothing may be skipped.
    pub(crate) fn without_skips(mut self) -> Outcome {
        let skipped = std::mem::take(&mut self.tally.skipped);
        if skipped > 0 {
            self.tally.failed += skipped;
            self.reason = format!("{skipped} skipped, which is not allowed in CI: {}", self.reason);
        }
        self
    }

    pub(crate) fn line(&self, name: &str, took: Duration) -> String {
        let word = match self.tally {
            Tally { failed: 1.., .. } => "FAILED",
            Tally { passed: 0, skipped: 1.., .. } => "skipped",
            _ => "ok",
        };
        format!("{word} {name} ({} s) {}", took.as_secs(), self.reason).trim_end().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_begins_with_the_worst_result() {
        let line = |outcome: Outcome| outcome.line("fuzz", Duration::from_millis(2900));
        assert_eq!(line(Outcome::ok("")), "ok fuzz (2 s)");
        assert_eq!(line(Outcome::skipped("no fuzz/run")), "skipped fuzz (2 s) no fuzz/run");
        assert_eq!(line(Outcome::failed("exit code 1", String::new())), "FAILED fuzz (2 s) exit code 1");
        let some = Outcome { tally: Tally { passed: 3, skipped: 1, failed: 0 }, ..Outcome::default() };
        assert_eq!(line(some.clone()), "ok fuzz (2 s)");
        assert_eq!(line(some.without_skips()), "FAILED fuzz (2 s) 1 skipped, which is not allowed in CI:");
    }
}
