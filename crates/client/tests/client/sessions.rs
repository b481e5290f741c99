//! Sessions, their states and their ends.

use crate::{server::TestServer, stage::Stage};
use ostler_client::{Client, ClientBuilder, ConnectionState, Error, RetryPolicy};
use std::time::Duration;

#[tokio::test]
async fn a_session_outlives_its_connection() {
    let mut server = TestServer::start();
    let client = server.client().await;
    let mut states = client.states();
    assert_eq!(states.next().await.unwrap().state, ConnectionState::Connected);
    let session = client.session().await.unwrap();
    let mine = session.create("/mine", b"").ephemeral().await.unwrap();
    server.stop();
    assert_eq!(states.next().await.unwrap().state, ConnectionState::Suspended);
    let waiting = session.get_data("/mine").send();
    server.restart();
    assert_eq!(waiting.await.unwrap().1, mine.stat);
    let state = states.next().await.unwrap();
    assert_eq!((state.state, state.session), (ConnectionState::Reconnected, Some(session.id())));
}

#[tokio::test]
async fn an_injected_expiry_is_that_of_the_ensemble() {
    let server = TestServer::start();
    let (client, other) = (server.client().await, server.client().await);
    for round in 1..=3 {
        let session = client.session().await.unwrap();
        session.create("/mine", b"").ephemeral().await.unwrap();
        let mut states = client.states();
        let connected = states.next().await.unwrap();
        client.inject_session_expiration().await.unwrap();
        assert!(!session.is_alive(), "round {round}");
        other.sync("/").await.unwrap();
        assert_eq!(other.exists("/mine").await.unwrap(), None, "round {round}");
        let mut seen = vec![connected.state];
        while seen.len() < 4 {
            seen.push(states.next().await.unwrap().state);
        }
        assert_eq!(
            seen[1..],
            [ConnectionState::Suspended, ConnectionState::Lost, ConnectionState::Reconnected]
        );
        assert_ne!(client.session().await.unwrap().id(), session.id());
        assert!(matches!(session.get_data("/").await, Err(Error::SessionChanged { .. })));
    }
    client.close().await;
    assert!(matches!(client.inject_session_expiration().await, Err(Error::Closed)));
}

#[tokio::test]
async fn operations_bound_to_a_lost_session_fail() {
    let mut server = TestServer::start_with(|config| config.sessions.min_session_timeout_ms = 100);
    let client = server.builder("").session_timeout(Duration::from_millis(500)).connect().await.unwrap();
    let mut states = client.states();
    let session = client.session().await.unwrap();
    session.create("/mine", b"").ephemeral().await.unwrap();
    server.stop();
    session.ended().await;
    assert!(!session.is_alive() && client.session_id().is_none());
    server.restart();
    client.wait_connected().await.unwrap();
    assert!(matches!(session.get_data("/").await, Err(Error::SessionChanged { .. })));
    client.get_data("/").await.unwrap();
    let mut seen = Vec::new();
    while seen.last() != Some(&ConnectionState::Reconnected) {
        seen.push(states.next().await.unwrap().state);
    }
    use ConnectionState::{Connected, Lost, Reconnected, Suspended};
    assert_eq!(seen, [Connected, Suspended, Lost, Reconnected]);
    assert_ne!(client.session_id(), Some(session.id()));
}

/// The caller must not wait for the next session, which may take long to come.
#[tokio::test]
async fn a_waiting_hold_fails_as_soon_as_its_session_is_over() {
    let stage = Stage::with(|builder| builder.session_timeout(Duration::from_millis(500))).await;
    let session = stage.client.session().await.unwrap();
    stage.lose_at(1);
    let refused = async {
        loop {
            // At first the handshake is proof enough, and pings keep the session. Then the hold sends a write, and the
            // connection is lost with it.
            match session.hold().await {
                Ok(hold) => drop(hold),
                Err(error) => return error,
            }
            tokio::task::yield_now().await;
        }
    };
    let refused = tokio::time::timeout(Duration::from_secs(10), refused);
    let error = refused.await.expect("the hold waits for another session");
    assert!(error.is_session_over(), "{error}");
    assert_eq!(stage.client.session_id(), None);
}

#[tokio::test]
async fn the_last_client_dropped_ends_the_session() {
    let server = TestServer::start();
    let watcher = server.client().await;
    let client = server.client().await;
    client.create("/mine", b"").ephemeral().await.unwrap();
    let (_, gone) = watcher.exists("/mine").watch().await.unwrap();
    drop(client.clone());
    client.exists("/mine").await.unwrap().unwrap();
    drop(client);
    gone.await.unwrap();
}

#[tokio::test]
async fn the_error_of_connect_names_the_unreachable_server() {
    let nowhere = Client::builder("127.0.0.1:1").connection_timeout(Duration::from_millis(300));
    let error = nowhere.connect().await.unwrap_err();
    assert!(error.to_string().contains("127.0.0.1:1"), "{error}");
}

#[tokio::test]
async fn a_limited_wait_for_a_connection_ends_with_false_or_with_the_client() {
    let short = Duration::from_millis(50);
    let stage = Stage::set().await;
    assert!(stage.client.wait_connected_within(short).await.unwrap());
    stage.lose().await;
    assert!(!stage.client.wait_connected_within(short).await.unwrap());
    stage.client.close().await;
    assert!(matches!(stage.client.wait_connected_within(short).await, Err(Error::Closed)));
}

#[tokio::test]
async fn timeouts_of_the_longest_duration_work() {
    let longest = |builder: ClientBuilder| {
        let builder = builder.connection_timeout(Duration::MAX).session_timeout(Duration::MAX);
        builder.tick_time(Duration::MAX)
    };
    let stage = Stage::with(longest).await;
    assert!(stage.client.wait_connected_within(Duration::MAX).await.unwrap());
    stage.lose().await;
    let waiting = stage.client.get_data("/").send();
    stage.reopen();
    waiting.await.unwrap();
}

#[tokio::test]
async fn a_client_without_new_sessions_closes_with_its_session() {
    let mut server = TestServer::start_with(|config| config.sessions.min_session_timeout_ms = 100);
    let builder =
        server.builder("").session_timeout(Duration::from_millis(500)).new_session_after_loss(false);
    let client = builder.connect().await.unwrap();
    let mut states = client.states();
    server.stop();
    let mut seen = Vec::new();
    while let Some(next) = states.next().await {
        seen.push(next.state);
    }
    use ConnectionState::{Closed, Connected, Lost, Suspended};
    assert_eq!(seen, [Connected, Suspended, Lost, Closed]);
    assert!(client.get_data("/").await.unwrap_err().is_session_over());
}

#[tokio::test]
async fn an_operation_without_a_connection_waits_no_longer_than_the_connection_timeout() {
    let mut server = TestServer::start();
    let builder = server.builder("").connection_timeout(Duration::from_secs(3));
    let client = builder.retry(RetryPolicy::none()).connect().await.unwrap();
    let mut states = client.states();
    server.stop();
    while states.next().await.unwrap().state != ConnectionState::Suspended {}
    let error = client.get_data("/").await.unwrap_err();
    assert!(matches!(error, Error::NotConnected { .. }) && !error.is_outcome_unknown(), "{error}");
}

#[tokio::test]
async fn metrics_count_replies_errors_watches_and_bytes() {
    let server = TestServer::start();
    let client = server.client().await;
    client.get_data("/").await.unwrap();
    client.get_data("/none").await.unwrap_err();
    let (_, _watch) = client.exists("/none").watch().await.unwrap();
    let metrics = client.metrics();
    let read = metrics.operations["getData"];
    assert_eq!((read.replies, read.errors, read.failures), (2, 1, 0));
    assert!(read.longest <= read.time && metrics.bytes_received > 0 && metrics.bytes_sent > 0);
    assert_eq!((metrics.watches, metrics.outstanding), (1, 0));
}
