//! `--plant` and `--planted`: searches for runs that find planted bugs.

use crate::{
    SimArgs,
    worker::{self, Verdict, Worker},
};
use ostler_sim::{Bug, Plan, plant, search};
use std::{
    io,
    process::ExitCode,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

/// A bug must be found within this number of seeds.
const SEEDS_MAX: u64 = 2_000;

/// Plants the bug that `--plant` names, or every bug in turn.
pub(super) fn run(args: &SimArgs) -> ExitCode {
    let Some(name) = &args.plant else { return table(args) };
    let Some(bug) = Bug::named(name) else {
        for (_, name, what) in Bug::ALL {
            println!("{name:<26} {what}");
        }
        return if name == "list" { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    };
    plant(Some(bug));
    if args.worker {
        return worker::serve();
    }
    if args.explain {
        return worker::explain(&args.plan(args.seed));
    }
    match find(args, bug, name) {
        Ok(Some(found)) => {
            println!("found in {}: {}\n  ostler-sim --plant {name} {}", found.place(), found.how, found.plan);
            ExitCode::SUCCESS
        }
        Ok(None) => {
            println!("not found in {} seeds", seeds(args));
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("ostler-sim: a worker process failed: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The run that has found a bug.
struct FindingRun {
    plan: Plan,
    how: String,
}

impl FindingRun {
    fn place(&self) -> String {
        match self.plan.scene {
            Some(scene) => format!("scene `{}`", scene.name()),
            None => format!("seed {}", self.plan.seed),
        }
    }
}

fn seeds(args: &SimArgs) -> u64 {
    if args.seeds > 1 { args.seeds } else { SEEDS_MAX }
}

fn find(args: &SimArgs, bug: Bug, name: &str) -> io::Result<Option<FindingRun>> {
    let mut worker = Worker::start(Some(name.to_owned()))?;
    let by_chance = (0..seeds(args)).map(|number| args.plan(args.seed.wrapping_add(number)));
    for plan in search(bug, by_chance) {
        if let Verdict::Broken(how) = worker.attempt(&plan)? {
            return Ok(Some(FindingRun { plan, how }));
        }
    }
    Ok(None)
}

/// Prints a table with a row for each bug, as in docs/simulation.md.
fn table(args: &SimArgs) -> ExitCode {
    let next = AtomicUsize::new(0);
    let rows: Mutex<Vec<Option<String>>> = Mutex::new(vec![None; Bug::ALL.len()]);
    let missed = AtomicUsize::new(0);
    let work = || {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some((bug, name, what)) = Bug::ALL.get(at) else { return };
            let (place, how) = match find(args, *bug, name) {
                Ok(Some(found)) => (found.place(), promise(&found.how).to_owned()),
                Ok(None) => (format!("not in {} seeds", seeds(args)), String::new()),
                Err(error) => (error.to_string(), String::new()),
            };
            if how.is_empty() {
                missed.fetch_add(1, Ordering::Relaxed);
            }
            eprintln!("{name}: {place} {how}");
            let row = format!("| `{name}` | {what} | {place} | {how} |");
            rows.lock().unwrap_or_else(PoisonError::into_inner)[at] = Some(row);
        }
    };
    thread::scope(|scope| (0..args.jobs()).for_each(|_| drop(scope.spawn(work))));
    println!("| Bug | What is wrong | FindingRun in | Promise that is broken |\n|---|---|---|---|");
    for row in rows.lock().unwrap_or_else(PoisonError::into_inner).iter().flatten() {
        println!("{row}");
    }
    if missed.into_inner() == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The name of the broken promise, which stands in brackets in the message.
fn promise(how: &str) -> &str {
    let named = how.split('[').skip(1).filter_map(|rest| rest.split_once(']'));
    let mut names = named.map(|(name, _)| name);
    let is_name = |name: &&str| name.bytes().all(|byte| byte.is_ascii_lowercase() || b" -".contains(&byte));
    names.find(is_name).filter(|name| !name.is_empty()).unwrap_or("another check")
}
