//! Holders that were paused.

use crate::world::{Recipe, World, check_journal, open_journal, patiently, write_journal};
use ostler_client::{Error as ClientError, ErrorCode, Version};
use ostler_recipes::{Error, leader::Acknowledgement, lock::InterProcessMutex};
use ostler_testkit::Direction;

/// The holder hears and says nothing while its session expires and another one holds; then it goes on, and writes at
/// once. Each recipe, many times: refused, always.
#[tokio::test]
async fn a_paused_holder_cannot_write() {
    let world = World::start().await;
    let other = world.client().await;
    open_journal(&other).await;
    let (mut refused, mut rounds) = (0, 0);
    for recipe in Recipe::ALL {
        if recipe == Recipe::Read {
            continue;
        }
        for round in 0..15 {
            let path = format!("/{recipe:?}-{round}").to_lowercase();
            let (proxy, ours) = world.proxied().await;
            let held = recipe.hold(&ours, &path).await.unwrap();
            assert!(write_journal(&held.fence).await);
            proxy.silence(Direction::ToClient);
            proxy.silence(Direction::ToServer);
            world.expire(&ours).await;
            let next = patiently(recipe, recipe.hold(&other, &path)).await.unwrap();
            assert!(next.fence.token() > held.fence.token());
            assert!(write_journal(&next.fence).await);
            assert!(held.fence.is_held(), "it cannot know: that is what fencing is for");
            let write = tokio::spawn({
                let fence = held.fence.clone();
                async move { fence.multi().create("/journal/forbidden", b"").await }
            });
            proxy.heal();
            rounds += 1;
            match patiently(recipe, write).await.unwrap() {
                Err(Error::NotHeld { token, .. }) if token == held.fence.token() => refused += 1,
                // The server had closed the connection before: not done either, as the journal shows.
                Err(Error::Client(ClientError::ConnectionLoss { .. })) => {
                    assert!(held.fence.verify().await.unwrap_err().is_not_held());
                    refused += 1;
                }
                written => panic!("{recipe:?}: {written:?}"),
            }
            assert!(other.exists("/journal/forbidden").await.unwrap().is_none());
            next.release().await;
            drop(held);
            ours.close().await;
        }
        check_journal(&other).await;
        world.until_clean(recipe).await;
    }
    println!("refused {refused} of {rounds}");
    assert_eq!(refused, rounds);
}

#[tokio::test]
async fn tokens_grow_from_holder_to_holder() {
    let world = World::start().await;
    let clients = [world.client().await, world.client().await];
    for recipe in Recipe::ALL {
        let mut last = 0;
        for round in 0..6 {
            let held = recipe.hold(&clients[round % 2], "/a").await.unwrap();
            assert!(held.fence.token().number() > last, "{recipe:?}");
            last = held.fence.token().number();
            held.release().await;
        }
        clients[0].delete("/a").deleting_children().quietly().await.unwrap();
    }
}

/// An unfair leader's znode has the name that the next one's has.
#[tokio::test]
async fn late_call_of_lost_returns_when_another_leads() {
    let world = World::start().await;
    let (ours, other) = (world.client().await, world.client().await);
    let held = Recipe::Unfair.hold(&ours, "/a").await.unwrap();
    other.delete(held.fence.node()).await.unwrap();
    let next = Recipe::Unfair.hold(&other, "/a").await.unwrap();
    patiently(Recipe::Unfair, held.fence.lost()).await;
    next.release().await;
}

#[tokio::test]
async fn released_recipe_is_not_held() {
    let world = World::start().await;
    let client = world.client().await;
    for recipe in Recipe::ALL {
        let held = recipe.hold(&client, "/a").await.unwrap();
        let fence = held.fence.clone();
        assert!(fence.is_held());
        fence.verify().await.unwrap();
        held.release().await;
        assert!(!fence.is_held(), "{recipe:?}");
        assert!(fence.verify().await.unwrap_err().is_not_held());
        patiently(recipe, fence.lost()).await;
        client.delete("/a").deleting_children().quietly().await.unwrap();
    }
}

/// Somebody deletes the holder's znode by hand, and another one holds.
#[tokio::test]
async fn a_holder_whose_znode_was_deleted_cannot_write() {
    let world = World::start().await;
    let clients = [world.client().await, world.client().await];
    for recipe in Recipe::ALL {
        let held = recipe.hold_first(&clients[0], "/a").await;
        let lost = {
            let fence = held.fence.clone();
            tokio::spawn(async move { fence.lost().await })
        };
        world.until("the holder watches", |c| c.watches >= 1).await;
        clients[1].delete(held.fence.node()).await.unwrap();
        // The latch and the selector contend again, and may be first.
        let next = patiently(recipe, recipe.hold_first(&clients[1], "/a"));
        if matches!(recipe, Recipe::Latch | Recipe::Selector) {
            assert!(held.fence.multi().create("/x", b"").await.unwrap_err().is_not_held());
            held.release().await;
            next.await.release().await;
        } else {
            let next = next.await;
            assert!(held.fence.multi().create("/x", b"").await.unwrap_err().is_not_held(), "{recipe:?}");
            next.fence.verify().await.unwrap();
            // Its release takes nothing away from the next one.
            held.release().await;
            next.fence.verify().await.unwrap();
            next.release().await;
        }
        patiently(recipe, lost).await.unwrap();
        world.until_clean(recipe).await;
        clients[0].delete("/a").deleting_children().quietly().await.unwrap();
    }
}

/// It says nothing in a free place, puts nothing over what the next leader has said, and takes nothing of that back.
#[tokio::test]
async fn a_leader_that_is_none_any_more_does_not_say_that_it_is_ready() {
    let world = World::start().await;
    let clients = [world.client().await, world.client().await];
    let [late, ready] = [0, 1].map(|at| Acknowledgement::new(&clients[at], "/ready"));
    let held = Recipe::Mutex.hold(&clients[0], "/a").await.unwrap();
    clients[1].delete(held.fence.node()).await.unwrap();
    assert!(late.acknowledge(&held.fence, "late").await.unwrap_err().is_not_held());
    assert!(clients[1].exists("/ready").await.unwrap().is_none());

    let next = Recipe::Mutex.hold(&clients[1], "/a").await.unwrap();
    ready.acknowledge(&next.fence, "next").await.unwrap();
    assert!(late.acknowledge(&held.fence, "late").await.unwrap_err().is_not_held());
    assert!(late.withdraw(&held.fence).await.unwrap_err().is_not_held());
    assert_eq!(ready.now().await.unwrap().unwrap().data, "next");
}

#[tokio::test]
async fn a_fenced_multi_does_all_or_nothing_and_counts_from_the_callers_first_operation() {
    let world = World::start().await;
    let client = world.client().await;
    let guard = InterProcessMutex::new(&client, "/locks/a").acquire().await.unwrap();
    let results = guard
        .multi()
        .create("/a", b"1")
        .set_data("/a", b"2")
        .create("/b-", b"")
        .sequential()
        .check("/a", Version::Exactly(1))
        .await
        .unwrap();
    assert_eq!(results.len(), 4);
    assert_eq!(results[1].stat().unwrap().version, 1);
    let error = guard.multi().set_data("/a", b"3").delete("/none").await.unwrap_err();
    let Error::Client(ClientError::Multi { code: ErrorCode::NoNode, index: 1, .. }) = error else {
        panic!("{error}")
    };
    assert_eq!(client.get_data("/a").await.unwrap().0, "2");
    guard.release().await.unwrap();
}
