//! Clients that allow read-only servers, at an ensemble without a quorum.

use ostler_client::{Client, ConnectionState, ErrorCode, RetryPolicy, SessionId, Version};
use ostler_testkit::{ServerId, TestEnsemble, TestOptions};
use std::time::Duration;

#[tokio::test]
async fn reads_go_on_without_a_quorum_and_writes_when_it_is_back() {
    let options = TestOptions::new().read_only_mode();
    let mut ensemble = TestEnsemble::start_with(3, options).await.unwrap();
    let builder = Client::builder(&ensemble.connect_string()).can_be_read_only(true);
    let builder = builder.session_timeout(Duration::from_secs(60));
    let holder = builder.clone().connect().await.unwrap();
    holder.create("/a", b"old").await.unwrap();
    holder.create("/held", b"").ephemeral().await.unwrap();
    let held = holder.session_id();
    ensemble.until_settled().await.unwrap();
    for id in [ServerId(2), ServerId(3)] {
        ensemble.kill(id).await.unwrap();
    }

    let reader = builder.connect().await.unwrap();
    let mut states = reader.states();
    let alone = states.next().await.unwrap();
    assert_eq!(alone.state, ConnectionState::ReadOnly);
    assert_eq!(reader.get_data("/a").await.unwrap().0, "old");
    let refused = reader.set_data("/a", b"new").await.unwrap_err();
    assert_eq!(refused.code(), Some(ErrorCode::NotReadOnly), "{refused}");
    assert!(!refused.is_outcome_unknown());
    // A client with a session of the ensemble waits, because that session may still be alive.
    assert_eq!((holder.state().state, holder.session_id()), (ConnectionState::Suspended, held));

    for id in [ServerId(2), ServerId(3)] {
        ensemble.restart(id).await.unwrap();
    }
    let mut back = states.next().await.unwrap();
    while back.state != ConnectionState::Reconnected {
        back = states.next().await.unwrap();
    }
    // The read-only session was known to that one server only, so there is a new one.
    assert!(back.session.is_some() && back.session != alone.session);
    reader.set_data("/a", b"new").version(Version::Exactly(0)).await.unwrap();
    holder.sync("/").await.unwrap();
    assert_eq!(holder.get_data("/a").await.unwrap().0, "new");
    assert_eq!(holder.session_id(), held);
    assert_eq!(holder.exists("/held").await.unwrap().map(|stat| SessionId(stat.ephemeral_owner)), held);
}

/// A background delete that is refused with `NotReadOnly` is tried until there is a quorum.
#[tokio::test]
async fn a_background_delete_is_done_once_there_is_a_quorum_again() {
    let options = TestOptions::new().read_only_mode();
    let mut ensemble = TestEnsemble::start_with(3, options).await.unwrap();
    let builder =
        Client::builder(&ensemble.connect_string()).can_be_read_only(true).retry(RetryPolicy::none());
    let watcher = builder.clone().session_timeout(Duration::from_secs(60)).connect().await.unwrap();
    for path in ["/background", "/guaranteed"] {
        watcher.create(path, b"").await.unwrap();
    }
    ensemble.until_settled().await.unwrap();
    for id in [ServerId(2), ServerId(3)] {
        ensemble.kill(id).await.unwrap();
    }

    let client = builder.connect().await.unwrap();
    assert_eq!(client.state().state, ConnectionState::ReadOnly);
    client.delete("/background").in_background();
    let refused = client.delete("/guaranteed").guaranteed().await.unwrap_err();
    assert_eq!(refused.code(), Some(ErrorCode::NotReadOnly), "{refused}");
    assert!(client.metrics().operations["delete"].errors >= 2, "the read-only server has refused both");

    for id in [ServerId(2), ServerId(3)] {
        ensemble.restart(id).await.unwrap();
    }
    let watcher = watcher.with_retry(RetryPolicy::forever(Duration::from_millis(50)));
    for path in ["/background", "/guaranteed"] {
        while let (Some(_), gone) = watcher.exists(path).watch().await.unwrap() {
            let deleted = tokio::time::timeout(Duration::from_secs(60), gone).await;
            deleted.expect("the znode is not deleted").unwrap();
        }
    }
}
