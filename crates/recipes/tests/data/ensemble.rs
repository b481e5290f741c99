//! The same exchanges at an ensemble of three: the client's connection breaks at each message, and it goes on at
//! another member; the leader is killed at each message, and comes back, or it stands still or is left by its followers
//! at each step; the session ends at each message.

use crate::{
    barriers, caches, counters, discovery, groups, nodes, queue_kinds, queues,
    servers::{
        Attach, Ensemble, PATIENCE,
        faults::{self, Fault, Kind, tests_of_faults},
        patiently,
    },
    world::{World, ensemble},
};
use ostler_client::CreateMode;
use ostler_recipes::two_phase_commit::Vote;
use ostler_testkit::SeenFrame;
use std::sync::Arc;
use tokio::time::timeout;

/// Plays an exchange, with the fault; gives the requests and events, and whether the fault has happened. Afterwards
/// there must be no watch left, and no ephemeral znode once the client is closed.
async fn run(
    ensemble: &Arc<Ensemble>,
    (number, attach, fault): (usize, Attach, Option<Fault>),
    exchange: &impl AsyncFn(&World<Ensemble>),
) -> (u64, u64, bool) {
    let world = World::attached(ensemble.clone(), &format!("/w-{number}"), attach).await;
    let what = format!("{attach:?}, {fault:?}");
    let play =
        faults::play(exchange(&world), (fault, &world.proxy, ensemble), async || world.expire_now().await);
    let ((), happened) = patiently(&what, play).await;
    if happened && fault.is_some_and(|fault| fault.kind == Kind::Cut) {
        let elsewhere =
            |seen: &SeenFrame| matches!(seen, SeenFrame::Handshake { server, .. } if *server != 0);
        // Nothing comes after the last message, so no other connection is needed.
        let seen = world.proxy.seen();
        assert!(
            seen.iter().all(|seen| !matches!(seen, SeenFrame::Handshake { .. }) || elsewhere(seen)),
            "{what}"
        );
    }
    let counted = (world.proxy.requests(), world.proxy.events(), happened);
    let ended = timeout(PATIENCE, world.end()).await;
    let cuts = ended.unwrap_or_else(|_| panic!("{what}: watches or ephemerals are left"));
    let is_cut = happened && fault.is_some_and(|fault| fault.kind == Kind::Cut);
    assert!(!is_cut || !cuts.is_empty(), "{what}: it is cut");
    counted
}

async fn at_every_message(kind: Kind, exchange: impl AsyncFn(&World<Ensemble>)) {
    let ensemble = ensemble().await;
    let attach = kind.attach();
    if kind == Kind::Cut {
        ensemble.let_second_follower_lag().await;
    }
    let undisturbed = async |number| {
        let (requests, events, _) = run(&ensemble, (number, attach, None), &exchange).await;
        (requests, events)
    };
    let (requests, events) = faults::count(undisturbed).await;
    let play =
        async |number, fault: &Fault| run(&ensemble, (number, attach, Some(*fault)), &exchange).await.2;
    let happened = faults::at_each(kind.everywhere(requests, events, attach), play).await;
    println!("{kind:?}: {happened}");
}

macro_rules! at_an_ensemble {
    ($($name:ident: $exchange:expr, $kinds:tt;)*) => {$(
        mod $name {
            use super::*;

            tests_of_faults!(async |kind| at_every_message(kind, $exchange).await, $kinds);
        }
    )*};
}

at_an_ensemble! {
    a_barrier: barriers::wait_and_go, [Cut, Leader, Expired];
    a_double_barrier: barriers::enter_and_leave, [Cut, Leader, Expired];
    a_cache: async |world| caches::follow(world, false).await, [Cut, Leader, Expired];
    a_cache_on_one_shot_watches: async |world| caches::follow(world, true).await, [Cut, Leader, Expired];
    a_count_that_is_set: counters::share, [Cut, Leader, Expired];
    a_count_that_is_followed: counters::follow, [Expired];
    an_atomic_number: counters::add, [Cut, Leader, Expired];
    an_ephemeral_node: async |world| nodes::life(world, CreateMode::Ephemeral).await, [Cut, Leader];
    a_persistent_node: async |world| nodes::life(world, CreateMode::Persistent).await, [Cut, Leader];
    a_sequential_node: async |world| nodes::life(world, CreateMode::EphemeralSequential).await, [Cut, Leader];
    a_node: nodes::outlive, [Expired];
    a_ttl_node: nodes::touched, [Cut, Leader, Expired];
    a_group: nodes::know_each_other, [Cut, Leader, Expired];
    a_queue_under_a_lock: queues::nothing_is_lost, [Cut, Leader, Expired];
    a_queue_without_a_lock: queue_kinds::nothing_comes_twice, [Cut, Leader, Expired];
    a_producer: queues::put, [Cut, Leader, Expired];
    a_simple_queue: queue_kinds::take_and_poll, [Cut, Leader, Expired];
    a_queue_with_ids: queue_kinds::remove_by_id, [Cut, Leader, Expired];
    a_queue_with_priorities: queue_kinds::by_priority, [Cut, Leader, Expired];
    a_queue_with_delays: queue_kinds::when_due, [Cut, Leader, Expired];
    a_registry: discovery::register_and_find, [Cut, Leader];
    a_service: discovery::come_back, [Expired];
    a_partitioner: groups::divide, [Cut, Leader, Expired];
    a_commit: async |world| groups::agree(world, [Vote::Commit; 2], Vote::Commit).await, [Cut, Leader, Expired];
    an_abort: async |world| groups::agree(world, [Vote::Abort, Vote::Commit], Vote::Abort).await, [Cut, Leader, Expired];
}
