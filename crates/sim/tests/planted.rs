//! Tests that the simulator finds every planted bug. Built only with the feature `planted-bugs`.
//!
//! `SIM_BUGS=name,name` plants only these, and prints the promise that each has broken, and the run.

use ostler_sim::{Bug, Plan, plant, run, search};
use std::panic::{self, AssertUnwindSafe};

/// Enough seeds for the bug that random faults find least often.
const SEEDS_MAX: u64 = 2_000;
const SECONDS: u64 = 60;

fn is_found(bug: Bug) -> bool {
    plant(Some(bug));
    let by_chance = (1..=SEEDS_MAX).map(|seed| Plan::new(seed, Plan::usual_voters(seed), SECONDS));
    let breaks = |plan: &Plan| panic::catch_unwind(AssertUnwindSafe(|| run(plan, false))).is_err();
    let found = search(bug, by_chance).find(breaks);
    plant(None);
    println!("{bug:?} is found: {:?}", found.as_ref().map(Plan::to_string));
    found.is_some()
}

#[test]
fn every_planted_bug_is_found() {
    let wanted = std::env::var("SIM_BUGS").ok();
    let hook = panic::take_hook();
    panic::set_hook(match wanted {
        Some(_) => Box::new(|panic| println!("{panic}")),
        None => Box::new(|_| ()),
    });
    let is_wanted = |name: &str| wanted.as_ref().is_none_or(|names| names.split(',').any(|one| one == name));
    let bugs = Bug::ALL.into_iter().filter(|(_, name, _)| is_wanted(name));
    let missed: Vec<&str> = bugs.filter(|(bug, ..)| !is_found(*bug)).map(|(_, name, _)| name).collect();
    panic::set_hook(hook);
    assert!(missed.is_empty(), "not found in {SEEDS_MAX} seeds: {missed:?}");
}
