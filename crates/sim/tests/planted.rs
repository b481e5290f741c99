//! Every bug that can be planted is found. Built with the feature `planted-bugs` only.

use ostler_sim::{Bug, Plan, plant, run};
use std::panic::{self, AssertUnwindSafe};

/// Enough for the rarest of them.
const SEEDS_MAX: u64 = 400;
const SECONDS: u64 = 60;

fn voters(seed: u64) -> u8 {
    if seed.is_multiple_of(2) { 3 } else { 5 }
}

fn is_found(bug: Bug) -> bool {
    plant(Some(bug));
    let found = (1..=SEEDS_MAX).any(|seed| {
        let plan = Plan::new(seed, voters(seed), SECONDS);
        panic::catch_unwind(AssertUnwindSafe(|| run(&plan, false))).is_err()
    });
    plant(None);
    found
}

#[test]
fn every_planted_bug_is_found() {
    let hook = panic::take_hook();
    panic::set_hook(Box::new(|_| ()));
    let missed: Vec<&str> =
        Bug::ALL.into_iter().filter(|(bug, ..)| !is_found(*bug)).map(|(_, name, _)| name).collect();
    panic::set_hook(hook);
    assert!(missed.is_empty(), "not found in {SEEDS_MAX} seeds: {missed:?}");
}
