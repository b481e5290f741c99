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
fn run(seed: u64, moves_after: Option<u32>) -> World {
    let servers = [3, 3, 5, 4, 1][seed as usize % 5];
    let mut world = World::new(servers, seed);
    world.moves_after = moves_after;
    world.start_all();
    for _ in 0..30 {
        world.fault();
        let pause = 50 + world.random(1500);
        world.run(pause);
    }
    world.heal();
    world.run(20_000);
    world.must_agree();
    world
}

fn seeds() -> std::ops::Range<u64> {
    let seeds = std::env::var("SIM_SEEDS").unwrap_or("0..200".into());
    let (from, to) = seeds.split_once("..").unwrap();
    from.parse().unwrap()..to.parse().unwrap()
}

#[test]
fn commits_are_kept_and_one_server_leads_at_a_time() {
    let mut refusals = std::collections::BTreeMap::<String, u32>::new();
    for seed in seeds() {
        for why in run(seed, None).hang_ups {
            let first_word = why.split(' ').next().unwrap_or_default().to_owned();
            *refusals.entry(first_word).or_default() += 1;
        }
    }
    println!("{refusals:?}");
}

/// Leaders move on to the next epoch in place after a few writes, while servers die and links break.
#[test]
fn commits_are_kept_while_epochs_move_on_in_place() {
    let mut moves = 0;
    for seed in seeds() {
        moves += run(seed, Some(1 + (seed % 12) as u32)).moves;
    }
    println!("{moves} moves");
    assert!(moves > 1_000, "{moves}");
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
