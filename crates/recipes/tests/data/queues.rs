//! Queues.

use crate::{
    servers::Servers,
    world::{World, at_every_cut, until_answered, with_expiry_after_every_request, within},
};
use ostler_client::{Bytes, Error};
use ostler_recipes::queue::{Consumer, DistributedQueue, ErrorMode, QueueBuilder, SimpleDistributedQueue};
use std::{
    convert::Infallible,
    time::{Duration, SystemTime},
};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

const LONG: Duration = Duration::from_secs(3600);

fn text(item: &Bytes) -> String {
    String::from_utf8_lossy(item).into_owned()
}

/// Hands each item to the test.
fn sink() -> (UnboundedSender<String>, UnboundedReceiver<String>) {
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

async fn next(from: &mut UnboundedReceiver<String>, count: usize) -> Vec<String> {
    let mut items = Vec::new();
    while items.len() < count {
        items.push(within(from.recv()).await.unwrap());
    }
    items
}

/// With a lock path nothing is lost, whatever happens to the consumer's connection; twice is possible.
pub(crate) async fn nothing_is_lost<S: Servers>(world: &World<S>) {
    let producer = QueueBuilder::new(&world.other, "/q").lock_path("/locks").build().await.unwrap();
    until_answered(|| producer.put("a")).await.unwrap();
    until_answered(|| producer.put_multi(&[b"b", b"c"])).await.unwrap();
    let queue = QueueBuilder::new(&world.client, "/q").lock_path("/locks").build().await.unwrap();
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

/// Without a lock nothing comes twice. With one cut one item at most is lost.
pub(crate) async fn nothing_comes_twice<S: Servers>(world: &World<S>) {
    let producer = QueueBuilder::new(&world.other, "/q").build().await.unwrap();
    for item in ["a", "b", "c"] {
        producer.put(item).await.unwrap();
    }
    let queue = QueueBuilder::new(&world.client, "/q").build().await.unwrap();
    let (to, mut from) = sink();
    let _consumer = consume(&queue, &to);
    while !producer.is_empty().await.unwrap() {
        tokio::task::yield_now().await;
    }
    // One at a time: with a last one all before it are done.
    let mut seen = Vec::new();
    for last in ["x", "y"] {
        producer.put(last).await.unwrap();
    }
    while !matches!(seen.last().map(String::as_str), Some("y")) {
        match tokio::time::timeout(Duration::from_millis(500), from.recv()).await {
            Ok(item) => seen.push(item.unwrap()),
            Err(_) => break,
        }
    }
    let all = ["a", "b", "c", "x", "y"];
    assert!(seen.len() >= all.len() - 1, "{seen:?}");
    assert!(
        seen.iter().map(|item| all.iter().position(|a| a == item)).is_sorted_by(|a, b| a < b),
        "{seen:?}"
    );
}

#[tokio::test]
async fn without_a_lock_nothing_comes_twice() {
    at_every_cut(nothing_comes_twice).await;
}

pub(crate) async fn put<S: Servers>(world: &World<S>) {
    let queue = QueueBuilder::new(&world.client, "/q").build().await.unwrap();
    let (mut done, mut unknown) = (0, 0);
    for item in 0..3 {
        match queue.put(item.to_string()).await {
            Ok(()) => done += 1,
            Err(Error::ConnectionLoss { .. }) => unknown += 1,
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

/// CURATOR-623: a queue whose connection was lost goes on with what was put in meanwhile.
#[tokio::test]
async fn curator_623_a_consumer_goes_on_after_a_reconnect() {
    for lock in [false, true] {
        let world = World::new().await;
        let mut builder = QueueBuilder::new(&world.client, "/q");
        if lock {
            builder = builder.lock_path("/locks");
        }
        let queue = builder.build().await.unwrap();
        let producer = QueueBuilder::new(&world.other, "/q").build().await.unwrap();
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
async fn who_dies_with_an_item_leaves_it_to_others() {
    let world = World::new().await;
    let dying = QueueBuilder::new(&world.client, "/q").lock_path("/locks").build().await.unwrap();
    let queue = QueueBuilder::new(&world.other, "/q").lock_path("/locks").build().await.unwrap();
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

#[tokio::test]
async fn what_fails_is_put_back_or_deleted() {
    for (mode, expected) in
        [(ErrorMode::Requeue, vec!["bad", "good", "bad"]), (ErrorMode::Delete, vec!["bad", "good"])]
    {
        let world = World::new().await;
        let builder = QueueBuilder::new(&world.client, "/q").lock_path("/locks").error_mode(mode);
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
async fn ids_priorities_and_delays() {
    let world = World::new().await;
    let (to, mut from) = sink();
    let hand = |to: &UnboundedSender<String>| {
        let to = to.clone();
        move |item: Bytes| {
            to.send(text(&item)).unwrap();
            async { Ok::<_, Infallible>(()) }
        }
    };
    let ids = QueueBuilder::new(&world.client, "/ids").build_id().await.unwrap();
    for (item, id) in [("1", "z"), ("2", "a/b"), ("3", "z")] {
        ids.put(item, id).await.unwrap();
    }
    assert_eq!(ids.remove("z").await.unwrap(), 2);
    assert_eq!(ids.remove("z").await.unwrap(), 0);
    let consumer = ids.consume(hand(&to));
    assert_eq!(next(&mut from, 1).await, ["2"]);
    drop(consumer);

    let priorities = QueueBuilder::new(&world.client, "/priorities").build_priority(1).await.unwrap();
    for (item, priority) in [("later", 5), ("first", -1), ("second", 0)] {
        priorities.put(item, priority).await.unwrap();
    }
    let consumer = priorities.consume(hand(&to));
    assert_eq!(next(&mut from, 3).await, ["first", "second", "later"]);
    drop(consumer);

    let delays = QueueBuilder::new(&world.client, "/delays").build_delay().await.unwrap();
    let now = SystemTime::now();
    delays.put("never", now + LONG).await.unwrap();
    delays.put("soon", now + Duration::from_millis(50)).await.unwrap();
    delays.put("now", now).await.unwrap();
    let _consumer = delays.consume(hand(&to));
    assert_eq!(next(&mut from, 2).await, ["now", "soon"]);
    assert!(SystemTime::now() >= now + Duration::from_millis(50));
    assert_eq!(delays.len().await.unwrap(), 1);
}

#[tokio::test]
async fn a_full_queue_lets_producers_wait() {
    let world = World::new().await;
    let queue = QueueBuilder::new(&world.client, "/q").max_items(2).build().await.unwrap();
    queue.put("1").await.unwrap();
    queue.put("2").await.unwrap();
    let third = tokio::spawn({
        let queue = queue.clone();
        async move { queue.put("3").await }
    });
    within(world.server.until(|counts| counts.watches == 1)).await.unwrap();
    let (to, mut from) = sink();
    let _consumer = consume(&queue, &to);
    within(third).await.unwrap().unwrap();
    assert_eq!(next(&mut from, 3).await, ["1", "2", "3"]);
}

#[tokio::test]
async fn a_simple_queue() {
    let world = World::new().await;
    let queue = SimpleDistributedQueue::new(&world.client, "/deep/q");
    assert_eq!(queue.peek().await.unwrap(), None);
    assert_eq!(queue.poll().await.unwrap(), None);
    assert_eq!(queue.poll_at_most(Duration::from_millis(20)).await.unwrap(), None);
    within(world.no_watches()).await;
    let taking = tokio::spawn({
        let queue = queue.clone();
        async move { queue.take().await }
    });
    within(world.server.until(|counts| counts.watches == 1)).await.unwrap();
    world.proxy.cut_now();
    let other = SimpleDistributedQueue::new(&world.other, "/deep/q");
    for item in ["1", "2", "3"] {
        other.offer(item).await.unwrap();
    }
    assert_eq!(&within(taking).await.unwrap().unwrap()[..], b"1");
    assert_eq!(queue.peek().await.unwrap().as_deref(), Some(&b"2"[..]));
    assert_eq!(queue.poll().await.unwrap().as_deref(), Some(&b"2"[..]));
    assert_eq!(queue.poll_at_most(LONG).await.unwrap().as_deref(), Some(&b"3"[..]));
    assert_eq!(queue.poll().await.unwrap(), None);
}
