//! Occasions of an election that the traces in `testdata` do not show.

use crate::world::{World, candidate};
use ostler_proto::{election::Candidate, id::Zxid};

fn fresh(world: &mut World, id: i64) {
    world.start(id, Some(candidate(0, 0, id)));
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
