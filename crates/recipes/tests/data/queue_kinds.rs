//! The queues with an order of their own, and the one without a consumer.

use crate::{
    queues::{next, sink, text},
    servers::{PATIENCE, Servers, faults},
    world::{
        World, at_every_cut, server, struck_at, until_answered, with_expiry_after_every_request, within,
    },
};
use ostler_client::{Bytes, Client, Error};
use ostler_recipes::queue::{Consumer, DistributedQueue, QueueBuilder, SimpleDistributedQueue};
use ostler_testkit::{CutPoint, TestServer};
use std::{
    cell::Cell,
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering::SeqCst},
    },
    time::{Duration, SystemTime},
};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};

const LONG: Duration = Duration::from_secs(3600);
const SOON: Duration = Duration::from_millis(20);

/// Items of which each try to put one in has a name of its own: a try whose reply was lost may have done it.
#[derive(Default)]
struct Tries(AtomicU32);

impl Tries {
    async fn put<F>(&self, item: &str, mut put: impl FnMut(String) -> F)
    where
        F: Future<Output = Result<(), Error>>,
    {
        until_answered(|| put(format!("{item}-{}", self.0.fetch_add(1, SeqCst)))).await.unwrap();
    }
}

/// Whether there is something to do over in the next connection, or in the next session.
fn passes(error: &Error) -> bool {
    error.is_connection_trouble() || matches!(error, Error::SessionExpired { .. })
}

/// Without the number of the try.
fn item(text: &str) -> &str {
    text.split_once('-').map_or(text, |(item, _)| item)
}

/// The items in the order in which each was first given out.
fn order(items: &[String]) -> Vec<&str> {
    let mut order: Vec<&str> = Vec::new();
    for item in items.iter().map(|text| item(text)) {
        if !order.contains(&item) {
            order.push(item);
        }
    }
    order
}

fn no_item_twice(items: &[String]) {
    let mut all = items.to_vec();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), items.len(), "{items:?}");
}

/// Items come in their order, and none twice. One whose taking was disturbed can be lost; its taker is told.
pub(crate) async fn take_and_poll<S: Servers>(world: &World<S>) {
    let here = SimpleDistributedQueue::new(&world.client, "/deep/q");
    let there = SimpleDistributedQueue::new(&world.other, "/deep/q");
    assert_eq!(until_answered(|| here.poll()).await.unwrap(), None);
    let tries = Tries::default();
    let told = |error: Error| assert!(passes(&error), "{error}");
    // There is nothing yet, so it waits.
    let taking = async { here.take().await.map(|item| text(&item)) };
    let offering = async {
        for item in ["a", "b", "c"] {
            tries.put(item, |item| there.offer(item)).await;
        }
    };
    let (first, ()) = tokio::join!(taking, offering);
    let mut unknown = usize::from(first.is_err());
    let mut taken: Vec<String> = first.map_err(told).into_iter().collect();
    world.let_client_see().await;
    loop {
        match here.poll().await {
            Ok(Some(item)) => taken.push(text(&item)),
            Ok(None) => break,
            Err(error) => {
                unknown += 1;
                told(error);
            }
        }
    }
    no_item_twice(&taken);
    assert!(taken.is_sorted_by_key(|text| item(text).to_owned()), "{taken:?}");
    assert!(order(&taken).len() + unknown >= 3, "{taken:?}, {unknown} unknown");
    world.let_other_see().await;
    assert_eq!(there.peek().await.unwrap(), None);
}

#[tokio::test]
async fn a_simple_queue_survives_a_cut_at_every_message() {
    at_every_cut(take_and_poll).await;
}

#[tokio::test]
async fn a_simple_queue_survives_the_end_of_its_session_at_every_step() {
    with_expiry_after_every_request(take_and_poll).await;
}

/// Without a lock nothing comes twice. With one fault one item at most is lost.
pub(crate) async fn nothing_comes_twice<S: Servers>(world: &World<S>) {
    let producer = DistributedQueue::builder(&world.other, "/q").build().await.unwrap();
    let queue = DistributedQueue::builder(&world.client, "/q").build().await.unwrap();
    let tries = Tries::default();
    for item in ["a", "b", "c"] {
        tries.put(item, |item| producer.put(item)).await;
    }
    let (hand, mut from) = hand_out();
    let consumer = queue.consume(hand);
    // One at a time: once the last one is taken, those before it are consumed.
    for item in ["d", "e", "last"] {
        tries.put(item, |item| producer.put(item)).await;
        until_left(world, "/q", 0).await;
    }
    drop(consumer);
    let items = rest(&mut from).await;
    no_item_twice(&items);
    assert!(items.is_sorted_by_key(|text| item(text).to_owned()), "{items:?}");
    let lost = ["a", "b", "c", "d", "e"].iter().filter(|item| !order(&items).contains(item)).count();
    assert!(lost <= 1, "{items:?}");
}

#[tokio::test]
async fn without_a_lock_nothing_comes_twice() {
    at_every_cut(nothing_comes_twice).await;
}

/// Takes all that is in the queue, as a consumer elsewhere does; gives the names.
async fn take_all(client: &Client) -> Vec<String> {
    let mut taken = Vec::new();
    for name in client.get_children("/q").await.unwrap() {
        if client.delete(&format!("/q/{name}")).await.is_ok() {
            taken.push(name);
        }
    }
    taken
}

/// The connection breaks at a request of the consumer, and before it is back another one takes what is there: that does
/// not come, even if the request was to delete it. Gives the consumer's requests, and if it came to that one, how many
/// the other one took.
async fn race(server: &Arc<TestServer>, number: usize, request: Option<u64>) -> (u64, Option<usize>) {
    let world = World::on(server.clone(), &format!("/race-{number}"), None).await;
    let producer = DistributedQueue::builder(&world.other, "/q").build().await.unwrap();
    let put = async |item: &str| producer.put(item).await.unwrap();
    put("first").await;
    let before = world.proxy.requests();
    let exchange = async {
        let (hand, mut from) = hand_out();
        let consumer = DistributedQueue::builder(&world.client, "/q").build().await.unwrap().consume(hand);
        // Once the last one is taken, those before it are consumed.
        for item in ["second", "last"] {
            until_left(&world, "/q", 0).await;
            put(item).await;
        }
        until_left(&world, "/q", 0).await;
        drop(consumer);
        rest(&mut from).await
    };
    let Some(request) = request else {
        within(exchange).await;
        let requests = world.proxy.requests() - before;
        within(world.end()).await;
        return (requests, None);
    };
    let point = CutPoint::BeforeRequest(before + request);
    let (mut items, taken) = within(struck_at(&world, point, exchange, take_all(&world.other))).await;
    items.retain(|item| item != "last");
    let is_taken = |count: &str| taken.iter().flatten().any(|name| name.ends_with(count));
    let left = ["first", "second"].iter().zip(["0000000000", "0000000001"]);
    let left: Vec<&str> = left.filter(|(_, count)| !is_taken(count)).map(|(item, _)| *item).collect();
    assert_eq!(items, left, "request {request}, taken by another: {taken:?}");
    let requests = world.proxy.requests() - before;
    within(world.end()).await;
    (requests, taken.map(|taken| taken.len()))
}

#[tokio::test]
async fn without_a_lock_an_item_that_another_consumer_took_is_not_delivered() {
    let server = server().await;
    let undisturbed = async |number| (race(&server, number, None).await.0, 0);
    let (requests, _) = faults::count(undisturbed).await;
    let taken_in_all = Cell::new(0);
    let play = async |number, request: &u64| {
        let (_, taken) = race(&server, number, Some(*request)).await;
        taken_in_all.update(|sum| sum + taken.unwrap_or(0));
        taken.is_some()
    };
    faults::at_each(1..=requests, play).await;
    assert!(taken_in_all.get() >= 4, "the other one took {}", taken_in_all.get());
}

fn under_lock(client: &Client) -> QueueBuilder {
    DistributedQueue::builder(client, "/q").lock_path("/locks")
}

/// Waits until this number of znodes is left.
async fn until_left(world: &World<impl Servers>, path: &str, left: usize) {
    loop {
        world.let_other_see().await;
        let (names, changed) = world.other.get_children(path).watch().await.unwrap();
        if names.len() <= left {
            return;
        }
        changed.await.unwrap();
    }
}

async fn rest(from: &mut Items) -> Vec<String> {
    let mut items = Vec::new();
    while let Some(item) = from.recv().await {
        items.push(item);
    }
    items
}

/// Consumes until a number of items is left; gives what it was given.
async fn consume(
    world: &World<impl Servers>,
    left: usize,
    (consumer, mut from): (Consumer, Items),
) -> Vec<String> {
    until_left(world, "/q", left).await;
    // They go with the items, or with the session.
    until_left(world, "/locks", 0).await;
    drop(consumer);
    rest(&mut from).await
}

type Items = UnboundedReceiver<String>;

/// A consumer's function that hands each item to the test, and where they come out. That ends with the consumer.
fn hand_out() -> (impl FnMut(Bytes) -> std::future::Ready<Result<(), Infallible>> + Send + 'static, Items) {
    let (to, from) = sink();
    let hand = move |item: Bytes| {
        to.send(text(&item)).unwrap();
        std::future::ready(Ok(()))
    };
    (hand, from)
}

/// An item that is removed by its id is not consumed, and nothing else is lost.
pub(crate) async fn remove_by_id<S: Servers>(world: &World<S>) {
    let (producer, tries) = (under_lock(&world.other).build_id_queue().await.unwrap(), Tries::default());
    for (item, id) in [("1", "z"), ("2", "a/b"), ("3", "z")] {
        tries.put(item, |item| producer.put(item, id)).await;
    }
    let queue = under_lock(&world.client).build_id_queue().await.unwrap();
    world.let_client_see().await;
    let mut removed = 0;
    loop {
        removed += queue.remove("z").await.unwrap();
        world.let_other_see().await;
        let names = world.other.get_children("/q").await.unwrap();
        if names.iter().all(|name| name.contains("|a_b|")) {
            break;
        }
    }
    assert!(removed >= 1, "those of a lost session are not counted");
    let (hand, from) = hand_out();
    let items = consume(world, 0, (queue.consume(hand), from)).await;
    assert_eq!(order(&items), ["2"]);
}

/// The order is that of the priorities, also when an item comes twice.
pub(crate) async fn by_priority<S: Servers>(world: &World<S>) {
    let (producer, tries) =
        (under_lock(&world.other).build_priority_queue(1).await.unwrap(), Tries::default());
    for (item, priority) in [("later", 5), ("first", -1), ("second", 0)] {
        tries.put(item, |item| producer.put(item, priority)).await;
    }
    let queue = under_lock(&world.client).build_priority_queue(1).await.unwrap();
    world.let_client_see().await;
    let (hand, from) = hand_out();
    let items = consume(world, 0, (queue.consume(hand), from)).await;
    assert_eq!(order(&items), ["first", "second", "later"]);
}

/// Nothing comes out before its time, and what is due comes in the order of that.
pub(crate) async fn when_due<S: Servers>(world: &World<S>) {
    let (producer, tries) = (under_lock(&world.other).build_delay_queue().await.unwrap(), Tries::default());
    let now = SystemTime::now();
    tries.put("never", |item| producer.put(item, now + LONG)).await;
    let never = producer.len().await.unwrap();
    for (item, due) in [("soon", now + SOON), ("before", now - LONG)] {
        tries.put(item, |item| producer.put(item, due)).await;
    }
    let queue = under_lock(&world.client).build_delay_queue().await.unwrap();
    world.let_client_see().await;
    let (hand, from) = hand_out();
    let items = consume(world, never, (queue.consume(hand), from)).await;
    assert_eq!(order(&items), ["before", "soon"]);
    // Times go in whole ms.
    assert!(SystemTime::now() + Duration::from_millis(1) > now + SOON);
}

#[tokio::test]
async fn queues_with_an_order_survive_a_cut_at_every_message() {
    at_every_cut(remove_by_id).await;
    at_every_cut(by_priority).await;
    at_every_cut(when_due).await;
}

#[tokio::test]
async fn queues_with_an_order_survive_the_end_of_a_session_at_every_step() {
    with_expiry_after_every_request(remove_by_id).await;
    with_expiry_after_every_request(by_priority).await;
    with_expiry_after_every_request(when_due).await;
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
    let ids = DistributedQueue::builder(&world.client, "/ids").build_id_queue().await.unwrap();
    for (item, id) in [("1", "z"), ("2", "a/b"), ("3", "z"), ("4", "a/b|c")] {
        ids.put(item, id).await.unwrap();
    }
    assert_eq!(ids.remove("a/b|c").await.unwrap(), 1);
    assert_eq!(ids.remove("z").await.unwrap(), 2);
    assert_eq!(ids.remove("z").await.unwrap(), 0);
    let consumer = ids.consume(hand(&to));
    assert_eq!(next(&mut from, 1).await, ["2"]);
    drop(consumer);

    let priorities =
        DistributedQueue::builder(&world.client, "/priorities").build_priority_queue(1).await.unwrap();
    for (item, priority) in [("later", 5), ("first", -1), ("second", 0)] {
        priorities.put(item, priority).await.unwrap();
    }
    let consumer = priorities.consume(hand(&to));
    assert_eq!(next(&mut from, 3).await, ["first", "second", "later"]);
    drop(consumer);

    let delays = DistributedQueue::builder(&world.client, "/delays").build_delay_queue().await.unwrap();
    let now = SystemTime::now();
    delays.put("never", now + LONG).await.unwrap();
    delays.put("soon", now + Duration::from_millis(50)).await.unwrap();
    delays.put("now", now).await.unwrap();
    let consumer = delays.consume(hand(&to));
    assert_eq!(next(&mut from, 2).await, ["now", "soon"]);
    assert!(SystemTime::now() >= now + Duration::from_millis(50));
    assert_eq!(delays.len().await.unwrap(), 1);
    drop(consumer);
    within(world.end()).await;
}

#[tokio::test]
async fn a_simple_queue() {
    let world = World::new().await;
    let queue = SimpleDistributedQueue::new(&world.client, "/deep/q");
    assert_eq!(queue.peek().await.unwrap(), None);
    assert_eq!(queue.poll().await.unwrap(), None);
    assert_eq!(queue.poll_within(Duration::from_millis(20)).await.unwrap(), None);
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
    assert_eq!(queue.poll_within(Duration::MAX).await.unwrap().as_deref(), Some(&b"3"[..]));
    assert_eq!(queue.poll().await.unwrap(), None);
    within(world.end()).await;
}

#[tokio::test]
async fn polling_a_simple_queue_ends_at_its_limit_without_a_connection() {
    let world = World::new().await;
    let queue = SimpleDistributedQueue::new(&world.client, "/q");
    queue.offer("a").await.unwrap();
    world.proxy.block();
    assert_eq!(within(queue.poll_within(Duration::from_millis(30))).await.unwrap(), None);
    world.proxy.heal();
    assert_eq!(within(queue.poll_within(PATIENCE)).await.unwrap().unwrap(), "a");
    within(world.end()).await;
}
