//! `cargo xtask test`: runs the steps one after the other, with a line for each, and prints the sum.

use crate::{
    beside,
    outcome::Outcome,
    program::Runner,
    steps::{INTEROP, Need, PROGRAM, SIMULATOR, STEPS, Step},
    tally::Tally,
};
use anyhow::{Result, bail};
use clap::Args;
use std::{
    env,
    path::Path,
    sync::{Mutex, PoisonError},
    thread,
    time::Instant,
};

/// Set up and run all tests.
///
/// One line per step, everything that a failed step printed, and at the end `N passed, M failed, K skipped`. The
/// output of a step can be followed in target/xtask/STEP.log. With CI=true nothing may be skipped.
#[derive(Debug, Args)]
pub(crate) struct TestArgs {
    /// Run only these steps.
    #[arg(long, value_name = "STEP,...", value_delimiter = ',')]
    only: Vec<String>,
    /// Run the long forms of sim, fuzz and interop, and the step planted. Takes hours.
    #[arg(long)]
    full: bool,
    /// Print the steps and exit.
    #[arg(long)]
    list: bool,
}

/// Runs the chosen steps. Returns whether nothing failed.
pub(crate) fn run(args: &TestArgs, checkout: &Path) -> Result<bool> {
    let chosen = choose(&args.only, args.full)?;
    if args.list {
        for step in chosen {
            println!("{:<9} {}", step.name, step.what);
        }
        return Ok(true);
    }
    let no_skips = env::var("CI").is_ok_and(|ci| ci == "true");
    let is_needed = |need| chosen.iter().any(|step| step.needs.contains(&need));
    let _fetching = is_needed(Need::Peers).then(|| beside::fetch_peers(checkout));
    let needed = [(Need::Release, PROGRAM), (Need::Simulator, SIMULATOR)].into_iter();
    let _building: Vec<_> = needed
        .filter_map(|(need, package)| is_needed(need).then(|| beside::build_release(checkout, package)))
        .collect();
    // In the long form all steps run alone: they take hours, and find more with all processors.
    let is_beside = |step: &&Step| step.is_beside_interop && !args.full && is_chosen(&chosen, INTEROP);
    let (beside, one_by_one): (Vec<&Step>, Vec<&Step>) = chosen.iter().copied().partition(is_beside);
    let steps = Steps { checkout, full: args.full, no_skips, sum: Mutex::default() };
    for step in one_by_one {
        if step.name == INTEROP {
            thread::scope(|scope| {
                scope.spawn(|| beside.iter().for_each(|step| steps.run(step, Runner::nice)));
                steps.run(step, |runner| runner);
            });
        } else {
            steps.run(step, |runner| runner);
        }
    }
    let sum = *steps.sum.lock().unwrap_or_else(PoisonError::into_inner);
    println!("{sum}");
    Ok(sum.failed == 0)
}

/// The steps of one run, and the sum of what they have counted.
struct Steps<'a> {
    checkout: &'a Path,
    full: bool,
    no_skips: bool,
    sum: Mutex<Tally>,
}

impl<'a> Steps<'a> {
    /// Runs a step and prints its outcome.
    fn run(&self, step: &Step, prepare: impl Fn(Runner<'a>) -> Runner<'a>) {
        let begun = Instant::now();
        let runner = prepare(Runner::new(self.checkout, step.name));
        let mut outcome = (step.run)(&runner, self.full)
            .unwrap_or_else(|error| Outcome::failed(format!("{error:#}"), String::new()));
        if self.no_skips {
            outcome = outcome.without_skips();
        }
        // Held while it prints, so that the lines of two steps are not mixed.
        let mut sum = self.sum.lock().unwrap_or_else(PoisonError::into_inner);
        println!("{}", outcome.line(step.name, begun.elapsed()));
        if !outcome.details.is_empty() {
            println!("{}", outcome.details.trim_end());
        }
        *sum += outcome.tally;
    }
}

fn is_chosen(chosen: &[&Step], name: &str) -> bool {
    chosen.iter().any(|step| step.name == name)
}

/// The named steps, or all. A step of the long form runs in the short form only if it is named.
fn choose(only: &[String], full: bool) -> Result<Vec<&'static Step>> {
    if let Some(unknown) = only.iter().find(|name| STEPS.iter().all(|step| step.name != **name)) {
        let names: Vec<&str> = STEPS.iter().map(|step| step.name).collect();
        bail!("there is no step {unknown}; the steps are {}", names.join(", "));
    }
    let is_chosen = |step: &&Step| match only {
        [] => full || !step.only_in_full,
        _ => only.iter().any(|name| name == step.name),
    };
    Ok(STEPS.iter().filter(is_chosen).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_chosen_by_name_and_run_in_their_own_order() {
        let names = |only: &[&str], full: bool| -> Vec<&str> {
            let only: Vec<String> = only.iter().map(|name| (*name).to_owned()).collect();
            choose(&only, full).unwrap().into_iter().map(|step| step.name).collect()
        };
        assert_eq!(names(&[], true).len(), STEPS.len());
        assert_eq!(names(&[], false).len(), STEPS.len() - 1);
        assert_eq!(names(&["planted"], false), ["planted"]);
        assert_eq!(names(&["test", "fmt"], false), ["fmt", "test"]);
        assert!(choose(&["tests".to_owned()], false).unwrap_err().to_string().contains("no step tests"));
    }
}
