//! An attacker sends votes in the names of servers: at the first start of an ensemble in the name of each server to the
//! others, and then in the name of a server that is down, for as long as the others look for a leader. Every program
//! that reaches the election port can do that.

use crate::world::{Shape, World};
use ostler_proto::{
    election::{Candidate, NOTIFICATION_VERSION, Notification, PeerState},
    id::{Epoch, ServerId, Zxid},
};
use ostler_server_core::{Input, quorum::MemberMode};

const SERVERS: [i64; 3] = [1, 2, 3];
/// Time between two votes, ms.
const EVERY: u64 = 20;

pub(super) fn shape(seed: u64) -> Shape {
    super::shape(seed)
}

pub(super) fn play(world: &mut World) {
    at_the_first_start(world);
    assert!(world.run_until(10_000, World::all_serve), "all serve after the end of the false votes");
    let away = SERVERS[world.chance.below(3) as usize];
    let backed = SERVERS[world.chance.below(3) as usize];
    as_one_that_is_away(world, away, backed);
    world.boot(away);
    assert!(world.run_until(15_000, World::all_serve), "the one that was away comes back");
}

/// Sends a false vote over a connection of its own.
fn tells(world: &mut World, (claimed, to): (i64, i64), candidate: Candidate, round: u64) {
    if world.nodes[&to].server.is_none() {
        return;
    }
    let from = ServerId(claimed);
    world.step(to, Input::ElectionLink { peer: from, up: true });
    let notification = Notification {
        state: PeerState::Looking,
        candidate: Some(candidate),
        round,
        version: NOTIFICATION_VERSION,
        config: String::new(),
    };
    world.step(to, Input::Vote { from, notification });
}

fn claim(counter: u32, id: i64) -> Candidate {
    Candidate { epoch: Epoch(7), zxid: Zxid::new(Epoch(7), counter), id: ServerId(id) }
}

/// Tells each server that another server has data.
fn at_the_first_start(world: &mut World) {
    for to in SERVERS {
        for claimed in SERVERS.into_iter().filter(|claimed| *claimed != to) {
            let backed = SERVERS.into_iter().find(|id| *id != to && *id != claimed);
            tells(world, (claimed, to), claim(9, backed.unwrap_or(claimed)), 3);
        }
    }
    world.run(EVERY);
}

fn as_one_that_is_away(world: &mut World, away: i64, backed: i64) {
    world.take_down(away);
    let others: Vec<i64> = SERVERS.into_iter().filter(|id| *id != away).collect();
    // Both begin a new search.
    others.iter().for_each(|id| world.take_down(*id));
    others.iter().for_each(|id| assert!(world.boot(*id)));
    let serve = |world: &World| others.iter().all(|id| world.serves(*id));
    let until = world.now + 30_000;
    let mut count = 0;
    while !serve(world) && world.now < until {
        count += 1;
        for to in &others {
            if world.mode(*to) == Some(MemberMode::Looking) {
                tells(world, (away, *to), claim(count, backed), 10 + u64::from(count));
            }
        }
        world.run(EVERY);
    }
    assert!(serve(world), "two of three servers elect a leader in spite of votes in the name of the third");
}
