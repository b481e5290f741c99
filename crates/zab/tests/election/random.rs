//! Random servers, delays and deaths: there is always one leader in the end, and it is the right one.

use crate::world::{World, candidate};
use ostler_proto::id::Epoch;
use std::collections::BTreeMap;

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
            // A follower of the dead server notices at once, or when a heartbeat is missed. A server that has elected it in
            // the meantime notices when it cannot be reached.
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

/// The part of Zab after an election: a leader with a majority has an epoch, until it notices that it leads no more.
#[derive(Default)]
struct Epochs {
    epochs: BTreeMap<i64, LeadersEpoch>,
    epoch: u32,
}

struct LeadersEpoch {
    epoch: u32,
    /// Since then too few follow.
    left: Option<u64>,
}

impl Epochs {
    fn go_on(&mut self, world: &mut World, patience: u64) {
        let ids: Vec<i64> = world.peers.keys().copied().collect();
        for id in ids {
            match world.peers[&id].leader {
                Some(leader) if leader == id => self.lead(world, id, patience),
                // Its leader does not lead any more: the connection is lost.
                Some(leader) if world.peers[&leader].leader != Some(leader) => world.look(id),
                _ => drop(self.epochs.remove(&id)),
            }
        }
    }

    fn lead(&mut self, world: &mut World, id: i64, patience: u64) {
        let (all, now) = (world.peers.len(), world.now);
        let followers = world.peers.iter_mut().filter(|(_, peer)| peer.leader == Some(id));
        let followers: Vec<_> = followers.collect();
        if followers.len() * 2 > all {
            let epoch = self.epochs.get(&id).map_or(self.epoch + 1, |epoch| epoch.epoch);
            self.epoch = self.epoch.max(epoch);
            self.epochs.insert(id, LeadersEpoch { epoch, left: None });
            for (follower, peer) in followers {
                peer.election.established(Epoch(epoch));
                peer.own = Some(candidate(epoch, 0, *follower));
            }
            return;
        }
        // A server that has not begun to lead waits long for followers.
        if let Some(epoch) = self.epochs.get_mut(&id)
            && *epoch.left.get_or_insert(now) + patience <= now
        {
            self.epochs.remove(&id);
            world.look(id);
        }
    }
}

#[test]
fn no_server_waits_for_followers_that_went_back_to_another_leader() {
    for seed in 0..400 {
        let voters: Vec<i64> = (1..=[3, 5][seed as usize % 2]).collect();
        let mut world = World::new(&voters, seed * 2 + 1);
        world.delay_max = 1 + world.random(20);
        let mut epochs = Epochs::default();
        for id in &voters {
            world.start(*id, Some(candidate(0, 0, *id)));
        }
        let mut go_on = |world: &mut World, ms: u64, patience: u64| {
            for _ in 0..ms {
                world.run(1);
                epochs.go_on(world, patience);
            }
        };
        go_on(&mut world, 500, 100);
        for _ in 0..20 {
            let (pause, patience) = (world.random(120), world.random(200));
            go_on(&mut world, pause, patience);
            // It loses its connection to the leader, which does not know.
            let leaver = voters[world.random(voters.len() as u64) as usize];
            if world.peers[&leaver].leader.is_some_and(|leader| leader != leaver) {
                world.look(leaver);
            }
        }
        go_on(&mut world, 2_500, 100);
        assert!(world.leader().is_some(), "seed {seed}: {:?}", world.leaders());
    }
}
