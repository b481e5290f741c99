//! Tests that run seeds and the scenes with a name.
//!
//! `SIM_SEEDS=from..to` runs other seeds. `SIM_TRACE=1` prints every event.

use crate::{Plan, Report, Scene, run};
use std::{
    collections::BTreeMap,
    num::NonZero,
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

/// Prints the run as a command if the test fails.
struct Failing<'a>(&'a Plan);

impl Drop for Failing<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("fails: ostler-sim {}", self.0);
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

/// A server that votes alone is elected again in the same step in which its epoch ends.
#[test]
fn a_server_that_votes_alone_is_elected_again_when_its_epoch_ends() {
    let plan = Plan::new(500_035, 1, 60);
    let _failing = Failing(&plan);
    assert!(run(&plan, false).tally["epochs"] > 5);
}

/// Seeds that have found bugs.
#[test]
fn seeds_that_once_broke_a_promise_keep_it() {
    for (seed, voters) in [
        // A disk that reports false syncs loses the file with the records of an epoch, and keeps the records of the
        // next.
        (950_831, 5),
        // The last acknowledgement of an epoch waits for its paused leader, and three epochs begin meanwhile.
        (966_091, 6),
        // A server loses a leader's tree that was half written, and restarts twice.
        (978_459, 4),
        // A leader dies twice before its epoch begins, and the others begin an earlier epoch: it waits for the next
        // one.
        (1_100_444, 3),
        // A local session ends on the connection after the one whose last write had the same number.
        (615, 5),
        // An elected leader whose epoch has not begun gets another vote from a voter with more data, its only one.
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

/// Plays a scene with several seeds. Returns how often each thing happened.
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
fn a_server_that_has_promised_a_later_epoch_stays_outside() {
    play(Scene::LaterEpoch, 0..20);
}

#[test]
fn a_holder_that_is_cut_off_with_its_follower_notices_that_its_session_ends() {
    play(Scene::CutOffHolder, 0..20);
}

#[test]
fn votes_in_the_name_of_others_do_not_prevent_an_election() {
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
fn an_acknowledgement_does_not_count_after_its_proposal_was_cut_from_the_log() {
    let tally = play(Scene::CutAcknowledgement, 0..20);
    assert!(tally.get("an acknowledgement was cut away") > Some(&10), "{tally:?}");
}

/// When the server dies again, it has either only promised the epoch, or has the whole tree.
#[test]
fn a_server_that_loses_its_disk_does_not_vote_before_it_has_the_tree() {
    let tally = play(Scene::LostDisk, 0..60);
    for state in ["lost a disk, has a promise", "lost a disk, has a tree"] {
        assert!(tally.get(state) > Some(&5), "{tally:?}");
    }
}
