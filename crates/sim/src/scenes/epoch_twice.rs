//! One of five servers is elected and proposes an epoch to another one. Then it is cut off, and goes on gathering
//! promises. The others elect a leader that proposes the same epoch, because none of them knows of it. The server that
//! has promised the epoch comes to this leader, too. It may follow, but its promise must not count again: otherwise
//! each of the two leaders could have a quorum of promises.

use super::steering::{hold_down, lanes_of, stop};
use crate::{
    wire,
    world::{Shape, World},
};
use ostler_proto::id::Epoch;

/// Is elected first, and is cut off.
const FIRST: i64 = 5;
/// Promises the epoch to the first leader.
const BOUND: i64 = 4;
/// Votes for the first leader, and does not get its epoch. The others elect it next.
const SECOND: i64 = 3;
/// Promises the same epoch to the second leader.
const WILLING: i64 = 2;
/// Gets the second leader's epoch late.
const LATE: i64 = 1;

pub(super) fn shape(seed: u64) -> Shape {
    Shape { voters: 5, init_ms: 20_000, ..super::shape(seed) }
}

pub(super) fn play(world: &mut World) {
    assert!(world.run_until(5_000, World::all_serve));
    let leader = world.leader().unwrap();
    let client = world.join(leader);
    assert!(world.write(client, wire::create("/a")).is_some());
    // If all have the same history, the highest id is elected.
    let last = world.reference.last();
    assert!(world.run_until(1_000, |world| world.nodes.values().all(|node| node.disk.has(last))));
    let epoch = Epoch(world.epoch_of(leader).0 + 1);
    let all = world.ids();
    stop(world, &all);

    [FIRST, BOUND, SECOND].iter().for_each(|id| assert!(world.boot(*id)));
    until_promised(world, BOUND, SECOND, epoch);
    world.run(10);
    // The first leader does not notice that the others are gone.
    world.isolate(FIRST, true, true);
    stop(world, &[BOUND, SECOND]);

    [LATE, WILLING, SECOND].iter().for_each(|id| assert!(world.boot(*id)));
    until_promised(world, WILLING, LATE, epoch);
    assert!(world.boot(BOUND));
    let promises = world.run_until(500, |world| {
        follows_the_second_leader(world)
            && lanes_of(world, BOUND).is_some()
            && world.nodes[&BOUND].disk.accepted() == epoch
    });
    if promises && world.nodes[&SECOND].disk.accepted() == epoch {
        world.count("an epoch was proposed twice");
    }
    for _ in 0..300 {
        hold_down(world, LATE, 60_000);
        world.run(1);
        assert!(
            world.nodes[&SECOND].disk.current() < epoch,
            "[one leader] {SECOND} brings its history with a promise that was given to {FIRST}"
        );
    }
    hold_down(world, LATE, 0);
    world.run(200);
    world.net.cut.clear();
    world.run(3_000);
}

/// Whether the server that has promised the epoch follows the second leader now.
fn follows_the_second_leader(world: &World) -> bool {
    world.net.links.values().rev().find(|of| of.learner.0 == BOUND).is_some_and(|of| of.leader.0 == SECOND)
}

/// Runs until a leader is elected and the server `told` has promised its epoch. The server `untold` does not get it.
fn until_promised(world: &mut World, told: i64, untold: i64, epoch: Epoch) {
    let patience = world.now + 5_000;
    while world.nodes[&told].disk.accepted() < epoch {
        assert!(world.now < patience, "nobody proposes {epoch:?}");
        world.run(1);
        hold_down(world, untold, 60_000);
    }
    assert_eq!(world.nodes[&told].disk.accepted(), epoch);
}
