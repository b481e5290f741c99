//! The kinds and ACLs of created znodes, as the options and the builder choose them.

use crate::server::TestServer;
use ostler_client::{Acl, Client, Error, ErrorCode, Id, Perms};
use std::time::Duration;

const TTL: Duration = Duration::from_secs(600);

/// Both names, in the order of the options.
fn assert_conflict<T>(result: Result<T, Error>, options: (&str, &str)) {
    match result.map(drop).unwrap_err() {
        Error::ModeConflict { first, second, path } => {
            assert_eq!(((first, second), &*path), (options, "/k/x"));
        }
        other => panic!("{options:?}: {other}"),
    }
}

#[tokio::test]
async fn the_options_of_a_create_combine_in_either_order() {
    let server = TestServer::start_with(|config| config.tree.extended_types_enabled = true);
    let client = server.client().await;
    let session = client.session_id().unwrap();
    client.create("/k", b"").await.unwrap();
    for made in [
        client.create("/k/e-", b"").ephemeral().sequential().await.unwrap(),
        client.create("/k/e-", b"").sequential().ephemeral().await.unwrap(),
        client.create("/k/e-", b"").ephemeral_sequential().await.unwrap(),
    ] {
        assert_eq!(made.stat.owner(), Some(session), "{}", made.path);
        assert_eq!(made.path.len(), "/k/e-0000000000".len(), "{}", made.path);
    }
    let made = client.create("/k/t-", b"").ttl(TTL).sequential().await.unwrap();
    assert_eq!((&*made.path, made.stat.owner()), ("/k/t-0000000003", None));
    let made = client.multi().create("/k/m-", b"").sequential().ephemeral().create("/k/c", b"").container();
    let made = made.await.unwrap();
    assert_eq!((made[0].path(), made[0].stat().unwrap().owner()), (Some("/k/m-0000000004"), Some(session)));
    assert_eq!((made[1].path(), made[1].stat().unwrap().owner()), (Some("/k/c"), None));
}

#[tokio::test]
async fn options_that_no_znode_has_together_are_refused_before_anything_is_sent() {
    let server = TestServer::start();
    let client = server.client().await;
    client.create("/k", b"").await.unwrap();
    let create = || client.create("/k/x", b"");
    assert_conflict(create().ephemeral().container().await, ("ephemeral", "container"));
    assert_conflict(create().container().sequential().await, ("container", "sequential"));
    assert_conflict(create().ttl(TTL).ephemeral().protected().await, ("ttl", "ephemeral"));
    let multi = client.multi().create("/k/y", b"").create("/k/x", b"").container().ttl(TTL);
    assert_conflict(multi.await, ("container", "ttl"));
    assert_eq!(client.get_children("/k").await.unwrap(), Vec::<String>::new());
    assert_eq!(client.last_zxid(), client.exists("/k").await.unwrap().unwrap().czxid, "nothing was sent");
}

#[tokio::test]
async fn creates_that_name_no_acl_get_the_one_of_the_builder() {
    let server = TestServer::start();
    let builder = server.builder("").auth("digest", "app:secret");
    let client = builder.default_acl([Acl::creator_all(), Acl::read_unsafe()]).connect().await.unwrap();
    client.create("/a/b", b"").creating_parents().await.unwrap();
    client.create("/c/x", b"").creating_container_parents().idempotent().await.unwrap();
    client.multi().create("/m", b"").await.unwrap();
    let below = client.using_namespace("/n").unwrap();
    below.create("/protected-", b"").ephemeral_sequential().protected().creating_parents().await.unwrap();
    let names = client.get_children("/n").await.unwrap();
    for path in ["/a", "/a/b", "/c", "/c/x", "/m", "/n", &format!("/n/{}", names[0])] {
        let (acl, _) = client.get_acl(path).await.unwrap();
        let ids: Vec<&str> = acl.iter().map(|entry| &*entry.id.scheme).collect();
        assert_eq!(ids, ["digest", "world"], "{path}");
        assert_eq!((acl[0].perms, acl[1].clone()), (Perms::ALL, Acl::read_unsafe()), "{path}");
    }
    assert_eq!(client.get_acl("/m").await.unwrap().0[0].id.id.split_once(':').unwrap().0, "app");
    // The options of a create still count more.
    let open = [Acl::new(Perms::READ | Perms::WRITE, Id::new("world", "anyone"))];
    client.create("/p/open", b"").acl(&open[..]).creating_parents().parents_acl(&open[..]).await.unwrap_err();
    assert_eq!(client.get_acl("/p").await.unwrap().0, open);
    let other = server.client().await;
    let error = other.set_data("/m", b"").await.unwrap_err();
    assert!(error.is_no_auth() && !error.is_auth_failed() && !error.is_closed(), "{error}");
    assert_eq!((error.path(), error.operation()), (Some("/m"), Some("setData")));
    other.create("/everybody", b"").await.unwrap();
    assert_eq!(other.get_acl("/everybody").await.unwrap().0, [Acl::open_unsafe()]);
}

#[tokio::test]
async fn an_error_names_its_operation_and_its_cause() {
    let server = TestServer::start();
    let client = server.client().await;
    let missing = client.delete("/x").await.unwrap_err();
    assert_eq!((missing.path(), missing.operation()), (Some("/x"), Some("delete")));
    let in_multi = client.multi().delete("/y").await.unwrap_err();
    assert_eq!((in_multi.path(), in_multi.operation()), (Some("/y"), Some("delete")));
    let undecided = Error::Undecided { last: Box::new(missing) };
    assert_eq!(undecided.path(), Some("/x"));
    assert_eq!(undecided.code(), Some(ErrorCode::NoNode));
    let cause = std::error::Error::source(&undecided).unwrap();
    assert!(cause.to_string().starts_with("delete /x"), "{cause}");
    client.close().await;
    let closed = client.get_data("/x").await.unwrap_err();
    assert!(closed.is_closed() && !closed.is_session_over(), "{closed}");
    let refused = Client::builder("127.0.0.1:1").connection_timeout(Duration::from_millis(100)).connect();
    assert_eq!(refused.await.unwrap_err().path(), None);
}
