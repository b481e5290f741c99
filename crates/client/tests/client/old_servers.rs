//! The client at old servers that do not know newer operations.

use crate::{proxy::Proxy, server::TestServer};
use ostler_client::{
    AddWatchMode, Client, CreateMode, Error, ErrorCode, OpResult, ReadResult, RetryPolicy, Version,
};
use std::time::Duration;

const CREATE2: i32 = 15;
const CREATE_CONTAINER: i32 = 19;
const MULTI_READ: i32 = 22;
const ADD_WATCH: i32 = 106;

#[tokio::test]
async fn operations_that_an_old_server_lacks_are_replaced_by_others() {
    let server = TestServer::start();
    let unknown = vec![CREATE2, CREATE_CONTAINER, MULTI_READ, ADD_WATCH];
    let proxy = Proxy::hiding(server.address, unknown).await;
    let client = Client::connect(&proxy.address.to_string()).await.unwrap();
    // Instead of create2: create, then exists for the Stat.
    for path in ["/a", "/b"] {
        let made = client.create(path, b"x").await.unwrap();
        assert_eq!(Some(made.stat), client.exists(path).await.unwrap());
    }
    let made = client.create("/a/n-", b"").ephemeral_sequential().protected().await.unwrap();
    assert_eq!(made.stat.ephemeral_owner, client.session_id().unwrap().0);
    // Instead of container parents: persistent ones.
    client.create("/c/d", b"").creating_container_parents().idempotent().await.unwrap();
    let refused = client.create("/box", b"").mode(CreateMode::Container).await.unwrap_err();
    assert!(refused.is_unimplemented(), "{refused}");
    let found = client.multi_read().get_data("/a").get_children("/c").get_data("/none").await.unwrap();
    assert!(matches!(&found[0], Ok(ReadResult::Data(data, _)) if data == "x"));
    assert!(matches!(&found[1], Ok(ReadResult::Children(names)) if names == &["d"]));
    assert!(found[2].as_ref().is_err_and(ostler_client::Error::is_no_node));
    // There is no substitute for addWatch, so the call fails.
    let refused = client.add_watch("/a", AddWatchMode::PersistentRecursive).await.unwrap_err();
    assert!(refused.is_unimplemented(), "{refused}");
    client.get_data("/a").await.unwrap();
}

#[tokio::test]
async fn a_multi_falls_back_to_create_if_the_server_lacks_create2() {
    let server = TestServer::start();
    let proxy = Proxy::hiding(server.address, vec![CREATE2, CREATE_CONTAINER]).await;
    let client = Client::connect(&proxy.address.to_string()).await.unwrap();
    let multis = || {
        let of = client.metrics().operations["multi"];
        (of.replies, of.errors)
    };
    // The first multi is refused and sent again without create2. The connection stays.
    let made = client.multi().create("/a", b"1").create("/a/n-", b"").ephemeral_sequential();
    let made = made.await.unwrap();
    let created = |path: &str| OpResult::Created { path: path.to_owned(), stat: None };
    assert_eq!(made, [created("/a"), created("/a/n-0000000000")]);
    let owner = client.exists("/a/n-0000000000").await.unwrap().unwrap().ephemeral_owner;
    assert_eq!((owner, multis()), (client.session_id().unwrap().0, (2, 1)));
    // From then on multis and single creates do not try create2.
    client.multi().create("/b", b"").set_data("/a", b"2").await.unwrap();
    client.create("/c", b"").await.unwrap();
    assert!(multis() == (3, 1) && !client.metrics().operations.contains_key("create2"));
    // Other errors of a multi are returned unchanged.
    let refused = client.multi().create("/d", b"").check("/a", Version::Exactly(7)).await.unwrap_err();
    assert!(matches!(refused, Error::Multi { index: 1, code: ErrorCode::BadVersion, .. }), "{refused}");
    let refused = client.multi().create("/d", b"").create("/e", b"").container();
    assert_eq!(refused.await.unwrap_err().code(), Some(ErrorCode::MarshallingError));
    assert!(client.exists("/d").await.unwrap().is_none());
}

#[tokio::test]
async fn a_multi_refused_for_a_container_does_not_disable_create2() {
    let server = TestServer::start();
    let proxy = Proxy::hiding(server.address, vec![CREATE_CONTAINER]).await;
    let client = Client::connect(&proxy.address.to_string()).await.unwrap();
    let refused = client.multi().create("/a", b"").create("/b", b"").container();
    assert_eq!(refused.await.unwrap_err().code(), Some(ErrorCode::MarshallingError));
    client.create("/a", b"").await.unwrap();
    assert_eq!(client.metrics().operations["create2"].errors, 0);
}

/// The server has no create2, and the connection is lost between the create and the question for its Stat.
#[tokio::test]
async fn a_protected_create_without_create2_leaves_one_znode_although_its_stat_is_missing() {
    let server = TestServer::start();
    let proxy = Proxy::hiding(server.address, vec![CREATE2]).await;
    let retry = RetryPolicy::exponential(Duration::from_millis(1), Duration::from_millis(1), 1);
    let builder = Client::builder(&proxy.address.to_string()).retry(retry);
    let client = builder.connection_timeout(Duration::from_millis(1500)).connect().await.unwrap();
    // From then on the client uses create.
    client.create("/a", b"").await.unwrap();
    // The create and its reply pass, the question does not, and there is no other connection.
    proxy.shut(true);
    proxy.cut_at(3);
    let failed = client.create("/a/n-", b"").ephemeral_sequential().protected().await.unwrap_err();
    assert!(failed.is_outcome_unknown(), "{failed}");
    proxy.shut(false);
    let other = server.client().await;
    // The client deletes the znode in the background.
    loop {
        let (names, changed) = other.get_children("/a").watch().await.unwrap();
        if names.is_empty() {
            break;
        }
        changed.await.unwrap();
    }
}
