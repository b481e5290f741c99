//! Errors of operators that must not lose data.

use super::{
    courses::started,
    shape,
    steering::{burst, others},
};
use crate::{wire, world::World};
use ostler_proto::id::ServerId;

/// Swaps the disks of two servers.
fn swap_disks(world: &mut World, [one, other]: [i64; 2]) {
    let (mut first, mut second) = (world.nodes.remove(&one).unwrap(), world.nodes.remove(&other).unwrap());
    std::mem::swap(&mut first.disk, &mut second.disk);
    first.disk.belongs_to(ServerId(one));
    second.disk.belongs_to(ServerId(other));
    world.nodes.extend([(one, first), (other, second)]);
}

/// Two of three servers are stopped, and started with each other's ids. One of them lacks the last writes.
#[test]
fn servers_whose_ids_are_mixed_up_have_all_that_was_acknowledged() {
    for seed in 0..20 {
        let mut world = started(seed, shape(seed));
        let leader = world.leader().unwrap();
        let [near, far] = others(&world, leader);
        let client = world.join(leader);
        assert!(world.write(client, wire::create("/a")).is_some());
        world.isolate(far, true, true);
        burst(&mut world, client, 10);
        assert!(world.write(client, wire::create("/b")).is_some());
        let mixed_up = [far, if seed % 2 == 0 { leader } else { near }];
        mixed_up.iter().for_each(|id| world.take_down(*id));
        swap_disks(&mut world, mixed_up);
        world.net.cut.clear();
        mixed_up.iter().for_each(|id| assert!(world.boot(*id)));
        world.must_come_back();
        let last = world.reference.last();
        assert!(world.reference.at("/b", last).is_some(), "seed {seed}");
    }
}
