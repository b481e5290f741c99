//! Writes that are tried again after a lost reply: any later error says that the write may be done.

use crate::stage::Stage;
use futures_util::future::join_all;
use ostler_client::{Acl, Client, ConnectionState, Error, ErrorCode, Perms, Result, RetryPolicy, Version};
use std::{future::Future, pin::Pin, time::Duration};

type Writing = Pin<Box<dyn Future<Output = Result<()>> + Send>>;

/// All writes that are tried again. They change `/p/x`; the create creates `/p/y`.
const WRITES: [fn(Client) -> Writing; 4] = [
    |client| Box::pin(async move { client.set_data("/p/x", b"2").idempotent().await.map(drop) }),
    |client| Box::pin(async move { client.create("/p/y", b"2").idempotent().await.map(drop) }),
    |client| Box::pin(async move { client.delete("/p/x").idempotent().await }),
    |client| Box::pin(async move { client.delete("/p/x").guaranteed().await }),
];

/// The error of a write whose reply is lost, and whose one retry has no connection.
async fn error_after_lost_reply(stage: &Stage, client: &Client, write: fn(Client) -> Writing) -> Error {
    stage.lose_at(2);
    let once_more = RetryPolicy::once(Duration::from_millis(5));
    let error = write(client.with_retry(once_more)).await.unwrap_err();
    let done = stage.direct.get_data("/p/x").await.map_or(true, |(data, _)| data == "2");
    assert!(done || stage.direct.exists("/p/y").await.unwrap().is_some());
    error
}

fn assert_undecided(error: &Error) {
    assert!(error.is_outcome_unknown(), "{error}");
    assert!(error.to_string().contains("may have been done or not"), "{error}");
}

#[tokio::test]
async fn a_write_with_a_lost_reply_is_undecided_if_no_server_is_reached_afterwards() {
    // All at once: each waits for the connection timeout, in which a busy machine connects, too.
    let tried = WRITES.map(|write| async move {
        let stage = Stage::with(|builder| builder.connection_timeout(Duration::from_secs(3))).await;
        let error = error_after_lost_reply(&stage, &stage.client, write).await;
        assert_undecided(&error);
        assert!(error.is_connection_trouble() && error.to_string().contains("connection timeout"), "{error}");
    });
    join_all(tried).await;
}

#[tokio::test]
async fn a_write_with_a_lost_reply_is_undecided_if_the_session_ends_afterwards() {
    for write in WRITES {
        let stage = Stage::with(|builder| builder.session_timeout(Duration::from_millis(500))).await;
        let error = error_after_lost_reply(&stage, &stage.client, write).await;
        assert_undecided(&error);
        assert!(error.is_session_over(), "{error}");
    }
    let stage = Stage::with(|builder| builder.session_timeout(Duration::from_millis(500))).await;
    let session = stage.client.session().await.unwrap();
    let error = error_after_lost_reply(&stage, &session, WRITES[0]).await;
    assert_undecided(&error);
    assert!(error.is_session_over(), "{error}");
}

/// The error of a write whose request (message 1) or reply (2) is lost, with `meanwhile` run before the reconnect.
async fn with_changes_meanwhile<F: Future<Output = ()>>(
    lost_at: i64,
    write: impl FnOnce(Client) -> Writing,
    meanwhile: impl FnOnce(Client) -> F,
) -> Error {
    let stage = Stage::set().await;
    stage.lose_at(lost_at);
    let client = stage.client.with_retry(RetryPolicy::forever(Duration::from_millis(5)));
    let writing = tokio::spawn(write(client));
    stage.reaches(ConnectionState::Suspended).await;
    meanwhile(stage.direct.clone()).await;
    stage.reopen();
    writing.await.unwrap().unwrap_err()
}

#[tokio::test]
async fn a_write_with_a_lost_reply_is_undecided_if_its_retry_is_refused() {
    let read_only = |direct: Client| async move {
        direct.set_acl("/p/x", &[Acl::world(Perms::READ)]).await.unwrap();
    };
    let error = with_changes_meanwhile(2, WRITES[0], read_only).await;
    assert_undecided(&error);
    assert_eq!(error.code(), Some(ErrorCode::NoAuth), "{error}");
    assert!(!error.is_retryable(), "{error}");

    let set_by_others = |direct: Client| async move {
        direct.set_data("/p/y", b"3").await.unwrap();
    };
    let error = with_changes_meanwhile(2, WRITES[1], set_by_others).await;
    assert_undecided(&error);
    assert!(error.is_node_exists(), "{error}");

    let made_anew = |direct: Client| async move {
        direct.create("/p/x", b"").await.unwrap();
        direct.create("/p/x/y", b"").await.unwrap();
    };
    let error = with_changes_meanwhile(2, WRITES[2], made_anew).await;
    assert_undecided(&error);
    assert!(error.is_not_empty(), "{error}");
}

#[tokio::test]
async fn a_set_data_of_one_version_is_decided_only_if_another_client_set_the_next_version() {
    let set: fn(Client) -> Writing = |client| {
        Box::pin(async move {
            client.set_data("/p/x", b"2").version(Version::Exactly(0)).idempotent().await.map(drop)
        })
    };
    let once_by_others = |direct: Client| async move {
        direct.set_data("/p/x", b"3").await.unwrap();
    };
    let error = with_changes_meanwhile(1, set, once_by_others).await;
    assert!(error.is_bad_version() && !error.is_outcome_unknown(), "{error}");
    // The other write may have come after this one, or both before and after it.
    let error = with_changes_meanwhile(2, set, once_by_others).await;
    assert_undecided(&error);
    assert!(error.is_bad_version(), "{error}");
}
