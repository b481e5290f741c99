//! The session expires at each single message of the exchange.

use crate::world::{Held, Recipe, World, check_journal, open_journal, patiently, write_journal};
use ostler_client::Client;
use ostler_testkit::{CutPoint, FrameProxy};

/// Holds it and writes as its holder. Whoever has lost it tries again.
async fn hold_and_write(recipe: Recipe, client: &Client, path: &str) -> Held {
    loop {
        let held = recipe.hold(client, path).await.unwrap();
        if write_journal(&held.fence).await {
            return held;
        }
        assert!(held.fence.verify().await.unwrap_err().is_not_held(), "once lost, lost for good");
    }
}

/// One holds; we wait, hold, write and release; then another one holds. At `point` our session expires.
async fn exchange(
    (world, others): (&World, &[Client; 2]),
    (recipe, path): (Recipe, &str),
    ours: &Client,
    (proxy, point): (&FrameProxy, Option<CutPoint>),
) {
    let held_frame = point.map(|point| proxy.hold_at(point));
    let expire = async {
        if let Some(mut frame) = held_frame {
            frame.reached().await.unwrap();
            world.expire(ours).await;
            frame.pass();
        }
    };
    let work = async {
        let first = recipe.hold_first(&others[0], path).await;
        let (client, place) = (ours.clone(), path.to_owned());
        let waiting = tokio::spawn(async move { hold_and_write(recipe, &client, &place).await });
        let expected = recipe.with_one_waiting();
        world.until("in the queue", move |c| (c.ephemerals, c.watches) == expected).await;
        assert!(write_journal(&first.fence).await);
        first.release().await;
        waiting.await.unwrap().release().await;
        let last = recipe.hold(&others[1], path).await.unwrap();
        assert!(write_journal(&last.fence).await);
        last.release().await;
    };
    tokio::join!(expire, work);
}

async fn at_every_message(recipe: Recipe) {
    let world = World::start().await;
    let others = [world.client().await, world.client().await];
    open_journal(&others[0]).await;
    let mut points: Vec<Option<CutPoint>> = vec![None];
    let mut number = 0;
    while let Some(point) = points.pop() {
        number += 1;
        let (proxy, ours) = world.proxied().await;
        let path = format!("/{recipe:?}-{number}").to_lowercase();
        let what = format!("{recipe:?} with its session expired {point:?}");
        patiently(&what, exchange((&world, &others), (recipe, &path), &ours, (&proxy, point))).await;
        world.until_clean(&what).await;
        let tokens = check_journal(&others[0]).await;
        // A write of ours whose reply was on its way when the session expired is there.
        assert!((2..=4).contains(&tokens.len()), "{what}: {tokens:?}");
        if point.is_none() {
            let all = CutPoint::all(proxy.requests(), proxy.events());
            points = all.filter(|point| !matches!(point, CutPoint::AfterReply(_))).map(Some).collect();
            println!("{recipe:?}: {} points", points.len());
        }
        ours.close().await;
    }
}

#[tokio::test]
async fn a_mutex_survives_expiry_at_every_message() {
    at_every_message(Recipe::Mutex).await;
}

#[tokio::test]
async fn a_semaphore_mutex_survives_expiry_at_every_message() {
    at_every_message(Recipe::SemaphoreMutex).await;
}

#[tokio::test]
async fn a_semaphore_survives_expiry_at_every_message() {
    at_every_message(Recipe::Semaphore).await;
}

#[tokio::test]
async fn a_write_lock_survives_expiry_at_every_message() {
    at_every_message(Recipe::Write).await;
}

#[tokio::test]
async fn a_read_lock_survives_expiry_at_every_message() {
    at_every_message(Recipe::Read).await;
}

#[tokio::test]
async fn a_latch_survives_expiry_at_every_message() {
    at_every_message(Recipe::Latch).await;
}

#[tokio::test]
async fn a_selector_survives_expiry_at_every_message() {
    at_every_message(Recipe::Selector).await;
}

#[tokio::test]
async fn an_unfair_election_survives_expiry_at_every_message() {
    at_every_message(Recipe::Unfair).await;
}
