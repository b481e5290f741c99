//! Every bug that can be planted is found. Built with the feature `planted-bugs` only.

use ostler_sim::{Bug, Plan, plant, run, search};
use std::panic::{self, AssertUnwindSafe};

/// Enough for the rarest of those that are left to chance.
const SEEDS_MAX: u64 = 2_000;
const SECONDS: u64 = 60;

fn is_found(bug: Bug) -> bool {
    plant(Some(bug));
    let by_chance = (1..=SEEDS_MAX).map(|seed| Plan::new(seed, Plan::usual_voters(seed), SECONDS));
    let found = search(bug, by_chance)
        .any(|plan| panic::catch_unwind(AssertUnwindSafe(|| run(&plan, false))).is_err());
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
