//! One of three servers is down while the other two acknowledge writes. One of these two loses its disk, and dies while
//! the third sends it the data again. The first two are a majority that may lack the acknowledged writes. So the server
//! that has lost its disk must not vote before it has everything again.

use super::steering::{hold_down, stop};
use crate::{
    wire,
    world::{Shape, World},
};
use ostler_proto::id::Zxid;

/// Is down during the last writes.
const BEHIND: i64 = 1;
/// Loses its disk.
const LOSES: i64 = 2;
/// Keeps everything. It has the highest id, so it is elected if all have the same history.
const KEEPS: i64 = 3;

pub(super) fn shape(seed: u64) -> Shape {
    super::shape(seed)
}

pub(super) fn play(world: &mut World) {
    assert!(world.run_until(5_000, World::all_serve));
    let Some(acknowledged) = acknowledged_by_two(world) else { return };
    if bring_back_in_part(world) {
        without_the_third(world, acknowledged);
    }
}

/// Writes while `BEHIND` is down. Returns the last zxid.
fn acknowledged_by_two(world: &mut World) -> Option<Zxid> {
    let client = world.join(KEEPS);
    world.write(client, wire::create("/a"))?;
    let last = world.reference.last();
    assert!(world.run_until(1_000, |world| world.nodes.values().all(|node| node.disk.has(last))));
    world.take_down(BEHIND);
    if !world.run_until(5_000, |world| world.serves(KEEPS) && world.serves(LOSES)) {
        return None;
    }
    let client = world.join(KEEPS);
    for n in 0..8 {
        world.write(client, wire::create(&format!("/x{n}")))?;
    }
    Some(world.reference.last())
}

fn loses_its_disk(world: &mut World) {
    world.take_down(LOSES);
    let membership = world.reference.membership().clone();
    world.node(LOSES).disk.wipe(&membership);
}

/// The third server is elected with the vote of the first, and sends part of its history to the second only. Returns
/// whether the second has promised its epoch.
fn bring_back_in_part(world: &mut World) -> bool {
    // A restarted leader does not know that the second server had data.
    if world.chance.one_in(2) {
        stop(world, &[KEEPS]);
    }
    let before = world.nodes[&KEEPS].disk.accepted();
    loses_its_disk(world);
    [BEHIND, LOSES].iter().for_each(|id| assert!(world.boot(*id)));
    world.start_if_down(KEEPS);
    let heard = |world: &World, id: i64| world.nodes[&id].disk.accepted() > before;
    let told = |world: &mut World| {
        if heard(world, BEHIND) {
            hold_down(world, BEHIND, 60_000);
        }
        world.run(1);
        heard(world, LOSES)
    };
    let has_promised = (0..4_000).any(|_| told(world));
    let late = [10, 100, 500][world.chance.below(3) as usize];
    for _ in 0..world.chance.below(late) {
        told(world);
    }
    has_promised
}

/// Runs the first and the second server alone: they must not elect a leader that lacks the acknowledged writes.
fn without_the_third(world: &mut World, acknowledged: Zxid) {
    [KEEPS, BEHIND, LOSES].iter().for_each(|id| world.take_down(*id));
    world.net.cut.clear();
    [BEHIND, LOSES].iter().for_each(|id| assert!(world.boot(*id)));
    let here = &world.nodes[&LOSES];
    let has_all = here.history.has(acknowledged);
    let is_behind = !world.nodes[&BEHIND].history.has(acknowledged);
    // An empty server gets a whole tree, never single records.
    assert!(has_all || here.history.last() == Zxid::ZERO);
    if is_behind {
        world.count(if has_all { "lost a disk, has a tree" } else { "lost a disk, has a promise" });
    }
    for _ in 0..60 {
        world.run(100);
        let leader = world.leader();
        assert!(
            leader.is_none_or(|leader| world.nodes[&leader].history.has(acknowledged)),
            "[quorum] {leader:?} leads with the vote of a server that lost {acknowledged}"
        );
    }
    world.boot(KEEPS);
}
