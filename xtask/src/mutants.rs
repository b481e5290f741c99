//! `cargo xtask mutants`: which changes of the code no test notices (mutation testing, by cargo-mutants).
//!
//! What decides safety is mutated as a whole, the rest of its crates is sampled. A mutant that survives the tests of its
//! own crate is tried on the simulator, where that runs its code. What survives both needs a test, or a line in
//! .cargo/mutants.toml with the reason why it cannot matter.
//!
//! A run takes hours. It goes on where the last one ended: what was caught is not tried again. `--fresh` forgets that.

use crate::program::is_installed;
use anyhow::{Context, Result, bail};
use clap::Args;
mod planted;

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// Mutate the code, and see which mutants no test notices.
///
/// Needs cargo-mutants (`cargo install cargo-mutants --locked`). Results are in target/mutants/PART/mutants.out.
#[derive(Debug, Args)]
pub(crate) struct MutantsArgs {
    /// Only these parts.
    #[arg(long, value_name = "PART,...", value_delimiter = ',')]
    only: Vec<String>,
    /// Only lines that differ from this commit.
    #[arg(long, value_name = "COMMIT", num_args = 0..=1, default_missing_value = "HEAD")]
    changed: Option<String>,
    /// Try again what was caught before.
    #[arg(long)]
    fresh: bool,
    /// Name the parts and end.
    #[arg(long)]
    list: bool,
}

/// What is mutated together.
struct Part {
    name: &'static str,
    package: &'static str,
    /// All of them if there are none.
    files: &'static [&'static str],
    /// Not these.
    without: &'static [&'static str],
    /// One mutant in so many.
    one_in: u32,
    /// The simulator runs this code.
    simulated: bool,
    /// What `cargo test` is told to run. Examples in the docs are left out: each is a program to build.
    tests: &'static [&'static str],
}

const STORAGE: [&str; 3] =
    ["crates/storage/src/txnlog.rs", "crates/storage/src/txnlog/*.rs", "crates/storage/src/recover.rs"];
const TREE: [&str; 2] = ["crates/tree/src/watch.rs", "crates/tree/src/apply.rs"];
const CORE: [&str; 6] = [
    "crates/server-core/src/session.rs",
    "crates/server-core/src/connect.rs",
    "crates/server-core/src/propose.rs",
    "crates/server-core/src/commit.rs",
    "crates/server-core/src/ensemble.rs",
    "crates/server-core/src/ensemble/*.rs",
];
const RECIPES: [&str; 3] =
    ["crates/recipes/src/line_order.rs", "crates/recipes/src/line.rs", "crates/recipes/src/fencing.rs"];
const SAMPLE: u32 = 20;
const ALL_TESTS: &[&str] = &["--lib", "--tests"];
/// The tests of recipes that need servers take minutes.
const PURE_TESTS: &[&str] = &["--lib"];

const fn whole(name: &'static str, package: &'static str, files: &'static [&'static str]) -> Part {
    Part { name, package, files, without: &[], one_in: 1, simulated: true, tests: ALL_TESTS }
}

const fn sampled(name: &'static str, package: &'static str, without: &'static [&'static str]) -> Part {
    Part { name, package, files: &[], without, one_in: SAMPLE, simulated: true, tests: ALL_TESTS }
}

const PARTS: [Part; 11] = [
    whole("zab", "ostler-zab", &[]),
    whole("storage", "ostler-storage", &STORAGE),
    whole("tree", "ostler-tree", &TREE),
    whole("core", "ostler-server-core", &CORE),
    Part { simulated: false, tests: PURE_TESTS, ..whole("recipes", "ostler-recipes", &RECIPES) },
    sampled("storage-rest", "ostler-storage", &STORAGE),
    sampled("tree-rest", "ostler-tree", &TREE),
    sampled("core-rest", "ostler-server-core", &CORE),
    Part { simulated: false, tests: PURE_TESTS, ..sampled("recipes-rest", "ostler-recipes", &RECIPES) },
    Part { simulated: false, ..sampled("client-core", "ostler-client-core", &[]) },
    sampled("persistence", "ostler-persistence", &[]),
];

const SIMULATOR: &str = "ostler-sim";
const SIMULATOR_TESTS: &[&str] = &["--lib"];
/// Seconds. A mutant that keeps its tests from ending is noticed.
const TIMEOUT: &str = "40";
const SIMULATOR_TIMEOUT: &str = "400";

/// How the mutants of a part fared.
#[derive(Debug, Default, PartialEq, Eq)]
struct Fates {
    caught: Vec<String>,
    missed: Vec<String>,
}

/// Whether no mutant survived.
pub(crate) fn run(args: &MutantsArgs, checkout: &Path) -> Result<bool> {
    let parts: Vec<&Part> = PARTS.iter().filter(|part| is_chosen(part, &args.only)).collect();
    if let Some(unknown) = args.only.iter().find(|name| PARTS.iter().all(|part| part.name != **name)) {
        let names: Vec<&str> = PARTS.iter().map(|part| part.name).collect();
        bail!("there is no part {unknown}; the parts are {}", names.join(", "));
    }
    if args.list {
        parts.iter().for_each(|part| println!("{:<13} {}", part.name, describe(part)));
        return Ok(true);
    }
    if !is_installed("cargo-mutants") {
        bail!("cargo-mutants is not installed: cargo install cargo-mutants --locked");
    }
    let results = checkout.join("target/mutants");
    fs::create_dir_all(&results).with_context(|| format!("cannot create {}", results.display()))?;
    let diff = args.changed.as_deref().map(|commit| write_diff(checkout, &results, commit)).transpose()?;
    println!(
        "{:<13} {:>7} {:>8} {:>10} {:>7} {:>5}",
        "part", "mutants", "by units", "by the sim", "planted", "left"
    );
    let mut left = Vec::new();
    for part in parts {
        let mut fates = units(checkout, &results, part, diff.as_deref(), args.fresh)?;
        let missed = fates.missed.len();
        fates.missed.retain(|mutant| !planted::is_in_planted_bug(checkout, mutant));
        let planted = missed - fates.missed.len();
        let simulated = simulator(checkout, &results, part, &fates.missed, args.fresh)?;
        let survivors: Vec<String> =
            fates.missed.iter().filter(|of| !simulated.contains(of)).cloned().collect();
        let (caught, all) = (fates.caught.len(), fates.caught.len() + missed);
        let by_simulator = fates.missed.len() - survivors.len();
        println!(
            "{:<13} {all:>7} {caught:>8} {by_simulator:>10} {planted:>7} {:>5}",
            part.name,
            survivors.len()
        );
        left.extend(survivors);
    }
    left.iter().for_each(|mutant| println!("left: {mutant}"));
    println!("{} left", left.len());
    Ok(left.is_empty())
}

fn is_chosen(part: &Part, only: &[String]) -> bool {
    only.is_empty() || only.iter().any(|name| name == part.name)
}

fn describe(part: &Part) -> String {
    let files = if part.files.is_empty() { "all files".to_owned() } else { part.files.join(", ") };
    match part.one_in {
        1 => format!("{}: {files}", part.package),
        n => format!("{}: one mutant in {n} of the files that no other part has", part.package),
    }
}

fn write_diff(checkout: &Path, results: &Path, commit: &str) -> Result<PathBuf> {
    let output = Command::new("git").current_dir(checkout).args(["diff", commit]).output()?;
    if !output.status.success() {
        bail!("git diff {commit}: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    let file = results.join("changed.diff");
    fs::write(&file, output.stdout).with_context(|| format!("cannot write {}", file.display()))?;
    Ok(file)
}

/// The tests of the mutants' own crate.
fn units(checkout: &Path, results: &Path, part: &Part, diff: Option<&Path>, fresh: bool) -> Result<Fates> {
    let folder =
        results.join(if diff.is_some() { format!("{}-changed", part.name) } else { part.name.to_owned() });
    let mut command = mutants(checkout, &folder, part.package, fresh || diff.is_some());
    add_tests(&mut command, part.tests, TIMEOUT);
    for file in part.files {
        command.args(["--file", file]);
    }
    for file in part.without {
        command.args(["--exclude", file]);
    }
    match diff {
        Some(diff) => command.arg("--in-diff").arg(diff),
        None => command.args(["--sharding", "round-robin", "--shard", &format!("0/{}", part.one_in)]),
    };
    carry_out(command, &folder)
}

/// Those of the mutants that the simulator notices.
fn simulator(
    checkout: &Path,
    results: &Path,
    part: &Part,
    missed: &[String],
    fresh: bool,
) -> Result<Vec<String>> {
    if missed.is_empty() || !part.simulated {
        return Ok(Vec::new());
    }
    let folder = results.join(format!("{}-sim", part.name));
    let mut command = mutants(checkout, &folder, part.package, fresh);
    command.args(["--test-package", SIMULATOR]);
    add_tests(&mut command, SIMULATOR_TESTS, SIMULATOR_TIMEOUT);
    for mutant in missed {
        command.args(["--re", &format!("^{}$", escaped(mutant))]);
    }
    Ok(carry_out(command, &folder)?.caught)
}

fn mutants(checkout: &Path, folder: &Path, package: &str, fresh: bool) -> Command {
    let mut command = Command::new("cargo");
    command.current_dir(checkout).args(["mutants", "--package", package, "--output"]).arg(folder);
    command.args(["--baseline", "skip", "--no-shuffle", "--colors", "never"]);
    if !fresh {
        command.arg("--iterate");
    }
    // Nearly all of the time goes into building each mutant and running its tests.
    command.env("CARGO_PROFILE_DEV_DEBUG", "0").env("CARGO_PROFILE_DEV_OPT_LEVEL", "1");
    command
}

fn add_tests(command: &mut Command, tests: &[&str], timeout: &str) {
    command.args(["--timeout", timeout]);
    for test in tests {
        command.args(["--cargo-test-arg", test]);
    }
}

/// cargo-mutants ends with 2 or 3 if mutants survived or kept their tests from ending, 0 if none did.
fn carry_out(mut command: Command, folder: &Path) -> Result<Fates> {
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let status = command.status().context("cannot run cargo mutants")?;
    if !matches!(status.code(), Some(0 | 2 | 3)) {
        bail!("cargo mutants ended with {status}: see {}", folder.display());
    }
    let read = |name: &str| lines(&folder.join("mutants.out").join(name));
    let caught = ["caught.txt", "timeout.txt", "previously_caught.txt"].into_iter().flat_map(read).collect();
    Ok(Fates { caught, missed: read("missed.txt") })
}

fn lines(file: &Path) -> Vec<String> {
    let text = fs::read_to_string(file).unwrap_or_default();
    text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

/// A regular expression for this text alone.
fn escaped(text: &str) -> String {
    let special = |letter: char| letter.is_ascii_punctuation();
    text.chars().flat_map(|letter| special(letter).then_some('\\').into_iter().chain([letter])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_that_is_named_exists() {
        let checkout = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        for file in PARTS.iter().flat_map(|part| part.files.iter().chain(part.without)) {
            let path = checkout.join(file.trim_end_matches("/*.rs"));
            assert!(path.exists(), "{file}");
        }
    }

    #[test]
    fn a_name_of_a_mutant_is_no_pattern() {
        assert_eq!(escaped("a.rs:1: x || y"), "a\\.rs\\:1\\: x \\|\\| y");
    }
}
