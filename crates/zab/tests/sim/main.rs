//! Whole ensembles: elections, epochs and logs, on disks that forget and links that delay, break and are cut.
//!
//! One seed is one run: everything that is left to chance comes from it. `SIM_SEEDS=from..to` runs others.
#![expect(clippy::unwrap_used)]

mod disk;
mod leader;
mod learner;
mod member;
mod truth;
mod world;

use world::World;

/// Faults first, then a quiet time in which the ensemble must come back.
fn run(seed: u64) -> Vec<String> {
    let servers = [3, 3, 5, 4, 1][seed as usize % 5];
    let mut world = World::new(servers, seed);
    world.start_all();
    for _ in 0..30 {
        world.fault();
        let pause = 50 + world.random(1500);
        world.run(pause);
    }
    world.heal();
    world.run(20_000);
    world.must_agree();
    let first_word = |why: &String| why.split(' ').next().unwrap_or_default().to_owned();
    world.hang_ups.iter().map(first_word).collect()
}

#[test]
fn commits_are_kept_and_one_server_leads_at_a_time() {
    let seeds = std::env::var("SIM_SEEDS").unwrap_or("0..200".into());
    let (from, to) = seeds.split_once("..").unwrap();
    let mut refusals = std::collections::BTreeMap::<String, u32>::new();
    for seed in from.parse().unwrap()..to.parse().unwrap() {
        for why in run(seed) {
            *refusals.entry(why).or_default() += 1;
        }
    }
    println!("{refusals:?}");
}

#[test]
fn e10_a_leader_whose_last_write_nobody_got_returns_without_it() {
    let mut world = World::new(3, 77);
    world.start_all();
    world.run(3_000);
    let leader = world.leader().unwrap();
    world.run(500);
    // Its proposals reach its own disk alone.
    world.isolate(leader);
    let before = world.values;
    assert!((0..5).all(|_| world.propose_at(leader)));
    let lost = before + 1..=before + 5;
    world.run(100);
    world.crash(leader);
    world.run(3_000);
    assert!(world.leader().is_some_and(|new| new != leader));
    world.heal();
    world.run(10_000);
    world.must_agree();
    assert!(world.truth.history().iter().all(|(_, value)| !lost.contains(value)), "nobody had promised them");
}
