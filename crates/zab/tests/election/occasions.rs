//! The occasions of an election, one after the other.

use crate::world::{World, candidate};
use ostler_proto::{
    election::{Candidate, PeerState},
    id::{Epoch, Zxid},
};

fn fresh(world: &mut World, id: i64) {
    world.start(id, Some(candidate(0, 0, id)));
}

#[test]
fn e8_servers_that_start_in_turn_elect_the_second_and_the_third_joins() {
    let mut world = World::new(&[1, 2, 3], 1);
    fresh(&mut world, 1);
    world.run(5_000);
    assert_eq!(world.leaders(), [(1, None)], "one of three decides nothing");
    fresh(&mut world, 2);
    world.run(10);
    assert_eq!(world.leader(), Some(2), "the third is known to be out of reach: nobody waits for it");
    fresh(&mut world, 3);
    world.run(10);
    assert_eq!(world.leader(), Some(2), "a larger id does not unseat a leader");
    assert_eq!(world.peers[&3].state, PeerState::Following);
}

#[test]
fn e8_servers_that_start_at_once_with_equal_data_elect_the_largest_id() {
    let mut world = World::new(&[1, 2, 3], 2);
    for id in 1..=3 {
        fresh(&mut world, id);
    }
    world.run(300);
    assert_eq!(world.leader(), Some(3));
    assert_eq!(world.peers[&3].state, PeerState::Leading);
}

#[test]
fn e9_a_follower_that_returns_finds_the_leader_and_disturbs_nobody() {
    let mut world = World::new(&[1, 2, 3], 3);
    for id in 1..=3 {
        fresh(&mut world, id);
    }
    world.run(300);
    world.stop(1);
    world.run(1_000);
    let rounds = |world: &World| [2, 3].map(|id| world.peers[&id].election.round());
    let before = rounds(&world);
    // It comes back with more in its log than anybody, and still has to follow.
    world.start(1, Some(candidate(9, 9, 1)));
    world.run(10);
    assert_eq!(world.leader(), Some(3));
    assert_eq!(rounds(&world), before);
    assert_eq!(world.peers[&1].election.round(), before[0], "it has taken over the round of the vote");
}

#[test]
fn e10_when_the_leader_dies_the_best_of_the_rest_leads_and_the_dead_one_returns_as_a_follower() {
    let mut world = World::new(&[1, 2, 3], 4);
    world.start(1, Some(candidate(1, 7, 1)));
    world.start(2, Some(candidate(1, 6, 2)));
    world.start(3, Some(candidate(1, 8, 3)));
    world.run(300);
    assert_eq!(world.leader(), Some(3));
    world.stop(3);
    let died = world.now;
    world.look(1);
    world.look(2);
    while world.leader().is_none() {
        world.run(1);
    }
    assert_eq!(world.leader(), Some(1), "its log goes further, though its id is smaller");
    assert!(world.now - died <= 20, "nobody waits for the dead: {} ms", world.now - died);
    for id in [1, 2] {
        world.peers.get_mut(&id).unwrap().election.established(Epoch(2));
    }
    world.start(3, Some(candidate(1, 8, 3)));
    world.run(10);
    assert_eq!(world.leader(), Some(1));
}

#[test]
fn e3_an_observer_learns_who_leads_and_elects_nobody() {
    let mut world = World::new(&[1, 2, 3], 5);
    world.start(4, None);
    fresh(&mut world, 1);
    world.run(1_000);
    assert_eq!(world.leaders(), [(1, None), (4, None)], "an observer's voice does not make a majority");
    fresh(&mut world, 2);
    world.run(1_000);
    assert_eq!(world.leader(), Some(2));
    assert_eq!(world.peers[&4].state, PeerState::Observing);
}

#[test]
fn a_server_that_cannot_be_heard_is_waited_for_only_a_moment() {
    let mut world = World::new(&[1, 2, 3], 6);
    // 3 is there and connected, but nothing of it arrives.
    world.cut = [(3, 1), (3, 2)].into();
    for id in 1..=3 {
        fresh(&mut world, id);
    }
    world.run(100);
    assert_eq!(world.leaders()[..2], [(1, None), (2, None)], "it may still say something better");
    world.run(150);
    assert_eq!(world.leaders()[..2], [(1, Some(2)), (2, Some(2))]);
}

#[test]
fn a_vote_that_was_lost_is_sent_again() {
    let mut world = World::new(&[1, 2], 7);
    world.cut = [(1, 2), (2, 1)].into();
    fresh(&mut world, 1);
    fresh(&mut world, 2);
    world.run(100);
    assert_eq!(world.leader(), None);
    world.cut.clear();
    world.run(400);
    assert_eq!(world.leader(), Some(2));
}

/// The first leader of a new ensemble has saved its epoch and ended before a follower had: nobody has a transaction, and
/// all who vote are there.
#[test]
fn a_new_ensemble_whose_first_epoch_never_began_elects_once_all_are_there() {
    let mut world = World::new(&[1, 2, 3], 21);
    let led_over_nothing = Candidate { zxid: Zxid::ZERO, ..candidate(1, 0, 3) };
    world.start(3, Some(led_over_nothing));
    for id in [1, 2] {
        fresh(&mut world, id);
        world.peers.get_mut(&id).unwrap().election.set_without_history(true);
    }
    world.run(600_000);
    assert_eq!(world.leader(), Some(3));
}
