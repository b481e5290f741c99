//! Helpers of scenes: they delay packets between servers, and wait for what follows.

use crate::{
    client::Intent,
    disk::Ending,
    wire,
    world::{World, line},
};
use ostler_proto::{id::Zxid, membership::Membership};

/// The first two voters other than `than`.
pub(super) fn others(world: &World, than: i64) -> [i64; 2] {
    let others: Vec<i64> = (1..=world.shape.voters).filter(|id| *id != than).collect();
    [others[0], others[1]]
}

/// Sends several writes without waiting for their answers.
pub(super) fn burst(world: &mut World, client: usize, count: usize) {
    for _ in 0..count {
        world.ask(client, Intent::Write(String::new()), wire::set("/a", b"x"));
    }
}

/// Kills the processes of these servers.
pub(super) fn stop(world: &mut World, ids: &[i64]) {
    ids.iter().for_each(|id| world.crash(*id, Ending::Killed));
}

/// Configuration lines that make these servers participants.
pub(super) fn voters(ids: &[i64]) -> String {
    ids.iter().map(|id| line(*id, false)).collect::<Vec<_>>().join(",")
}

pub(super) fn list(ids: &[i64]) -> String {
    ids.iter().map(i64::to_string).collect::<Vec<_>>().join(",")
}

/// Cuts all connections between two sets of servers, in both directions.
pub(super) fn part(world: &mut World, these: &[i64], those: &[i64]) {
    for (one, other) in these.iter().flat_map(|one| those.iter().map(move |other| (*one, *other))) {
        world.net.cut.extend([(one, other), (other, one)]);
    }
}

/// The configuration in force on a server's disk.
pub(super) fn active_at(world: &World, id: i64) -> Membership {
    world.nodes[&id].disk.configuration().unwrap().0
}

/// The version of the proposed configuration on a server's disk.
pub(super) fn proposed_at(world: &World, id: i64) -> Option<Zxid> {
    let (_, proposed) = world.nodes[&id].disk.configuration().unwrap();
    proposed.map(|proposed| Zxid(proposed.version))
}

/// The lanes of a learner's last link: up, down.
pub(super) fn lanes_of(world: &World, learner: i64) -> Option<[u64; 2]> {
    let of = world.net.links.values().rev().find(|of| of.learner.0 == learner)?;
    Some([of.up, of.down])
}

/// Delays what a learner sends on its last link by `ms`.
pub(super) fn hold_up(world: &mut World, learner: i64, ms: u64) {
    if let Some([up, _]) = lanes_of(world, learner) {
        world.net.lanes.get_mut(&up).unwrap().held_until = world.now + ms;
    }
}

/// Delays what a learner gets on all its links by `ms`.
pub(super) fn hold_down(world: &mut World, learner: i64, ms: u64) {
    let links = world.net.links.values().filter(|of| of.learner.0 == learner);
    for lane in links.map(|of| of.down).collect::<Vec<_>>() {
        world.net.lanes.get_mut(&lane).unwrap().held_until = world.now.saturating_add(ms);
    }
}

/// As [`World::run_until`], but checks every millisecond, so that little happens after the condition holds.
pub(super) fn runs_on(world: &mut World, ms: u64, is_so: impl Fn(&World) -> bool) -> bool {
    (0..ms).any(|_| {
        world.run(1);
        is_so(world)
    })
}
