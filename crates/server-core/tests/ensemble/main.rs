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
mod local_sessions;
mod network;
mod read_only;
mod scenes;
mod shell;
mod truth;
#[allow(dead_code)]
#[path = "../member/wire.rs"]
mod wire;
mod world;

use ostler_server_core::ensemble::LocalSessions;
use ostler_server_core::ensemble::Observing;
use ostler_zab::ReignLength;
use std::{
    collections::BTreeMap,
    num::NonZero,
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
};
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
        observers: [0, 1, 0, 2, 1, 2][seed as usize % 6],
        observing: Observing {
            masters: seed % 4 < 3,
            election_delay: 200 * (seed % 2),
            reconnect_delay: 50 * (seed / 2 % 2),
        },
        clients: [3, 4, 6][seed as usize % 3],
        history: [4, 15, 500][(seed / 2) as usize % 3],
        snapshot_txns: [2, 20, 200][(seed / 3) as usize % 3],
        reign: [ReignLength::default(), ReignLength { enough: 100, most: 120 }, ReignLength::default()]
            [(seed / 4) as usize % 3],
        pace_ms: [1, 150, 500][(seed / 5) as usize % 3],
        local: [LocalSessions::Off, LocalSessions::Upgradeable, LocalSessions::Fixed]
            [(seed / 4) as usize % 3],
        read_only_after_ms: [None, Some(300)][(seed / 7) as usize % 2],
    }
}

/// Faults first, then a quiet time in which the ensemble must come back.
fn run(seed: u64) -> World {
    let _seed = Seed(seed);
    let mut world = World::new(seed, shape(seed));
    world.start_all();
    for _ in 0..25 {
        let pause = world.chance.between(50, 1200);
        world.run(pause);
        world.fault();
    }
    world.must_come_back();
    world
}

/// What happened how often.
type Tally = BTreeMap<&'static str, u64>;

#[test]
fn ensembles_keep_what_they_promise() {
    let seeds = std::env::var("SIM_SEEDS").unwrap_or("0..40".into());
    let (from, to) = seeds.split_once("..").unwrap();
    let (next, end) = (AtomicU64::new(from.parse().unwrap()), to.parse().unwrap());
    let tally = Mutex::new(Tally::new());
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= end {
                return;
            }
            let world = run(seed);
            let mut tally = tally.lock().unwrap();
            *tally.entry("reigns").or_default() += world.truth.reigns() as u64;
            *tally.entry("transactions").or_default() += world.truth.len() as u64;
            for (what, count) in world.tally {
                *tally.entry(what).or_default() += count;
            }
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, NonZero::get);
    std::thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
    println!("{tally:?}");
}
