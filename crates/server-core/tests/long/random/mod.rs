//! Random streams of requests over a random disk, with lost connections, expiries and crashes, held against
//! a simple sequential model in zxid order.
//!
//! Each run is drawn from its seed alone. A failure names the seed and the shortest stream found that still
//! fails. `OSTLER_SEED=7` runs one seed; `OSTLER_CASES=100000` runs many.

mod model;
mod stream;
mod watchers;
mod witness;
mod world;

use std::{cell::Cell, env, panic, sync::Once};
use stream::Act;
use world::World;

const CASES: u64 = 1500;

fn run(seed: u64, acts: &[Act]) {
    let mut world = World::new(seed);
    for act in acts {
        world.act(act);
    }
    world.finish();
}

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Whether a stream fails, without a word.
fn fails(seed: u64, acts: &[Act]) -> bool {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let tell = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !QUIET.get() {
                tell(info);
            }
        }));
    });
    QUIET.set(true);
    let failed = panic::catch_unwind(|| run(seed, acts)).is_err();
    QUIET.set(false);
    failed
}

/// Leaves out what is not needed for the failure: large parts first, then smaller ones.
fn shorten(seed: u64, mut acts: Vec<Act>) -> Vec<Act> {
    let mut part = acts.len() / 2;
    while part > 0 {
        let mut at = 0;
        while at < acts.len() {
            let mut shorter = acts.clone();
            shorter.drain(at..(at + part).min(acts.len()));
            if fails(seed, &shorter) {
                acts = shorter;
            } else {
                at += part;
            }
        }
        part /= 2;
    }
    acts
}

fn number(name: &str) -> Option<u64> {
    env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name}={text} is no number")))
}

#[test]
fn random_streams_give_what_the_model_gives() {
    let seeds = match number("OSTLER_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("OSTLER_CASES").unwrap_or(CASES),
    };
    println!("seeds {seeds:?}");
    for seed in seeds {
        let acts = stream::acts(seed);
        if fails(seed, &acts) {
            let shortest = shorten(seed, acts);
            println!("OSTLER_SEED={seed} fails, also with these acts alone:");
            shortest.iter().for_each(|act| println!("    {act:?}"));
            run(seed, &shortest);
            panic!("seed {seed} failed before, but not in the end");
        }
    }
}
