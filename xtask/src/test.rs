//! `cargo xtask test`: runs the steps one after the other, with a line for each, and prints the sum.

use crate::{
    beside,
    outcome::Outcome,
    program::Runner,
    steps::{Need, PROGRAM, SIMULATOR, STEPS, Step},
    tally::Tally,
};
use anyhow::{Result, bail};
use clap::Args;
use std::{env, path::Path, time::Instant};

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
    let mut sum = Tally::default();
    for step in chosen {
        let begun = Instant::now();
        let runner = Runner::new(checkout, step.name);
        let mut outcome = (step.run)(&runner, args.full)
            .unwrap_or_else(|error| Outcome::failed(format!("{error:#}"), String::new()));
        if no_skips {
            outcome = outcome.without_skips();
        }
        println!("{}", outcome.line(step.name, begun.elapsed()));
        if !outcome.details.is_empty() {
            println!("{}", outcome.details.trim_end());
        }
        sum += outcome.tally;
    }
    println!("{sum}");
    Ok(sum.failed == 0)
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
