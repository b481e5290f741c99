//! Queues.

use crate::{
    servers::Servers,
    world::{World, at_every_cut, until_answered, with_expiry_after_every_request, within},
};
use ostler_client::{Bytes, Error};
use ostler_recipes::queue::{Consumer, DistributedQueue, ErrorMode};
use std::{convert::Infallible, sync::Arc, time::Duration};
use tokio::sync::{
    Notify,
    mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
};

pub(crate) fn text(item: &Bytes) -> String {
    String::from_utf8_lossy(item).into_owned()
}

/// Hands each item to the test.
pub(crate) fn sink() -> (UnboundedSender<String>, UnboundedReceiver<String>) {
    unbounded_channel()
}

fn consume(queue: &DistributedQueue, to: &UnboundedSender<String>) -> Consumer {
    let to = to.clone();
    queue.consume(move |item| {
        let sent = to.send(text(&item));
        async move {
            sent.unwrap();
            Ok::<_, Infallible>(())
        }
    })
}

pub(crate) async fn next(from: &mut UnboundedReceiver<String>, count: usize) -> Vec<String> {
    let mut items = Vec::new();
    while items.len() < count {
        items.push(within(from.recv()).await.unwrap());
    }
    items
}

/// With a lock path nothing is lost, whatever happens to the consumer's connection; twice is possible.
pub(crate) async fn nothing_is_lost<S: Servers>(world: &World<S>) {
    let producer = DistributedQueue::builder(&world.other, "/q").lock_path("/locks").build().await.unwrap();
    until_answered(|| producer.put("a")).await.unwrap();
    until_answered(|| producer.put_multi(&[b"b", b"c"])).await.unwrap();
    let queue = DistributedQueue::builder(&world.client, "/q").lock_path("/locks").build().await.unwrap();
    let (to, mut from) = sink();
    let consumer = consume(&queue, &to);
    let mut seen = Vec::new();
    while !producer.is_empty().await.unwrap() {
        let (_, changed) = world.other.get_children("/q").watch().await.unwrap();
        if !producer.is_empty().await.unwrap() {
            changed.await.unwrap();
        }
    }
    until_answered(|| producer.put("d")).await.unwrap();
    while seen.last().map(String::as_str) != Some("d") {
        seen.push(from.recv().await.unwrap());
    }
    seen.sort();
    seen.dedup();
    assert_eq!(seen, ["a", "b", "c", "d"]);
    while !producer.is_empty().await.unwrap() || !world.other.get_children("/locks").await.unwrap().is_empty()
    {
        tokio::task::yield_now().await;
    }
    drop(consumer);
}

#[tokio::test]
async fn under_a_lock_nothing_is_lost_at_any_cut() {
    at_every_cut(nothing_is_lost).await;
}

#[tokio::test]
async fn under_a_lock_nothing_is_lost_when_the_session_ends() {
    with_expiry_after_every_request(nothing_is_lost).await;
}

pub(crate) async fn put<S: Servers>(world: &World<S>) {
    let queue = DistributedQueue::builder(&world.client, "/q").build().await.unwrap();
    let (mut done, mut unknown) = (0, 0);
    for item in 0..3 {
        match queue.put(item.to_string()).await {
            Ok(()) => done += 1,
            Err(Error::ConnectionLoss { .. } | Error::SessionExpired { .. }) => unknown += 1,
            Err(error) => panic!("{error}"),
        }
    }
    world.let_other_see().await;
    let there = world.other.get_children("/q").await.unwrap().len();
    assert!((done..=done + unknown).contains(&there));
}

#[tokio::test]
async fn producers_are_told_what_is_unknown() {
    at_every_cut(put).await;
}

#[tokio::test]
async fn producers_are_told_of_the_end_of_their_session() {
    with_expiry_after_every_request(put).await;
}

/// CURATOR-623: a queue whose connection was lost goes on with what was put in meanwhile.
#[tokio::test]
async fn curator_623_a_consumer_goes_on_after_a_reconnect() {
    for lock in [false, true] {
        let world = World::new().await;
        let mut builder = DistributedQueue::builder(&world.client, "/q");
        if lock {
            builder = builder.lock_path("/locks");
        }
        let queue = builder.build().await.unwrap();
        let producer = DistributedQueue::builder(&world.other, "/q").build().await.unwrap();
        let (to, mut from) = sink();
        let consumer = consume(&queue, &to);
        producer.put("1").await.unwrap();
        assert_eq!(next(&mut from, 1).await, ["1"]);
        world.proxy.block();
        producer.put("2").await.unwrap();
        world.proxy.heal();
        assert_eq!(next(&mut from, 1).await, ["2"]);
        // Before that it would be consumed again.
        while !producer.is_empty().await.unwrap() {
            tokio::task::yield_now().await;
        }
        world.expire().await;
        producer.put("3").await.unwrap();
        assert_eq!(next(&mut from, 1).await, ["3"]);
        drop(consumer);
        within(world.no_watches()).await;
    }
}

/// The item of a consumer that dies is taken by another, although no child of the queue has come or gone.
#[tokio::test]
async fn item_of_a_consumer_that_dies_goes_to_another() {
    let world = World::new().await;
    let dying = DistributedQueue::builder(&world.client, "/q").lock_path("/locks").build().await.unwrap();
    let queue = DistributedQueue::builder(&world.other, "/q").lock_path("/locks").build().await.unwrap();
    queue.put("a").await.unwrap();
    let (to, mut from) = sink();
    let stuck = to.clone();
    let consumer = dying.consume(move |item| {
        stuck.send(text(&item)).unwrap();
        std::future::pending::<Result<(), Infallible>>()
    });
    assert_eq!(next(&mut from, 1).await, ["a"]);
    let _second = consume(&queue, &to);
    // Its watches: of the queue, and of the lock.
    within(world.server.until(|counts| counts.watches >= 3)).await.unwrap();
    drop(consumer);
    assert_eq!(next(&mut from, 1).await, ["a"]);
    within(world.no_ephemerals()).await;
}

/// A consumer that is closed ends its present item, and takes no other.
#[tokio::test]
async fn a_consumer_that_is_closed_ends_its_item() {
    for lock in [false, true] {
        let world = World::new().await;
        let mut builder = DistributedQueue::builder(&world.client, "/q");
        if lock {
            builder = builder.lock_path("/locks");
        }
        let queue = builder.await.unwrap();
        queue.put("a").await.unwrap();
        queue.put("b").await.unwrap();
        let (to, mut from) = sink();
        let gate = Arc::new(Notify::new());
        let consumer = queue.consume({
            let gate = gate.clone();
            move |item| {
                let (to, gate) = (to.clone(), gate.clone());
                async move {
                    to.send(format!("begins {}", text(&item))).unwrap();
                    gate.notified().await;
                    to.send(format!("ends {}", text(&item))).unwrap();
                    Ok::<_, Infallible>(())
                }
            }
        });
        assert_eq!(next(&mut from, 1).await, ["begins a"]);
        let mut closing = Box::pin(consumer.close());
        assert!(tokio::time::timeout(Duration::from_millis(20), &mut closing).await.is_err());
        gate.notify_one();
        within(closing).await;
        assert_eq!(next(&mut from, 1).await, ["ends a"]);
        assert!(from.try_recv().is_err(), "it takes no more");
        assert_eq!(queue.len().await.unwrap(), 1);
        within(consumer.close()).await;
        within(world.end()).await;
    }
}

/// It waits for items, and for a connection.
#[tokio::test]
async fn a_consumer_without_an_item_is_closed_at_once() {
    for cut_off in [false, true] {
        let world = World::new().await;
        let queue = DistributedQueue::builder(&world.client, "/q").await.unwrap();
        let (to, _from) = sink();
        let consumer = consume(&queue, &to);
        within(world.until(|counts| counts.watches == 1)).await;
        if cut_off {
            world.proxy.block();
        }
        within(consumer.close()).await;
        world.proxy.heal();
        within(world.end()).await;
    }
}

#[tokio::test]
async fn failed_item_is_put_back_or_deleted() {
    for (mode, expected) in
        [(ErrorMode::Requeue, vec!["bad", "good", "bad"]), (ErrorMode::Delete, vec!["bad", "good"])]
    {
        let world = World::new().await;
        let builder = DistributedQueue::builder(&world.client, "/q").lock_path("/locks").error_mode(mode);
        let queue = builder.build().await.unwrap();
        queue.put("bad").await.unwrap();
        queue.put("good").await.unwrap();
        let (to, mut from) = sink();
        let mut failures = 0;
        let _consumer = queue.consume(move |item| {
            let item = text(&item);
            to.send(item.clone()).unwrap();
            failures += u32::from(item == "bad");
            let result = if item == "bad" && failures == 1 { Err("no") } else { Ok(()) };
            async move { result }
        });
        assert_eq!(next(&mut from, expected.len()).await, expected);
        while !queue.is_empty().await.unwrap() {
            tokio::task::yield_now().await;
        }
    }
}

#[tokio::test]
async fn a_full_queue_lets_producers_wait() {
    let world = World::new().await;
    let queue = DistributedQueue::builder(&world.client, "/q").max_items(2).build().await.unwrap();
    queue.put("1").await.unwrap();
    queue.put("2").await.unwrap();
    let third = tokio::spawn({
        let queue = queue.clone();
        async move { queue.put("3").await }
    });
    within(world.server.until(|counts| counts.watches == 1)).await.unwrap();
    let (to, mut from) = sink();
    let consumer = consume(&queue, &to);
    within(third).await.unwrap().unwrap();
    assert_eq!(next(&mut from, 3).await, ["1", "2", "3"]);
    drop(consumer);
    within(world.end()).await;
}

#[tokio::test]
async fn a_producer_that_waits_is_told_that_the_client_is_closed() {
    let world = World::new().await;
    let queue = DistributedQueue::builder(&world.client, "/q").max_items(1).build().await.unwrap();
    queue.put("1").await.unwrap();
    let second = tokio::spawn(async move { queue.put("2").await });
    within(world.until(|counts| counts.watches == 1)).await;
    world.client.close().await;
    let ended = within(second).await.unwrap();
    assert!(matches!(ended, Err(Error::Closed)), "{ended:?}");
}
