//! Recipes that are begun in another runtime than their client's go on to their end when that runtime ends.

use crate::{
    servers::{elsewhere, patiently},
    world::{World, within},
};
use ostler_client::{Bytes, Client, CreateMode};
use ostler_recipes::{
    cache::CuratorCache,
    counter::SharedCount,
    nodes::{GroupMember, PersistentNode},
    partitioner::SetPartitioner,
    queue::DistributedQueue,
};
use std::{convert::Infallible, future::pending, time::Duration};
use tokio::sync::mpsc;

/// Keeps something in a task of this runtime, for as long as that lives.
fn keep<T: Send + 'static>(what: T) {
    tokio::spawn(async move {
        let _what = what;
        pending::<()>().await;
    });
}

async fn is_there(client: &Client, path: &str) -> bool {
    client.exists(path).await.unwrap().is_some()
}

/// Waits until a znode is there, or is not.
async fn until_there(client: &Client, path: &str, wanted: bool) {
    patiently(format!("{path} is there: {wanted}"), async {
        loop {
            let (found, changed) = client.exists(path).watch().await.unwrap();
            if found.is_some() == wanted {
                return;
            }
            changed.await.unwrap();
        }
    })
    .await;
}

#[tokio::test]
async fn a_node_of_a_runtime_that_ends_is_deleted() {
    for mode in [CreateMode::Ephemeral, CreateMode::Persistent] {
        let world = World::new().await;
        let client = world.client.clone();
        elsewhere(async move {
            let node = PersistentNode::builder(&client, "/n", b"").mode(mode).start().unwrap();
            node.created().await.unwrap();
            keep(node);
        })
        .await;
        until_there(&world.other, "/n", false).await;
        within(world.end()).await;
    }
}

#[tokio::test]
async fn a_node_that_outlives_the_runtime_in_which_it_was_started_is_kept() {
    let world = World::new().await;
    let client = world.client.clone();
    let node = elsewhere(async move {
        let node = PersistentNode::start(&client, "/n", b"").unwrap();
        node.created().await.unwrap();
        node
    })
    .await;
    world.other.delete("/n").quietly().await.unwrap();
    until_there(&world.other, "/n", true).await;
    within(node.set_data(b"2")).await.unwrap();
    drop(node);
    until_there(&world.other, "/n", false).await;
    within(world.end()).await;
}

#[tokio::test]
async fn a_member_of_a_group_that_is_in_a_runtime_that_ends_has_left() {
    let world = World::new().await;
    let client = world.client.clone();
    elsewhere(async move {
        let member = GroupMember::start(&client, "/g", "a", b"").unwrap();
        member.joined().await.unwrap();
        keep(member);
    })
    .await;
    until_there(&world.other, "/g/a", false).await;
    within(world.end()).await;
}

#[tokio::test]
async fn a_share_of_a_runtime_that_ends_is_let_go_of() {
    let world = World::new().await;
    let client = world.client.clone();
    let member = |client: &Client, id| {
        SetPartitioner::start(client, "/s", id, ["1".to_owned()], Duration::from_millis(4)).unwrap()
    };
    elsewhere(async move {
        let mut member = member(&client, "a");
        let share = member.acquire().await.unwrap();
        keep((member, share));
    })
    .await;
    let mut next = member(&world.other, "b");
    patiently("the next one has it all", async {
        loop {
            let share = next.acquire().await.unwrap();
            if share.items() == ["1"] {
                return share.release().await.unwrap();
            }
            share.ended().await;
            share.release().await.unwrap();
        }
    })
    .await;
    drop(next);
    within(world.end()).await;
}

/// A share that is dropped by somebody else after the runtime in which it was taken has ended.
#[tokio::test]
async fn a_share_that_outlives_its_runtime_is_let_go_of_when_it_is_dropped() {
    let world = World::new().await;
    let client = world.client.clone();
    let (member, share, item) = elsewhere(async move {
        let settle = Duration::from_millis(4);
        let mut member = SetPartitioner::start(&client, "/s", "a", ["1".to_owned()], settle).unwrap();
        let share = member.acquire().await.unwrap();
        let item = share.fences().next().unwrap().1.node().to_owned();
        (member, share, item)
    })
    .await;
    assert!(is_there(&world.other, &item).await);
    drop(share);
    until_there(&world.other, &item, false).await;
    drop(member);
    until_there(&world.other, "/s/party/a", false).await;
    within(world.end()).await;
}

#[tokio::test]
async fn an_item_that_is_consumed_in_a_runtime_that_ends_is_left_to_others() {
    let world = World::new().await;
    let queue = |client: &Client| DistributedQueue::builder(client, "/q").lock_path("/q-locks").build();
    let (ours, theirs) = (queue(&world.client).await.unwrap(), queue(&world.other).await.unwrap());
    ours.put(b"1").await.unwrap();
    elsewhere(async move {
        let (to, mut begun) = mpsc::unbounded_channel();
        keep(ours.consume(move |_: Bytes| {
            to.send(()).unwrap();
            pending::<Result<(), Infallible>>()
        }));
        begun.recv().await.unwrap();
    })
    .await;
    let (to, mut consumed) = mpsc::unbounded_channel();
    let _consumer = theirs.consume(move |item: Bytes| {
        let _ = to.send(item);
        async { Ok::<(), Infallible>(()) }
    });
    assert_eq!(patiently("consumed by another one", consumed.recv()).await.unwrap(), "1");
}

#[tokio::test]
async fn a_cache_that_outlives_the_runtime_in_which_it_was_started_goes_on() {
    let world = World::new().await;
    world.other.create("/t", b"1").await.unwrap();
    let client = world.client.clone();
    let cache = elsewhere(async move {
        let cache = CuratorCache::start(&client, "/t").unwrap();
        cache.initialized().await.unwrap();
        cache
    })
    .await;
    let mut events = cache.events();
    world.other.set_data("/t", b"2").await.unwrap();
    within(async {
        while cache.get("/t").is_none_or(|node| node.data != "2") {
            events.next().await.expect("it goes on");
        }
    })
    .await;
}

#[tokio::test]
async fn a_count_that_outlives_the_runtime_in_which_it_was_started_goes_on() {
    let world = World::new().await;
    let client = world.client.clone();
    let count = elsewhere(async move { SharedCount::start(&client, "/c", 1).await.unwrap() }).await;
    let mut changes = count.changes();
    let theirs = SharedCount::start(&world.other, "/c", 1).await.unwrap();
    theirs.set(2).await.unwrap();
    patiently("the new count", async {
        while count.count().unwrap() != 2 {
            changes.next().await.expect("it goes on").unwrap();
        }
    })
    .await;
}
