//! The same at an ensemble of three: the client's connection breaks at each message, and it goes on at another member;
//! the leader is killed at each message, and comes back, or it stands still or is left by its followers at each step;
//! the session expires at each message; any two of a queue die.

use crate::{
    exchange::{Hold, Site},
    neighbours::{READERS_AND_WRITERS, two_die},
    servers::{
        Attach, Ensemble,
        faults::{self, Fault, Kind, tests_of_faults},
    },
    world::{Recipe, World, patiently},
};
use ostler_testkit::SeenFrame;
use std::time::Duration;

/// Longer than it takes to come back and to look.
const LATE: Duration = Duration::from_millis(100);

/// Plays it once, with the fault; gives the requests and events, and whether the fault has happened.
async fn run(
    site: &Site<Ensemble>,
    recipe: Recipe,
    (number, attach, fault): (usize, Attach, Option<Fault>),
) -> (u64, u64, bool) {
    let ensemble = &site.world.server;
    ensemble.until_whole().await;
    let (proxy, ours) = site.world.proxied_by(&ensemble.addresses_from(attach).await).await;
    let path = format!("/{recipe:?}-{attach:?}-{number}").to_lowercase();
    let what = format!("{recipe:?}, {attach:?}, {fault:?}");
    let kind = fault.map(|fault| fault.kind);
    let hold = match kind {
        Some(Kind::Expired) => Hold::CanBeLost,
        _ => Hold::of(recipe),
    };
    let exchange = site.hand_over((recipe, &path), &ours, hold);
    let play = faults::play(exchange, (fault, &proxy, ensemble), async || site.world.expire(&ours).await);
    let ((), happened) = patiently(&what, play).await;
    let tokens = site.check(recipe, &what).await;
    // A write whose reply was lost is there or not; one whose session expired then can be there besides.
    let most = if kind == Some(Kind::Expired) { 4 } else { 3 };
    assert!((2..=most).contains(&tokens.len()), "{what}: {tokens:?}");
    if kind == Some(Kind::Cut) && !proxy.cuts().is_empty() {
        let elsewhere =
            |seen: &SeenFrame| matches!(seen, SeenFrame::Handshake { server, .. } if *server != 0);
        assert!(proxy.seen().iter().any(elsewhere), "{what}: it goes on at another member");
    }
    let counted = (proxy.requests(), proxy.events(), happened);
    ours.close().await;
    assert!(kind != Some(Kind::Cut) || !happened || !proxy.cuts().is_empty(), "{what}: it is cut");
    counted
}

async fn at_every_message(recipe: Recipe, kind: Kind) {
    let site = Site::new(World::ensemble().await).await;
    if kind == Kind::Cut {
        site.world.server.let_second_follower_lag().await;
    }
    let mut attachments = vec![kind.attach()];
    if kind == Kind::LeaderKilled {
        attachments.push(Attach::ToFollower);
    }
    for attach in attachments {
        let undisturbed = async |number| {
            let (requests, events, _) = run(&site, recipe, (number, attach, None)).await;
            (requests, events)
        };
        let (requests, events) = faults::count(undisturbed).await;
        assert!(requests >= 5 && events >= 1, "{recipe:?}: {requests} requests, {events} events");
        let play = async |number, fault: &Fault| run(&site, recipe, (number, attach, Some(*fault))).await.2;
        let happened = faults::at_each(kind.everywhere(requests, events, attach), play).await;
        println!("{recipe:?}, {kind:?}, {attach:?}: {happened}");
    }
}

macro_rules! at_an_ensemble {
    ($($name:ident: $recipe:ident,)*) => {$(
        mod $name {
            use super::*;

            tests_of_faults!(async |kind| at_every_message(Recipe::$recipe, kind).await, [Cut, Leader, Expired]);
        }
    )*};
}

at_an_ensemble! {
    a_mutex: Mutex,
    a_multi_lock: Multi,
    a_semaphore_mutex: SemaphoreMutex,
    a_semaphore: Semaphore,
    a_write_lock: Write,
    a_read_lock: Read,
    a_latch: Latch,
    a_selector: Selector,
    an_unfair_election: Unfair,
}

/// Our znode is proposed, and no majority has it yet, when our connection is lost and we are back at the leader.
/// Whoever then looks for it without a `sync` does not find it, makes a second one, and waits behind the first for
/// ever.
async fn check_not_created_twice(recipe: Recipe) {
    let world = World::ensemble().await;
    let ensemble = &world.server;
    let leader = ensemble.addresses_from(Attach::ToLeader).await[0];
    let (proxy, ours) = world.proxied_by(&[leader]).await;
    // From here on what is above it is there.
    patiently(recipe, recipe.hold(&ours, "/a")).await.unwrap().release().await;
    world.until_clean(recipe).await;

    ensemble.slow_acknowledgements(LATE).await;
    let requests = ensemble.requests().await;
    let holding = tokio::spawn({
        let ours = ours.clone();
        async move { recipe.hold(&ours, "/a").await }
    });
    world.until("the create is proposed", move |counts| counts.requests > requests).await;
    proxy.cut_now();
    let held = patiently(recipe, holding).await.unwrap().unwrap();
    held.fence.verify().await.unwrap();
    world.until("one znode", |counts| counts.ephemerals == 1).await;
    held.release().await;
    world.until_clean(recipe).await;
}

#[tokio::test]
async fn uncommitted_znode_is_not_created_twice() {
    for recipe in [Recipe::Mutex, Recipe::Latch, Recipe::Unfair] {
        check_not_created_twice(recipe).await;
    }
}

#[tokio::test]
async fn any_two_of_a_mutexs_queue_die() {
    two_die(World::ensemble().await, [Recipe::Mutex; 5]).await;
}

#[tokio::test]
async fn any_two_of_a_multi_locks_queue_die() {
    two_die(World::ensemble().await, [Recipe::Multi; 5]).await;
}

#[tokio::test]
async fn any_two_of_a_semaphore_mutexs_queue_die() {
    two_die(World::ensemble().await, [Recipe::SemaphoreMutex; 5]).await;
}

#[tokio::test]
async fn any_two_of_a_semaphores_queue_die() {
    two_die(World::ensemble().await, [Recipe::Semaphore; 5]).await;
}

#[tokio::test]
async fn any_two_of_a_write_locks_queue_die() {
    two_die(World::ensemble().await, [Recipe::Write; 5]).await;
}

#[tokio::test]
async fn any_two_of_readers_and_writers_die() {
    two_die(World::ensemble().await, READERS_AND_WRITERS).await;
}

#[tokio::test]
async fn any_two_of_an_election_die() {
    two_die(World::ensemble().await, [Recipe::Latch; 5]).await;
}

#[tokio::test]
async fn any_two_of_a_selectors_queue_die() {
    two_die(World::ensemble().await, [Recipe::Selector; 5]).await;
}
