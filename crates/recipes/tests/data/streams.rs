//! The changes that recipes report, as streams.

use crate::world::{World, within};
use futures_util::{FutureExt, StreamExt};
use ostler_recipes::{
    cache::{CacheEvent, CuratorCache, PathChildrenCache, PathEvent},
    counter::SharedCount,
    leader::{LeaderChange, LeaderLatch, LeaderSelector, Leadership, SelectorState},
    nodes::PersistentNode,
};

#[tokio::test]
async fn changes_are_streams_that_lose_nothing_when_a_wait_is_dropped() {
    within(async {
        let world = World::new().await;
        let client = &world.client;
        client.create("/t", b"").await.unwrap();

        let cache = CuratorCache::start(client, "/t").unwrap();
        let children = PathChildrenCache::start(client, "/t").unwrap();
        cache.initialized().await.unwrap();
        children.initialized().await.unwrap();
        let (mut events, mut of_children) = (cache.events().skip(2), children.events().skip(1));
        assert!(StreamExt::next(&mut events).now_or_never().is_none(), "nothing has changed");
        assert!(StreamExt::next(&mut of_children).now_or_never().is_none(), "nothing has changed");
        world.other.create("/t/a", b"").await.unwrap();
        let Some(CacheEvent::Created(node)) = events.next().await else { panic!("another event") };
        assert_eq!(node.path, "/t/a");
        assert!(matches!(of_children.next().await, Some(PathEvent::ChildAdded(node)) if node.name() == "a"));

        let count = SharedCount::start(client, "/count", 1).await.unwrap();
        let mut counts = count.changes();
        assert!(StreamExt::next(&mut counts).now_or_never().is_none(), "nothing has changed");
        count.set(2).await.unwrap();
        assert_eq!(StreamExt::next(&mut counts).await.unwrap().unwrap().value, 2);

        let node = PersistentNode::start(client, "/node", b"").unwrap();
        assert_eq!(StreamExt::next(&mut node.creations()).await.as_deref(), Some("/node"));

        let latch = LeaderLatch::new(client, "/latch", "me");
        let mut changes = latch.changes();
        assert!(StreamExt::next(&mut changes).now_or_never().is_none(), "nobody leads");
        latch.start();
        let Some(LeaderChange::IsLeader(fence)) = StreamExt::next(&mut changes).await else {
            panic!("no leader")
        };
        assert!(fence.is_held());
        latch.close().await;
        assert!(StreamExt::next(&mut changes).await.is_none());
    })
    .await;
}

#[tokio::test]
async fn a_selectors_states_are_a_stream_that_ends_with_it() {
    within(async {
        let world = World::new().await;
        let lead = |_: Leadership| std::future::pending::<()>();
        let selector = LeaderSelector::builder(&world.client, "/selector", lead).start();
        let mut states = selector.states();
        assert!(matches!(StreamExt::next(&mut states).await, Some(SelectorState::Queued)));
        let Some(SelectorState::Leading(fence)) = states.next().await else { panic!("it does not lead") };
        assert!(fence.is_held());
        selector.close().await;
        let rest: Vec<SelectorState> = states.collect().await;
        assert!(matches!(rest.last(), Some(SelectorState::Closed)), "{rest:?}");
    })
    .await;
}
