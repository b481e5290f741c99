//! Barriers.

use crate::{
    servers::{Attach, Servers},
    world::{World, at_every_cut, ensemble, with_expiry_after_every_request, within},
};
use ostler_client::{Error, WatcherType};
use ostler_recipes::barrier::{DistributedBarrier, DistributedDoubleBarrier};
use std::time::Duration;
use tokio::task::JoinHandle;

const SHORT: Duration = Duration::from_millis(30);

pub(crate) async fn wait_and_go<S: Servers>(world: &World<S>) {
    let barrier = DistributedBarrier::new(&world.client, "/deep/barrier");
    barrier.set().await.unwrap();
    let waiting = barrier.clone();
    let mut waiting = tokio::spawn(async move { waiting.wait().await });
    // The watch is there, so it waits.
    tokio::select! {
        () = world.until(|counts| counts.watches == 1) => {}
        _ = &mut waiting => panic!("it must wait"),
    }
    DistributedBarrier::new(&world.other, "/deep/barrier").remove().await.unwrap();
    waiting.await.unwrap().unwrap();
    barrier.wait().await.unwrap();
    barrier.set().await.unwrap();
    barrier.set().await.unwrap();
    barrier.remove().await.unwrap();
    barrier.remove().await.unwrap();
}

#[tokio::test]
async fn a_barrier_survives_a_cut_at_every_message() {
    at_every_cut(wait_and_go).await;
}

#[tokio::test]
async fn a_barrier_survives_the_end_of_its_session_at_every_step() {
    with_expiry_after_every_request(wait_and_go).await;
}

#[tokio::test]
async fn wait_that_ends_at_its_limit_leaves_no_watch() {
    let world = World::new().await;
    let barrier = DistributedBarrier::new(&world.client, "/b");
    barrier.set().await.unwrap();
    assert!(!barrier.wait_within(SHORT).await.unwrap());
    within(world.no_watches()).await;
    barrier.remove().await.unwrap();
    assert!(barrier.wait_within(crate::servers::PATIENCE).await.unwrap());
}

/// The barrier is set, and the server that is asked has not heard of it.
#[tokio::test]
async fn a_server_that_is_behind_lets_nobody_through() {
    let ensemble = ensemble().await;
    let world = World::attached(ensemble.clone(), "/w", Attach::ToFollower).await;
    let leader = ensemble.addresses_from(Attach::ToLeader).await[0];
    let other = DistributedBarrier::new(&world.another_at(&[leader]).await, "/b");
    let barrier = DistributedBarrier::new(&world.client, "/b");
    let behind = ensemble.keep_first_follower_behind().await;
    other.set().await.unwrap();
    let waiting = tokio::spawn(async move { barrier.wait().await });
    // By what the server has: all that is older than the question, and nothing that is newer.
    within(ensemble.until_asked(&behind)).await;
    ensemble.let_all_hear().await;
    // Answers come in order: with the first one that of the barrier is there, with the second one it was acted on.
    for _ in 0..2 {
        within(world.let_client_see()).await;
    }
    assert!(!waiting.is_finished(), "it must wait");
    within(world.until(|counts| counts.watches == 1)).await;
    other.remove().await.unwrap();
    within(waiting).await.unwrap().unwrap();
    within(world.end()).await;
}

pub(crate) async fn enter_and_leave<S: Servers>(world: &World<S>) {
    let mut here = DistributedDoubleBarrier::new(&world.client, "/deep/double", 2);
    let mut there = DistributedDoubleBarrier::new(&world.other, "/deep/double", 2);
    let (first, second) = tokio::join!(here.enter(), there.enter());
    first.unwrap();
    second.unwrap();
    world.let_other_see().await;
    assert!(world.other.exists("/deep/double/ready").await.unwrap().is_some());
    let (first, second) = tokio::join!(here.leave(), there.leave());
    first.unwrap();
    second.unwrap();
    world.let_other_see().await;
    assert_eq!(world.other.get_children("/deep/double").await.unwrap(), [""; 0]);
}

#[tokio::test]
async fn a_double_barrier_survives_a_cut_at_every_message() {
    at_every_cut(enter_and_leave).await;
}

#[tokio::test]
async fn a_double_barrier_survives_the_end_of_its_session_at_every_step() {
    with_expiry_after_every_request(enter_and_leave).await;
}

/// GH-1290: whatever wakes a member, it enters only when there are enough.
#[tokio::test]
async fn gh_1290_nobody_enters_because_of_a_reconnect() {
    let world = World::new().await;
    let mut barrier = DistributedDoubleBarrier::new(&world.client, "/d", 2);
    let entering = tokio::spawn(async move {
        barrier.enter().await.unwrap();
        barrier
    });
    within(world.server.until(|counts| counts.watches == 2 && counts.ephemerals == 1)).await.unwrap();
    for _ in 0..3 {
        world.proxy.cut_now();
        world.client.sync("/").await.unwrap();
    }
    world.expire().await;
    within(world.server.until(|counts| counts.watches == 2 && counts.ephemerals == 1)).await.unwrap();
    assert!(!entering.is_finished());
    assert!(world.other.exists("/d/ready").await.unwrap().is_none());
    let mut second = DistributedDoubleBarrier::new(&world.other, "/d", 2);
    within(second.enter()).await.unwrap();
    drop(within(entering).await.unwrap());
}

/// CURATOR-318: who has given up is no member, so a later one does not enter because of it.
#[tokio::test]
async fn curator_318_member_that_gives_up_is_not_counted() {
    let world = World::new().await;
    let mut first = DistributedDoubleBarrier::new(&world.client, "/d", 2);
    let mut second = DistributedDoubleBarrier::new(&world.other, "/d", 2);
    assert!(!within(first.enter_within(SHORT)).await.unwrap());
    assert!(!within(second.enter_within(SHORT)).await.unwrap());
    assert_eq!(world.other.get_children("/d").await.unwrap(), [""; 0]);
    let (first, second) = tokio::join!(
        first.enter_within(crate::servers::PATIENCE),
        second.enter_within(crate::servers::PATIENCE)
    );
    assert!(first.unwrap() && second.unwrap());
}

#[tokio::test]
async fn entering_ends_at_its_limit_without_a_connection() {
    let world = World::new().await;
    let mut first = DistributedDoubleBarrier::new(&world.client, "/d", 2);
    world.proxy.block();
    let unknown = within(first.enter_within(SHORT)).await;
    assert!(matches!(unknown, Err(Error::ConnectionLoss { .. })), "{unknown:?}");
    world.proxy.heal();
    within(world.no_ephemerals()).await;
    // And where the connection goes while it waits.
    let mut second = DistributedDoubleBarrier::new(&world.client, "/d", 2);
    let entering = tokio::spawn(async move { second.enter_within(10 * SHORT).await });
    within(world.until(|counts| counts.ephemerals == 1)).await;
    world.proxy.block();
    let unknown = within(entering).await.unwrap();
    assert!(matches!(unknown, Err(Error::ConnectionLoss { .. })), "{unknown:?}");
    world.proxy.heal();
    within(world.no_ephemerals()).await;
    within(world.end()).await;
}

/// CURATOR-536, CURATOR-233: leaving ends at its limit, and can be taken up again.
#[tokio::test]
async fn curator_536_leaving_ends_at_its_limit() {
    let world = World::new().await;
    let mut first = DistributedDoubleBarrier::new(&world.client, "/d", 2);
    let mut second = DistributedDoubleBarrier::new(&world.other, "/d", 2);
    let (one, two) = tokio::join!(first.enter(), second.enter());
    one.unwrap();
    two.unwrap();
    assert!(!within(first.leave_within(SHORT)).await.unwrap());
    let (one, two) = tokio::join!(first.leave_within(crate::servers::PATIENCE), second.leave());
    assert!(one.unwrap());
    two.unwrap();
}

/// Waits until there is this number of members, and returns their names in order.
async fn members(world: &World, wanted: usize) -> Vec<String> {
    loop {
        let (mut names, changed) = world.other.get_children("/d").watch().await.unwrap();
        names.retain(|name| name != "ready");
        if names.len() == wanted {
            names.sort_unstable();
            return names;
        }
        changed.await.unwrap();
    }
}

/// Whoever deletes it, and whatever for.
#[tokio::test]
async fn waiting_member_whose_znode_is_deleted_joins_again() {
    let world = World::new().await;
    world.other.create("/d", b"").await.unwrap();
    let mut first = DistributedDoubleBarrier::new(&world.client, "/d", 2);
    let entering = tokio::spawn(async move { first.enter().await.map(|()| first) });
    within(world.until(|counts| counts.ephemerals == 1 && counts.watches > 0)).await;
    // Answers come in order: after some of them there is nothing more that it could ask before it waits.
    for _ in 0..4 {
        within(world.let_client_see()).await;
    }
    let names = world.other.get_children("/d").await.unwrap();
    world.other.delete(&format!("/d/{}", names[0])).await.unwrap();
    let mut second = DistributedDoubleBarrier::new(&world.other, "/d", 2);
    within(second.enter()).await.unwrap();
    drop(within(entering).await.unwrap().unwrap());
}

/// The delete of what an `enter` has left can come late, and must not meet what the next one has made.
#[tokio::test]
async fn each_entry_has_a_znode_of_its_own() {
    let world = World::new().await;
    world.other.create("/d", b"").await.unwrap();
    let mut barrier = DistributedDoubleBarrier::new(&world.client, "/d", 2);
    let mut known = Vec::new();
    for _ in 0..3 {
        let names = tokio::select! {
            entered = barrier.enter() => panic!("it must wait: {entered:?}"),
            names = within(members(&world, 1)) => names,
        };
        assert!(!known.contains(&names[0]), "{names:?} after {known:?}");
        known.extend(names);
        within(members(&world, 0)).await;
    }
}

/// Two who have entered. The second's znode comes after the first's.
async fn two_inside(world: &World) -> [DistributedDoubleBarrier; 2] {
    loop {
        let mut first = DistributedDoubleBarrier::new(&world.other, "/d", 2);
        let mut second = DistributedDoubleBarrier::new(&world.client, "/d", 2);
        let (one, two) = within(async { tokio::join!(first.enter(), second.enter()) }).await;
        one.and(two).unwrap();
        let names = within(members(world, 2)).await;
        let before = world.other.exists(&format!("/d/{}", names[0])).await.unwrap().unwrap();
        if world.other.session_id().is_some_and(|session| session.0 == before.ephemeral_owner) {
            return [first, second];
        }
        let (one, two) = within(async { tokio::join!(first.leave(), second.leave()) }).await;
        one.and(two).unwrap();
    }
}

type Leaving = JoinHandle<Result<DistributedDoubleBarrier, Error>>;

/// The first has left, and the second has not heard of that: it is cut off until the proxy heals.
async fn slow_leaver() -> (World, DistributedDoubleBarrier, Leaving) {
    let world = World::new().await;
    world.other.create("/d", b"").await.unwrap();
    let [mut first, mut second] = two_inside(&world).await;
    let leaving = tokio::spawn(async move { second.leave().await.map(|()| second) });
    within(members(&world, 1)).await;
    within(world.until(|counts| counts.watches == 1)).await;
    world.proxy.block();
    within(first.leave()).await.unwrap();
    (world, first, leaving)
}

/// It hears of nothing while the others leave, and finds one of them waiting to enter again.
#[tokio::test]
async fn a_slow_leaver_does_not_wait_for_the_next_round() {
    let (world, mut first, leaving) = slow_leaver().await;
    let entering = tokio::spawn(async move { first.enter().await.map(|()| first) });
    within(members(&world, 1)).await;
    world.proxy.heal();
    let mut second = within(leaving).await.unwrap().unwrap();
    assert!(!entering.is_finished(), "it waits for another one");
    within(second.enter()).await.unwrap();
    drop(within(entering).await.unwrap().unwrap());
}

/// The same when the next round is open already: it stays so.
#[tokio::test]
async fn a_slow_leaver_leaves_the_next_round_open() {
    let (world, mut first, leaving) = slow_leaver().await;
    let mut third = DistributedDoubleBarrier::new(&world.other, "/d", 2);
    let (one, three) = within(async { tokio::join!(first.enter(), third.enter()) }).await;
    one.and(three).unwrap();
    world.proxy.heal();
    within(leaving).await.unwrap().unwrap();
    assert!(world.other.exists("/d/ready").await.unwrap().is_some());
}

#[tokio::test]
async fn dropped_entry_or_barrier_leaves_no_member() {
    let world = World::new().await;
    let mut first = DistributedDoubleBarrier::new(&world.client, "/d", 2);
    let entering = tokio::time::timeout(SHORT, first.enter()).await;
    assert!(entering.is_err());
    within(world.no_ephemerals()).await;
    within(world.no_watches()).await;
    let mut second = DistributedDoubleBarrier::new(&world.other, "/d", 1);
    within(second.enter()).await.unwrap();
    drop(second);
    within(world.no_ephemerals()).await;
}

/// A wait ends with an error when the client is closed, and goes on when the watch is removed.
#[tokio::test]
async fn waiting_ends_with_the_client_and_not_with_a_watch() {
    let world = World::new().await;
    let barrier = DistributedBarrier::new(&world.client, "/b");
    barrier.set().await.unwrap();
    let mut waiting = tokio::spawn({
        let barrier = barrier.clone();
        async move { barrier.wait().await }
    });
    within(world.until(|counts| counts.watches == 1)).await;
    world.client.remove_watches("/b", WatcherType::Any).await.unwrap();
    tokio::select! {
        ended = &mut waiting => panic!("it must wait: {ended:?}"),
        () = within(world.until(|counts| counts.watches == 1)) => {}
    }
    barrier.remove().await.unwrap();
    within(waiting).await.unwrap().unwrap();

    world.other.create("/d", b"").await.unwrap();
    let [first, mut second] = two_inside(&world).await;
    let leaving = tokio::spawn(async move { second.leave().await });
    within(members(&world, 1)).await;
    within(world.until(|counts| counts.watches == 1)).await;
    barrier.set().await.unwrap();
    let waiting = tokio::spawn(async move { barrier.wait().await });
    within(world.until(|counts| counts.watches == 2)).await;
    world.client.close().await;
    for ended in [within(waiting).await.unwrap(), within(leaving).await.unwrap()] {
        assert!(matches!(ended, Err(Error::Closed)), "{ended:?}");
    }
    drop(first);
}
