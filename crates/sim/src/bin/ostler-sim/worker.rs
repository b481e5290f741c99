//! Runs in processes of their own: what breaks a promise ends its process, and no other.

use crate::SimArgs;
use clap::Parser;
use ostler_sim::{Plan, run};
use std::{
    env,
    io::{self, BufRead, BufReader, Write},
    iter, panic,
    process::{Child, ChildStdin, ChildStdout, Command, ExitCode, Stdio, exit},
};

/// How a worker ends that has found something.
const FOUND: i32 = 3;

/// The numbers of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Numbers {
    pub(super) fingerprint: u64,
    pub(super) virtual_ms: u64,
    pub(super) epochs: u64,
    pub(super) transactions: u64,
    pub(super) faults: u64,
}

/// What came of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    Kept(Numbers),
    /// A promise was broken: which, and how.
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
    /// Starts one, in which a bug is planted if one is named.
    pub(super) fn start(plant: Option<String>) -> io::Result<Worker> {
        let mut command = Command::new(env::current_exe()?);
        command.arg("--worker");
        // The next ensemble takes the memory of the one before: to give it back to the system costs a tenth of the time.
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

    /// Runs a plan. After one that broke a promise the process is another.
    pub(super) fn attempt(&mut self, plan: &Plan) -> io::Result<Verdict> {
        writeln!(self.plans, "{plan}")?;
        let mut line = String::new();
        self.verdicts.read_line(&mut line)?;
        if let Some(numbers) = line.strip_prefix("kept ") {
            let mut numbers = numbers.split_whitespace().map(|number| number.parse().unwrap_or(0));
            let mut next = || numbers.next().unwrap_or(0);
            return Ok(Verdict::Kept(Numbers {
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
        // It has nothing to finish.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs what comes in, until nothing does.
pub(super) fn serve() -> ExitCode {
    panic::set_hook(Box::new(|broken| {
        println!("broken {}", one_line(&broken.to_string()));
        exit(FOUND);
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

/// Tells what happens in one run.
pub(super) fn explain(plan: &Plan) -> ExitCode {
    // A reader that has seen enough, as `head`, ends this quietly.
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

/// A panic's message begins with where it was; its reader wants to know what.
fn one_line(message: &str) -> String {
    let (place, what) = message.split_once('\n').unwrap_or(("", message));
    let place = place.trim_start_matches("panicked at ").trim_end_matches(':');
    format!("{} ({place})", what.split_whitespace().collect::<Vec<_>>().join(" "))
}
