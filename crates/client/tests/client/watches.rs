//! Watches as values.

use crate::{server::TestServer, stage::Stage};
use ostler_client::{AddWatchMode, Error, EventKind, WatcherType};
use std::time::Duration;

#[tokio::test]
async fn a_one_shot_watch_fires_once_and_is_removed_when_dropped() {
    let server = TestServer::start();
    let (client, other) = (server.client().await, server.client().await);
    let (none, created) = client.exists("/w").watch().await.unwrap();
    assert!(none.is_none());
    other.create("/w", b"1").await.unwrap();
    let event = created.await.unwrap();
    assert_eq!((event.kind, event.path.as_str()), (EventKind::NodeCreated, "/w"));
    let (_, first) = client.get_data("/w").watch().await.unwrap();
    let (_, second) = client.get_data("/w").watch().await.unwrap();
    drop(first);
    assert!(client.check_watches("/w", WatcherType::Data).await.unwrap(), "the other watch needs it");
    drop(second);
    assert!(!client.check_watches("/w", WatcherType::Data).await.unwrap());
    let (_, children) = client.get_children("/w").watch().await.unwrap();
    other.create("/w/c", b"").await.unwrap();
    assert_eq!(children.await.unwrap().kind, EventKind::NodeChildrenChanged);
    assert_eq!(client.metrics().watches, 0);
}

#[tokio::test]
async fn streams_report_all_changes_below() {
    let server = TestServer::start();
    let client = server.client().await;
    let mut tree = client.add_watch("/t", AddWatchMode::PersistentRecursive).await.unwrap();
    let mut node = client.add_watch("/t", AddWatchMode::Persistent).await.unwrap();
    client.create("/t/u", b"").creating_parents().await.unwrap();
    client.set_data("/t/u", b"x").await.unwrap();
    client.delete("/t").deleting_children().await.unwrap();
    let mut seen = Vec::new();
    for _ in 0..5 {
        let event = tree.next().await.unwrap();
        seen.push((event.kind, event.path));
    }
    use EventKind::{NodeChildrenChanged, NodeCreated, NodeDataChanged, NodeDeleted};
    let expected = [
        (NodeCreated, "/t"),
        (NodeCreated, "/t/u"),
        (NodeDataChanged, "/t/u"),
        (NodeDeleted, "/t/u"),
        (NodeDeleted, "/t"),
    ];
    assert_eq!(seen, expected.map(|(kind, path)| (kind, path.to_owned())));
    let mut kinds = Vec::new();
    for _ in 0..4 {
        kinds.push(node.next().await.unwrap().kind);
    }
    assert_eq!(kinds, [NodeCreated, NodeChildrenChanged, NodeChildrenChanged, NodeDeleted]);
    drop(tree);
    assert!(!client.check_watches("/t", WatcherType::PersistentRecursive).await.unwrap());
    assert!(client.check_watches("/t", WatcherType::Persistent).await.unwrap());
    drop(node);
    assert!(!client.check_watches("/t", WatcherType::Any).await.unwrap());
}

#[tokio::test]
async fn watches_are_set_again_after_a_reconnect() {
    let mut server = TestServer::start();
    let client = server.client().await;
    client.create("/w", b"1").await.unwrap();
    let (_, changed) = client.get_data("/w").watch().await.unwrap();
    let mut stream = client.add_watch("/w", AddWatchMode::Persistent).await.unwrap();
    server.stop();
    server.restart();
    assert_eq!(stream.next().await.unwrap().kind, EventKind::Gap);
    client.set_data("/w", b"2").await.unwrap();
    assert_eq!(changed.await.unwrap().kind, EventKind::NodeDataChanged);
    assert_eq!(stream.next().await.unwrap().kind, EventKind::NodeDataChanged);
}

#[tokio::test]
async fn a_reader_that_falls_behind_gets_a_gap() {
    let server = TestServer::start();
    let client = server.client().await;
    client.create("/w", b"").await.unwrap();
    let mut stream = client.add_watch("/w", AddWatchMode::Persistent).await.unwrap();
    const SETS: usize = 9000;
    let sets: Vec<_> = (0..SETS).map(|_| client.set_data("/w", b"x").send()).collect();
    for set in sets {
        set.await.unwrap();
    }
    let mut read = 0;
    while stream.next().await.unwrap().kind == EventKind::NodeDataChanged {
        read += 1;
    }
    assert!(read < SETS, "the gap comes after what was kept");
    client.set_data("/w", b"y").await.unwrap();
    assert_eq!(stream.next().await.unwrap().kind, EventKind::NodeDataChanged, "the stream goes on");
}

#[tokio::test]
async fn watches_bound_to_a_session_end_with_it() {
    let mut server = TestServer::start_with(|config| config.sessions.min_session_timeout_ms = 100);
    let client = server.builder("").session_timeout(Duration::from_millis(500)).connect().await.unwrap();
    let session = client.session().await.unwrap();
    let (_, bound) = session.get_data("/").watch().await.unwrap();
    let (_, free) = client.exists("/x").watch().await.unwrap();
    let mut stream = session.add_watch("/", AddWatchMode::PersistentRecursive).await.unwrap();
    server.stop();
    assert!(bound.await.unwrap_err().is_session_over());
    assert_eq!(stream.next().await, None);
    server.restart();
    client.wait_connected().await.unwrap();
    client.create("/x", b"").await.unwrap();
    assert_eq!(free.await.unwrap().kind, EventKind::NodeCreated, "the other lives on in the new session");
}

#[tokio::test]
async fn a_watch_ends_with_the_error_of_its_session_or_client() {
    let stage = Stage::with(|builder| builder.session_timeout(Duration::from_millis(500))).await;
    let session = stage.client.session().await.unwrap();
    let (_, of_session) = session.get_data("/p/x").watch().await.unwrap();
    let (_, of_client) = stage.client.get_data("/p/x").watch().await.unwrap();
    let mut stream = stage.client.add_watch("/p", AddWatchMode::Persistent).await.unwrap();
    stage.lose().await;
    session.ended().await;
    // The errors stay the same if they are read after the client is closed.
    stage.client.close().await;
    let error = of_session.await.unwrap_err();
    assert!(matches!(error, Error::SessionExpired { .. }), "{error}");
    let error = of_client.await.unwrap_err();
    assert!(matches!(error, Error::Closed), "{error}");
    assert_eq!(stream.next().await, None);
}
