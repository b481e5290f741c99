//! Tests of general courses of events, and the starts of worlds that other scenes use.

use super::{
    shape,
    steering::{burst, others},
};
use crate::{
    chance::Chance,
    client::Intent,
    wire,
    world::{Shape, World},
};
use ostler_server_core::quorum::{LocalSessions, ObserverOptions};
use ostler_zab::EpochLength;

fn three(seed: u64) -> World {
    started(seed, shape(seed))
}

fn three_that_lead(seed: u64, epoch: EpochLength) -> World {
    started(seed, Shape { epoch, ..shape(seed) })
}

/// Three participants, and observers that follow the followers.
fn with_observers(seed: u64, observers: i64) -> World {
    let observing = ObserverOptions { masters: observers > 0, ..ObserverOptions::default() };
    started(seed, Shape { observers, observing, ..shape(seed) })
}

pub(super) fn started(seed: u64, shape: Shape) -> World {
    let mut world = World::new(Chance::new(seed), shape);
    world.start_all();
    assert!(world.run_until(5_000, World::all_serve));
    world
}

/// Three participants with local sessions.
pub(crate) fn three_local(seed: u64, local: LocalSessions) -> World {
    started(seed, Shape { local, ..shape(seed) })
}

/// Three participants and an observer that serve readers without a quorum.
pub(crate) fn three_read_only(seed: u64, local: LocalSessions) -> World {
    started(seed, Shape { local, observers: 1, read_only_after_ms: Some(300), ..shape(seed) })
}

#[test]
fn a_write_goes_through_a_follower_and_outlives_the_leader() {
    let mut world = three(7);
    let leader = world.leader().unwrap();
    let client = world.join(others(&world, leader)[0]);
    let reply = world.write(client, wire::create("/a").data(b"1")).unwrap();
    assert!(reply.result.is_ok(), "{reply:?}");
    world.take_down(leader);
    assert!(world.run_until(5_000, |world| world.leader().is_some_and(|id| id != leader)));
    let next = world.leader().unwrap();
    let client = world.join(next);
    let reply = world.answer(client, Intent::Get("/a".into(), false), wire::get("/a")).unwrap();
    assert!(reply.result.is_ok(), "{reply:?}");
    world.must_come_back();
}

/// A leader sends its tree, with a tail that no other server has, to a server that is far behind, and dies before its
/// epoch begins. The third server then cuts the tail off.
#[test]
fn a_tree_of_a_leader_that_never_led_is_cut_back() {
    let mut cut = 0;
    for seed in 0..60 {
        let mut world = three(seed);
        let leader = world.leader().unwrap();
        let [_, far] = others(&world, leader);
        world.take_down(far);
        // The other two have had an epoch without `far`.
        world.take_down(leader);
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
        world.take_down(near);
        world.take_down(leader);
        world.net.cut.clear();
        world.boot(leader);
        world.boot(far);
        let installed = |world: &World| world.nodes[&far].history.last().counter() > 60;
        let patience = world.now + 1_500;
        while !installed(&world) && world.now < patience {
            world.run(1);
        }
        let late = world.chance.below(8);
        world.run(late);
        world.take_down(leader);
        world.boot(near);
        world.run(500);
        cut += world.tally.get("cut and reload").copied().unwrap_or(0);
        world.run(2_000);
        world.take_down(far);
        world.boot(far);
        world.must_come_back();
    }
    assert!(cut > 0, "in none of them was anything cut");
}

/// The new leader dies while the tail of the deposed leader is being cut off.
#[test]
fn a_server_that_loses_its_leader_while_it_reloads_votes_with_the_rest_of_its_log() {
    let mut cut = 0;
    for seed in 0..40 {
        let mut world = three(seed);
        let leader = world.leader().unwrap();
        let client = world.join(leader);
        world.write(client, wire::create("/a"));
        world.isolate(leader, true, true);
        burst(&mut world, client, 5);
        world.run(150);
        world.take_down(leader);
        assert!(world.run_until(3_000, |world| world.leader().is_some()));
        let next = world.leader().unwrap();
        world.net.cut.clear();
        world.boot(leader);
        let reloads =
            |world: &World| world.nodes[&leader].server.as_ref().is_some_and(|server| server.is_reloading());
        if world.run_until(1_500, reloads) {
            cut += 1;
            world.take_down(next);
            let pause = world.chance.below(3_000);
            world.run(pause);
        }
        world.must_come_back();
    }
    assert!(cut > 0, "in none of them was anything cut");
}

/// A write is delayed between a follower and the leader. Meanwhile its session writes at the leader.
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

/// Epochs end after 30 writes, or after 40 while writes are always under way. A write that is under way at the end of
/// an epoch happens or not. Its client loses only its connection, and the next epoch counts from 0.
#[test]
fn an_epoch_that_has_counted_far_enough_ends_and_the_next_begins() {
    for seed in 0..12 {
        let mut world = three_that_lead(seed, EpochLength { in_place: None, enough: 30, most: 40 });
        let leader = world.leader().unwrap();
        let epoch = world.epoch_of(leader);
        let members = [leader, others(&world, leader)[0]];
        let clients = members.map(|member| world.join(member));
        world.write(clients[0], wire::create("/a"));
        let sessions = clients.map(|client| world.clients[client].session);
        for _ in 0..12 {
            for (client, member) in clients.into_iter().zip(members) {
                // The epoch may end while it connects.
                while !world.clients[client].open {
                    assert!(
                        world.run_until(2_000, |world| world.serves(member)),
                        "the next epoch begins soon"
                    );
                    world.connect(client, member);
                    let settled =
                        |world: &World| world.clients[client].open || world.clients[client].conn.is_none();
                    assert!(world.run_until(1_000, settled));
                }
                burst(&mut world, client, 15);
            }
            let pause = world.chance.between(1, 200);
            world.run(pause);
        }
        world.run(1_000);
        assert_eq!(sessions, clients.map(|client| world.clients[client].session), "sessions live on");
        let epochs = world.epoch_of(world.leader().unwrap()).0 - epoch.0;
        assert!(epochs >= 3, "360 writes were asked for in {epochs} epochs");
        assert!(world.node(leader).history.longest_epoch() <= 40 + 15, "no epoch was too long");
        world.must_come_back();
    }
}

/// The server that an observer follows.
pub(super) fn master_of(world: &World, observer: i64) -> Option<i64> {
    let life = world.nodes[&observer].life;
    let mut links =
        world.net.links.values().filter(|of| of.learner == (observer, life) && of.gone == [false; 2]);
    links.next_back().map(|of| of.leader.0)
}

#[test]
fn observers_follow_followers_and_find_the_next_when_one_is_gone() {
    let mut spread = 0;
    for seed in 0..20 {
        let mut world = with_observers(seed, 2);
        let leader = world.leader().unwrap();
        let masters = [4, 5].map(|observer| master_of(&world, observer).unwrap());
        assert!(!masters.contains(&leader), "{masters:?} for {leader}");
        spread += i32::from(masters[0] != masters[1]);
        let other = others(&world, leader).into_iter().find(|id| *id != masters[0]).unwrap();
        let client = world.join(4);
        let session = world.clients[client].session;
        let reply = world.write(client, wire::create("/a").data(b"1")).unwrap();
        assert!(reply.result.is_ok(), "{reply:?}");
        burst(&mut world, client, 3);
        let reply = world.answer(client, Intent::Sync, wire::sync("/a")).unwrap();
        assert!(reply.zxid >= Some(world.acknowledged), "{reply:?}");
        world.take_down(masters[0]);
        assert!(world.run_until(3_000, |world| master_of(world, 4) == Some(other) && world.serves(4)));
        world.connect(client, 4);
        assert!(world.run_until(1_000, |world| world.clients[client].open));
        assert_eq!(world.clients[client].session, session, "the session came back through another follower");
        assert!(world.write(client, wire::set("/a", b"2")).unwrap().result.is_ok());
        world.boot(masters[0]);
        // The next leader must not have observers.
        world.take_down(leader);
        let apart = |world: &World| {
            let next = world.leader().filter(|next| *next != leader);
            next.is_some()
                && [4, 5].iter().all(|id| world.serves(*id) && ![None, next].contains(&master_of(world, *id)))
        };
        assert!(world.run_until(5_000, apart));
        world.must_come_back();
    }
    assert!((5..=15).contains(&spread), "observers spread over followers: {spread}");
}

/// The leader cannot tell observers of one follower apart, so the follower has to refuse the late write.
#[test]
fn a_late_write_through_an_observer_does_not_happen() {
    for seed in 0..20 {
        let mut world = with_observers(seed, 1);
        let (leader, follower) = (world.leader().unwrap(), master_of(&world, 4).unwrap());
        let client = world.join(4);
        world.write(client, wire::create("/a"));
        world.net.cut.insert((4, follower));
        burst(&mut world, client, 2);
        world.run(30);
        let goes_on_at = if seed % 2 == 0 { follower } else { leader };
        world.forget_connection(client);
        world.connect(client, goes_on_at);
        assert!(world.run_until(300, |world| world.clients[client].open));
        assert!(world.write(client, wire::set("/a", b"later")).is_some());
        // In some runs this is longer than the time after which a silent observer is dropped.
        let pause = world.chance.between(1, 400);
        world.run(pause);
        world.net.cut.clear();
        assert!(world.write(client, wire::set("/a", b"last")).is_some());
        world.must_come_back();
    }
}

/// An observer may have commits that its next follower does not know yet. They are not cut back.
#[test]
fn an_observer_that_is_ahead_of_the_next_follower_waits_for_it() {
    let mut waited = 0;
    for seed in 0..20 {
        let mut world = with_observers(seed, 1);
        let (leader, follower) = (world.leader().unwrap(), master_of(&world, 4).unwrap());
        let next = others(&world, leader).into_iter().find(|id| *id != follower).unwrap();
        let client = world.join(leader);
        world.write(client, wire::create("/a"));
        // The leader's packets to the next follower are late.
        let lane =
            world.net.links.values().find(|of| of.learner.0 == next && of.leader.0 == leader).unwrap().down;
        world.net.lanes.get_mut(&lane).unwrap().held_until = world.now + 400;
        burst(&mut world, client, 5);
        world.run(60);
        let ahead = world.nodes[&4].history.last();
        world.take_down(follower);
        assert!(world.run_until(300, |world| master_of(world, 4) == Some(next)));
        waited += i32::from(world.nodes[&next].history.last() < ahead);
        assert!(world.run_until(3_000, |world| world.serves(4)));
        assert!(world.nodes[&4].history.last() >= ahead);
        assert_eq!(world.tally.get("cut and reload"), None);
        world.must_come_back();
    }
    assert!(waited > 0, "none of them was ahead");
}

/// Two servers have a write. One loses its disk and starts as a new server, as servers of other makes do; the other is
/// down. The third server lacks the write, and knows that there were data: the two must not elect a leader.
#[test]
fn a_server_that_has_lost_its_data_does_not_help_to_elect_one_that_lags_behind() {
    for seed in 0..20 {
        let mut world = three(seed);
        // An election takes place among servers that have data.
        let leader = world.leader().unwrap();
        let client = world.join(leader);
        assert!(world.write(client, wire::create("/b")).is_some());
        world.take_down(leader);
        assert!(world.run_until(3_000, |world| world.leader().is_some()));
        world.boot(leader);
        assert!(world.run_until(3_000, World::all_serve));
        let leader = world.leader().unwrap();
        let [far, other] = others(&world, leader);
        world.isolate(far, true, true);
        let client = world.join(leader);
        assert!(world.write(client, wire::create("/a")).is_some());
        // A follower has got the leader's vote for itself, and so knows that the leader had data.
        let loses = leader;
        world.take_down(other);
        world.take_down(loses);
        let membership = world.reference.membership().clone();
        world.node(loses).disk.wipe(&membership);
        world.node(loses).new_here = true;
        world.net.cut.clear();
        world.boot(loses);
        for _ in 0..100 {
            world.run(100);
            assert_eq!(world.leader(), None, "seed {seed}: a server leads and may lack committed writes");
        }
        world.boot(other);
        world.must_come_back();
    }
}

/// A tree from the leader replaces records that are never logged here. If its snapshot cannot be read later, an older
/// snapshot with the rest of the log would give a wrong tree, and nothing in the log shows that.
#[test]
fn an_older_snapshot_does_not_replace_the_damaged_snapshot_of_a_tree_from_the_leader() {
    for seed in 0..10 {
        let shape = Shape { history: 4, snapshot_txns: 10_000, ..shape(seed) };
        let mut world = started(seed, shape);
        let leader = world.leader().unwrap();
        let [_, far] = others(&world, leader);
        let client = world.join(leader);
        world.write(client, wire::create("/a"));
        world.run(100);
        world.take_down(far);
        burst(&mut world, client, 30);
        world.run(300);
        world.logs_unread = true;
        world.boot(far);
        assert!(world.run_until(2_000, |world| world.serves(far)));
        assert_eq!(world.tally.get("install"), Some(&1), "it got a tree");
        burst(&mut world, client, 3);
        world.run(300);
        world.take_down(far);
        world.node(far).disk.damage_newest_snapshot();
        assert!(!world.boot(far), "it has a tree that never was");
    }
}
