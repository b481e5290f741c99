//! Counts tests from the output of the programs that run them.

use std::{fmt, ops::AddAssign};

/// The numbers of tests that passed, failed and were skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Tally {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    pub(crate) skipped: u64,
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Tally) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed, {} skipped", self.passed, self.failed, self.skipped)
    }
}

impl Tally {
    /// The sum of cargo's `test result:` lines.
    pub(crate) fn of_cargo(output: &str) -> Tally {
        let mut sum = Tally::default();
        for line in output.lines().filter(|line| line.starts_with("test result:")) {
            let count = |word| count_before(line, word).unwrap_or(0);
            sum += Tally { passed: count("passed"), failed: count("failed"), skipped: count("ignored") };
        }
        sum
    }

    /// The last line of the form `N passed, M failed, K skipped`.
    pub(crate) fn of_closing_line(output: &str) -> Option<Tally> {
        output.lines().rev().find_map(|line| {
            let tally = Tally {
                passed: count_before(line, "passed")?,
                failed: count_before(line, "failed")?,
                skipped: count_before(line, "skipped")?,
            };
            (tally.to_string() == line.trim()).then_some(tally)
        })
    }

    /// Counts at least one failure if the program itself has failed.
    pub(crate) fn or_failed(mut self, success: bool) -> Tally {
        if !success && self.failed == 0 {
            self.failed = 1;
        }
        self
    }
}

/// The number in front of a word: `3` for `passed` in `ok. 3 passed; 0 failed`.
fn count_before(line: &str, word: &str) -> Option<u64> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let at = words.iter().position(|it| it.trim_end_matches([';', ',']) == word)?;
    words.get(at.checked_sub(1)?)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_of_cargo_add_up() {
        let output = "running 3 tests\n\
            test a ... ok\n\
            test result: ok. 2 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.01s\n\
            test result: FAILED. 4 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1s\n";
        assert_eq!(Tally::of_cargo(output), Tally { passed: 6, failed: 1, skipped: 1 });
        assert_eq!(Tally::of_cargo("error: could not compile").or_failed(false).failed, 1);
    }

    #[test]
    fn the_last_closing_line_counts() {
        let output =
            "ok a (1 s) 9 passed, 9 failed\n1 passed, 0 failed, 0 skipped\n10 passed, 2 failed, 1 skipped\n";
        assert_eq!(Tally::of_closing_line(output), Some(Tally { passed: 10, failed: 2, skipped: 1 }));
        assert_eq!(Tally::of_closing_line("475 passed, 7 failed"), None);
        assert_eq!(Tally::of_closing_line(""), None);
    }
}
