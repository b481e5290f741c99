//! A follower acknowledges a proposal that its leader's own disk does not have yet, and loses its connection. When it
//! returns, its log is cut back to what is committed, and it gets the rest again. Until the proposal is on its disk
//! again, its earlier acknowledgement must not count.

use super::steering::{hold_down, others, runs_on, stop};
use crate::{
    client::Intent,
    wire,
    world::{Shape, World},
};

const TIMES: usize = 6;

pub(super) fn shape(seed: u64) -> Shape {
    Shape { init_ms: 4_000, sync_limit_ms: 2_000, history: 500, ..super::shape(seed) }
}

pub(super) fn play(world: &mut World) {
    assert!(world.run_until(5_000, World::all_serve));
    let leader = world.leader().unwrap();
    let mut client = world.join(leader);
    assert!(world.write(client, wire::create("/a")).is_some());
    for _ in 0..TIMES {
        if !world.run_until(8_000, World::all_serve) || world.leader() != Some(leader) {
            return;
        }
        if !world.clients[client].open {
            let Some(again) = world.try_join(leader) else { return };
            client = again;
        }
        cut_one(world, leader, client);
        world.ids().into_iter().for_each(|id| world.node(id).sync_ms = 10);
    }
}

fn cut_one(world: &mut World, leader: i64, client: usize) {
    let [near, far] = others(world, leader);
    world.run(50);
    let before = world.reference.last();
    world.node(leader).sync_ms = 1_200;
    hold_down(world, far, 1_200);
    world.ask(client, Intent::Write(String::new()), wire::set("/a", b"1"));
    let next = before.next();
    if !runs_on(world, 400, |world| world.nodes[&near].disk.has(next)) {
        return;
    }
    // The acknowledgement has arrived.
    world.run(12);
    stop(world, &[near]);
    world.boot(near);
    world.node(near).sync_ms = 400;
    let is_cut = |world: &World| !world.nodes[&near].disk.has(next);
    if runs_on(world, 800, is_cut) && world.reference.last() < next {
        world.count("an acknowledgement was cut away");
    }
    world.run(1_500);
}
