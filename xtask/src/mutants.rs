//! `cargo xtask mutants`: mutation testing with cargo-mutants. Finds changes of the code that no test notices.
//!
//! Code that decides safety is mutated completely; of the other code a sample is. A mutant that survives the tests of
//! its own crate is tried on the simulator, if the simulator runs that code. A mutant that survives both needs a test,
//! or a line in .cargo/mutants.toml with the reason why it changes nothing.
//!
//! Nearly all mutants of a part are built into one program, and are switched on by their numbers ([`weave`]). The
//! others are built one by one, by cargo-mutants itself. A run does not try mutants again that an earlier run has
//! caught, unless `--fresh` is given.

mod listed;
mod one_by_one;
mod planted;
mod weave;
mod woven;

use self::{
    listed::Mutant,
    one_by_one::{OneByOne, Tests},
    woven::Copy,
};
use crate::{program::is_installed, steps::SIMULATOR};
use anyhow::{Context, Result, bail};
use clap::Args;
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// Change the code, and report the changes that no test notices.
///
/// Needs cargo-mutants (`cargo install cargo-mutants --locked`). Results are in target/mutants/PART.txt.
#[derive(Debug, Args)]
pub(crate) struct MutantsArgs {
    /// Only these parts.
    #[arg(long, value_name = "PART,...", value_delimiter = ',')]
    only: Vec<String>,
    /// Only lines that differ from this commit.
    #[arg(long, value_name = "COMMIT", num_args = 0..=1, default_missing_value = "HEAD")]
    changed: Option<String>,
    /// Try all mutants again, those that were caught before, too.
    #[arg(long)]
    fresh: bool,
    /// Do not try mutants on the simulator, which takes most of the time.
    #[arg(long)]
    no_simulator: bool,
    /// Print the parts and exit.
    #[arg(long)]
    list: bool,
}

/// Files of one package that are mutated together.
struct Part {
    name: &'static str,
    package: &'static str,
    /// The files to mutate; all files of the package if empty.
    files: &'static [&'static str],
    /// Files that are left out.
    without: &'static [&'static str],
    /// Every n-th mutant is tried.
    one_in: u32,
    /// Whether the simulator runs this code.
    simulated: bool,
    /// Arguments of `cargo test`. Examples in the docs are left out, because each is a program to build.
    tests: &'static [&'static str],
}

const STORAGE: [&str; 3] =
    ["crates/storage/src/txnlog.rs", "crates/storage/src/txnlog/*.rs", "crates/storage/src/recover.rs"];
const TREE: [&str; 2] = ["crates/tree/src/watch.rs", "crates/tree/src/apply.rs"];
const CORE: [&str; 10] = [
    "crates/server-core/src/sessions.rs",
    "crates/server-core/src/sessions/local.rs",
    "crates/server-core/src/connections/handshake.rs",
    "crates/server-core/src/pipeline/answer.rs",
    "crates/server-core/src/pipeline/commit.rs",
    "crates/server-core/src/pipeline/propose.rs",
    "crates/server-core/src/pipeline/snapshot_plan.rs",
    "crates/server-core/src/pipeline/syncs.rs",
    "crates/server-core/src/quorum.rs",
    "crates/server-core/src/quorum/*.rs",
];
const RECIPES: [&str; 4] = [
    "crates/recipes/src/queue_order.rs",
    "crates/recipes/src/queue_place.rs",
    "crates/recipes/src/session_retry.rs",
    "crates/recipes/src/fencing.rs",
];
/// Which transactions a backup takes for committed, and how its parts continue each other.
const BACKUP: [&str; 3] =
    ["crates/backup/src/committed.rs", "crates/backup/src/history.rs", "crates/backup/src/continuation.rs"];
const SAMPLE: u32 = 20;
const ALL_TESTS: &[&str] = &["--lib", "--tests"];
/// Tests with a server in the same program. The others take minutes.
const QUEUE_TESTS: &[&str] = &["--lib", "--test", "holding"];
const RECIPES_TESTS: &[&str] = &["--lib", "--test", "holding", "--test", "data"];

const fn whole(name: &'static str, package: &'static str, files: &'static [&'static str]) -> Part {
    Part { name, package, files, without: &[], one_in: 1, simulated: true, tests: ALL_TESTS }
}

const fn sampled(name: &'static str, package: &'static str, without: &'static [&'static str]) -> Part {
    Part { name, package, files: &[], without, one_in: SAMPLE, simulated: true, tests: ALL_TESTS }
}

const PARTS: [Part; 12] = [
    whole("zab", "ostler-zab", &[]),
    whole("storage", "ostler-storage", &STORAGE),
    whole("tree", "ostler-tree", &TREE),
    whole("core", "ostler-server-core", &CORE),
    Part { simulated: false, tests: QUEUE_TESTS, ..whole("recipes", "ostler-recipes", &RECIPES) },
    Part { simulated: false, ..whole("backup", "ostler-backup", &BACKUP) },
    sampled("storage-rest", "ostler-storage", &STORAGE),
    sampled("tree-rest", "ostler-tree", &TREE),
    sampled("core-rest", "ostler-server-core", &CORE),
    Part { simulated: false, tests: RECIPES_TESTS, ..sampled("recipes-rest", "ostler-recipes", &RECIPES) },
    Part { simulated: false, ..sampled("client-core", "ostler-client-core", &[]) },
    sampled("persistence", "ostler-data-dir", &[]),
];

const SIMULATOR_TESTS: &[&str] = &["--lib"];
/// The result of trying a mutant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MutantResult {
    ByUnits,
    BySimulator,
    /// The mutated code runs only with a planted bug.
    Planted,
    /// The mutant does not compile.
    Unviable,
    Left,
}

impl MutantResult {
    const ALL: [(MutantResult, &str); 5] = [
        (MutantResult::ByUnits, "units"),
        (MutantResult::BySimulator, "simulator"),
        (MutantResult::Planted, "planted"),
        (MutantResult::Unviable, "unviable"),
        (MutantResult::Left, "left"),
    ];

    fn name(self) -> &'static str {
        MutantResult::ALL.iter().find(|(result, _)| *result == self).map_or("", |(_, name)| name)
    }

    fn named(name: &str) -> Option<MutantResult> {
        MutantResult::ALL.iter().find(|(_, of)| *of == name).map(|(result, _)| *result)
    }
}

/// The results of a part's mutants, in a file that is written after each result.
struct MutantResults {
    file: PathBuf,
    known: BTreeMap<String, MutantResult>,
}

impl MutantResults {
    /// Reads the file. Mutants that were left are tried again; with `fresh` all are.
    fn open(file: PathBuf, fresh: bool) -> MutantResults {
        let text = if fresh { String::new() } else { fs::read_to_string(&file).unwrap_or_default() };
        let one = |line: &str| {
            let (result, name) = line.split_once('\t')?;
            Some((name.to_owned(), MutantResult::named(result)?))
        };
        MutantResults {
            file,
            known: text.lines().filter_map(one).filter(|(_, result)| *result != MutantResult::Left).collect(),
        }
    }

    fn set(&mut self, name: &str, result: MutantResult) -> Result<()> {
        self.known.insert(name.to_owned(), result);
        let lines = self.known.iter().map(|(name, result)| format!("{}\t{name}\n", result.name()));
        fs::write(&self.file, lines.collect::<String>())
            .with_context(|| format!("cannot write {}", self.file.display()))
    }

    fn is_left(&self, name: &str) -> bool {
        self.known.get(name).is_none_or(|result| *result == MutantResult::Left)
    }
}

/// The state of a run.
struct Workplace<'a> {
    checkout: &'a Path,
    results: PathBuf,
    diff: Option<PathBuf>,
    fresh: bool,
    simulator: bool,
}

/// Tries all chosen parts. Returns whether no mutant survived.
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
    let workplace = Workplace {
        checkout,
        results,
        fresh: args.fresh || diff.is_some(),
        simulator: !args.no_simulator,
        diff,
    };
    println!(
        "{:<13} {:>7} {:>8} {:>10} {:>7} {:>5} {:>4}",
        "part", "mutants", "by units", "by the sim", "planted", "equal", "left"
    );
    let mut left = Vec::new();
    for part in parts {
        let (equal, results_by_mutant) =
            workplace.try_part(part).with_context(|| format!("part {}", part.name))?;
        let count =
            |wanted: MutantResult| results_by_mutant.values().filter(|result| **result == wanted).count();
        println!(
            "{:<13} {:>7} {:>8} {:>10} {:>7} {equal:>5} {:>4}",
            part.name,
            results_by_mutant.len() - count(MutantResult::Unviable) + equal,
            count(MutantResult::ByUnits),
            count(MutantResult::BySimulator),
            count(MutantResult::Planted),
            count(MutantResult::Left)
        );
        left.extend(
            results_by_mutant
                .into_iter()
                .filter(|(_, result)| *result == MutantResult::Left)
                .map(|(name, _)| name),
        );
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

impl Workplace<'_> {
    /// Tries a part. Returns the number of mutants that .cargo/mutants.toml declares equal, and the results of the
    /// others.
    fn try_part(&self, part: &Part) -> Result<(usize, BTreeMap<String, MutantResult>)> {
        let all = listed::list(self.command(part, true))?;
        let equal = listed::list(self.command(part, false))?.len() - all.len();
        let name = if self.diff.is_some() { format!("{}-changed", part.name) } else { part.name.to_owned() };
        let results_by_mutant =
            Mutex::new(MutantResults::open(self.results.join(&name).with_extension("txt"), self.fresh));
        let set = |mutant: &Mutant, result| lock(&results_by_mutant).set(&mutant.name, result);
        for mutant in all.iter().filter(|mutant| planted::is_in_planted_bug(self.checkout, &mutant.name)) {
            set(mutant, MutantResult::Planted)?;
        }
        let open: Vec<Mutant> =
            all.iter().filter(|one| lock(&results_by_mutant).is_left(&one.name)).cloned().collect();
        if !open.is_empty() {
            let mut copy = Copy::new(self.checkout, &self.results, &open)?;
            let woven: Vec<usize> = copy.weave(part.package)?.into_iter().collect();
            let is_left = |number: &usize| lock(&results_by_mutant).is_left(&open[*number].name);
            let woven_mutants = WovenMutants { copy: &copy, open: &open, results: &results_by_mutant };
            woven_mutants.run((part.package, part.tests), &woven, MutantResult::ByUnits)?;
            if part.simulated && self.simulator {
                let survivors: Vec<usize> = woven.iter().copied().filter(is_left).collect();
                woven_mutants.run((SIMULATOR, SIMULATOR_TESTS), &survivors, MutantResult::BySimulator)?;
            }
            let others: Vec<&Mutant> = (0..open.len())
                .filter(|number| !woven.contains(number))
                .map(|number| &open[number])
                .collect();
            let tries = OneByOne { copy: &copy, part, folder: self.results.join(&name) };
            self.try_one_by_one(&tries, &others, &results_by_mutant)?;
        }
        let mut results_by_mutant = lock(&results_by_mutant).known.clone();
        results_by_mutant.retain(|name, _| all.iter().any(|mutant| mutant.name == *name));
        Ok((equal, results_by_mutant))
    }

    /// Builds a program for each mutant, by cargo-mutants itself.
    fn try_one_by_one(
        &self,
        tries: &OneByOne<'_>,
        mutants: &[&Mutant],
        results_by_mutant: &Mutex<MutantResults>,
    ) -> Result<()> {
        let set_all = |names: &[String], result| {
            names.iter().try_for_each(|name| lock(results_by_mutant).set(name, result))
        };
        let names: Vec<&str> = mutants.iter().map(|mutant| &*mutant.name).collect();
        let outcome = tries.carry_out(&names, Tests::OfThePart)?;
        set_all(&outcome.caught, MutantResult::ByUnits)?;
        set_all(&outcome.unviable, MutantResult::Unviable)?;
        set_all(&outcome.missed, MutantResult::Left)?;
        if tries.part.simulated && self.simulator {
            let missed: Vec<&str> = outcome.missed.iter().map(String::as_str).collect();
            set_all(&tries.carry_out(&missed, Tests::OfTheSimulator)?.caught, MutantResult::BySimulator)?;
        }
        Ok(())
    }

    /// A cargo-mutants command for all mutants of a part, or for those that .cargo/mutants.toml does not declare equal.
    fn command(&self, part: &Part, by_configuration: bool) -> Command {
        let mut command = Command::new("cargo");
        command.current_dir(self.checkout).args(["mutants", "--package", part.package]);
        if !by_configuration {
            command.arg("--no-config");
        }
        for file in part.files {
            command.args(["--file", file]);
        }
        for file in part.without {
            command.args(["--exclude", file]);
        }
        match &self.diff {
            Some(diff) => command.arg("--in-diff").arg(diff),
            None => command.args(["--sharding", "round-robin", "--shard", &format!("0/{}", part.one_in)]),
        };
        command
    }
}

/// Mutants of a part that are built into one program.
struct WovenMutants<'a> {
    copy: &'a Copy<'a>,
    /// All mutants of the part that are to be tried.
    open: &'a [Mutant],
    results: &'a Mutex<MutantResults>,
}

impl WovenMutants<'_> {
    /// Runs the tests of a package with each of these mutants. A mutant that a test notices gets the result `caught`.
    fn run(&self, (package, tests): (&str, &[&str]), mutants: &[usize], caught: MutantResult) -> Result<()> {
        self.copy.run(package, tests, mutants, |number, noticed| {
            let result = if noticed { caught } else { MutantResult::Left };
            if let Err(error) = lock(self.results).set(&self.open[number].name, result) {
                eprintln!("{error:#}");
            }
        })
    }
}

/// Locks even if another thread has panicked: the results stay valid.
fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
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
}
