//! Caches.

use crate::{
    servers::{Servers, patiently},
    world::{World, at_every_cut, builder, with_expiry_after_every_request, within},
};
use ostler_client::{Acl, Client, Error, Perms};
use ostler_recipes::cache::{CacheEvent, CacheEvents, CuratorCache, NodeCache, PathChildrenCache, PathEvent};
use ostler_testkit::Direction;
use std::{collections::BTreeMap, time::Duration};

/// The znodes by the events so far.
#[derive(Default)]
struct Told {
    nodes: BTreeMap<String, String>,
    log: Vec<String>,
}

impl Told {
    fn hear(&mut self, event: &CacheEvent) {
        let text = |data: &[u8]| String::from_utf8_lossy(data).into_owned();
        match event {
            CacheEvent::Created(node) => {
                let before = self.nodes.insert(node.path.clone(), text(&node.data));
                assert_eq!(before, None, "{} is created twice", node.path);
                self.log.push(format!("+{}", node.path));
            }
            CacheEvent::Changed { old, new } => {
                let before = self.nodes.insert(new.path.clone(), text(&new.data));
                assert_eq!(before, Some(text(&old.data)));
                self.log.push(format!("={}", new.path));
            }
            CacheEvent::Deleted(node) => {
                assert!(self.nodes.remove(&node.path).is_some(), "{} was never there", node.path);
                self.log.push(format!("-{}", node.path));
            }
            CacheEvent::Initialized => self.log.push("initialized".into()),
            other => panic!("{other:?}"),
        }
    }

    /// Hears events until there is what is expected.
    async fn until(&mut self, events: &mut CacheEvents, expected: &[(&str, &str)]) {
        let expected: BTreeMap<String, String> =
            expected.iter().map(|(path, data)| (path.to_string(), data.to_string())).collect();
        while self.nodes != expected {
            self.hear(&events.next().await.unwrap());
        }
    }
}

async fn writes(client: &Client) {
    client.create("/t/b/c", b"1").creating_parents().idempotent().await.unwrap();
    client.set_data("/t/a", b"2").idempotent().await.unwrap();
    client.delete("/t/x").deleting_children().idempotent().await.unwrap();
    // With the same version as before.
    client.delete("/t/again").idempotent().await.unwrap();
    client.create("/t/again", b"new").idempotent().await.unwrap();
}

/// A tree before, changes, and the tree after, through a cache.
pub(crate) async fn follow<S: Servers>(world: &World<S>, one_shot: bool) {
    let other = &world.other;
    for path in ["/t", "/t/a", "/t/x", "/t/x/y", "/t/again"] {
        // With the session ended at a request that comes twice the tree is there already.
        other.create(path, b"1").idempotent().await.unwrap();
    }
    world.let_client_see().await;
    let mut cache = CuratorCache::builder(&world.client, "/t");
    if one_shot {
        cache = cache.one_shot_watches();
    }
    let cache = cache.start().unwrap();
    let (mut told, mut events) = (Told::default(), cache.events());
    cache.initialized().await.unwrap();
    assert_eq!(cache.len(), 5);
    writes(other).await;
    let expected = [("/t", "1"), ("/t/a", "2"), ("/t/again", "new"), ("/t/b", ""), ("/t/b/c", "1")];
    told.until(&mut events, &expected).await;
    assert_eq!(told.log.iter().filter(|event| *event == "initialized").count(), 1);
    let again = told.log.iter().filter(|event| event.ends_with("/t/again")).collect::<Vec<_>>();
    assert_eq!(again, ["+/t/again", "-/t/again", "+/t/again"]);
    assert_eq!(cache.children("/t").iter().map(|node| node.name()).collect::<Vec<_>>(), ["a", "again", "b"]);
    drop(cache);
    // Another try to write the same can have been seen, if the writer had to make one.
    let there = told.nodes.clone();
    while let Some(event) = events.next().await {
        told.hear(&event);
    }
    assert_eq!(told.nodes, there);
}

#[tokio::test]
async fn a_cache_survives_a_cut_at_every_message() {
    at_every_cut(async |world| follow(world, false).await).await;
}

#[tokio::test]
async fn a_cache_on_one_shot_watches_survives_a_cut_at_every_message() {
    at_every_cut(async |world| follow(world, true).await).await;
}

#[tokio::test]
async fn a_cache_survives_the_end_of_its_session_at_every_step() {
    with_expiry_after_every_request(async |world| follow(world, false).await).await;
    with_expiry_after_every_request(async |world| follow(world, true).await).await;
}

#[tokio::test]
async fn changes_without_a_connection_are_found_after_the_reconnect() {
    for one_shot in [false, true] {
        let world = World::new().await;
        for path in ["/t", "/t/a", "/t/x", "/t/x/y", "/t/again"] {
            world.other.create(path, b"1").await.unwrap();
        }
        let mut cache = CuratorCache::builder(&world.client, "/t");
        if one_shot {
            cache = cache.one_shot_watches();
        }
        let cache = cache.start().unwrap();
        within(cache.initialized()).await.unwrap();
        let (mut told, mut events) = (Told::default(), cache.events());
        world.proxy.block();
        writes(&world.other).await;
        world.proxy.heal();
        let expected = [("/t", "1"), ("/t/a", "2"), ("/t/again", "new"), ("/t/b", ""), ("/t/b/c", "1")];
        within(told.until(&mut events, &expected)).await;
        // A deletion that nobody has seen is told all the same, children first.
        let place = |event: &str| told.log.iter().position(|told| told == event).unwrap();
        assert!(place("-/t/x/y") < place("-/t/x"));
        assert!(told.log.contains(&"-/t/again".to_owned()), "{:?}", told.log);
        drop(cache);
        within(world.no_watches()).await;
    }
}

#[tokio::test]
async fn cache_of_a_missing_znode_is_initialized_and_waits() {
    for one_shot in [false, true] {
        let world = World::new().await;
        let mut cache = CuratorCache::builder(&world.client, "/t");
        if one_shot {
            cache = cache.one_shot_watches();
        }
        let cache = cache.start().unwrap();
        let (mut told, mut events) = (Told::default(), cache.events());
        within(cache.initialized()).await.unwrap();
        assert!(cache.is_initialized() && cache.is_empty());
        for round in 0..3 {
            world.other.create("/t/a", b"1").creating_parents().await.unwrap();
            within(told.until(&mut events, &[("/t", ""), ("/t/a", "1")])).await;
            assert_eq!(cache.len(), 2);
            world.other.delete("/t").deleting_children().await.unwrap();
            within(told.until(&mut events, &[])).await;
            assert!(cache.is_empty(), "round {round}");
        }
        drop(cache);
        within(world.end()).await;
    }
}

/// CURATOR-388: a path cache went silent when its znode had gone and come back.
#[tokio::test]
async fn curator_388_a_path_cache_outlives_its_znode() {
    let world = World::new().await;
    let cache = PathChildrenCache::start(&world.client, "/p").unwrap();
    let mut events = cache.events();
    within(cache.initialized()).await.unwrap();
    assert_eq!(events.next().await, Some(PathEvent::Initialized));
    for _ in 0..2 {
        world.other.create("/p/child/deep", b"").creating_parents().await.unwrap();
        let added = within(events.next()).await.unwrap();
        assert!(matches!(added, PathEvent::ChildAdded(node) if node.name() == "child"));
        assert_eq!(cache.children().len(), 1);
        assert!(cache.child("child").is_some() && cache.child("deep").is_none());
        world.other.delete("/p").deleting_children().await.unwrap();
        let removed = within(events.next()).await.unwrap();
        assert!(matches!(removed, PathEvent::ChildRemoved(node) if node.name() == "child"));
    }
    drop(cache);
    within(world.end()).await;
}

/// CURATOR-391: a znode that was deleted and created again unnoticed has the same version and other data.
#[tokio::test]
async fn curator_391_the_version_does_not_tell_a_change() {
    let world = World::new().await;
    world.other.create("/n", b"old").await.unwrap();
    let cache = NodeCache::start(&world.client, "/n").unwrap();
    within(cache.initialized()).await.unwrap();
    let (mut told, mut events) = (Told::default(), cache.events());
    world.proxy.block();
    world.other.delete("/n").await.unwrap();
    world.other.create("/n", b"new").await.unwrap();
    world.proxy.heal();
    within(told.until(&mut events, &[("/n", "new")])).await;
    assert_eq!(told.log, ["+/n", "initialized", "-/n", "+/n"]);
    assert_eq!(&cache.node().unwrap().data[..], b"new");
    drop(cache);
    within(world.end()).await;
}

/// CURATOR-476: a znode that goes between the list and its read must not be waited for.
#[tokio::test]
async fn curator_476_a_child_that_goes_while_it_is_read() {
    for one_shot in [false, true] {
        let world = World::new().await;
        for path in ["/p", "/p/a", "/p/b"] {
            world.other.create(path, b"").await.unwrap();
        }
        // Handshake, watch, data of the root, list; or without the watch.
        let reads_child = if one_shot { 4 } else { 5 };
        let mut held = world.proxy.hold_at(ostler_testkit::CutPoint::BeforeRequest(reads_child));
        let mut cache = CuratorCache::builder(&world.client, "/p");
        if one_shot {
            cache = cache.one_shot_watches();
        }
        let cache = cache.start().unwrap();
        held.reached().await.unwrap();
        world.other.delete("/p/a").await.unwrap();
        world.other.delete("/p/b").await.unwrap();
        held.pass();
        within(cache.initialized()).await.unwrap();
        let (mut told, mut events) = (Told::default(), cache.events());
        within(told.until(&mut events, &[("/p", "")])).await;
        drop(cache);
        within(world.end()).await;
    }
}

/// One znode that is set all the time keeps neither itself nor the others out.
#[tokio::test]
async fn znode_that_changes_faster_than_it_is_read_is_held() {
    let world = World::new().await;
    for path in ["/t", "/t/busy", "/t/quiet"] {
        world.other.create(path, b"0").await.unwrap();
    }
    for direction in [Direction::ToServer, Direction::ToClient] {
        world.proxy.delay(direction, Duration::from_millis(30));
    }
    let writer = world.other.clone();
    let writing = tokio::spawn(async move {
        for number in 1_u64.. {
            writer.set_data("/t/busy", &number.to_string()).await.unwrap();
        }
    });
    let cache = CuratorCache::start(&world.client, "/t").unwrap();
    let mut events = cache.events();
    within(cache.initialized()).await.unwrap();
    assert_eq!(cache.len(), 3);
    let mut changes = 0;
    while changes < 3 {
        let event = within(events.next()).await.unwrap();
        changes += usize::from(matches!(event, CacheEvent::Changed { .. }));
    }
    writing.abort();
    drop(cache);
    world.proxy.heal();
    within(world.end()).await;
}

/// CURATOR-729, GH-1292: a cache ends with its client, does not spin, and leaves nothing behind.
#[tokio::test]
async fn curator_729_a_cache_ends_with_its_client() {
    for one_shot in [false, true] {
        let world = World::new().await;
        let mut cache = CuratorCache::builder(&world.client, "/t");
        if one_shot {
            cache = cache.one_shot_watches();
        }
        let cache = cache.start().unwrap();
        let mut events = cache.events();
        within(cache.initialized()).await.unwrap();
        world.client.close().await;
        within(async { while events.next().await.is_some() {} }).await;
        let late = CuratorCache::start(&world.client, "/t").unwrap();
        assert!(matches!(within(late.initialized()).await, Err(Error::Closed)));
    }
}

/// No later try can mend a request that is too large.
#[tokio::test]
async fn a_cache_says_why_it_has_ended() {
    let world = World::new().await;
    let client = builder(&world.proxy.connect_string()).max_packet(1000).connect().await.unwrap();
    let path = format!("/{}", "x".repeat(2000));
    for one_shot in [false, true] {
        let cache = CuratorCache::builder(&client, &path);
        let cache = if one_shot { cache.one_shot_watches() } else { cache }.start().unwrap();
        let refused = within(cache.initialized()).await;
        assert!(matches!(refused, Err(Error::TooLarge { .. })), "{refused:?}");
        let ended = cache.end_reason();
        assert!(matches!(ended, Some(Error::TooLarge { .. })), "{ended:?}");
        assert!(within(cache.events().next()).await.is_none());
    }
    client.close().await;
}

#[tokio::test]
async fn a_closed_cache_keeps_what_it_held() {
    let world = World::new().await;
    world.other.create("/t", b"1").await.unwrap();
    let cache = PathChildrenCache::builder(&world.client, "/").without_data().start().unwrap();
    within(cache.initialized()).await.unwrap();
    let mut events = cache.events();
    assert!(cache.end_reason().is_none());
    for _ in 0..2 {
        within(cache.close()).await;
    }
    within(world.no_watches()).await;
    assert!(matches!(cache.end_reason(), Some(Error::Closed)));
    assert!(cache.initialized().await.is_ok(), "it was");
    within(async { while events.next().await.is_some() {} }).await;
    world.other.create("/u", b"").await.unwrap();
    let names: Vec<String> = cache.children().iter().map(|node| node.name().to_owned()).collect();
    assert_eq!(names, ["t"]);
    assert!(cache.child("t").is_some_and(|node| node.data.is_empty()));
    // Closed before it was initialized.
    world.proxy.block();
    let cache = CuratorCache::start(&world.client, "/t").unwrap();
    within(cache.close()).await;
    assert!(matches!(cache.initialized().await, Err(Error::Closed)));
    world.proxy.heal();
}

#[tokio::test]
async fn slow_reader_gets_the_number_of_missed_events() {
    let world = World::new().await;
    let cache = CuratorCache::builder(&world.client, "/t").unread_max(4).without_data().start().unwrap();
    within(cache.initialized()).await.unwrap();
    let (mut slow, mut quick) = (cache.events(), cache.events());
    for n in 0..20 {
        world.other.create(&format!("/t/{n}"), b"data").creating_parents().await.unwrap();
        while within(quick.next())
            .await
            .is_some_and(|event| !matches!(event, CacheEvent::Created(node) if node.name() == n.to_string()))
        {
        }
    }
    assert_eq!(slow.next().await, Some(CacheEvent::Initialized));
    assert_eq!(slow.next().await, Some(CacheEvent::Gap(17)));
    assert_eq!(cache.len(), 21);
    assert!(cache.nodes().iter().all(|node| node.data.is_empty()));
}

#[tokio::test]
async fn unreadable_znode_is_reported_and_not_held() {
    let world = World::new().await;
    world.other.create("/t", b"").await.unwrap();
    let nobody = [Acl::world(Perms::CREATE)];
    world.other.create("/t/secret", b"").acl(&nobody[..]).await.unwrap();
    let cache = CuratorCache::start(&world.client, "/t").unwrap();
    let mut events = cache.events();
    within(cache.initialized()).await.unwrap();
    let mut refused = Vec::new();
    loop {
        match events.next().await.unwrap() {
            CacheEvent::Unreadable { path, .. } => refused.push(path),
            CacheEvent::Initialized => break,
            _ => {}
        }
    }
    assert_eq!(refused, ["/t/secret"]);
    assert_eq!(cache.len(), 1);

    let children = PathChildrenCache::start(&world.client, "/t").unwrap();
    let mut events = children.events();
    let PathEvent::Unreadable { path, .. } = within(events.next()).await.unwrap() else { panic!("not told") };
    assert_eq!(path, "/t/secret");
    assert!(children.children().is_empty());
}

#[tokio::test]
async fn znode_that_becomes_readable_is_held() {
    for one_shot in [false, true] {
        let world = World::new().await;
        let nobody = [Acl::world(Perms::ADMIN)];
        world.other.create("/t", b"").await.unwrap();
        world.other.create("/t/secret", b"").acl(&nobody[..]).await.unwrap();
        world.other.set_acl("/t", &nobody).await.unwrap();
        let mut cache = CuratorCache::builder(&world.client, "/t");
        if one_shot {
            cache = cache.one_shot_watches();
        }
        let cache = cache.start().unwrap();
        let (mut told, mut events) = (Told::default(), cache.events());
        for path in ["/t", "/t/secret"] {
            loop {
                match within(events.next()).await.expect("the cache goes on") {
                    CacheEvent::Unreadable { path: refused, .. } if refused == path => break,
                    event => told.hear(&event),
                }
            }
            world.other.set_acl(path, &[Acl::world(Perms::ALL)]).await.unwrap();
            world.other.set_data(path, b"1").await.unwrap();
        }
        within(told.until(&mut events, &[("/t", "1"), ("/t/secret", "1")])).await;
        drop(cache);
        within(world.end()).await;
    }
}

/// No event tells of a change of an ACL.
#[tokio::test]
async fn znode_that_becomes_readable_is_held_without_another_change() {
    for one_shot in [true, false] {
        for path in ["/t", "/t/secret"] {
            let world = World::new().await;
            world.other.create("/t", b"1").await.unwrap();
            world.other.create("/t/secret", b"1").await.unwrap();
            world.other.set_acl(path, &[Acl::world(Perms::ADMIN)]).await.unwrap();
            let mut cache = CuratorCache::builder(&world.client, "/t");
            if one_shot {
                cache = cache.one_shot_watches();
            }
            let cache = cache.start().unwrap();
            let (mut told, mut events) = (Told::default(), cache.events());
            loop {
                match within(events.next()).await.expect("the cache goes on") {
                    CacheEvent::Unreadable { path: refused, .. } if refused == path => break,
                    event => told.hear(&event),
                }
            }
            world.other.set_acl(path, &[Acl::world(Perms::ALL)]).await.unwrap();
            let what = format!("{path} is taken in, with one-shot watches: {one_shot}");
            patiently(what, told.until(&mut events, &[("/t", "1"), ("/t/secret", "1")])).await;
            drop(cache);
            within(world.end()).await;
        }
    }
}

/// A server before 3.6: it knows no addWatch, says so, and closes the connection.
async fn old_server(server: std::net::SocketAddr) -> std::net::SocketAddr {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            tokio::spawn(as_old_server(client, server));
        }
    });
    address
}

async fn as_old_server(client: tokio::net::TcpStream, server: std::net::SocketAddr) -> std::io::Result<()> {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    const ADD_WATCH: [u8; 4] = 106_u32.to_be_bytes();
    const UNIMPLEMENTED: [u8; 4] = (-6_i32).to_be_bytes();
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = tokio::net::TcpStream::connect(server).await?.into_split();
    let answers = tokio::spawn(async move {
        let _ = tokio::io::copy(&mut from_server, &mut to_client).await;
        to_client
    });
    loop {
        let length = from_client.read_u32().await?;
        let mut frame = vec![0; length as usize];
        from_client.read_exact(&mut frame).await?;
        if frame.len() >= 8 && frame[4..8] == ADD_WATCH {
            // An earlier request is answered earlier.
            to_server.shutdown().await?;
            let mut to_client = answers.await?;
            let answer = [&16_u32.to_be_bytes()[..], &frame[..4], &[0; 8], &UNIMPLEMENTED];
            to_client.write_all(&answer.concat()).await?;
            return to_client.shutdown().await;
        }
        to_server.write_u32(length).await?;
        to_server.write_all(&frame).await?;
    }
}

#[tokio::test]
async fn servers_without_persistent_watches_will_do() {
    let world = World::new().await;
    for path in ["/t", "/t/a", "/t/x", "/t/x/y", "/t/again"] {
        world.other.create(path, b"1").await.unwrap();
    }
    let address = old_server(world.server.address()).await;
    let client = crate::world::builder(&format!("{address}/w")).connect().await.unwrap();
    let cache = CuratorCache::start(&client, "/t").unwrap();
    let (mut told, mut events) = (Told::default(), cache.events());
    within(cache.initialized()).await.unwrap();
    writes(&world.other).await;
    let expected = [("/t", "1"), ("/t/a", "2"), ("/t/again", "new"), ("/t/b", ""), ("/t/b/c", "1")];
    within(told.until(&mut events, &expected)).await;
    drop(cache);
    within(world.no_watches()).await;
}
