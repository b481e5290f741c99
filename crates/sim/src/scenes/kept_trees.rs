//! Transactions that a server has only in a tree that it got from a leader.

use super::{courses::started, shape, steering::burst};
use crate::{
    wire,
    world::{Shape, World},
};

/// A leader sends its tree, with a tail that no other server has, to a server that is far behind. The leader and one
/// follower die before the epoch begins. One of the three servers with all acknowledged writes is elected next. It
/// reaches only the server with the tree, cuts the tail off there, and dies, too. The acknowledged writes must survive,
/// in two logs and in that tree.
#[test]
fn transactions_that_only_a_tree_has_are_not_cut_away() {
    let mut cut = 0;
    for seed in 0..60 {
        let mut world = started(seed, Shape { voters: 5, ..shape(2 * seed) });
        let Some((far, three)) = with_a_tree(&mut world) else { continue };
        if let Some(second) = led_by_another(&mut world, far, &three) {
            let before = cuts(&world);
            cut += u32::from(world.run_until(1_200, |world| cuts(world) > before));
            let late = world.chance.below(40);
            world.run(late);
            world.take_down(second);
        }
        world.net.cut.clear();
        world.run(3_000);
        world.must_come_back();
    }
    assert!(cut > 10, "in {cut} of them something was cut");
}

fn cuts(world: &World) -> u64 {
    world.tally.get("cut and reload").copied().unwrap_or(0)
}

/// Returns the server that has got a tree with more than was acknowledged, and runs alone, and the three servers that
/// have everything that was acknowledged.
fn with_a_tree(world: &mut World) -> Option<(i64, Vec<i64>)> {
    let first = world.leader().unwrap();
    let mut others = world.ids().into_iter().filter(|id| *id != first);
    let far = others.next()?;
    let three: Vec<i64> = others.collect();
    let client = world.join(first);
    world.write(client, wire::create("/a"));
    world.run(50);
    world.take_down(far);
    burst(world, client, 60);
    world.run(400);
    world.isolate(first, true, true);
    burst(world, client, 3);
    world.run(150);
    world.ids().into_iter().for_each(|id| world.take_down(id));
    world.net.cut.clear();
    for id in [first, far, three[0]] {
        world.boot(id);
    }
    let installed = world.run_until(3_000, |world| world.nodes[&far].history.last().counter() > 60);
    let late = world.chance.below(8);
    world.run(late);
    world.take_down(first);
    world.take_down(three[0]);
    installed.then_some((far, three))
}

/// Two of the three servers elect the third, and are cut off from it when it begins to send its history.
fn led_by_another(world: &mut World, far: i64, three: &[i64]) -> Option<i64> {
    let begun = world.nodes[&far].disk.accepted();
    world.isolate(far, true, true);
    for id in three {
        world.boot(*id);
    }
    let leads = |world: &World| three.iter().copied().find(|id| world.nodes[id].disk.current() > begun);
    world.run_until(3_000, |world| leads(world).is_some());
    let second = leads(world)?;
    world.net.cut.clear();
    for other in three.iter().filter(|id| **id != second) {
        world.net.cut.extend([(second, *other), (*other, second)]);
    }
    Some(second)
}
