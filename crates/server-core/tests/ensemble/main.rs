//! Whole ensembles of members with clients: disks that forget, links that delay, stall, break and are cut, servers
//! that die and come back.
//!
//! One seed is one run: everything that is left to chance comes from it. `SIM_SEEDS=from..to` runs others,
//! `SIM_TRACE=1` tells what happens.
#![expect(clippy::unwrap_used)]

mod chance;
mod checks;
mod client;
mod disk;
mod ending;
mod faults;
mod history;
mod network;
mod shell;
mod truth;
#[allow(dead_code)]
#[path = "../member/wire.rs"]
mod wire;
mod world;

use world::{Shape, World};

/// Says which seed it was.
struct Seed(u64);

impl Drop for Seed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("SIM_SEEDS={}..{} fails", self.0, self.0 + 1);
        }
    }
}

fn shape(seed: u64) -> Shape {
    Shape {
        voters: [3, 3, 5, 3][seed as usize % 4],
        observers: i64::from(seed % 3 == 1),
        clients: [3, 4, 6][seed as usize % 3],
        history: [4, 15, 500][(seed / 2) as usize % 3],
        snapshot_txns: [20, 60, 400][(seed / 3) as usize % 3],
    }
}

/// Faults first, then a quiet time in which the ensemble must come back.
fn run(seed: u64) -> World {
    let _seed = Seed(seed);
    let mut world = World::new(seed, shape(seed));
    world.start_all();
    for _ in 0..30 {
        let pause = world.chance.between(50, 1200);
        world.run(pause);
        world.fault();
    }
    world.must_come_back();
    world
}

#[test]
fn ensembles_keep_what_they_promise() {
    let seeds = std::env::var("SIM_SEEDS").unwrap_or("0..60".into());
    let (from, to) = seeds.split_once("..").unwrap();
    let mut tally = std::collections::BTreeMap::<&str, u64>::new();
    for seed in from.parse().unwrap()..to.parse().unwrap() {
        let world = run(seed);
        *tally.entry("reigns").or_default() += world.truth.reigns() as u64;
        *tally.entry("transactions").or_default() += world.truth.len() as u64;
        for (what, count) in world.tally {
            *tally.entry(what).or_default() += count;
        }
    }
    println!("{tally:?}");
}

#[test]
fn a_write_goes_through_a_follower_and_outlives_the_leader() {
    let mut world = World::new(7, Shape { clients: 0, observers: 0, ..shape(0) });
    world.start_all();
    assert!(world.run_until(5_000, World::all_serve));
    let leader = world.leader().unwrap();
    let follower = world.ids().into_iter().find(|id| *id != leader).unwrap();
    let client = world.join(follower);
    let reply = world.write(client, wire::create("/a").data(b"1")).unwrap();
    assert!(reply.result.is_ok(), "{reply:?}");
    world.crash(leader);
    assert!(world.run_until(5_000, |world| world.leader().is_some_and(|id| id != leader)));
    let next = world.leader().unwrap();
    let client = world.join(next);
    let reply = world.answer(client, client::Intent::Get("/a".into(), false), wire::get("/a")).unwrap();
    assert!(reply.result.is_ok(), "{reply:?}");
    world.must_come_back();
}
