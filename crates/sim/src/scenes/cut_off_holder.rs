//! A lock holder and the follower that it is connected to are cut off together from all other servers. The follower
//! answers the holder's pings for longer than the session lasts. Meanwhile the leader ends the session, and another
//! process gets the lock.

use crate::world::{Shape, World};

/// How long the follower takes to notice that it is cut off.
const NOTICES_MS: u64 = 4_000;
const TIMES: usize = 5;

pub(super) fn shape(seed: u64) -> Shape {
    Shape { contenders: 3, sync_limit_ms: NOTICES_MS, ..super::shape(seed) }
}

pub(super) fn play(world: &mut World) {
    assert!(world.run_until(5_000, World::all_serve));
    for _ in 0..TIMES {
        // All holders may be connected to the leader: wait for one that is not.
        let patience = world.now + 20_000;
        while !world.cut_a_holder_with_its_follower() {
            if world.now > patience {
                return;
            }
            world.run(10);
        }
        world.run(NOTICES_MS);
        world.net.cut.clear();
        assert!(world.run_until(15_000, World::all_serve));
        // Wait until the process is no longer cut off.
        world.run(NOTICES_MS);
    }
}
