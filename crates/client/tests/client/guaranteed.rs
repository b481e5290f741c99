//! Deletes that go on in the background, with the options of the caller.

use crate::{stage::Stage, traces::Traces};
use ostler_client::{ClientBuilder, ConnectionState, Error, Version};
use std::time::Duration;
use tracing::Level;

fn assert_quiet(traces: &Traces) {
    let events = traces.events();
    assert!(events.iter().all(|(level, _)| *level > Level::WARN), "{events:?}");
}

#[tokio::test]
async fn a_guaranteed_delete_of_one_version_spares_a_znode_that_was_changed_meanwhile() {
    let traces = Traces::begin();
    let stage = Stage::set().await;
    stage.lose_at(1);
    let error = stage.client.delete("/p/x").version(Version::Exactly(0)).guaranteed().await.unwrap_err();
    assert!(matches!(error, Error::ConnectionLoss { .. }), "{error}");
    stage.direct.set_data("/p/x", b"kept").await.unwrap();
    stage.reopen();
    stage.until_answered(1).await;
    assert!(stage.is_there().await);
    // The client cannot know whether its first try was done and the znode is a new one, so it logs no warning.
    assert_quiet(&traces);
}

#[tokio::test]
async fn a_guaranteed_delete_whose_reply_was_lost_spares_the_znode_created_after_it() {
    let traces = Traces::begin();
    let stage = Stage::set().await;
    stage.lose_at(2);
    stage.client.delete("/p/x").version(Version::Exactly(0)).guaranteed().await.unwrap_err();
    stage.direct.create("/p/x", b"").await.unwrap();
    stage.direct.set_data("/p/x", b"another").await.unwrap();
    stage.reopen();
    stage.until_answered(1).await;
    assert!(stage.is_there().await);
    assert_quiet(&traces);
}

#[tokio::test]
async fn a_guaranteed_delete_that_was_never_sent_logs_the_bad_version() {
    let traces = Traces::begin();
    let stage = Stage::with(|builder| builder.connection_timeout(Duration::from_secs(3))).await;
    stage.lose().await;
    let error = stage.client.delete("/p/x").version(Version::Exactly(7)).guaranteed().await.unwrap_err();
    assert!(matches!(error, Error::NotConnected { .. }), "{error}");
    stage.reopen();
    stage.until_answered(1).await;
    assert!(stage.is_there().await);
    let events = traces.events();
    assert!(events.contains(&(Level::WARN, "a znode is not deleted".to_owned())), "{events:?}");
}

#[tokio::test]
async fn a_guaranteed_delete_also_deletes_children_created_meanwhile() {
    let traces = Traces::begin();
    let stage = Stage::set().await;
    stage.lose_at(1);
    let delete = stage.client.delete("/p/x").deleting_children().guaranteed();
    assert!(delete.await.unwrap_err().is_outcome_unknown());
    stage.direct.create("/p/x/y/z", b"").creating_parents().await.unwrap();
    stage.reopen();
    stage.until_gone().await;
    assert_quiet(&traces);
}

#[tokio::test]
async fn a_guaranteed_delete_goes_on_in_the_next_session_unless_it_is_bound_to_one() {
    for bound in [false, true] {
        let stage = Stage::with(|builder| builder.session_timeout(Duration::from_millis(500))).await;
        let session = stage.client.session().await.unwrap();
        stage.lose().await;
        let client = if bound { &*session } else { &stage.client };
        let error = client.delete("/p/x").guaranteed().await.unwrap_err();
        assert!(matches!(error, Error::SessionExpired { .. }), "{error}");
        stage.reopen();
        if !bound {
            stage.until_gone().await;
            continue;
        }
        stage.reaches(ConnectionState::Reconnected).await;
        stage.client.exists("/").await.unwrap();
        assert!(stage.is_there().await && stage.client.session_id() != Some(session.id()));
        assert_eq!(stage.client.metrics().operations["delete"].replies, 0);
    }
}

#[tokio::test]
async fn a_guaranteed_delete_ends_with_a_client_that_ends_with_its_session() {
    let traces = Traces::begin();
    let builder = |builder: ClientBuilder| {
        builder.session_timeout(Duration::from_millis(500)).new_session_after_loss(false)
    };
    let stage = Stage::with(builder).await;
    stage.lose().await;
    stage.client.delete("/p/x").in_background();
    let mut states = stage.client.states();
    while states.next().await.is_some() {}
    let given_up = async {
        while !traces.events().iter().any(|(_, text)| text == "not deleted") {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(5), given_up).await.expect("the delete is tried without end");
}

#[tokio::test]
async fn a_background_delete_keeps_its_version_and_deletes_children() {
    let stage = Stage::set().await;
    stage.client.delete("/p/x").version(Version::Exactly(7)).in_background();
    stage.until_answered(1).await;
    assert!(stage.is_there().await);
    stage.direct.create("/p/x/y", b"").await.unwrap();
    stage.client.delete("/p/x").version(Version::Exactly(0)).deleting_children().in_background();
    stage.until_gone().await;
}
