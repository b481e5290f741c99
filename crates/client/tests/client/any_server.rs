//! Tests that must pass on every server: on one in this process, or on the one at `OSTLER_CLIENT_SERVER`
//! (interop/clients/ostler_client.py sets it for Java's server).

use crate::server::TestServer;
use ostler_client::{
    Acl, AddWatchMode, Client, Error, ErrorCode, EventKind, Id, Perms, ReadResult, Version, WatcherType,
};
use std::time::Duration;
use tokio::time::timeout;

#[tokio::test]
async fn every_operation_on_any_server() {
    let outside = std::env::var("OSTLER_CLIENT_SERVER").ok();
    let inside = outside.is_none().then(TestServer::start);
    let servers = outside.unwrap_or_else(|| inside.as_ref().unwrap().address.to_string());
    let root = format!("/ostler-client-{}", std::process::id());
    let client = Client::connect(&format!("{servers}{root}")).await.unwrap();
    client.create("/", b"").creating_parents().await.unwrap();
    reads_and_writes(&client).await;
    kinds_of_znodes(&client).await;
    transactions(&client).await;
    access(&client, &servers, &root).await;
    one_shot_watches(&client).await;
    streams(&client).await;
    a_stream_and_a_one_shot_watch_on_one_path(&client).await;
    assert_eq!(client.metrics().watches, 0);
    client.using_namespace("..").unwrap_err();
    let outer = Client::connect(&servers).await.unwrap();
    outer.delete(&root).deleting_children().guaranteed().await.unwrap();
    outer.get_config().await.unwrap();
    outer.close().await;
    client.close().await;
}

/// `OSTLER_CLIENT_SASL` has the name and the password of a user of the server at `OSTLER_CLIENT_SERVER`.
#[tokio::test]
async fn sasl_works_at_a_server_with_sasl_and_fails_at_others() {
    let (Ok(servers), Ok(known)) =
        (std::env::var("OSTLER_CLIENT_SERVER"), std::env::var("OSTLER_CLIENT_SASL"))
    else {
        return connect_fails_at_a_server_without_sasl().await;
    };
    let (user, password) = known.split_once(':').unwrap();
    let client = Client::builder(&servers).sasl_digest_md5(user, password).connect().await.unwrap();
    let users = client.who_am_i().await.unwrap();
    assert!(users.contains(&Id::new("sasl", user)), "{users:?}");
    let path = format!("/sasl-{}", std::process::id());
    let mine = [Acl { perms: Perms::ALL, id: Id::new("sasl", user) }];
    client.create(&path, b"").ephemeral().acl(&mine[..]).await.unwrap();
    client.get_data(&path).await.unwrap();
    let other = Client::connect(&servers).await.unwrap();
    assert_eq!(other.get_data(&path).await.unwrap_err().code(), Some(ErrorCode::NoAuth));
    client.close().await;
    let wrong = Client::builder(&servers).sasl_digest_md5(user, "wrong").connect().await;
    assert!(matches!(wrong, Err(Error::AuthFailed)), "{wrong:?}");
}

async fn connect_fails_at_a_server_without_sasl() {
    let server = TestServer::start();
    let refused = server.builder("").sasl_digest_md5("bob", "secret").connect().await;
    assert!(matches!(refused, Err(Error::AuthFailed)), "{refused:?}");
}

async fn reads_and_writes(client: &Client) {
    let made = client.create("/a", "ä€𝄞").await.unwrap();
    assert_eq!(client.get_data("/a").await.unwrap(), ("ä€𝄞".into(), made.stat));
    let stat = client.set_data("/a", b"2").version(Version::Exactly(0)).idempotent().await.unwrap();
    assert_eq!((stat.version, stat.czxid), (1, made.stat.czxid));
    assert!(stat.mzxid > stat.czxid && client.last_zxid() >= stat.mzxid);
    client.create("/a/b/c", b"").creating_parents().await.unwrap();
    assert_eq!(client.get_all_children_number("/a").await.unwrap(), 2);
    assert_eq!(client.get_children_and_stat("/a").await.unwrap().0, ["b"]);
    client.sync("/a").await.unwrap();
    // Pipelined: each request sees the effects of those before it.
    let sets: Vec<_> = (0..500).map(|n| client.set_data("/a", &format!("{n}")).send()).collect();
    let read = client.get_data("/a").send();
    for (n, set) in sets.into_iter().enumerate() {
        assert_eq!(set.await.unwrap().version, n as i32 + 2);
    }
    assert_eq!(&read.await.unwrap().0[..], b"499");
    let large = vec![7; 900_000];
    client.create("/large", &large).await.unwrap();
    assert_eq!(client.get_data("/large").await.unwrap().0, large);
    let error = client.set_data("/large", &vec![0; 2 << 20]).await.unwrap_err();
    assert!(matches!(error, Error::TooLarge { .. }), "{error}");
    assert!(client.delete("/a").await.unwrap_err().is_not_empty());
    client.delete("/a").deleting_children().idempotent().await.unwrap();
    assert_eq!(client.delete("/a").await.unwrap_err().code(), Some(ErrorCode::NoNode));
}

async fn kinds_of_znodes(client: &Client) {
    let session = client.session().await.unwrap();
    let first = session.create("/n-", b"").ephemeral_sequential().protected().await.unwrap();
    let second = session.create("/n-", b"").ephemeral_sequential().protected().await.unwrap();
    let number = |name: &str| ostler_client::paths::sequence(name).unwrap();
    assert_eq!(number(second.name()), number(first.name()) + 1);
    assert_eq!(first.stat.ephemeral_owner, session.id().0);
    assert!(second.stat.czxid > first.stat.czxid);
    let mut mine = client.get_ephemerals("/").await.unwrap();
    mine.sort();
    let mut both = vec![first.path.clone(), second.path];
    both.sort();
    assert_eq!(mine, both);
    let (_, gone) = client.exists(&first.path).watch().await.unwrap();
    client.delete(&first.path).in_background();
    assert_eq!(gone.await.unwrap().kind, EventKind::NodeDeleted);
    client.create("/box/x", b"").creating_container_parents().await.unwrap();
    client.create("/k", b"1").idempotent().await.unwrap();
    assert!(client.create("/k", b"1").idempotent().await.unwrap_err().is_node_exists());
    assert_eq!(client.create("/k", b"2").or_set_data().await.unwrap().stat.version, 1);
    match client.create("/ttl", b"").ttl(Duration::from_secs(60)).await {
        Ok(made) => assert_eq!(made.path, "/ttl"),
        Err(error) => assert!(error.is_unimplemented(), "{error}"),
    }
}

async fn transactions(client: &Client) {
    let results = client
        .multi()
        .create("/m", b"1")
        .create("/m/s-", b"")
        .sequential()
        .set_data("/m", b"2")
        .version(Version::Exactly(0))
        .check("/m", Version::Exactly(1))
        .delete("/m/s-0000000000")
        .version(Version::Exactly(0))
        .await
        .unwrap();
    assert_eq!((results.len(), results[1].path()), (5, Some("/m/s-0000000000")));
    let error = client.multi().delete("/m").create("/m/x", b"").await.unwrap_err();
    assert!(matches!(&error, Error::Multi { code: ErrorCode::NoNode, index: 1, .. }), "{error}");
    let found = client.multi_read().get_data("/m").get_children("/m").get_data("/none").await.unwrap();
    assert!(matches!(&found[0], Ok(ReadResult::Data(data, stat)) if data == "2" && stat.version == 1));
    assert!(matches!(&found[1], Ok(ReadResult::Children(names)) if names.is_empty()));
    assert!(found[2].as_ref().is_err_and(Error::is_no_node));
    assert!(client.multi().await.unwrap().is_empty());
}

async fn access(client: &Client, servers: &str, root: &str) {
    let owner =
        Client::builder(&format!("{servers}{root}")).auth("digest", "bob:pw").connect().await.unwrap();
    let mine = [Acl { perms: Perms::ALL, id: Id::new("auth", "") }];
    owner.create("/mine", b"").acl(&mine[..]).await.unwrap();
    assert_eq!(client.get_data("/mine").await.unwrap_err().code(), Some(ErrorCode::NoAuth));
    assert!(owner.who_am_i().await.unwrap().contains(&Id::new("digest", "bob")));
    assert_eq!(owner.get_acl("/mine").await.unwrap().0[0].id.id, "bob:ikIaKsbtGweaHnb/jKn7OHqbunM=");
    owner.set_acl("/mine", &[Acl::world(Perms::ALL)]).version(Version::Exactly(0)).await.unwrap();
    client.get_data("/mine").await.unwrap();
    owner.close().await;
    assert!(matches!(client.add_auth("nonsense", "x").await, Err(Error::AuthFailed)));
    client.get_data("/mine").await.unwrap();
}

async fn one_shot_watches(client: &Client) {
    let (none, created) = client.exists("/w").watch().await.unwrap();
    assert!(none.is_none());
    client.create("/w", b"").await.unwrap();
    assert_eq!(created.await.unwrap().kind, EventKind::NodeCreated);
    let (_, changed) = client.get_data("/w").watch().await.unwrap();
    let (_, children) = client.get_children("/w").watch().await.unwrap();
    client.create("/w/c", b"").await.unwrap();
    client.set_data("/w", b"x").await.unwrap();
    let event = changed.await.unwrap();
    assert_eq!((event.kind, event.path.as_str()), (EventKind::NodeDataChanged, "/w"));
    assert_eq!(children.await.unwrap().kind, EventKind::NodeChildrenChanged);
    let (_, dropped) = client.get_data("/w").watch().await.unwrap();
    assert!(client.check_watches("/w", WatcherType::Any).await.unwrap());
    drop(dropped);
    assert!(!client.check_watches("/w", WatcherType::Any).await.unwrap());
    let (_, removed) = client.get_data("/w").watch().await.unwrap();
    client.remove_watches("/w", WatcherType::Data).await.unwrap();
    assert!(matches!(removed.await, Err(Error::WatchRemoved { .. })));
    let error = client.remove_watches("/w", WatcherType::Data).await.unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::NoWatcher));
}

/// Servers before 3.9 keep one kind of watch for each path and connection.
async fn a_stream_and_a_one_shot_watch_on_one_path(client: &Client) {
    client.create("/both", b"").await.unwrap();
    let mut stream = client.add_watch("/both", AddWatchMode::PersistentRecursive).await.unwrap();
    let (_, once) = client.get_data("/both").watch().await.unwrap();
    for _ in 0..3 {
        client.set_data("/both", b"x").await.unwrap();
    }
    client.create("/both/child", b"").await.unwrap();
    assert_eq!(once.await.unwrap().kind, EventKind::NodeDataChanged);
    let mut kinds = Vec::new();
    for _ in 0..4 {
        kinds.push(timeout(Duration::from_secs(10), stream.next()).await.unwrap().unwrap().kind);
    }
    use EventKind::{NodeCreated, NodeDataChanged};
    assert_eq!(kinds, [NodeDataChanged, NodeDataChanged, NodeDataChanged, NodeCreated]);
    // On servers before 3.9 the removal of one watch removes the other.
    for _ in 0..2 {
        let (_, dropped) = client.get_data("/both").watch().await.unwrap();
        drop(dropped);
        client.sync("/").await.unwrap();
        client.set_data("/both", b"y").await.unwrap();
        let next = timeout(Duration::from_secs(10), stream.next()).await.unwrap().unwrap();
        assert_eq!((next.kind, &*next.path), (NodeDataChanged, "/both"));
    }
    drop(stream);
    client.sync("/").await.unwrap();
    assert!(!client.check_watches("/both", WatcherType::Any).await.unwrap());
}

async fn streams(client: &Client) {
    use EventKind::{NodeCreated, NodeDataChanged, NodeDeleted};
    let mut tree = client.add_watch("/t", AddWatchMode::PersistentRecursive).await.unwrap();
    client.create("/t/u", b"").creating_parents().await.unwrap();
    client.set_data("/t/u", b"x").await.unwrap();
    client.delete("/t").deleting_children().await.unwrap();
    let mut seen = Vec::new();
    for _ in 0..5 {
        let event = timeout(Duration::from_secs(10), tree.next()).await.unwrap().unwrap();
        seen.push((event.kind, event.path));
    }
    let expected = [
        (NodeCreated, "/t"),
        (NodeCreated, "/t/u"),
        (NodeDataChanged, "/t/u"),
        (NodeDeleted, "/t/u"),
        (NodeDeleted, "/t"),
    ];
    assert_eq!(seen, expected.map(|(kind, path)| (kind, path.to_owned())));
    drop(tree);
    // Servers before 3.9 refuse the first removeWatches; then the client sends a second one.
    client.sync("/").await.unwrap();
    assert!(!client.check_watches("/t", WatcherType::Any).await.unwrap());
}
