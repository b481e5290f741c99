//! Futures and guards that are dropped, at every moment.

use crate::world::{Recipe, World, patiently};
use ostler_recipes::lock::InterProcessMutex;
use ostler_testkit::{CutPoint, SeenFrame};

/// Whoever waits is dropped while a message of it is on its way, before and after the server has it. Others would wait
/// for a znode that it leaves behind.
async fn at_every_message(recipe: Recipe) {
    let world = World::start().await;
    let other = world.client().await;
    // Without anybody before us, so that the whole exchange is one way: up to the last message before it is held.
    let (proxy, ours) = world.proxied().await;
    let held = recipe.hold(&ours, "/dry").await.unwrap();
    let requests = proxy.requests();
    held.release().await;
    world.until_clean("dry run").await;
    let points = (1..=requests).flat_map(|n| [CutPoint::BeforeRequest(n), CutPoint::BeforeReply(n)]);
    for (number, point) in points.enumerate() {
        for cut in [false, true] {
            let (proxy, ours) = world.proxied().await;
            let what = format!("{recipe:?} dropped {point}, cut: {cut}");
            let path = format!("/drop-{number}-{cut}");
            let mut frame = proxy.hold_at(point);
            patiently(&what, async {
                tokio::select! {
                    biased;
                    reached = frame.reached() => reached.unwrap(),
                    // The message is one that a holder sends.
                    held = recipe.hold(&ours, &path) => drop(held),
                }
            })
            .await;
            if cut {
                frame.cut();
            } else {
                frame.pass();
            }
            let next = patiently(&what, recipe.hold(&other, &path)).await.unwrap();
            assert!(next.fence.verify().await.is_ok());
            next.release().await;
            // The session of whoever was dropped lives on.
            world.until_clean(&what).await;
            ours.close().await;
        }
    }
}

#[tokio::test]
async fn a_dropped_future_leaves_no_znode_and_no_watch() {
    for recipe in [Recipe::Mutex, Recipe::Semaphore, Recipe::Write, Recipe::Read, Recipe::Unfair] {
        at_every_message(recipe).await;
    }
}

#[tokio::test]
async fn a_latch_dropped_before_it_leads_leaves_nothing() {
    at_every_message(Recipe::Latch).await;
}

#[tokio::test]
async fn a_selector_dropped_before_it_leads_leaves_nothing() {
    at_every_message(Recipe::Selector).await;
}

#[tokio::test]
async fn contender_dropped_in_the_queue_lets_the_next_one_through() {
    for recipe in Recipe::ALL {
        let world = World::start().await;
        let clients = [world.client().await, world.client().await, world.client().await];
        let first = recipe.hold_first(&clients[0], "/a").await;
        let client = clients[1].clone();
        let waiting = tokio::spawn(async move { recipe.hold(&client, "/a").await });
        let expected = recipe.with_one_waiting();
        world.until("in the queue", move |c| (c.ephemerals, c.watches) == expected).await;
        waiting.abort();
        first.release().await;
        let last = patiently(recipe, recipe.hold(&clients[2], "/a")).await.unwrap();
        last.release().await;
        world.until_clean(recipe).await;
    }
}

#[tokio::test]
async fn a_dropped_guard_is_released_in_the_background_however_long_that_takes() {
    for recipe in Recipe::ALL {
        let world = World::start().await;
        let (proxy, ours) = world.proxied().await;
        let other = world.client().await;
        let held = recipe.hold(&ours, "/a").await.unwrap();
        proxy.block();
        patiently(recipe, held.fence.session().suspended()).await;
        drop(held);
        let watches = 1 + usize::from(recipe.next_watches_itself());
        let other_holds = async { recipe.hold_first(&other, "/a").await };
        let mut other_holds = std::pin::pin!(other_holds);
        // It is connected, and has to wait; the dropped one has no connection to release with.
        tokio::select! {
            biased;
            _ = &mut other_holds => panic!("{recipe:?}: nothing can have been released"),
            () = world.until("waits", move |c| c.watches == watches && c.connections == 1) => {}
        }
        proxy.heal();
        let next = patiently(recipe, other_holds).await;
        assert!(ours.session().await.unwrap().is_alive());
        next.release().await;
        world.until_clean(recipe).await;
    }
}

/// The deletion is on its way before what is asked for next: nobody waits for a znode that it has dropped itself.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mutex_dropped_and_taken_again_costs_one_round_trip() {
    let world = World::start().await;
    let (proxy, ours) = world.proxied().await;
    let mutex = InterProcessMutex::new(&ours, "/a");
    mutex.acquire().await.unwrap().release().await.unwrap();
    for _ in 0..50 {
        drop(mutex.acquire().await.unwrap());
    }
    let seen = proxy.seen().into_iter().filter_map(|seen| match seen {
        SeenFrame::Request { op: Some(op), .. } => Some(format!("{op:?}")),
        _ => None,
    });
    let turns: Vec<String> = seen.skip_while(|op| op != "Delete").skip(1).collect();
    for turn in turns.chunks(3) {
        let expected = ["Create2", "GetChildren", "Delete"];
        assert_eq!(turn, &expected[..turn.len()], "{turns:?}");
    }
    assert!(turns.len() >= 3 * 50 - 1);
    world.until_clean("the last drop").await;
}
