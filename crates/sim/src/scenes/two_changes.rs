//! Seven servers vote. A first change removes two of them and gives two observers a vote. While it is not known
//! everywhere, a second change leaves the vote to three servers. One server has the first change in its log, and gets
//! the second one from its leader, which dies before it can report that the first is in force. With the servers that
//! know of neither change, this server is a quorum of the oldest and of the newest configuration, but not of the one
//! between. It must not lead: the other servers are a quorum of the one between.

use super::steering::{hold_down, lanes_of, list, part, proposed_at, runs_on, voters};
use crate::{
    client::Intent,
    disk::Ending,
    wire,
    world::{Shape, World},
};
use ostler_proto::id::Zxid;
use ostler_server_core::quorum::MemberMode;

pub(super) fn shape(seed: u64) -> Shape {
    Shape { voters: 7, observers: 2, reconfig: true, history: 500, ..super::shape(seed) }
}

pub(super) fn play(world: &mut World) {
    assert!(world.run_until(5_000, World::all_serve));
    if let Some(late) = lead_to_both_changes(world) {
        world.count("told of two changes");
        world.run(6_000);
        assert!(world.leader().is_some_and(|next| next != late), "[liveness] those between do not lead");
    }
}

fn lane(world: &mut World, lane: u64, held_until: u64) {
    world.net.lanes.get_mut(&lane).unwrap().held_until = held_until;
}

/// Leads up to a server that has both changes in its log, is cut off from the servers of the configuration between, and
/// has lost its leader. `None` if the course took another turn.
fn lead_to_both_changes(world: &mut World) -> Option<i64> {
    let leader = world.leader()?;
    let rest: Vec<i64> = (1..=7).filter(|id| *id != leader).collect();
    let [near, next, late, left, gone, away] = rest[..] else { panic!("{rest:?}") };
    let unknowing = [left, gone, away];
    let client = world.join(leader);
    world.write(client, wire::create("/a"));
    world.run(100);

    // The first change: four of the seven log it, and the acknowledgement of the last of them is late.
    part(world, &unknowing, &[leader, near, next, 8, 9]);
    let [up, _] = lanes_of(world, late)?;
    lane(world, up, world.now + 150);
    let first = wire::reconfig(Some(&voters(&[8, 9])), Some(&list(&[gone, away])));
    world.ask(client, Intent::Write(String::new()), first);
    let all_but_the_last = |world: &World| {
        let proposed = |id: i64| proposed_at(world, id);
        [leader, near, next].iter().all(|id| proposed(*id).is_some())
            && proposed(late).is_some_and(|change| world.nodes[&late].disk.has(change))
    };
    if !runs_on(world, 150, all_but_the_last) {
        return None;
    }
    let version = proposed_at(world, late)?;
    world.run(6);

    // The server restarts before it learns that the change is in force, and its packets to the leader are delayed.
    world.crash(late, Ending::Killed);
    world.boot(late);
    let dialled = |world: &World| world.net.links.values().any(|of| of.learner == (late, 2));
    if !runs_on(world, 150, dialled) {
        return None;
    }
    let [again, _] = lanes_of(world, late)?;
    lane(world, again, u64::MAX);
    let follows = |world: &World, id: i64| {
        let (active, _) = world.nodes[&id].disk.configuration().unwrap();
        world.mode(id) == Some(MemberMode::Follower) && Zxid(active.version) == version
    };
    if !world.run_until(250, |world| [near, next, 8, 9].iter().all(|id| follows(world, *id))) {
        return None;
    }

    // The second change is logged by its leader, and by the server that comes late.
    for other in [near, next, 8, 9] {
        let [_, down] = lanes_of(world, other)?;
        lane(world, down, u64::MAX);
    }
    let second = wire::reconfig(Some(&voters(&[gone, away])), Some(&list(&[near, next, late, left, 8, 9])));
    world.ask(client, Intent::Write(String::new()), second);
    world.run(30);
    lane(world, again, 0);
    let last = |world: &World| world.nodes[&late].history.last();
    if !runs_on(world, 150, |world| last(world) > version) {
        return None;
    }
    // With some seeds the server does not learn which configuration its leader has in force.
    hold_down(world, late, u64::MAX);
    lane(world, again, u64::MAX);
    assert!(world.run_until(100, |world| world.nodes[&late].disk.has(last(world))));
    part(world, &[late], &[near, next, 8, 9]);
    world.take_down(leader);
    Some(late)
}
