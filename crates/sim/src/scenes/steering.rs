//! What scripts do with an ensemble: they hold up what goes from one server to another, and wait for what comes of it.

use crate::{
    client::Intent,
    disk::Ending,
    wire,
    world::{World, line},
};
use ostler_proto::{id::Zxid, membership::Membership};

/// The first two voters beside one.
pub(super) fn others(world: &World, than: i64) -> [i64; 2] {
    let others: Vec<i64> = (1..=world.shape.voters).filter(|id| *id != than).collect();
    [others[0], others[1]]
}

/// Many writes at once, without waiting for their answers.
pub(super) fn burst(world: &mut World, client: usize, count: usize) {
    for _ in 0..count {
        world.ask(client, Intent::Write(String::new()), wire::set("/a", b"x"));
    }
}

/// Their processes end.
pub(super) fn stop(world: &mut World, ids: &[i64]) {
    ids.iter().for_each(|id| world.crash(*id, Ending::Killed));
}

/// Lines of servers that are to have a vote.
pub(super) fn voters(ids: &[i64]) -> String {
    ids.iter().map(|id| line(*id, false)).collect::<Vec<_>>().join(",")
}

pub(super) fn list(ids: &[i64]) -> String {
    ids.iter().map(i64::to_string).collect::<Vec<_>>().join(",")
}

/// Nothing passes between these and those, in either direction.
pub(super) fn part(world: &mut World, these: &[i64], those: &[i64]) {
    for (one, other) in these.iter().flat_map(|one| those.iter().map(move |other| (*one, *other))) {
        world.net.cut.extend([(one, other), (other, one)]);
    }
}

/// What a server's disk has as in force.
pub(super) fn active_at(world: &World, id: i64) -> Membership {
    world.nodes[&id].disk.configuration().unwrap().0
}

/// The change that a server's disk has as proposed.
pub(super) fn proposed_at(world: &World, id: i64) -> Option<Zxid> {
    let (_, proposed) = world.nodes[&id].disk.configuration().unwrap();
    proposed.map(|proposed| Zxid(proposed.version))
}

/// The lanes of a learner's last link: up, down.
pub(super) fn lanes_of(world: &World, learner: i64) -> Option<[u64; 2]> {
    let of = world.net.links.values().rev().find(|of| of.learner.0 == learner)?;
    Some([of.up, of.down])
}

/// What a learner says on its last link arrives this much later, ms.
pub(super) fn hold_up(world: &mut World, learner: i64, ms: u64) {
    if let Some([up, _]) = lanes_of(world, learner) {
        world.net.lanes.get_mut(&up).unwrap().held_until = world.now + ms;
    }
}

/// What a learner is told on any of its links arrives this much later, ms.
pub(super) fn hold_down(world: &mut World, learner: i64, ms: u64) {
    let links = world.net.links.values().filter(|of| of.learner.0 == learner);
    for lane in links.map(|of| of.down).collect::<Vec<_>>() {
        world.net.lanes.get_mut(&lane).unwrap().held_until = world.now.saturating_add(ms);
    }
}

/// As [`World::run_until`], and nothing happens after it is so.
pub(super) fn runs_on(world: &mut World, ms: u64, is_so: impl Fn(&World) -> bool) -> bool {
    (0..ms).any(|_| {
        world.run(1);
        is_so(world)
    })
}
