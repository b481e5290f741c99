//! Tests that sessions live as long as their clients send packets, to any member, and no longer.

use crate::{
    scenes::{courses::started, shape},
    wire,
    world::{Shape, World},
};
use ostler_server_core::quorum::LocalSessions::{self, Off, Upgradeable};

/// A client sends a packet after this share of the timeout: the last moment that leaves time for the way to the leader.
const SILENCE: (u64, u64) = (4, 5);

fn world(seed: u64, local: LocalSessions) -> World {
    started(seed, Shape { observers: 1, local, ..shape(seed) })
}

/// The client sends nothing for `ms`, and does not give up its silent connection.
fn stay_silent(world: &mut World, client: usize, ms: u64) {
    let end = world.now + ms;
    while world.now < end {
        let now = world.now;
        let of = &mut world.clients[client];
        (of.spoke, of.heard) = (now, now);
        world.run(10);
    }
}

fn nearly_all(timeout_ms: u64) -> u64 {
    timeout_ms * SILENCE.0 / SILENCE.1
}

fn is_alive(world: &World, client: usize) -> bool {
    let session = world.clients[client].session.unwrap();
    world.reference.has_session(session, world.reference.last())
}

/// A client with an ephemeral, so that all members know its session.
fn holder(world: &mut World, member: i64, timeout_ms: u64) -> usize {
    let client = world.join(member);
    world.clients[client].asked_for_ephemeral = true;
    let path = format!("/of{client}");
    assert!(world.write(client, wire::create(&path).ephemeral()).unwrap().result.is_ok());
    // The first timeout was random: the client asks for this one as it reconnects.
    world.clients[client].timeout_ms = timeout_ms;
    assert!(world.come_back(client, member));
    assert_eq!(world.clients[client].timeout_ms, timeout_ms);
    client
}

/// Sends a ping after nearly all of the timeout, three times.
fn pings_keep_it(world: &mut World, client: usize, what: &str) {
    for nth in 1..=3 {
        let timeout_ms = world.clients[client].timeout_ms;
        stay_silent(world, client, nearly_all(timeout_ms));
        assert!(is_alive(world, client), "{what}: before ping {nth}");
        world.ask(client, crate::client::Intent::Ping, wire::ping());
        world.run(1);
    }
}

/// The client sends nothing more, and its session must end.
fn silence_ends_it(world: &mut World, client: usize, what: &str) {
    let timeout_ms = world.clients[client].timeout_ms;
    world.clients[client].retired = true;
    world.hang_up_client(client);
    assert!(
        world.run_until(3 * timeout_ms + 2_000, |world| !is_alive(world, client)),
        "{what}: it never ends"
    );
}

/// The client moves from each member to each, with the same timeout, a longer one and a shorter one.
#[test]
fn a_session_that_comes_back_at_the_last_moment_lives_its_whole_timeout_again() {
    for (local, timeouts) in [Off, Upgradeable]
        .into_iter()
        .flat_map(|of| [(1_500, 1_500), (1_000, 2_500), (2_500, 1_000)].map(|t| (of, t)))
    {
        let mut world = world(timeouts.0, local);
        let ids = world.ids();
        for (from, to) in ids.iter().flat_map(|from| ids.iter().map(move |to| (*from, *to))) {
            let what = format!("{local:?}, from {from} to {to}, {timeouts:?} ms");
            let client = holder(&mut world, from, timeouts.0);
            world.hang_up_client(client);
            world.run(nearly_all(timeouts.0));
            world.clients[client].timeout_ms = timeouts.1;
            assert!(world.come_back(client, to), "{what}: it is gone as it comes back");
            pings_keep_it(&mut world, client, &what);
            silence_ends_it(&mut world, client, &what);
        }
        world.must_come_back();
    }
}

/// A local session becomes a global one: the leader lets it live for its timeout from then on.
#[test]
fn a_session_that_is_upgraded_lives_its_whole_timeout() {
    let mut world = world(5, Upgradeable);
    for member in world.ids() {
        let what = format!("upgraded at {member}");
        let client = world.join(member);
        let timeout_ms = world.clients[client].timeout_ms;
        stay_silent(&mut world, client, nearly_all(timeout_ms));
        world.clients[client].asked_for_ephemeral = true;
        let path = format!("/of{client}");
        assert!(world.write(client, wire::create(&path).ephemeral()).unwrap().result.is_ok(), "{what}");
        pings_keep_it(&mut world, client, &what);
        silence_ends_it(&mut world, client, &what);
    }
    world.must_come_back();
}

/// The next leader does not know of packets before its epoch, so it lets every session live for its whole timeout.
#[test]
fn a_session_lives_its_whole_timeout_under_the_next_leader() {
    let mut world = world(6, Off);
    let leader = world.leader().unwrap();
    let members: Vec<i64> = world.ids().into_iter().filter(|id| *id != leader).collect();
    for member in members {
        if world.leader() == Some(member) {
            continue;
        }
        let what = format!("at {member}");
        let client = holder(&mut world, member, 2_500);
        let old = world.leader().unwrap();
        stay_silent(&mut world, client, 1_000);
        world.take_down(old);
        assert!(world.run_until(5_000, |world| world.leader().is_some_and(|id| id != old)));
        world.boot(old);
        assert!(
            world.come_back(client, member)
                || world.run_until(3_000, World::all_serve) && world.come_back(client, member),
            "{what}"
        );
        pings_keep_it(&mut world, client, &what);
        silence_ends_it(&mut world, client, &what);
        assert!(world.run_until(5_000, World::all_serve));
    }
    world.must_come_back();
}
