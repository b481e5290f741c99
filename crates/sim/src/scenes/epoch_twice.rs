//! Of five servers, one is elected and proposes an epoch to another; then it is cut off, and goes on gathering
//! promises. The others elect a leader that proposes the same epoch, for none of them has heard of it. The one that has
//! promised it comes to this leader, too: it may go along, but its promise is given. Would it count twice, each of the
//! two could have a quorum of promises.

use super::steering::{hold_down, lanes_of, stop};
use crate::{
    wire,
    world::{Shape, World},
};
use ostler_proto::id::Epoch;

/// Is elected first, and cut off.
const FIRST: i64 = 5;
/// Promises it the epoch.
const BOUND: i64 = 4;
/// Votes for it, and is told of no epoch. The others elect it next.
const SECOND: i64 = 3;
/// Promises the second the same epoch.
const WILLING: i64 = 2;
/// Is told of the epoch late.
const LATE: i64 = 1;

pub(super) fn shape(seed: u64) -> Shape {
    Shape { voters: 5, init_ms: 20_000, ..super::shape(seed) }
}

pub(super) fn play(world: &mut World) {
    assert!(world.run_until(5_000, World::all_serve));
    let leader = world.leader().unwrap();
    let client = world.join(leader);
    assert!(world.write(client, wire::create("/a")).is_some());
    // With the same history everywhere the highest id is elected.
    let last = world.truth.last();
    assert!(world.run_until(1_000, |world| world.nodes.values().all(|node| node.disk.has(last))));
    let epoch = Epoch(world.epoch_of(leader).0 + 1);
    let all = world.ids();
    stop(world, &all);

    [FIRST, BOUND, SECOND].iter().for_each(|id| assert!(world.boot(*id)));
    until_promised(world, BOUND, SECOND, epoch);
    world.run(10);
    // It does not learn that they are gone.
    world.isolate(FIRST, true, true);
    stop(world, &[BOUND, SECOND]);

    [LATE, WILLING, SECOND].iter().for_each(|id| assert!(world.boot(*id)));
    until_promised(world, WILLING, LATE, epoch);
    assert!(world.boot(BOUND));
    let promises = world.run_until(500, |world| {
        hears_of_no_other(world)
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

/// Whom the bound server follows now.
fn hears_of_no_other(world: &World) -> bool {
    world.net.links.values().rev().find(|of| of.learner.0 == BOUND).is_some_and(|of| of.leader.0 == SECOND)
}

/// A leader is elected, and of those who come to it this one is told of its epoch, and that one is not.
fn until_promised(world: &mut World, told: i64, untold: i64, epoch: Epoch) {
    let patience = world.now + 5_000;
    while world.nodes[&told].disk.accepted() < epoch {
        assert!(world.now < patience, "nobody proposes {epoch:?}");
        world.run(1);
        hold_down(world, untold, 60_000);
    }
    assert_eq!(world.nodes[&told].disk.accepted(), epoch);
}
