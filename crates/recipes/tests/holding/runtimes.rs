//! Locks and latches that are used in another runtime than their client's are released when that runtime ends.

use crate::{
    servers::elsewhere,
    world::{Recipe, World, patiently},
};
use ostler_testkit::CutPoint;
use std::future::pending;

/// Nobody drops it: it goes with the runtime.
#[tokio::test]
async fn guard_in_a_runtime_that_ends_is_released() {
    for recipe in Recipe::ALL.into_iter().chain([Recipe::Multi]) {
        let world = World::start().await;
        let (client, other) = (world.client().await, world.client().await);
        let ours = client.clone();
        elsewhere(async move {
            let held = recipe.hold(&ours, "/a").await.unwrap();
            tokio::spawn(async move {
                let _held = held;
                pending::<()>().await;
            });
        })
        .await;
        let next = patiently(format!("{recipe:?} of the next one"), recipe.hold_first(&other, "/a")).await;
        next.release().await;
        world.until_clean(recipe).await;
        client.session().await.unwrap();
    }
}

#[tokio::test]
async fn guard_that_outlives_its_runtime_is_released_when_dropped() {
    for recipe in Recipe::ALL.into_iter().chain([Recipe::Multi]) {
        let world = World::start().await;
        let (client, other) = (world.client().await, world.client().await);
        let ours = client.clone();
        let held = elsewhere(async move { recipe.hold(&ours, "/a").await.unwrap() }).await;
        drop(held);
        let next = patiently(format!("{recipe:?} of the next one"), recipe.hold_first(&other, "/a")).await;
        next.release().await;
        world.until_clean(recipe).await;
        client.session().await.unwrap();
    }
}

/// Its runtime ends while a message of it is on its way.
#[tokio::test]
async fn acquisition_in_a_runtime_that_ends_leaves_nothing() {
    for recipe in Recipe::ALL {
        let world = World::start().await;
        let other = world.client().await;
        let (proxy, ours) = world.proxied().await;
        let held = recipe.hold(&ours, "/dry").await.unwrap();
        let requests = proxy.requests();
        held.release().await;
        world.until_clean("dry run").await;
        let points = (1..=requests).flat_map(|n| [CutPoint::BeforeRequest(n), CutPoint::BeforeReply(n)]);
        for (number, point) in points.enumerate() {
            let (proxy, ours) = world.proxied().await;
            let (path, client) = (format!("/a-{number}"), ours.clone());
            let mut frame = proxy.hold_at(point);
            let coming = path.clone();
            let frame = elsewhere(async move {
                tokio::spawn(async move { drop(recipe.hold(&client, &coming).await) });
                frame.reached().await.unwrap();
                frame
            });
            frame.await.pass();
            let what = format!("{recipe:?} of the next one, {point}");
            let next = patiently(&what, recipe.hold(&other, &path)).await.unwrap();
            next.release().await;
            world.until_clean(&what).await;
            ours.close().await;
        }
    }
}

#[tokio::test]
async fn contender_in_a_runtime_that_ends_leaves_the_queue() {
    for recipe in Recipe::ALL {
        let world = World::start().await;
        let clients = [world.client().await, world.client().await, world.client().await];
        let first = recipe.hold_first(&clients[0], "/a").await;
        let (expected, server, client) = (recipe.with_one_waiting(), world.server, clients[1].clone());
        let world = World {
            server: elsewhere(async move {
                tokio::spawn(async move { recipe.hold(&client, "/a").await.map(drop) });
                server.until(move |c| (c.ephemerals, c.watches) == expected).await.unwrap();
                server
            })
            .await,
        };
        first.release().await;
        let last =
            patiently(format!("{recipe:?} of the last one"), recipe.hold(&clients[2], "/a")).await.unwrap();
        last.release().await;
        world.until_clean(recipe).await;
    }
}
