//! Random servers, delays and deaths: there is always one leader in the end, and it is the right one.

use crate::world::{World, candidate};

#[test]
fn e7_all_elect_the_best_however_votes_are_delayed() {
    for seed in 0..2_000 {
        let voters: Vec<i64> = (1..=[1, 2, 3, 5, 7][seed as usize % 5]).collect();
        let mut world = World::new(&voters, seed * 2 + 1);
        world.delay_max = 1 + world.random(60);
        let mut best = candidate(0, 0, 0);
        for id in &voters {
            let own = candidate(world.random(3) as u32, world.random(4) as u32, *id);
            best = best.max(own);
            world.start(*id, Some(own));
        }
        world.run(5_000);
        assert_eq!(world.leader(), Some(best.id.0), "seed {seed}: {:?}", world.leaders());
    }
}

#[test]
fn e10_after_any_number_of_deaths_that_leaves_a_majority_there_is_one_leader() {
    for seed in 0..500 {
        let mut world = World::new(&[1, 2, 3, 4, 5], seed * 2 + 1);
        world.delay_max = 1 + world.random(60);
        for id in 1..=5 {
            let own = candidate(1, world.random(4) as u32, id);
            world.start(id, Some(own));
        }
        for _ in 0..4 {
            let pause = world.random(600);
            world.run(pause);
            let victim = world.random(5) as i64 + 1;
            let own = world.peers[&victim].own;
            world.stop(victim);
            // Who follows the dead one notices at once, or when a heartbeat is missed; who has elected it in
            // the meantime, when it cannot be reached.
            for _ in 0..3 {
                for id in 1..=5 {
                    if world.peers.get(&id).is_some_and(|peer| peer.leader == Some(victim)) {
                        let late = world.random(50);
                        world.run(late);
                        if world.peers[&id].leader == Some(victim) {
                            world.look(id);
                        }
                    }
                }
                world.run(1_000);
            }
            assert!(world.leader().is_some(), "seed {seed}: {:?}", world.leaders());
            let leader = world.leader();
            world.start(victim, own);
            world.run(500);
            assert_eq!(world.leader(), leader, "seed {seed}: the dead one came back as a follower");
        }
    }
}
