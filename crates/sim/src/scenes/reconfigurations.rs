//! Courses of events around changes of the ensemble.

use super::{
    courses::{burst, others, started},
    shape,
};
use crate::{
    client::Intent,
    disk::Ending,
    wire,
    world::{Shape, World, line},
};
use ostler_proto::{error::ErrorCode, id::Zxid, membership::Membership};
use ostler_server_core::ensemble::MemberMode;

/// Three who vote and some who observe, a client at the leader, and something written.
fn three_and(observers: i64, seed: u64) -> (World, i64, usize) {
    let mut world = started(seed, Shape { reconfig: true, observers, ..shape(seed) });
    let leader = world.leader().unwrap();
    let client = world.join(leader);
    world.write(client, wire::create("/a"));
    (world, leader, client)
}

/// A follower gets the whole tree because the log cannot be read for it, and while that is found out the ensemble
/// changes: the tree has the change, so the follower has to have it, too.
#[test]
fn a_follower_that_gets_a_tree_late_gets_the_configuration_of_then() {
    for seed in (0..10).map(|seed| 2 * seed) {
        let (mut world, leader, client) = three_and(1, seed);
        let [_, far] = others(&world, leader);
        world.fell(far);
        burst(&mut world, client, 30);
        world.run(300);
        world.logs_unread = true;
        world.boot(far);
        assert!(world.run_until(1_000, |world| world.tally.contains_key("log read asked")));
        let reply = world.write(client, wire::reconfig(None, Some("4"))).unwrap();
        assert!(reply.result.is_ok(), "{reply:?}");
        assert!(!world.serves(far), "it came too early");
        burst(&mut world, client, 3);
        assert!(world.run_until(2_000, |world| world.serves(far)));
        assert_eq!(world.leader(), Some(leader));
        world.run(200);
        assert_eq!(active_at(&world, far), *world.truth.membership(), "seed {seed}");
        world.logs_unread = false;
        world.must_come_back();
    }
}

/// A change that only its leader has is taken back with its record, and never comes into force.
#[test]
fn a_change_that_is_taken_back_is_forgotten() {
    for seed in 0..20 {
        let (mut world, leader, client) = three_and(1, seed);
        let [near, far] = others(&world, leader);
        let before = world.truth.membership().clone();
        world.isolate(leader, true, true);
        // To give a vote takes a larger quorum, of which one part is not there where it was not given.
        let change = if seed % 3 == 0 {
            wire::reconfig(Some(&voters(&[4])), None)
        } else {
            wire::reconfig(None, Some("4"))
        };
        world.ask(client, Intent::Write(String::new()), change);
        assert!(world.run_until(100, |world| proposed_at(world, leader).is_some()));
        world.fell(leader);
        let others_serve =
            |world: &World| world.leader().is_some() && world.serves(near) && world.serves(far);
        assert!(world.run_until(5_000, others_serve));
        let client = world.join(near);
        burst(&mut world, client, if seed % 4 < 2 { 2 } else { 30 });
        world.run(500);
        world.net.cut.clear();
        world.boot(leader);
        world.must_come_back();
        assert_eq!(world.truth.membership().lines(), before.lines(), "seed {seed}");
        for id in 1..=4 {
            let active = active_at(&world, id);
            assert_eq!(active.lines(), before.lines(), "seed {seed}: {id} has what was never agreed on");
        }
    }
}

/// An observer hears of a change when it has committed, also one that comes while it is under way.
#[test]
fn a_change_that_is_under_way_is_not_in_force_for_an_observer_that_comes() {
    for seed in 0..10 {
        let (mut world, leader, client) = three_and(2, seed);
        let [near, far] = others(&world, leader);
        world.fell(4);
        world.fell(far);
        world.run(200);
        let before = world.truth.membership().clone();
        world.net.cut.insert((near, leader));
        world.ask(client, Intent::Write(String::new()), wire::reconfig(None, Some("5")));
        assert!(world.run_until(100, |world| proposed_at(world, leader).is_some()));
        world.boot(4);
        assert!(world.run_until(450, |world| world.serves(4)), "seed {seed}: it comes too late");
        world.run(20);
        let active = active_at(&world, 4);
        assert_eq!(active.lines(), before.lines(), "seed {seed}: nobody has agreed on it");
        world.must_come_back();
    }
}

/// The file of a change that is in force long since is there again after a loss of power.
#[test]
fn an_older_configuration_does_not_come_into_force_again() {
    for seed in 0..10 {
        let (mut world, leader, client) = three_and(2, seed);
        let [_, far] = others(&world, leader);
        world.write(client, wire::reconfig(None, Some("4"))).unwrap();
        let older = world.truth.membership().to_string();
        world.write(client, wire::reconfig(None, Some("5"))).unwrap();
        world.run(500);
        world.fell(far);
        world.node(far).disk.leave_proposed(&older);
        world.boot(far);
        world.must_come_back();
    }
}

/// Lines of servers that are to have a vote.
fn voters(ids: &[i64]) -> String {
    ids.iter().map(|id| line(*id, false)).collect::<Vec<_>>().join(",")
}

fn list(ids: &[i64]) -> String {
    ids.iter().map(i64::to_string).collect::<Vec<_>>().join(",")
}

/// Nothing passes between these and those, in either direction.
fn part(world: &mut World, these: &[i64], those: &[i64]) {
    for (one, other) in these.iter().flat_map(|one| those.iter().map(move |other| (*one, *other))) {
        world.net.cut.extend([(one, other), (other, one)]);
    }
}

/// What a server's disk has as in force.
fn active_at(world: &World, id: i64) -> Membership {
    world.nodes[&id].disk.configuration().unwrap().0
}

/// The change that a server's disk has as proposed.
fn proposed_at(world: &World, id: i64) -> Option<Zxid> {
    let (_, proposed) = world.nodes[&id].disk.configuration().unwrap();
    proposed.map(|proposed| Zxid(proposed.version))
}

/// The lanes of a follower's last link to its leader: up, down.
fn lanes_of(world: &World, follower: i64) -> [u64; 2] {
    let of = world.net.links.values().rev().find(|of| of.learner.0 == follower).unwrap();
    [of.up, of.down]
}

/// As [`World::run_until`], and nothing happens after it is so.
fn runs_on(world: &mut World, ms: u64, is_so: impl Fn(&World) -> bool) -> bool {
    (0..ms).any(|_| {
        world.run(1);
        is_so(world)
    })
}

/// Seven servers vote. A change sends two of them away and gives two others a vote; while it is not known everywhere, a
/// second one leaves the vote to three. One server is told of the first change by its own log and of the second by its
/// leader, which dies before it can say that the first is in force. With those who know of neither it is a quorum of the
/// oldest configuration and of the newest, but not of the one between, of which all others are.
#[test]
fn a_server_with_two_changes_in_its_log_does_not_lead_past_the_first() {
    let mut told = 0;
    for seed in 0..30 {
        let shape = Shape { voters: 7, observers: 2, reconfig: true, history: 500, ..shape(seed) };
        let mut world = started(seed, shape);
        let leader = world.leader().unwrap();
        let rest: Vec<i64> = (1..=7).filter(|id| *id != leader).collect();
        let [near, next, late, left, gone, away] = rest[..] else { panic!("{rest:?}") };
        let unknowing = [left, gone, away];
        let client = world.join(leader);
        world.write(client, wire::create("/a"));
        world.run(100);

        // The first change: four of the seven log it, and the last of them says so late.
        part(&mut world, &unknowing, &[leader, near, next, 8, 9]);
        let [up, _] = lanes_of(&world, late);
        world.net.lanes.get_mut(&up).unwrap().held_until = world.now + 150;
        let first = wire::reconfig(Some(&voters(&[8, 9])), Some(&list(&[gone, away])));
        world.ask(client, Intent::Write(String::new()), first);
        let all_but_the_last = |world: &World| {
            let proposed = |id: i64| proposed_at(world, id);
            [leader, near, next].iter().all(|id| proposed(*id).is_some())
                && proposed(late).is_some_and(|change| world.nodes[&late].disk.has(change))
        };
        if !runs_on(&mut world, 150, all_but_the_last) {
            continue;
        }
        let version = proposed_at(&world, late).unwrap();
        world.run(6);

        // It begins anew before it hears that the change is in force, and is slow to say who it is.
        world.crash(late, Ending::Killed);
        world.boot(late);
        let dialled = |world: &World| world.net.links.values().any(|of| of.learner == (late, 2));
        if !runs_on(&mut world, 150, dialled) {
            continue;
        }
        let [again, _] = lanes_of(&world, late);
        world.net.lanes.get_mut(&again).unwrap().held_until = u64::MAX;
        let follows = |world: &World, id: i64| {
            world.mode(id) == Some(MemberMode::Follower) && Zxid(active_at(world, id).version) == version
        };
        if !world.run_until(250, |world| [near, next, 8, 9].iter().all(|id| follows(world, *id))) {
            continue;
        }

        // The second change is logged by its leader, and by the server that comes late.
        for other in [near, next, 8, 9] {
            let [_, down] = lanes_of(&world, other);
            world.net.lanes.get_mut(&down).unwrap().held_until = u64::MAX;
        }
        let second =
            wire::reconfig(Some(&voters(&[gone, away])), Some(&list(&[near, next, late, left, 8, 9])));
        world.ask(client, Intent::Write(String::new()), second);
        world.run(30);
        world.net.lanes.get_mut(&again).unwrap().held_until = 0;
        let last = |world: &World| world.nodes[&late].history.last();
        if !runs_on(&mut world, 150, |world| last(world) > version) {
            continue;
        }
        world.net.lanes.get_mut(&again).unwrap().held_until = u64::MAX;
        assert!(world.run_until(100, |world| world.nodes[&late].disk.has(last(world))), "seed {seed}");
        told += 1;
        part(&mut world, &[late], &[near, next, 8, 9]);
        world.fell(leader);
        world.run(4_000);
        assert!(world.leader().is_some_and(|next| next != late), "seed {seed}: those between do not reign");
        world.must_come_back();
    }
    assert!(told > 5, "only {told} were told of both");
}

/// Observers do not acknowledge what is proposed. A change that cannot be agreed on without them is refused, for it
/// would stand in the way of everything after it.
#[test]
fn a_change_that_needs_observers_to_be_agreed_on_is_refused() {
    for seed in 0..4 {
        let (mut world, leader, client) = three_and(2, seed);
        let leave = list(&others(&world, leader));
        let reply = world.write(client, wire::reconfig(Some(&voters(&[4, 5])), Some(&leave))).unwrap();
        assert_eq!(reply.result.err(), Some(ErrorCode::NewConfigNoQuorum), "seed {seed}");
        let reply = world.write(client, wire::reconfig(Some(&voters(&[4])), None)).unwrap();
        assert!(reply.result.is_ok(), "{reply:?}");
        world.must_come_back();
    }
}
