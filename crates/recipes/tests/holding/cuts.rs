//! The connection breaks at each single message of the exchange, before and after it was delivered.

use crate::{
    exchange::{Hold, Site},
    world::{Recipe, World, patiently},
};
use ostler_testkit::{CutPoint, TestServer};

async fn run(site: &Site<TestServer>, recipe: Recipe, number: usize, cuts: &[CutPoint]) -> (u64, u64) {
    let (proxy, ours) = site.world.proxied().await;
    let path = format!("/{recipe:?}-{number}").to_lowercase();
    let what = format!("{recipe:?} cut at {cuts:?}");
    for cut in cuts {
        proxy.cut_at(*cut);
    }
    patiently(&what, site.hand_over((recipe, &path), &ours, Hold::of(recipe))).await;
    let tokens = site.check(recipe, &what).await;
    assert!((2..=3).contains(&tokens.len()), "{what}: {tokens:?}");
    let counted = (proxy.requests(), proxy.events());
    // Of two cuts the second one can lie behind the end.
    assert_eq!(proxy.cuts().first(), cuts.first(), "{what}: the cut has happened");
    ours.close().await;
    counted
}

async fn at_every_message(recipe: Recipe) {
    let site = Site::new(World::start().await).await;
    let (requests, events) = run(&site, recipe, 0, &[]).await;
    assert!(
        requests >= 5 && events == recipe.events_of_hand_over(),
        "{recipe:?}: {requests} requests, {events} events"
    );
    let mut points = 0;
    for (number, cut) in CutPoint::all(requests, events).enumerate() {
        run(&site, recipe, number + 1, &[cut]).await;
        points += 1;
    }
    println!("{recipe:?}: {requests} requests and {events} events, {points} cuts");
}

#[tokio::test]
async fn a_mutex_survives_a_cut_at_every_message() {
    at_every_message(Recipe::Mutex).await;
}

#[tokio::test]
async fn a_multi_lock_survives_a_cut_at_every_message() {
    at_every_message(Recipe::Multi).await;
}

#[tokio::test]
async fn a_semaphore_mutex_survives_a_cut_at_every_message() {
    at_every_message(Recipe::SemaphoreMutex).await;
}

#[tokio::test]
async fn a_semaphore_survives_a_cut_at_every_message() {
    at_every_message(Recipe::Semaphore).await;
}

#[tokio::test]
async fn a_write_lock_survives_a_cut_at_every_message() {
    at_every_message(Recipe::Write).await;
}

#[tokio::test]
async fn a_read_lock_survives_a_cut_at_every_message() {
    at_every_message(Recipe::Read).await;
}

#[tokio::test]
async fn a_latch_survives_a_cut_at_every_message() {
    at_every_message(Recipe::Latch).await;
}

#[tokio::test]
async fn a_selector_survives_a_cut_at_every_message() {
    at_every_message(Recipe::Selector).await;
}

#[tokio::test]
async fn an_unfair_election_survives_a_cut_at_every_message() {
    at_every_message(Recipe::Unfair).await;
}

/// The first cut, and another one at any message of what comes after it.
#[tokio::test]
async fn a_mutex_survives_two_cuts() {
    let site = Site::new(World::start().await).await;
    let (requests, events) = run(&site, Recipe::Mutex, 0, &[]).await;
    assert_eq!(events, Recipe::Mutex.events_of_hand_over());
    let mut number = 0;
    for first in 1..=requests {
        // The answer to the request was lost; the next ones are a handshake, perhaps watches, and the search.
        for second in first + 1..=requests + 2 {
            number += 1;
            let cuts = [CutPoint::BeforeReply(first), CutPoint::BeforeReply(second)];
            run(&site, Recipe::Mutex, number, &cuts).await;
        }
    }
    println!("{number} pairs of cuts");
}
