//! The steps of `cargo xtask test`, cheap ones first.

use crate::{
    api,
    beside::{has_kerberos, release},
    features, licences, metadata,
    outcome::Outcome,
    package,
    program::{Finished, Runner, is_installed},
    python,
    tally::Tally,
    tidy,
};
use anyhow::Result;
use std::{
    collections::BTreeSet,
    num::NonZero,
    process::Command,
    thread::available_parallelism,
    time::{SystemTime, UNIX_EPOCH},
};

/// A step of `cargo xtask test`.
#[derive(Debug)]
pub(crate) struct Step {
    pub(crate) name: &'static str,
    /// The description in `--list`.
    pub(crate) what: &'static str,
    /// Whether the step belongs to `--full` only.
    pub(crate) only_in_full: bool,
    /// Work to begin beside earlier steps.
    pub(crate) needs: &'static [Need],
    /// Whether the step only computes. It runs beside `interop`, which mostly waits, in the time that this leaves.
    pub(crate) is_beside_interop: bool,
    /// Runs the step; the second argument chooses its long form.
    pub(crate) run: fn(&Runner<'_>, bool) -> Result<Outcome>,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// The programs that interop/peers/get fetches.
    Peers,
    /// The release build of `ostler`.
    Release,
    /// The release build of `ostler-sim`.
    Simulator,
}

const fn step(name: &'static str, what: &'static str, run: fn(&Runner<'_>, bool) -> Result<Outcome>) -> Step {
    Step { name, what, only_in_full: false, needs: &[], is_beside_interop: false, run }
}

pub(crate) const STEPS: [Step; 15] = [
    step("fmt", "rustfmt has nothing to change", fmt),
    step("tidy", "imports between crates, sizes, names and words of files, paths in documents", tidy),
    step("licences", "lock files are current, licences are on the list of deny.toml", licences),
    step("python", "ruff and mypy find nothing in the Python programs", python),
    step("clippy", "clippy and the compiler have no warning, tests and planted bugs included", clippy),
    step("test", "cargo test --workspace", test),
    step("features", "client and recipes compile without features, with each one, with all", features::check),
    step("package", "crates can be packaged, and their READMEs' examples compile outside", package::check),
    step("api", "the public API is as docs/api lists it, and fits its version", api::check),
    step("curator", "each bug of Curator's that is planted in the recipes makes its test fail", curator),
    Step { only_in_full: true, ..step("planted", "the simulator finds every bug that is planted", planted) },
    Step {
        needs: &[Need::Simulator],
        is_beside_interop: true,
        ..step("sim", "the simulator runs 120 seeds", sim)
    },
    step("doc", "the documentation builds without a warning", doc),
    Step {
        is_beside_interop: true,
        ..step("fuzz", "every fuzz target runs for some seconds (fuzz/run)", fuzz)
    },
    Step {
        needs: &[Need::Peers, Need::Release],
        ..step(
            INTEROP,
            "Ostler works with other clients, Java ZooKeeper and its files (interop/run.py)",
            interop,
        )
    },
];

/// Crates with a workspace of their own.
const OUTSIDE: [&str; 3] =
    ["fuzz/Cargo.toml", "interop/clients/rust-zookeeper-client/Cargo.toml", "bench/client-load/Cargo.toml"];
/// The packages of the programs that steps build as releases.
pub(crate) const PROGRAM: &str = "ostler";
pub(crate) const SIMULATOR: &str = "ostler-sim";
/// The step beside which others run.
pub(crate) const INTEROP: &str = "interop";
/// The number of tests of a crate that run at a time, per processor.
const TESTS_PER_CORE: usize = 2;
/// Seconds for each fuzz target: usually, and in the long form.
const FUZZ_SECONDS: (&str, &str) = ("3", "600");
/// The number of simulator seeds that run every time.
const SIM_SEEDS: &str = "60";
/// The number of new seeds: usually, and in the long form.
const SIM_SEEDS_FRESH: (&str, &str) = ("60", "10000");
/// Exit code of a script that could do nothing on this machine.
const NOTHING_DONE: i32 = 77;
const NO_PYTHON: &str = "there is no python3 on this machine";

fn fmt(runner: &Runner<'_>, _: bool) -> Result<Outcome> {
    let mut finished = runner.cargo(&["fmt", "--all", "--check", "--", "--color", "never"])?;
    for manifest in OUTSIDE {
        if finished.success && runner.checkout().join(manifest).is_file() {
            finished =
                runner.cargo(&["fmt", "--manifest-path", manifest, "--check", "--", "--color", "never"])?;
        }
    }
    Ok(pass_or_fail(finished))
}

fn tidy(runner: &Runner<'_>, _: bool) -> Result<Outcome> {
    let metadata = metadata::read(runner.checkout())?;
    let (complaints, files) = tidy::check(runner.checkout(), &metadata)?;
    Ok(Outcome::of_complaints(&complaints, format!("{files} files")))
}

/// Also lets cargo check that all lock files are current, including those of crates that no other step builds.
fn licences(runner: &Runner<'_>, _: bool) -> Result<Outcome> {
    let allowed = licences::allowed(runner.checkout())?;
    let (mut complaints, mut packages) = (BTreeSet::new(), BTreeSet::new());
    for manifest in ["Cargo.toml"].into_iter().chain(OUTSIDE) {
        let manifest = runner.checkout().join(manifest);
        if let Some(folder) = manifest.parent().filter(|_| manifest.is_file()) {
            let metadata = metadata::read(folder)?;
            complaints.extend(licences::check(&metadata, &allowed));
            packages.extend(metadata.packages.into_iter().map(|of| (of.name, of.version)));
        }
    }
    let complaints: Vec<String> = complaints.into_iter().collect();
    Ok(Outcome::of_complaints(&complaints, format!("{} packages", packages.len())))
}

fn python(runner: &Runner<'_>, _: bool) -> Result<Outcome> {
    python::check(runner)
}

fn clippy(runner: &Runner<'_>, _: bool) -> Result<Outcome> {
    let arguments = ["clippy", "--locked", "--workspace", "--all-targets", "--", "-D", "warnings"];
    let finished = runner.cargo(&arguments)?;
    if !finished.success {
        return Ok(pass_or_fail(finished));
    }
    // Code that is compiled only with planted bugs is in these crates and their dependencies.
    let planted = ["--package=ostler-sim", "--package=ostler-recipes", "--all-targets"];
    let with_bugs = ["--features=planted-bugs", "--", "-D", "warnings"];
    let finished = runner.cargo(&[&["clippy", "--locked"], &planted[..], &with_bugs].concat())?;
    if !finished.success || !has_kerberos(runner.checkout()) {
        return Ok(pass_or_fail(finished));
    }
    let kerberos = ["clippy", "--locked", "--package=ostler-kerberos", "--all-targets", "--features=gssapi"];
    Ok(pass_or_fail(runner.cargo(&[&kerberos[..], &["--", "-D", "warnings"]].concat())?))
}

/// Most slow tests wait, for a session to expire or a server to return. So more tests run at a time than there are
/// processors.
fn test(runner: &Runner<'_>, _: bool) -> Result<Outcome> {
    let threads = available_parallelism().map_or(1, NonZero::get) * TESTS_PER_CORE;
    let arguments = ["test", "--locked", "--workspace", "--no-fail-fast"];
    let finished = runner.cargo_with(("RUST_TEST_THREADS", &threads.to_string()), &arguments)?;
    let tally = Tally::of_cargo(&finished.output).or_failed(finished.success);
    Ok(counted(tally, finished))
}

/// Builds the whole workspace, so that crates are not built again with other features.
fn curator(runner: &Runner<'_>, _: bool) -> Result<Outcome> {
    let arguments = ["test", "--locked", "--workspace", "--features", "ostler-recipes/planted-bugs"];
    let these = ["--test", "holding", "--", "planted::", "curator_issues::"];
    let finished = runner.cargo(&[&arguments[..], &these].concat())?;
    let tally = Tally::of_cargo(&finished.output).or_failed(finished.success);
    Ok(counted(tally, finished))
}

fn planted(runner: &Runner<'_>, _: bool) -> Result<Outcome> {
    let arguments =
        ["test", "--locked", "--profile=quick", "--package", SIMULATOR, "--features", "planted-bugs"];
    let finished = runner.cargo(&[&arguments[..], &["--test", "planted"]].concat())?;
    let tally = Tally::of_cargo(&finished.output).or_failed(finished.success);
    Ok(counted(tally, finished))
}

/// Runs the same seeds every time, to judge a change, and then new ones.
fn sim(runner: &Runner<'_>, full: bool) -> Result<Outcome> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |since| since.as_secs()).to_string();
    let (short, long) = SIM_SEEDS_FRESH;
    let fresh = if full { long } else { short };
    let arguments = ["run", "--locked", "--release", "--package", SIMULATOR, "--"];
    for (first, seeds) in [("1", SIM_SEEDS), (&*now, fresh)] {
        let finished = runner.cargo(&[&arguments[..], &["--seed", first, "--seeds", seeds]].concat())?;
        if !finished.success {
            return Ok(pass_or_fail(finished));
        }
    }
    Ok(Outcome::ok(format!("{SIM_SEEDS} seeds from 1, {fresh} from {now}")))
}

fn doc(runner: &Runner<'_>, _: bool) -> Result<Outcome> {
    let arguments = ["doc", "--locked", "--workspace", "--no-deps"];
    Ok(pass_or_fail(runner.cargo_with(("RUSTDOCFLAGS", "-D warnings"), &arguments)?))
}

fn fuzz(runner: &Runner<'_>, full: bool) -> Result<Outcome> {
    if !is_installed("python3") {
        return Ok(Outcome::skipped(NO_PYTHON));
    }
    if !runner.checkout().join("fuzz/run").is_file() {
        return Ok(Outcome::skipped("there is no fuzz/run in this checkout"));
    }
    let (short, long) = FUZZ_SECONDS;
    let words: &[&str] = if full { &["fuzz/run", long] } else { &["fuzz/run", "--plain", short] };
    Ok(by_closing_line(runner.run(Command::new("python3").args(words))?))
}

fn interop(runner: &Runner<'_>, full: bool) -> Result<Outcome> {
    if !is_installed("python3") {
        return Ok(Outcome::skipped(NO_PYTHON));
    }
    let built = runner.cargo(&release(runner.checkout(), PROGRAM))?;
    if !built.success {
        return Ok(Outcome::failed("cargo build --release", built.output));
    }
    let mut command = Command::new("python3");
    command.arg("interop/run.py");
    if !full {
        command.arg("--quick");
    }
    Ok(by_closing_line(runner.run(&mut command)?))
}

fn pass_or_fail(finished: Finished) -> Outcome {
    if finished.success { Outcome::ok("") } else { Outcome::failed(finished.status, finished.output) }
}

/// The outcome of a program that prints the numbers of its tests in its last line.
fn by_closing_line(finished: Finished) -> Outcome {
    match Tally::of_closing_line(&finished.output) {
        Some(tally) => {
            let ended_well = finished.success || finished.code == Some(NOTHING_DONE);
            counted(tally.or_failed(ended_well), finished)
        }
        None => Outcome::failed(format!("{}, and it counted nothing", finished.status), finished.output),
    }
}

/// The outcome with all output after a failure, or with the lines about skipped tests after a success.
fn counted(tally: Tally, finished: Finished) -> Outcome {
    let details = if tally.failed > 0 {
        finished.output
    } else {
        let skipped = finished.output.lines().filter(|line| line.starts_with("skipped"));
        skipped.map(|line| format!("  {line}\n")).collect()
    };
    Outcome { tally, reason: tally.to_string(), details }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finished(success: bool, output: &str) -> Finished {
        let code = Some(i32::from(!success));
        Finished { success, code, output: output.to_owned(), status: "exit status: 1".to_owned() }
    }

    #[test]
    fn a_passing_outcome_lists_what_was_skipped() {
        let output = "ok a (1 s)\nskipped b (0 s) no java\n1 passed, 0 failed, 1 skipped\n";
        let outcome = by_closing_line(finished(true, output));
        assert_eq!(outcome.tally, Tally { passed: 1, failed: 0, skipped: 1 });
        assert_eq!(outcome.details, "  skipped b (0 s) no java\n");
    }

    #[test]
    fn a_program_that_could_do_nothing_has_not_failed() {
        let mut nothing = finished(false, "skipped: no nightly\n0 passed, 0 failed, 12 skipped\n");
        nothing.code = Some(NOTHING_DONE);
        let outcome = by_closing_line(nothing);
        assert_eq!(outcome.tally, Tally { passed: 0, failed: 0, skipped: 12 });
        assert_eq!(outcome.details, "  skipped: no nightly\n");
    }

    #[test]
    fn a_program_that_counts_nothing_has_failed() {
        assert_eq!(by_closing_line(finished(true, "done\n")).tally.failed, 1);
        let outcome = by_closing_line(finished(false, "panicked\n3 passed, 0 failed, 0 skipped\n"));
        assert_eq!(outcome.tally, Tally { passed: 3, failed: 1, skipped: 0 });
        assert!(outcome.details.starts_with("panicked"));
    }
}
