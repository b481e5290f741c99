//! Tests that slow synchronization succeeds if all servers work.

use super::{
    courses::started,
    shape,
    steering::{burst, hold_up, others, runs_on, stop},
};
use crate::{
    wire,
    world::{Shape, World},
};

/// Three of five servers begin an epoch. One learner has the leader's history on disk long before the other, and its
/// next packets are slow.
#[test]
fn a_learner_that_has_the_history_early_is_not_dropped_before_the_epoch_begins() {
    let mut met = 0;
    for seed in 0..20 {
        let mut world = started(seed, Shape { voters: 5, ..shape(seed) });
        let client = world.join(world.leader().unwrap());
        world.write(client, wire::create("/a"));
        world.run(200);
        let all = world.ids();
        let before = world.epoch_of(world.leader().unwrap());
        stop(&mut world, &all);
        let three = [3, 4, 5];
        three.iter().for_each(|id| assert!(world.boot(*id)));
        // The leader sends its history when the other two have promised the epoch.
        let brings = |world: &World| three.into_iter().find(|id| world.nodes[id].disk.current() > before);
        assert!(runs_on(&mut world, 3_000, |world| brings(world).is_some()));
        let leader = brings(&world).unwrap();
        let [early, late] = [3, 4, 5].into_iter().filter(|id| *id != leader).collect::<Vec<_>>()[..] else {
            panic!("two others")
        };
        let pause = world.shape.sync_limit_ms + 200;
        hold_up(&mut world, late, pause);
        if world.run_until(pause - 50, |world| world.leader().is_some()) {
            continue;
        }
        assert!(runs_on(&mut world, 200, |world| world.leader() == Some(leader)), "seed {seed}");
        met += 1;
        hold_up(&mut world, early, 100);
        world.run(1_500);
        assert_eq!(world.leader(), Some(leader), "[liveness] seed {seed}: the epoch ends as it begins");
        assert_eq!(
            world.epoch_of(leader).0,
            before.0 + 1,
            "[liveness] seed {seed}: another epoch was needed"
        );
        world.must_come_back();
    }
    assert!(met > 5, "in {met} of them one was early");
}

/// Reading the log for a learner takes longer than leader and learner wait for each other.
#[test]
fn a_learner_for_which_the_log_is_read_slowly_is_synchronized() {
    for seed in (0..10).map(|seed| 2 * seed) {
        let mut world = started(seed, shape(seed));
        let leader = world.leader().unwrap();
        let [_, far] = others(&world, leader);
        let client = world.join(leader);
        world.write(client, wire::create("/a"));
        world.take_down(far);
        burst(&mut world, client, 30);
        world.run(400);
        let patience = world.shape.init_ms + world.shape.sync_limit_ms;
        world.shape.log_ms = (patience + 500, patience + 800);
        world.boot(far);
        assert!(world.run_until(1_000, |world| world.tally.contains_key("log read asked")), "seed {seed}");
        assert!(
            world.run_until(5 * patience, |world| world.serves(far)),
            "[liveness] seed {seed}: {far} does not get there; the log was asked for {} times",
            world.tally["log read asked"]
        );
        world.must_come_back();
    }
}

/// The epoch needs a follower whose tree takes longer than `initLimit` to arrive, but moves all the time.
#[test]
fn an_epoch_that_needs_a_follower_waits_for_a_tree_that_moves() {
    for seed in (0..10).map(|seed| 2 * seed) {
        let mut world = started(seed, shape(seed));
        let leader = world.leader().unwrap();
        let [near, far] = others(&world, leader);
        let client = world.join(leader);
        world.write(client, wire::create("/a"));
        world.take_down(far);
        burst(&mut world, client, 30);
        world.run(400);
        stop(&mut world, &[leader, near]);
        world.logs_unread = true;
        let patience = world.shape.init_ms + world.shape.sync_limit_ms;
        world.shape.tree_ms = (patience + 500, patience + 800);
        world.boot(leader);
        world.boot(far);
        assert!(
            world.run_until(5 * patience, |world| world.leader().is_some()),
            "[liveness] seed {seed}: nobody leads; the tree was sent {} times",
            world.tally.get("tree sent").copied().unwrap_or(0)
        );
        world.logs_unread = false;
        world.must_come_back();
    }
}
