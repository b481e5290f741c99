//! Tests of reconfigurations.

use super::{
    courses::started,
    shape,
    steering::{active_at, burst, list, others, proposed_at, voters},
};
use crate::{
    client::Intent,
    wire,
    world::{Shape, World},
};
use ostler_proto::error::ErrorCode;

/// Three participants and some observers, a client at the leader, and one write.
fn three_and(observers: i64, seed: u64) -> (World, i64, usize) {
    let mut world = started(seed, Shape { reconfig: true, observers, ..shape(seed) });
    let leader = world.leader().unwrap();
    let client = world.join(leader);
    world.write(client, wire::create("/a"));
    (world, leader, client)
}

/// A follower gets a whole tree because the log cannot be read for it. A reconfiguration commits while the leader finds
/// that out. The tree has the new configuration, so the follower must have it, too.
#[test]
fn a_follower_that_gets_a_tree_late_gets_the_configuration_of_the_tree() {
    for seed in (0..10).map(|seed| 2 * seed) {
        let (mut world, leader, client) = three_and(1, seed);
        let [_, far] = others(&world, leader);
        world.take_down(far);
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
        assert_eq!(active_at(&world, far), *world.reference.membership(), "seed {seed}");
        world.logs_unread = false;
        world.must_come_back();
    }
}

/// A reconfiguration that only its leader has logged is cut from the log, and never comes into force.
#[test]
fn a_change_that_is_cut_from_the_log_never_comes_into_force() {
    for seed in 0..20 {
        let (mut world, leader, client) = three_and(1, seed);
        let [near, far] = others(&world, leader);
        let before = world.reference.membership().clone();
        world.isolate(leader, true, true);
        // A change that gives a vote needs a larger quorum than one that removes an observer.
        let change = if seed % 3 == 0 {
            wire::reconfig(Some(&voters(&[4])), None)
        } else {
            wire::reconfig(None, Some("4"))
        };
        world.ask(client, Intent::Write(String::new()), change);
        assert!(world.run_until(100, |world| proposed_at(world, leader).is_some()));
        world.take_down(leader);
        let others_serve =
            |world: &World| world.leader().is_some() && world.serves(near) && world.serves(far);
        assert!(world.run_until(5_000, others_serve));
        let client = world.join(near);
        burst(&mut world, client, if seed % 4 < 2 { 2 } else { 30 });
        world.run(500);
        world.net.cut.clear();
        world.boot(leader);
        world.must_come_back();
        assert_eq!(world.reference.membership().lines(), before.lines(), "seed {seed}");
        for id in 1..=4 {
            let active = active_at(&world, id);
            assert_eq!(
                active.lines(),
                before.lines(),
                "seed {seed}: {id} has a change that was never committed"
            );
        }
    }
}

/// An observer applies a reconfiguration only after its commit, even if it joins while the change is under way.
#[test]
fn a_change_that_is_under_way_is_not_in_force_for_an_observer_that_joins() {
    for seed in 0..10 {
        let (mut world, leader, client) = three_and(2, seed);
        let [near, far] = others(&world, leader);
        world.take_down(4);
        world.take_down(far);
        world.run(200);
        let before = world.reference.membership().clone();
        world.net.cut.insert((near, leader));
        world.ask(client, Intent::Write(String::new()), wire::reconfig(None, Some("5")));
        assert!(world.run_until(100, |world| proposed_at(world, leader).is_some()));
        world.boot(4);
        assert!(world.run_until(450, |world| world.serves(4)), "seed {seed}: it comes too late");
        world.run(20);
        let active = active_at(&world, 4);
        assert_eq!(active.lines(), before.lines(), "seed {seed}: the change is not committed");
        world.must_come_back();
    }
}

/// The file of an old proposed configuration may be there again after a loss of power.
#[test]
fn an_older_configuration_does_not_come_into_force_again() {
    for seed in 0..10 {
        let (mut world, leader, client) = three_and(2, seed);
        let [_, far] = others(&world, leader);
        world.write(client, wire::reconfig(None, Some("4"))).unwrap();
        let older = world.reference.membership().to_string();
        world.write(client, wire::reconfig(None, Some("5"))).unwrap();
        world.run(500);
        world.take_down(far);
        world.node(far).disk.leave_proposed(&older);
        world.boot(far);
        world.must_come_back();
    }
}

/// Observers do not acknowledge proposals. A change that cannot commit without them is refused, because it would block
/// all later proposals.
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
