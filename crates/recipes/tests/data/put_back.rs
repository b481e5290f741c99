//! The fate of an item whose consumer has failed.

use crate::{
    queues::{next, sink, text},
    servers::Servers,
    world::{World, builder, within},
};
use ostler_client::{Acl, Bytes, Id, Perms};
use ostler_recipes::queue::{DistributedQueue, QueueBuilder};
use std::time::{Duration, Instant, SystemTime};
use tokio::sync::mpsc::UnboundedReceiver;

fn under_lock(world: &World) -> QueueBuilder {
    DistributedQueue::builder(&world.client, "/q").lock_path("/locks")
}

/// A consumer's function that hands each item to the test, and fails with one of them a given number of times.
fn failing(
    item: &'static str,
    mut times: usize,
) -> (
    impl FnMut(Bytes) -> std::future::Ready<Result<(), &'static str>> + Send + 'static,
    UnboundedReceiver<String>,
) {
    let (to, from) = sink();
    let consume = move |data: Bytes| {
        let fails = times > 0 && text(&data) == item;
        times -= usize::from(fails);
        to.send(text(&data)).unwrap();
        std::future::ready(if fails { Err("no") } else { Ok(()) })
    };
    (consume, from)
}

/// It comes after those that have its priority too, and before those whose number is higher.
#[tokio::test]
async fn a_failed_item_keeps_its_priority() {
    for (priority, expected) in [
        (-5, ["bad", "same", "bad", "other"]),
        (0, ["bad", "same", "bad", "other"]),
        (9, ["other", "bad", "same", "bad"]),
    ] {
        let world = World::new().await;
        let queue = under_lock(&world).build_priority_queue(1).await.unwrap();
        for (item, priority) in [("bad", priority), ("same", priority), ("other", 7)] {
            queue.put(item, priority).await.unwrap();
        }
        let (consume, mut from) = failing("bad", 1);
        let consumer = queue.consume(consume);
        assert_eq!(next(&mut from, 4).await, expected, "{priority}");
        drop(consumer);
        within(world.end()).await;
    }
}

#[tokio::test]
async fn item_that_always_fails_does_not_block_the_rest() {
    for before_refresh in [1, 2] {
        let world = World::new().await;
        let queue = under_lock(&world).build_priority_queue(before_refresh).await.unwrap();
        for (item, priority) in [("bad", -1), ("2", 2), ("1", 1), ("3", 3)] {
            queue.put(item, priority).await.unwrap();
        }
        let (consume, mut from) = failing("bad", usize::MAX);
        let consumer = queue.consume(consume);
        let mut others = Vec::new();
        let rest = async {
            while others.len() < 3 {
                others.extend(from.recv().await.filter(|item| item != "bad"));
            }
        };
        within(rest).await;
        assert_eq!(others, ["1", "2", "3"]);
        drop(consumer);
        within(world.end()).await;
    }
}

#[tokio::test]
async fn a_failed_item_keeps_its_id() {
    let world = World::new().await;
    let queue = under_lock(&world).build_id_queue().await.unwrap();
    queue.put("bad", "x").await.unwrap();
    queue.put("good", "y").await.unwrap();
    let (consume, mut from) = failing("bad", usize::MAX);
    let consumer = queue.consume(consume);
    assert_eq!(next(&mut from, 3).await, ["bad", "good", "bad"]);
    drop(consumer);
    // The consumer's lock is released in the background.
    within(world.no_ephemerals()).await;
    assert_eq!(queue.remove("x").await.unwrap(), 1);
    assert!(queue.is_empty().await.unwrap());
    within(world.end()).await;
}

/// It is due again after a while, and what is due before that comes before it.
#[tokio::test]
async fn a_failed_item_is_due_again_later() {
    const AGAIN: Duration = Duration::from_millis(200);
    let world = World::new().await;
    let queue = under_lock(&world).retry_after(AGAIN).build_delay_queue().await.unwrap();
    let now = SystemTime::now();
    queue.put("bad", now).await.unwrap();
    queue.put("soon", now + AGAIN / 2).await.unwrap();
    let (consume, mut from) = failing("bad", 1);
    let consumer = queue.consume(consume);
    assert_eq!(next(&mut from, 1).await, ["bad"]);
    let failed = Instant::now();
    assert_eq!(next(&mut from, 2).await, ["soon", "bad"]);
    // Times go in whole ms, and the test has heard of the failure a little late.
    assert!(failed.elapsed() > AGAIN / 2, "{:?}", failed.elapsed());
    drop(consumer);
    within(world.end()).await;
}

/// One item that can not even be looked at is left where it is, and tried again later.
#[tokio::test]
async fn refused_item_does_not_block_the_rest() {
    for lock in [false, true] {
        let world = World::new().await;
        let builder = DistributedQueue::builder(&world.client, "/q");
        let queue = if lock { builder.lock_path("/locks") } else { builder }.build().await.unwrap();
        queue.put("refused").await.unwrap();
        let name = world.other.get_children("/q").await.unwrap().remove(0);
        let path = format!("/q/{name}");
        let everybody = |perms| vec![Acl { perms, id: Id::new("world", "anyone") }];
        world.other.set_acl(&path, &everybody(Perms::ADMIN)).await.unwrap();
        for item in ["1", "2"] {
            queue.put(item).await.unwrap();
        }
        let (consume, mut from) = failing("", 0);
        let consumer = queue.consume(consume);
        assert_eq!(next(&mut from, 2).await, ["1", "2"]);
        queue.put("3").await.unwrap();
        assert_eq!(next(&mut from, 1).await, ["3"]);
        world.other.set_acl(&path, &everybody(Perms::ALL)).await.unwrap();
        assert_eq!(next(&mut from, 1).await, ["refused"]);
        drop(consumer);
        within(world.end()).await;
    }
}

/// With what deletes it in the same transaction it is larger than a packet, so it stays where it is.
#[tokio::test]
async fn item_too_large_to_be_put_back_does_not_block_the_rest() {
    const PACKET: usize = 1000;
    let world = World::new().await;
    let queue = DistributedQueue::builder(&world.other, "/q").lock_path("/locks").build().await.unwrap();
    let large = "x".repeat(PACKET - 120);
    queue.put(&large).await.unwrap();
    queue.put("small").await.unwrap();
    let servers = format!("{}/w", world.server.addresses()[0]);
    let client = builder(&servers).max_packet(PACKET).connect().await.unwrap();
    DistributedQueue::builder(&client, "/q").build().await.unwrap().put(&large).await.unwrap();
    let queue = DistributedQueue::builder(&client, "/q").lock_path("/locks").build().await.unwrap();
    let (to, mut from) = sink();
    let consumer = queue.consume(move |item: Bytes| {
        to.send(text(&item)).unwrap();
        std::future::ready(if item.len() > 100 { Err("no") } else { Ok(()) })
    });
    assert_eq!(next(&mut from, 3).await, [large.as_str(), "small", large.as_str()]);
    drop(consumer);
    client.close().await;
    within(world.end()).await;
}

/// A panic is a failure like another.
#[tokio::test]
async fn a_consumer_that_panics_goes_on() {
    let world = World::new().await;
    let queue = under_lock(&world).build().await.unwrap();
    for item in ["bad", "worse", "good"] {
        queue.put(item).await.unwrap();
    }
    let (to, mut from) = sink();
    let mut panics = 2;
    let consumer = queue.consume(move |item: Bytes| {
        to.send(text(&item)).unwrap();
        let panicking = panics > 0;
        panics -= usize::from(panicking);
        assert!(!panicking || text(&item) != "bad", "in the function");
        async move {
            assert!(!panicking, "in its future");
            Ok::<_, &str>(())
        }
    });
    assert_eq!(next(&mut from, 5).await, ["bad", "worse", "good", "bad", "worse"]);
    while !queue.is_empty().await.unwrap() {
        tokio::task::yield_now().await;
    }
    drop(consumer);
    within(world.end()).await;
}
