//! Epochs without a write: the last zxid is the begin of the epoch, with counter 0.

use super::{
    courses::{master_of, started},
    shape,
    steering::{burst, others, part},
};
use crate::{
    client::Intent,
    wire,
    world::{Shape, World},
};
use ostler_server_core::quorum::ObserverOptions;

const OBSERVER: i64 = 4;

/// Closes the client's session, so that no end of a session is written later.
fn leave(world: &mut World, client: usize) {
    assert!(world.answer(client, Intent::Close, wire::close_session()).is_some());
}

/// In an idle epoch a leader sends its tree to a follower, which sends it to an observer and dies. The other follower
/// has every write, but no record that the epoch has begun.
#[test]
fn an_observer_that_has_the_beginning_of_an_idle_epoch_is_served_by_every_follower() {
    for seed in 0..10 {
        let observing = ObserverOptions { masters: true, ..ObserverOptions::default() };
        let shape = Shape { observers: 1, observing, ..shape(2 * seed) };
        let mut world = started(2 * seed, shape);
        let first_leader = world.leader().unwrap();
        let [with_tree, other] = others(&world, first_leader);
        let client = world.join(first_leader);
        world.write(client, wire::create("/a"));
        world.take_down(with_tree);
        burst(&mut world, client, 30);
        world.run(400);
        leave(&mut world, client);
        world.run(100);

        let epoch = world.epoch_of(first_leader);
        world.take_down(first_leader);
        world.boot(first_leader);
        let again = |world: &World| {
            world.leader().is_some_and(|id| world.epoch_of(id) > epoch) && world.serves(OBSERVER)
        };
        assert!(world.run_until(5_000, again));
        let leader = world.leader().unwrap();
        let follower = if leader == other { first_leader } else { other };
        world.logs_unread = true;
        world.boot(with_tree);
        assert!(world.run_until(3_000, |world| world.serves(with_tree)));
        assert!(world.tally.contains_key("install"), "it got a tree");

        part(&mut world, &[OBSERVER], &[follower]);
        let moved = |world: &World| master_of(world, OBSERVER) == Some(with_tree) && world.serves(OBSERVER);
        assert!(world.run_until(8_000, moved), "seed {seed}");
        world.net.cut.clear();
        world.take_down(with_tree);
        assert!(world.run_until(500, |world| !world.serves(OBSERVER)));
        let last = world.reference.last();
        assert!(
            world.run_until(8_000, |world| world.serves(OBSERVER)),
            "[liveness] seed {seed}: {OBSERVER} waits for {follower}, which has all up to {last}"
        );
        assert_eq!(world.reference.last(), last, "no client has written");
        world.logs_unread = false;
        world.must_come_back();
    }
}

/// A leader shows a client the begin of an idle epoch. The followers have every write that the client has seen.
#[test]
fn a_client_that_has_seen_the_beginning_of_an_idle_epoch_is_served_by_every_follower() {
    for seed in 0..10 {
        let mut world = started(seed, shape(seed));
        let leader = world.leader().unwrap();
        let client = world.join(leader);
        world.clients[client].timeout_ms = 10_000;
        world.write(client, wire::create("/a"));
        world.run(100);
        let epoch = world.epoch_of(leader);
        world.take_down(leader);
        world.boot(leader);
        let again =
            |world: &World| world.all_serve() && world.leader().is_some_and(|id| world.epoch_of(id) > epoch);
        assert!(world.run_until(5_000, again));
        let next = world.leader().unwrap();
        assert!(world.come_back(client, next), "seed {seed}");
        let read = world.answer(client, Intent::Get("/a".into(), false), wire::get("/a")).unwrap();
        assert!(read.result.is_ok());
        for follower in others(&world, next) {
            assert!(
                world.come_back(client, follower),
                "[liveness] seed {seed}: {follower} refuses a client that has seen {:?}, though it lacks no write",
                read.zxid
            );
        }
        leave(&mut world, client);
        world.must_come_back();
    }
}
