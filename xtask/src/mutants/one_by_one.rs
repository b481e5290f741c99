//! Tries mutants that cannot be built together: cargo-mutants builds a program for each.

use super::{Part, SIMULATOR_TESTS, woven::Copy};
use crate::steps::SIMULATOR;
use anyhow::{Context, Result, bail};
use std::{
    collections::BTreeSet,
    fs::{self, File},
    path::{Path, PathBuf},
    process::Command,
};

/// Seconds. A mutant whose tests do not end within this time is caught.
const TIMEOUT: &str = "60";
const SIMULATOR_TIMEOUT: &str = "400";

/// The tests that are run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tests {
    OfThePart,
    OfTheSimulator,
}

/// Mutants of one part, in a copy of the checkout.
pub(super) struct OneByOne<'a> {
    pub(super) copy: &'a Copy<'a>,
    pub(super) part: &'a Part,
    /// The folder for the files that cargo-mutants writes.
    pub(super) folder: PathBuf,
}

/// The names of the mutants that were tried, by result.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    pub(super) caught: Vec<String>,
    pub(super) missed: Vec<String>,
    pub(super) unviable: Vec<String>,
}

impl OneByOne<'_> {
    pub(super) fn carry_out(&self, names: &[&str], tests: Tests) -> Result<Outcome> {
        if names.is_empty() {
            return Ok(Outcome::default());
        }
        let mut command = Command::new("cargo");
        command.current_dir(self.copy.restore()?);
        self.copy.build_beside(&mut command);
        command.args(["mutants", "--in-place", "--baseline", "skip", "--no-shuffle", "--colors", "never"]);
        command.args(["--package", self.part.package]).arg("--output").arg(&self.folder);
        let (arguments, timeout) = match tests {
            Tests::OfThePart => (self.part.tests, TIMEOUT),
            Tests::OfTheSimulator => {
                command.args(["--test-package", SIMULATOR]);
                (SIMULATOR_TESTS, SIMULATOR_TIMEOUT)
            }
        };
        command.args(["--timeout", timeout]);
        for argument in arguments {
            command.args(["--cargo-arg", argument]);
        }
        for file in names.iter().filter_map(|name| name.split(':').next()).collect::<BTreeSet<_>>() {
            command.args(["--file", file]);
        }
        for name in names {
            command.args(["--re", &format!("^{}$", escaped(name))]);
        }
        let written = || format!("cannot write in {}", self.folder.display());
        fs::create_dir_all(&self.folder).with_context(written)?;
        command.stdout(File::create(self.folder.join("log")).with_context(written)?);
        let status = command.status().context("cannot run cargo mutants")?;
        // 2 or 3 if mutants survived or kept their tests from ending, 0 if none did.
        if !matches!(status.code(), Some(0 | 2 | 3)) {
            bail!("cargo mutants ended with {status}: see {}", self.folder.display());
        }
        let read = |name: &str| lines(&self.folder.join("mutants.out").join(name));
        let caught = ["caught.txt", "timeout.txt"].into_iter().flat_map(read).collect();
        Ok(Outcome { caught, missed: read("missed.txt"), unviable: read("unviable.txt") })
    }
}

fn lines(file: &Path) -> Vec<String> {
    let text = fs::read_to_string(file).unwrap_or_default();
    text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

/// A regular expression that matches exactly this text.
fn escaped(text: &str) -> String {
    let special = |letter: char| letter.is_ascii_punctuation();
    text.chars().flat_map(|letter| special(letter).then_some('\\').into_iter().chain([letter])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_of_a_mutant_is_no_pattern() {
        assert_eq!(escaped("a.rs:1: x || y"), "a\\.rs\\:1\\: x \\|\\| y");
    }
}
