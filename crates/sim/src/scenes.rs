//! Runs from seeds, and courses of events that chance alone seldom takes.
//!
//! `SIM_SEEDS=from..to` runs other seeds, `SIM_TRACE=1` tells what happens.

mod courses;
mod interrupted_acts;
mod local_sessions;
mod read_only;
mod reconfigurations;

use crate::{Plan, Report, run};
use std::{
    collections::BTreeMap,
    num::NonZero,
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

/// Says which run it was.
struct Failing<'a>(&'a Plan);

impl Drop for Failing<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("fails: ostler sim {}", self.0);
        }
    }
}

fn run_seed(seed: u64) -> Report {
    let plan = Plan::new(seed, [3, 3, 5, 3][seed as usize % 4], 40);
    let _failing = Failing(&plan);
    run(&plan, false)
}

#[test]
fn ensembles_keep_what_they_promise() {
    let seeds = std::env::var("SIM_SEEDS").unwrap_or("0..40".into());
    let (from, to) = seeds.split_once("..").unwrap();
    let (next, end) = (AtomicU64::new(from.parse().unwrap()), to.parse().unwrap());
    let tally = Mutex::new(BTreeMap::<&'static str, u64>::new());
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= end {
                return;
            }
            for (what, count) in run_seed(seed).tally {
                *tally.lock().unwrap().entry(what).or_default() += count;
            }
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, NonZero::get);
    std::thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
    println!("{:?}", tally.into_inner().unwrap());
}

#[test]
fn a_seed_gives_the_same_run_every_time() {
    for seed in [3, 6, 20] {
        let (first, second) = (run_seed(seed), run_seed(seed));
        assert_eq!(first, second);
        assert_ne!(first.fingerprint, run_seed(seed + 1).fingerprint);
    }
}
