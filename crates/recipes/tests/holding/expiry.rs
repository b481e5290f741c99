//! The session expires at each single message of the exchange.

use crate::{
    exchange::{Hold, Site},
    world::{Recipe, World, patiently},
};
use ostler_testkit::CutPoint;

async fn at_every_message(recipe: Recipe) {
    let site = Site::new(World::start().await).await;
    let mut points: Vec<Option<CutPoint>> = vec![None];
    let mut number = 0;
    while let Some(point) = points.pop() {
        number += 1;
        let (proxy, ours) = site.world.proxied().await;
        let path = format!("/{recipe:?}-{number}").to_lowercase();
        let what = format!("{recipe:?} with its session expired {point:?}");
        let held_frame = point.map(|point| proxy.hold_at(point));
        let expire = async {
            if let Some(mut frame) = held_frame {
                frame.reached().await.unwrap();
                site.world.expire(&ours).await;
                frame.pass();
            }
        };
        let exchange = site.hand_over((recipe, &path), &ours, Hold::CanBeLost);
        patiently(&what, async { tokio::join!(expire, exchange) }).await;
        let tokens = site.check(recipe, &what).await;
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
async fn a_multi_lock_survives_expiry_at_every_message() {
    at_every_message(Recipe::Multi).await;
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
