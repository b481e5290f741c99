//! Runs from seeds: faults that come by chance, and scenes that have a name.
//!
//! `SIM_SEEDS=from..to` runs other seeds, `SIM_TRACE=1` tells what happens.

use crate::{Plan, Report, Scene, run};
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
fn ensembles_of_every_size_keep_what_they_promise() {
    for plan in (1..=7).flat_map(|voters| (0..2).map(move |seed| Plan::new(seed, voters, 40))) {
        let _failing = Failing(&plan);
        run(&plan, false);
    }
}

/// In the step that ends an epoch because it has counted far enough, the next one's leader is elected.
#[test]
fn who_votes_alone_follows_itself() {
    let plan = Plan::new(500_035, 1, 60);
    let _failing = Failing(&plan);
    assert!(run(&plan, false).tally["epochs"] > 5);
}

/// What runs from seeds have found.
#[test]
fn what_once_broke_a_promise_does_so_no_more() {
    for (seed, voters) in [
        // A disk that says it has synced and has not loses the file with the records of an epoch, and keeps those of
        // the next.
        (950_831, 5),
        // The last acknowledgement of an epoch waits for its leader to wake up, and three epochs come meanwhile.
        (966_091, 6),
        // A leader's tree is lost half-written, and the server comes back twice.
        (978_459, 4),
        // A leader dies twice before it has led, and the others begin an earlier epoch: it waits for the next epoch.
        (1_100_444, 3),
        // A local session ends on the connection after the one whose last write had the same number.
        (615, 5),
        // A leader before its epoch is called again by a voter that knows more, and has nobody else to wait for.
        (5_001_821, 5),
    ] {
        let plan = Plan::new(seed, voters, 60);
        let _failing = Failing(&plan);
        run(&plan, false);
    }
}

#[test]
fn a_seed_gives_the_same_run_every_time() {
    for seed in [3, 6, 20] {
        let (first, second) = (run_seed(seed), run_seed(seed));
        assert_eq!(first, second);
        assert_ne!(first.fingerprint, run_seed(seed + 1).fingerprint);
    }
}

/// Plays a scene at so many paces: how often what happened.
fn play(scene: Scene, seeds: impl Iterator<Item = u64>) -> BTreeMap<&'static str, u64> {
    let mut tally = BTreeMap::new();
    for seed in seeds {
        let plan = Plan::of_scene(scene, seed);
        let _failing = Failing(&plan);
        for (what, count) in run(&plan, false).tally {
            *tally.entry(what).or_default() += count;
        }
    }
    tally
}

#[test]
fn who_has_promised_a_later_epoch_stays_outside() {
    play(Scene::LaterEpoch, 0..20);
}

#[test]
fn a_holder_that_is_cut_off_with_its_follower_does_not_hold_for_too_long() {
    play(Scene::CutOffHolder, 0..20);
}

#[test]
fn who_votes_in_the_name_of_others_keeps_no_ensemble_without_a_leader() {
    play(Scene::FalseVotes, 0..20);
}

#[test]
fn a_server_with_two_changes_in_its_log_does_not_lead_past_the_first() {
    let told = play(Scene::TwoChanges, 0..30).get("told of two changes").copied();
    assert!(told > Some(5), "{told:?} were told of both");
}

#[test]
fn an_epoch_is_promised_to_one_leader_only() {
    let tally = play(Scene::EpochTwice, 0..20);
    assert!(tally.get("an epoch was proposed twice") > Some(&5), "{tally:?}");
}

#[test]
fn who_takes_back_what_it_has_acknowledged_does_not_count_for_it() {
    let tally = play(Scene::CutAcknowledgement, 0..20);
    assert!(tally.get("an acknowledgement was cut away") > Some(&10), "{tally:?}");
}

/// Of the tree that it is brought it has nothing, but the promise of an epoch, or all.
#[test]
fn a_server_that_loses_its_disk_has_no_voice_before_the_tree_has_come() {
    let tally = play(Scene::LostDisk, 0..60);
    for state in ["lost a disk, has a promise", "lost a disk, has a tree"] {
        assert!(tally.get(state) > Some(&5), "{tally:?}");
    }
}
