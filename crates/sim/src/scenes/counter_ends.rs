//! The counter ends, and servers die in the middle of the move to the next epoch.

use super::{
    courses::started,
    shape,
    steering::{burst, others, runs_on},
};
use crate::{
    wire,
    world::{Shape, World},
};
use ostler_server_core::quorum::ObserverOptions;
use ostler_zab::EpochLength;

const OBSERVER: i64 = 4;
/// After this number of transactions a move begins. No epoch ends by an election.
const LENGTH: u32 = 12;

fn moving(seed: u64) -> World {
    let epoch = EpochLength { in_place: Some(LENGTH), enough: 10_000, most: 20_000 };
    let observing = ObserverOptions { masters: seed % 2 == 1, ..ObserverOptions::default() };
    started(seed, Shape { epoch, observers: 1, observing, ..shape(seed) })
}

/// Whether a server has promised an epoch in which it does not follow yet.
fn is_between(world: &World, id: i64) -> bool {
    let disk = &world.nodes[&id].disk;
    disk.accepted() > disk.current()
}

#[test]
fn no_session_moves_and_no_write_fails_while_epochs_move_on() {
    for seed in 0..12 {
        let mut world = moving(seed);
        let leader = world.leader().unwrap();
        let epoch = world.epoch_of(leader);
        let members = [leader, others(&world, leader)[0], OBSERVER];
        let clients = members.map(|member| world.join(member));
        assert!(world.write(clients[0], wire::create("/a")).is_some());
        let conns = clients.map(|client| world.clients[client].conn);
        let before = world.reference.last();
        for _ in 0..12 {
            clients.iter().for_each(|client| burst(&mut world, *client, 10));
            let pause = world.chance.between(1, 100);
            world.run(pause);
        }
        let answered = |world: &World| clients.iter().all(|client| world.clients[*client].sent.is_empty());
        assert!(world.run_until(2_000, answered), "seed {seed}: every write is answered");
        assert_eq!(conns, clients.map(|client| world.clients[client].conn), "seed {seed}: connections");
        assert_eq!(world.leader(), Some(leader), "seed {seed}: nobody was elected");
        let moves = world.reference.last().epoch().0 - epoch.0;
        // A move takes some round trips and syncs, and the next one begins after it.
        assert!(moves >= 2, "seed {seed}: 360 writes were done in {moves} moves after {before}");
        assert!(world.run_until(1_000, |world| world.epoch_of(OBSERVER) == world.epoch_of(leader)));
        world.must_come_back();
    }
}

/// The leader, a follower, both followers, or all servers die at a moment within a move.
#[test]
fn a_move_is_taken_up_or_forgotten_as_a_whole_by_those_who_are_left() {
    let mut died_between = 0;
    for seed in 0..120 {
        let mut world = moving(seed);
        let leader = world.leader().unwrap();
        let followers = others(&world, leader);
        let client = world.join(leader);
        assert!(world.write(client, wire::create("/a")).is_some());
        // Some of the moves end before.
        for _ in 0..seed % 3 {
            burst(&mut world, client, LENGTH as usize);
            world.run(150);
        }
        burst(&mut world, client, 2 * LENGTH as usize);
        let begun = [leader, followers[0], leader, followers[1]][seed as usize % 4];
        if !runs_on(&mut world, 300, |world| is_between(world, begun)) {
            continue;
        }
        world.run(seed / 4 % 9);
        let all = [leader, followers[0], followers[1], OBSERVER];
        let victims = [&all[..1], &all[1..2], &all[1..3], &all[..]][(seed / 5) as usize % 4];
        died_between += victims.iter().filter(|id| is_between(&world, **id)).count();
        victims.iter().for_each(|id| world.take_down(*id));
        let pause = [0, 30, 700][(seed / 7) as usize % 3];
        world.run(pause);
        for id in victims {
            world.boot(*id);
        }
        world.run(300);
        world.must_come_back();
    }
    assert!(died_between > 40, "{died_between} servers died in the middle of a move");
}

/// A voter that is away misses several borders, and gets them by DIFF, from the log, or as a tree.
#[test]
fn a_server_that_was_away_gets_a_history_with_borders_in_it() {
    for seed in 0..12 {
        let mut world = moving(seed);
        let leader = world.leader().unwrap();
        let [away, _] = others(&world, leader);
        let client = world.join(leader);
        assert!(world.write(client, wire::create("/a")).is_some());
        // A part of a move may be on its disk.
        burst(&mut world, client, LENGTH as usize + (seed % 4) as usize);
        world.run(seed * 5);
        world.take_down(away);
        let epoch = world.epoch_of(leader);
        for _ in 0..5 {
            burst(&mut world, client, 15);
            world.run(200);
        }
        assert!(world.epoch_of(leader).0 >= epoch.0 + 3, "seed {seed}: two of three servers go on moving");
        assert!(world.boot(away));
        assert!(world.run_until(3_000, |world| world.serves(away)), "seed {seed}");
        assert_eq!(world.leader(), Some(leader));
        world.must_come_back();
    }
}

/// With a server that cannot move, as a Java server, an election follows, and moves go on once it can.
#[test]
fn an_election_follows_while_one_server_cannot_move() {
    for seed in 0..8 {
        let epoch = EpochLength { in_place: Some(LENGTH), enough: 30, most: 40 };
        let observers = (seed % 2) as i64;
        let lacking = if observers > 0 { OBSERVER } else { 1 };
        let mut world = started(seed, Shape { epoch, observers, lacks_moves: Some(lacking), ..shape(seed) });
        let mut moves = [0, 0];
        for count in &mut moves {
            for _ in 0..6 {
                assert!(world.run_until(5_000, World::all_serve));
                let leader = world.leader().unwrap();
                if let Some(client) = world.try_join(leader) {
                    burst(&mut world, client, 15);
                }
                world.run(100);
            }
            *count = world.tally.get("moved on in place").copied().unwrap_or(0);
            world.take_down(lacking);
            world.boot(lacking);
            assert!(world.run_until(5_000, World::all_serve));
        }
        assert!(moves[0] == 0 && moves[1] > 0, "seed {seed}: {moves:?}");
        world.must_come_back();
    }
}
