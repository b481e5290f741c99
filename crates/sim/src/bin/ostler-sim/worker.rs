//! Worker processes, which run plans. A broken promise ends its own process only.

use crate::SimArgs;
use clap::Parser;
use ostler_sim::{Plan, run};
use std::{
    env,
    io::{self, BufRead, BufReader, Write},
    iter, panic,
    process::{Child, ChildStdin, ChildStdout, Command, ExitCode, Stdio, exit},
};

/// The exit code of a worker that has found a broken promise.
const BROKEN_PROMISE: i32 = 3;

/// The figures of one run, or the sums over several.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct RunFigures {
    pub(super) fingerprint: u64,
    pub(super) virtual_ms: u64,
    pub(super) epochs: u64,
    pub(super) transactions: u64,
    pub(super) faults: u64,
}

/// The result of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    Kept(RunFigures),
    /// A promise was broken. The text says which one, and how.
    Broken(String),
}

/// A process that runs plans.
pub(super) struct Worker {
    child: Child,
    plans: ChildStdin,
    verdicts: BufReader<ChildStdout>,
    plant: Option<String>,
}

impl Worker {
    /// Starts a worker process. If `plant` names a bug, it is planted there.
    pub(super) fn start(plant: Option<String>) -> io::Result<Worker> {
        let mut command = Command::new(env::current_exe()?);
        command.arg("--worker");
        // The next run uses the memory of the run before. Giving it back to the system would take a tenth of the time.
        command.env("MIMALLOC_PURGE_DELAY", "-1");
        if let Some(bug) = &plant {
            command.args(["--plant", bug]);
        }
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let piped = || io::Error::other("a worker has no pipes");
        let plans = child.stdin.take().ok_or_else(piped)?;
        let verdicts = BufReader::new(child.stdout.take().ok_or_else(piped)?);
        Ok(Worker { child, plans, verdicts, plant })
    }

    /// Runs a plan. A process that broke a promise is replaced by a new one.
    pub(super) fn attempt(&mut self, plan: &Plan) -> io::Result<Verdict> {
        writeln!(self.plans, "{plan}")?;
        let mut line = String::new();
        self.verdicts.read_line(&mut line)?;
        if let Some(numbers) = line.strip_prefix("kept ") {
            let mut numbers = numbers.split_whitespace().map(|number| number.parse().unwrap_or(0));
            let mut next = || numbers.next().unwrap_or(0);
            return Ok(Verdict::Kept(RunFigures {
                fingerprint: next(),
                virtual_ms: next(),
                epochs: next(),
                transactions: next(),
                faults: next(),
            }));
        }
        let status = self.child.wait()?;
        let broken = match line.strip_prefix("broken ") {
            Some(message) => message.trim_end().to_owned(),
            None => format!("[process] the run ended with {status}"),
        };
        *self = Worker::start(self.plant.clone())?;
        Ok(Verdict::Broken(broken))
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // The process has nothing to finish.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs the plans that come in at the standard input, until its end.
pub(super) fn serve() -> ExitCode {
    panic::set_hook(Box::new(|broken| {
        println!("broken {}", one_line(&broken.to_string()));
        exit(BROKEN_PROMISE);
    }));
    for line in io::stdin().lines().map_while(Result::ok) {
        let args = match SimArgs::try_parse_from(iter::once("ostler-sim").chain(line.split_whitespace())) {
            Ok(args) => args,
            Err(error) => {
                eprintln!("ostler-sim: {error}");
                return ExitCode::FAILURE;
            }
        };
        let report = run(&args.plan(args.seed), false);
        let of = |what| report.tally.get(what).copied().unwrap_or(0);
        println!(
            "kept {} {} {} {} {}",
            report.fingerprint.value(),
            report.virtual_ms,
            of("epochs"),
            of("transactions"),
            of("faults")
        );
    }
    ExitCode::SUCCESS
}

/// Runs one plan, and prints all its events.
pub(super) fn explain(plan: &Plan) -> ExitCode {
    // If the reader ends early, as `head` does, this program ends without a message.
    sigpipe::reset();
    panic::set_hook(Box::new(|broken| {
        println!("\nA promise is broken: {}", one_line(&broken.to_string()));
        exit(1);
    }));
    println!("ostler-sim {plan}\n");
    let report = run(plan, true);
    println!("\nEvery promise was kept. All events have the hash {:016x}.", report.fingerprint.value());
    ExitCode::SUCCESS
}

/// The message of a panic in one line, with its place at the end.
fn one_line(message: &str) -> String {
    let (place, what) = message.split_once('\n').unwrap_or(("", message));
    let place = place.trim_start_matches("panicked at ").trim_end_matches(':');
    format!("{} ({place})", what.split_whitespace().collect::<Vec<_>>().join(" "))
}
