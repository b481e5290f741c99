//! Protected, idempotent, guaranteed and plain writes, with the connection lost at each message in turn.

use crate::{proxy::Proxy, server::TestServer};
use futures_util::FutureExt;
use ostler_client::{Client, Created, Error, Result, RetryPolicy, Version};
use std::{
    future::{Future, IntoFuture},
    time::Duration,
};

async fn through(proxy: &Proxy) -> Client {
    let retry = RetryPolicy::times(20, Duration::from_millis(5));
    let builder = Client::builder(&proxy.address.to_string()).retry(retry);
    builder.session_timeout(Duration::from_secs(10)).connect().await.unwrap()
}

/// Runs `work` with the connection lost at each of its messages in turn, and `check` after each.
async fn at_every_message<T, W, C>(work: impl Fn(Client) -> W, check: impl Fn(Client, Result<T>) -> C)
where
    W: Future<Output = Result<T>>,
    C: Future<Output = ()>,
{
    let server = TestServer::start();
    let proxy = Proxy::to(server.address).await;
    for message in 1.. {
        let direct = server.client().await;
        direct.create("/p", b"").await.unwrap();
        let client = through(&proxy).await;
        proxy.cut_at(message);
        let result = work(client.clone()).await;
        let cut = proxy.has_cut();
        proxy.cut_at(i64::MIN / 2);
        check(direct.clone(), result).await;
        client.close().await;
        direct.delete("/p").deleting_children().await.unwrap();
        if !cut {
            assert!(message > 2, "the work has at least a request and a reply");
            return;
        }
        assert!(message < 50, "the work has too many messages");
    }
}

/// R5: a sequential create whose reply is lost is found by the id in its name, and leaves no orphan.
#[tokio::test]
async fn r5_a_protected_create_makes_one_znode_wherever_the_connection_is_lost() {
    let create =
        |client: Client| async move { client.create("/p/n-", b"x").ephemeral_sequential().protected().await };
    at_every_message(create, |direct, made: Result<Created>| async move {
        let made = made.unwrap();
        assert_eq!(direct.get_children("/p").await.unwrap(), [made.name()]);
        assert_eq!(direct.exists(&made.path).await.unwrap(), Some(made.stat));
    })
    .await;
}

#[tokio::test]
async fn a_protected_create_that_is_given_up_or_dropped_leaves_nothing() {
    let give_up = |client: Client| async move {
        let client = client.with_retry(RetryPolicy::none());
        client.create("/p/n-", b"x").ephemeral_sequential().protected().await
    };
    at_every_message(give_up, |direct, made: Result<Created>| async move {
        match made {
            Ok(made) => assert_eq!(direct.get_children("/p").await.unwrap(), [made.name()]),
            Err(error) => {
                assert!(error.is_connection_trouble(), "{error}");
                emptied(&direct).await;
            }
        }
    })
    .await;
    // The future is dropped before the reply, or after the reply came and before the caller polled it.
    for answered in [false, true] {
        let drop_it = |client: Client| async move {
            let mut create = client.create("/p/n-", b"x").sequential().protected().send();
            assert!((&mut create).now_or_never().is_none());
            // Wait until the create has a reply or has failed.
            while answered && done(&client) == 0 {
                tokio::task::yield_now().await;
            }
            drop(create);
            emptied(&client).await;
            client.get_children("/p").await
        };
        at_every_message(drop_it, |direct, _| async move { emptied(&direct).await }).await;
    }
}

/// The number of creates that have a reply or have failed.
fn done(client: &Client) -> u64 {
    let operations = client.metrics().operations;
    operations.get("create2").map_or(0, |of| of.replies + of.failures)
}

async fn emptied(client: &Client) {
    loop {
        let (names, changed) = client.get_children("/p").watch().await.unwrap();
        if names.is_empty() {
            return;
        }
        tokio::time::timeout(Duration::from_secs(10), changed).await.expect("an orphan stays").unwrap();
    }
}

#[tokio::test]
async fn idempotent_writes_are_done_once_wherever_the_connection_is_lost() {
    let write = |client: Client| async move {
        client.create("/p/i", b"1").idempotent().await?;
        let stat = client.set_data("/p/i", b"2").version(Version::Exactly(0)).idempotent().await?;
        client.create("/p/gone", b"").idempotent().await?;
        client.delete("/p/gone").version(Version::Exactly(0)).idempotent().await?;
        Ok(stat)
    };
    at_every_message(write, |direct, stat| async move {
        assert_eq!(stat.unwrap().version, 1);
        let (data, stat) = direct.get_data("/p/i").await.unwrap();
        assert_eq!((&data[..], stat.version), (&b"2"[..], 1));
        assert!(direct.exists("/p/gone").await.unwrap().is_none());
    })
    .await;
}

#[tokio::test]
async fn a_guaranteed_delete_is_done_in_the_end() {
    let give_up = |client: Client| async move {
        client.create("/p/x", b"").idempotent().await?;
        let client = client.with_retry(RetryPolicy::none());
        let result = client.delete("/p/x").guaranteed().await;
        emptied(&client.with_retry(RetryPolicy::forever(Duration::from_millis(5)))).await;
        result
    };
    at_every_message(give_up, |direct, _| async move { emptied(&direct).await }).await;
}

#[tokio::test]
async fn plain_writes_return_connection_loss() {
    let server = TestServer::start();
    let proxy = Proxy::to(server.address).await;
    let client = through(&proxy).await;
    for lost in [1, 2] {
        proxy.cut_at(lost);
        let error = client.create(&format!("/plain{lost}"), b"").await.unwrap_err();
        assert!(matches!(error, Error::ConnectionLoss { .. }) && error.is_outcome_unknown(), "{error}");
        proxy.cut_at(i64::MIN / 2);
        let there = client.exists(&format!("/plain{lost}")).await.unwrap().is_some();
        assert_eq!(there, lost == 2, "message 1 is the request, message 2 its reply");
    }
}

#[tokio::test]
async fn parents_are_created_wherever_the_connection_is_lost() {
    let create = |client: Client| async move {
        client.create("/p/q/r/s", b"x").creating_container_parents().idempotent().await
    };
    at_every_message(create, |direct, made: Result<Created>| async move {
        assert_eq!(made.unwrap().path, "/p/q/r/s");
        assert_eq!(&direct.get_data("/p/q/r/s").await.unwrap().0[..], b"x");
    })
    .await;
}

#[tokio::test]
async fn operations_begin_before_their_first_await() {
    let server = TestServer::start();
    let proxy = Proxy::to(server.address).await;
    let client = through(&proxy).await;
    let before = proxy.passed();
    let read = client.get_data("/").into_future();
    while proxy.passed() < before + 2 {
        tokio::task::yield_now().await;
    }
    read.await.unwrap();
    proxy.cut();
    client.get_data("/").await.unwrap();
}
