//! Courses of events that chance alone seldom takes; their times are left to chance.

use crate::{
    client::Intent,
    wire,
    world::{Shape, World},
};
use ostler_zab::ReignLength;

fn three(seed: u64) -> World {
    three_that_reign(seed, ReignLength::default())
}

fn three_that_reign(seed: u64, reign: ReignLength) -> World {
    let (history, snapshot_txns) = if seed.is_multiple_of(2) { (4, 20) } else { (500, 2) };
    let shape = Shape { voters: 3, observers: 0, clients: 0, history, snapshot_txns, reign, pace_ms: 1 };
    let mut world = World::new(seed, shape);
    world.start_all();
    assert!(world.run_until(5_000, World::all_serve));
    world
}

fn others(world: &World, than: i64) -> [i64; 2] {
    let others: Vec<i64> = world.ids().into_iter().filter(|id| *id != than).collect();
    [others[0], others[1]]
}

/// Many writes at once, without waiting for their answers.
fn burst(world: &mut World, client: usize, count: usize) {
    for _ in 0..count {
        world.ask(client, Intent::Write(String::new()), wire::set("/a", b"x"));
    }
}

#[test]
fn a_write_goes_through_a_follower_and_outlives_the_leader() {
    let mut world = three(7);
    let leader = world.leader().unwrap();
    let client = world.join(others(&world, leader)[0]);
    let reply = world.write(client, wire::create("/a").data(b"1")).unwrap();
    assert!(reply.result.is_ok(), "{reply:?}");
    world.crash(leader);
    assert!(world.run_until(5_000, |world| world.leader().is_some_and(|id| id != leader)));
    let next = world.leader().unwrap();
    let client = world.join(next);
    let reply = world.answer(client, Intent::Get("/a".into(), false), wire::get("/a")).unwrap();
    assert!(reply.result.is_ok(), "{reply:?}");
    world.must_come_back();
}

/// A leader brings its tree, with a tail that nobody else has, to one that is far behind, and dies before it reigns.
/// The third then cuts the tail off, and what is left is less than it believes.
#[test]
fn a_tree_of_a_leader_that_never_reigned_is_cut_back() {
    let mut cut = 0;
    for seed in 0..60 {
        let mut world = three(seed);
        let leader = world.leader().unwrap();
        let [_, far] = others(&world, leader);
        world.crash(far);
        // The other two have a reign behind them that this one has not.
        world.crash(leader);
        world.boot(leader);
        assert!(world.run_until(5_000, |world| world.leader().is_some()));
        let leader = world.leader().unwrap();
        let near = world.ids().into_iter().find(|id| *id != leader && *id != far).unwrap();
        let client = world.join(leader);
        world.write(client, wire::create("/a"));
        burst(&mut world, client, 60);
        world.run(400);
        world.isolate(leader, true, true);
        burst(&mut world, client, 3);
        world.run(150);
        world.crash(near);
        world.crash(leader);
        world.net.cut.clear();
        world.boot(leader);
        world.boot(far);
        let installed = |world: &World| world.nodes[&far].history.last().counter() > 60;
        world.run_until(1_500, installed);
        let late = world.chance.below(15);
        world.run(late);
        world.crash(leader);
        world.boot(near);
        world.run(500);
        cut += world.tally.get("cut and reload").copied().unwrap_or(0);
        world.run(2_000);
        world.crash(far);
        world.boot(far);
        world.must_come_back();
    }
    assert!(cut > 0, "in none of them was anything cut");
}

/// While the tail of a deposed leader is being cut off, its new leader dies, too.
#[test]
fn whoever_loses_its_leader_while_it_reloads_votes_with_what_is_left() {
    let mut cut = 0;
    for seed in 0..40 {
        let mut world = three(seed);
        let leader = world.leader().unwrap();
        let client = world.join(leader);
        world.write(client, wire::create("/a"));
        world.isolate(leader, true, true);
        burst(&mut world, client, 5);
        world.run(150);
        world.crash(leader);
        assert!(world.run_until(3_000, |world| world.leader().is_some()));
        let next = world.leader().unwrap();
        world.net.cut.clear();
        world.boot(leader);
        let reloads =
            |world: &World| world.nodes[&leader].server.as_ref().is_some_and(|server| server.is_reloading());
        if world.run_until(1_500, reloads) {
            cut += 1;
            world.crash(next);
            let pause = world.chance.below(3_000);
            world.run(pause);
        }
        world.must_come_back();
    }
    assert!(cut > 0, "in none of them was anything cut");
}

/// A write that is stuck on its way through a follower comes when its session has lived at the leader meanwhile.
#[test]
fn a_late_write_through_another_server_does_not_happen() {
    for seed in 0..20 {
        let mut world = three(seed);
        let leader = world.leader().unwrap();
        let [follower, _] = others(&world, leader);
        let client = world.join(follower);
        world.write(client, wire::create("/a"));
        world.net.cut.insert((follower, leader));
        burst(&mut world, client, 1);
        world.run(30);
        world.forget_connection(client);
        world.connect(client, leader);
        assert!(world.run_until(300, |world| world.clients[client].open));
        assert!(world.write(client, wire::set("/a", b"later")).is_some());
        world.hang_up_client(client);
        world.run(30);
        world.must_come_back();
    }
}

/// Reigns of 30 writes, or of 40 while writes are always under way. What was under way at the end of one happens or
/// not, its client loses the connection and nothing else, and the next reign counts from 0.
#[test]
fn a_reign_that_has_counted_far_enough_makes_way_for_the_next() {
    for seed in 0..12 {
        let mut world = three_that_reign(seed, ReignLength { enough: 30, most: 40 });
        let leader = world.leader().unwrap();
        let epoch = world.epoch_of(leader);
        let members = [leader, others(&world, leader)[0]];
        let clients = members.map(|member| world.join(member));
        world.write(clients[0], wire::create("/a"));
        let sessions = clients.map(|client| world.clients[client].session);
        for _ in 0..12 {
            for (client, member) in clients.into_iter().zip(members) {
                if world.clients[client].conn.is_none() {
                    assert!(
                        world.run_until(2_000, |world| world.serves(member)),
                        "the next reign begins soon"
                    );
                    world.connect(client, member);
                    assert!(world.run_until(1_000, |world| world.clients[client].open));
                }
                burst(&mut world, client, 15);
            }
            let pause = world.chance.between(1, 200);
            world.run(pause);
        }
        world.run(1_000);
        assert_eq!(sessions, clients.map(|client| world.clients[client].session), "sessions live on");
        let reigns = world.epoch_of(world.leader().unwrap()).0 - epoch.0;
        assert!(reigns >= 3, "360 writes were asked for in {reigns} reigns");
        assert!(world.node(leader).history.longest_reign() <= 40 + 15, "no reign was too long");
        world.must_come_back();
    }
}
