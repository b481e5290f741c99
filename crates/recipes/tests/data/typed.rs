//! Typed znodes and their caches.

use crate::world::{World, within};
use ostler_recipes::{
    ostler_client::{CreateMode, Version},
    serde::{Deserialize, Serialize},
    typed::{Error, Typed, TypedEvent},
};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(crate = "ostler_recipes::serde")]
struct Worker {
    host: String,
    load: u32,
}

fn worker(load: u32) -> Worker {
    Worker { host: "h".into(), load }
}

#[tokio::test]
async fn values_are_created_read_updated_by_version_and_deleted() {
    within(async {
        let world = World::new().await;
        let workers = Typed::<Worker>::new(&world.client, "/workers");
        let one = workers.child("one");
        assert_eq!(one.read_if_exists().await.unwrap(), None);
        one.create(&worker(1)).mode(CreateMode::Ephemeral).creating_parents().await.unwrap();
        assert_eq!(world.other.get_data("/workers/one").await.unwrap().0, r#"{"host":"h","load":1}"#);
        let read = one.read().await.unwrap();
        assert_eq!((&read.value, read.version()), (&worker(1), Version::Exactly(0)));
        one.update(&worker(2)).version(read.version()).await.unwrap();
        let late = one.update(&worker(3)).version(read.version()).await.unwrap_err();
        assert!(late.client().is_some_and(|error| error.is_bad_version()), "{late}");
        one.create(&worker(4)).or_update().await.unwrap();
        assert_eq!(one.read().await.unwrap().value, worker(4));
        let children = workers.children().await.unwrap();
        assert_eq!(children.iter().map(Typed::path).collect::<Vec<_>>(), ["/workers/one"]);
        one.delete(Version::Exactly(2)).await.unwrap();
        let gone = one.read().await.unwrap_err();
        assert!(gone.client().is_some_and(|error| error.is_no_node()), "{gone}");
        let parent = workers.read().await.unwrap_err();
        assert!(matches!(&parent, Error::Decode { path, .. } if &**path == "/workers"), "{parent}");
    })
    .await;
}

#[tokio::test]
async fn a_value_that_cannot_be_written_is_not_sent() {
    within(async {
        let world = World::new().await;
        // JSON has strings for keys only.
        let map = Typed::<std::collections::BTreeMap<Vec<u8>, u8>>::new(&world.client, "/map");
        let error = map.create(&[(vec![1], 1)].into()).await.unwrap_err();
        assert!(matches!(error, Error::Encode { .. }), "{error}");
        assert_eq!(world.client.exists("/map").await.unwrap(), None);
    })
    .await;
}

#[tokio::test]
async fn a_cache_goes_on_after_data_that_is_no_value() {
    within(async {
        let world = World::new().await;
        let root = Typed::<u32>::new(&world.client, "/numbers");
        root.child("a").create(&1).creating_parents().await.unwrap();
        let cache = root.cache().unwrap();
        cache.initialized().await.unwrap();
        let mut events = cache.events();
        let mut seen = Vec::new();
        while seen.last() != Some(&"initialized".to_owned()) {
            seen.push(told(events.next().await.unwrap()));
        }
        assert_eq!(seen, ["+ /numbers broken", "+ /numbers/a 1", "initialized"]);
        world.other.set_data("/numbers/a", b"{").await.unwrap();
        assert_eq!(told(events.next().await.unwrap()), "= /numbers/a broken");
        world.other.set_data("/numbers/a", b"7").await.unwrap();
        assert_eq!(told(events.next().await.unwrap()), "= /numbers/a 7");
        assert_eq!(cache.get("/numbers/a").unwrap().value, Ok(7));
        world.other.create("/numbers/b", b"8").await.unwrap();
        assert_eq!(told(events.next().await.unwrap()), "+ /numbers/b 8");
        assert_eq!(
            cache.children("/numbers").iter().filter_map(|node| node.value.clone().ok()).sum::<u32>(),
            15
        );
        world.other.delete("/numbers/a").await.unwrap();
        assert_eq!(told(events.next().await.unwrap()), "- /numbers/a 7");
        drop(cache);
        assert_eq!(events.next().await, None);
    })
    .await;
}

fn told(event: TypedEvent<u32>) -> String {
    let (sign, node) = match event {
        TypedEvent::Created(node) => ("+", node),
        TypedEvent::Changed(node) => ("=", node),
        TypedEvent::Deleted(node) => ("-", node),
        TypedEvent::Initialized => return "initialized".into(),
        other => panic!("{other:?}"),
    };
    format!("{sign} {} {}", node.path, node.value.map_or("broken".into(), |value| value.to_string()))
}

#[cfg(feature = "gzip")]
#[tokio::test]
async fn values_can_be_compressed() {
    use ostler_recipes::typed::{Compressed, Json};
    within(async {
        let world = World::new().await;
        let texts =
            Typed::<String>::new(&world.client, "/text").with_codec(Compressed::new(Json).max_size(5000));
        texts.create(&"long ".repeat(500)).await.unwrap();
        let read = texts.read().await.unwrap();
        assert!(read.value == "long ".repeat(500) && read.stat.data_length < 100);
        texts.update(&"x".repeat(6000)).await.unwrap();
        assert!(matches!(texts.read().await, Err(Error::Decode { .. })), "above the limit");
    })
    .await;
}
