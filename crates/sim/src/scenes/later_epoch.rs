//! Two of five servers promise an epoch that the others do not know of. The others begin an earlier epoch, and then the
//! two return. They must not follow: the leader that has their promise may still count on it.

use super::steering::stop;
use crate::{
    wire,
    world::{Shape, World},
};
use ostler_proto::id::Epoch;

/// Is elected twice, and dies both times before a quorum has promised its epoch.
const ELECTED: i64 = 5;
/// Promises both epochs.
const BOUND: i64 = 4;
/// Votes for the elected server, and does not get its epoch.
const UNTOLD: i64 = 3;
const FIRST_VOTERS: [i64; 3] = [ELECTED, BOUND, UNTOLD];

pub(super) fn shape(seed: u64) -> Shape {
    Shape { voters: 5, ..super::shape(seed) }
}

pub(super) fn play(world: &mut World) {
    assert!(world.run_until(5_000, World::all_serve));
    let leader = world.leader().unwrap();
    let client = world.join(leader);
    assert!(world.write(client, wire::create("/a")).is_some());
    // If all have the same history, the highest id is elected.
    let last = world.reference.last();
    assert!(world.run_until(1_000, |world| world.nodes.values().all(|node| node.disk.has(last))));
    let Epoch(first) = world.epoch_of(leader);
    let all = world.ids();
    stop(world, &all);

    for promised in [first + 1, first + 2] {
        FIRST_VOTERS.iter().for_each(|id| assert!(world.boot(*id)));
        propose_to_one(world, Epoch(promised));
        stop(world, &FIRST_VOTERS);
    }

    let leading = [1, 2, UNTOLD];
    leading.iter().for_each(|id| assert!(world.boot(*id)));
    assert!(world.run_until(5_000, |world| leading.iter().all(|id| world.serves(*id))));
    let leader = world.leader().unwrap();
    assert_eq!(world.epoch_of(leader), Epoch(first + 1), "none of them has heard of an epoch");

    for id in [BOUND, ELECTED] {
        assert!(world.boot(id));
        world.run(1_500);
        assert!(!world.serves(id), "server {id} serves in an epoch below the one that it has promised");
    }
    let client = world.join(leader);
    assert!(world.write(client, wire::set("/a", b"1")).is_some());

    until_all_serve(world);
}

/// Ends epochs until all servers serve, as the log line of a server that stays outside advises. Each epoch is later
/// than the one before. The servers outside can promise an epoch if they are there at its begin.
fn until_all_serve(world: &mut World) {
    for _ in 0..2 {
        let leader = world.leader().unwrap();
        world.take_down(leader);
        assert!(world.boot(leader));
        if world.run_until(5_000, World::all_serve) {
            return;
        }
    }
    panic!("a server that has promised a later epoch stays outside");
}

/// Runs until a leader is elected and has proposed its epoch to one server only.
fn propose_to_one(world: &mut World, epoch: Epoch) {
    let patience = world.now + 5_000;
    while world.nodes[&BOUND].disk.accepted() < epoch {
        assert!(world.now < patience, "nobody proposes {epoch:?}");
        world.run(1);
        let untold = world.net.links.values().filter(|of| of.learner.0 == UNTOLD);
        for lane in untold.map(|of| of.down).collect::<Vec<_>>() {
            world.net.lanes.get_mut(&lane).unwrap().held_until = u64::MAX;
        }
    }
    assert_eq!(world.nodes[&BOUND].disk.accepted(), epoch);
}
