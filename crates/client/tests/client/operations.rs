//! Each operation, with its results and its errors.

use crate::server::TestServer;
use ostler_client::{
    Acl, CreateMode, Error, ErrorCode, Id, OpResult, Perms, ReadResult, Version, without_protection,
};
use std::time::Duration;

#[tokio::test]
async fn a_znode_is_created_read_changed_and_deleted() {
    let server = TestServer::start();
    let client = server.client().await;
    let made = client.create("/a", b"one").await.unwrap();
    assert_eq!((made.path.as_str(), made.stat.version, made.stat.data_length), ("/a", 0, 3));
    assert_eq!(client.exists("/a").await.unwrap(), Some(made.stat));
    assert_eq!(client.exists("/b").await.unwrap(), None);
    let (data, stat) = client.get_data("/a").await.unwrap();
    assert_eq!((&data[..], stat), (&b"one"[..], made.stat));
    let stat = client.set_data("/a", "two").version(Version::Exactly(0)).await.unwrap();
    assert_eq!(stat.version, 1);
    assert!(client.set_data("/a", b"").version(Version::Exactly(0)).await.unwrap_err().is_bad_version());
    client.create("/a/c", b"").without_data().await.unwrap();
    assert_eq!(client.get_children("/a").await.unwrap(), ["c"]);
    let (names, stat) = client.get_children_and_stat("/a").await.unwrap();
    assert_eq!((names.len(), stat.num_children), (1, 1));
    assert_eq!(client.get_all_children_number("/a").await.unwrap(), 1);
    assert!(client.delete("/a").await.unwrap_err().is_not_empty());
    client.delete("/a").deleting_children().await.unwrap();
    assert!(client.delete("/a").await.unwrap_err().is_no_node());
    client.delete("/a").quietly().await.unwrap();
    client.sync("/").await.unwrap();
    client.close().await;
    assert!(matches!(client.get_data("/").await, Err(Error::Closed)));
}

/// Also operations with more than one request: the call hands over the first one.
#[tokio::test]
async fn operations_are_done_in_the_order_of_their_calls() {
    let server = TestServer::start();
    let client = server.client().await;
    client.create("/a", b"").await.unwrap();
    let creates = [
        client.create("/a/plain", b"").send(),
        client.create("/a/parents", b"").creating_parents().send(),
        client.create("/a/idempotent", b"").idempotent().send(),
        client.create("/a/set", b"").or_set_data().send(),
        client.create("/a/n-", b"").ephemeral_sequential().protected().send(),
    ];
    let filled = client.get_children("/a").send();
    let deletes = [
        client.delete("/a/plain").send(),
        client.delete("/a/parents").quietly().send(),
        client.delete("/a/idempotent").guaranteed().send(),
    ];
    let set = client.set_data("/a/set", b"1").idempotent().send();
    let left = client.get_children_and_stat("/a").send();
    // They are awaited in the reverse order. Only the order of the calls counts.
    assert_eq!(left.await.unwrap().1.num_children, 2);
    assert_eq!(set.await.unwrap().version, 1);
    for delete in deletes {
        delete.await.unwrap();
    }
    assert_eq!(filled.await.unwrap().len(), 5);
    for create in creates {
        create.await.unwrap();
    }
}

#[tokio::test]
async fn every_kind_of_znode() {
    let server = TestServer::start_with(|config| config.tree.extended_types_enabled = true);
    let client = server.client().await;
    let session = client.session_id().unwrap();
    let owned = client.create("/e", b"").ephemeral().await.unwrap();
    assert_eq!(owned.stat.ephemeral_owner, session.0);
    let first = client.create("/s-", b"").ephemeral_sequential().await.unwrap();
    let second = client.create("/s-", b"").sequential().await.unwrap();
    assert!(first.path < second.path && first.stat.czxid < second.stat.czxid);
    client.create("/c", b"").container().await.unwrap();
    client.create("/t", b"").ttl(Duration::from_secs(100)).await.unwrap();
    let mode = CreateMode::PersistentSequentialWithTtl(Duration::from_secs(100));
    assert!(client.create("/t/", b"").mode(mode).await.unwrap().path.starts_with("/t/0000"));
    let mut mine = client.get_ephemerals("/").await.unwrap();
    mine.sort();
    assert_eq!(mine, ["/e", first.path.as_str()]);
    assert!(client.create("/e/x", b"").await.unwrap_err().code() == Some(ErrorCode::NoChildrenForEphemerals));
}

#[tokio::test]
async fn idempotent_and_or_set_data_creates() {
    let server = TestServer::start();
    let client = server.client().await;
    assert!(client.create("/p/q/r", b"").await.unwrap_err().is_no_node());
    client.create("/p/q/r", b"x").creating_parents().await.unwrap();
    assert!(client.create("/p/q/r", b"x").creating_parents().await.unwrap_err().is_node_exists());
    client.create("/k/l", b"").creating_container_parents().await.unwrap();
    let readable = [Acl::world(Perms::READ)];
    client.create("/open/closed", b"").acl(&readable[..]).creating_parents().await.unwrap();
    assert_eq!(client.get_acl("/open").await.unwrap().0, [Acl::world(Perms::ALL)]);
    assert_eq!(client.get_acl("/open/closed").await.unwrap().0, readable);
    let two = [Acl::world(Perms::READ), Acl::world(Perms::CREATE)];
    client.create("/two/x", b"").parents_acl(&two[..]).creating_parents().await.unwrap();
    assert_eq!(client.get_acl("/two").await.unwrap().0, two);
    let stat = client.create("/p/q/r", b"y").or_set_data().await.unwrap().stat;
    assert_eq!(stat.version, 1);
    let made = client.create("/p/n-", b"").ephemeral_sequential().protected().await.unwrap();
    assert_eq!(without_protection(made.name()), "n-0000000001");
    assert_eq!(client.get_children("/p").await.unwrap().len(), 2);
    for bad in ["", "a", "/a/", "/a//b", "/./x"] {
        assert!(matches!(client.create(bad, b"").await, Err(Error::BadPath { .. })), "{bad}");
        assert!(matches!(client.get_data(bad).await, Err(Error::BadPath { .. })), "{bad}");
    }
}

#[tokio::test]
async fn options_of_a_multi_are_for_the_operation_before_them() {
    let server = TestServer::start();
    let client = server.client().await;
    let readers = [Acl::world(Perms::READ)];
    let mut multi = client.multi().create("/plain", b"1").and();
    for (path, mode) in [("/box", CreateMode::Container), ("/mine", CreateMode::Ephemeral)] {
        multi = multi.create(path, b"").mode(mode).and();
    }
    multi.create("/none", b"x").without_data().acl(&readers).set_data("/plain", b"2").await.unwrap();
    let owner = async |path| client.exists(path).await.unwrap().unwrap().ephemeral_owner;
    let session = client.session_id().unwrap().0;
    assert_eq!((owner("/plain").await, owner("/box").await), (0, 0));
    assert_eq!((owner("/mine").await, owner("/none").await), (session, 0));
    assert_eq!(client.get_acl("/none").await.unwrap().0, readers);
    assert_eq!(client.get_acl("/plain").await.unwrap().0, [Acl::world(Perms::ALL)]);
    assert!(client.get_data("/none").await.unwrap().0.is_empty());

    let multi = client.multi().set_data("/plain", b"3").version(Version::Exactly(1)).delete("/box");
    let error = multi.version(Version::Exactly(7)).await.unwrap_err();
    assert!(matches!(
        &error,
        Error::Multi { code: ErrorCode::BadVersion, index: 1, operation: "delete", .. }
    ));
    let said = "multi: operation 1 (delete /box): the version is not the expected one (BadVersion); nothing was done";
    assert_eq!(error.to_string(), said);
}

/// -1 means any version on the wire. A caller that has counted to it must not delete what another client has written.
#[tokio::test]
async fn exactly_the_version_minus_one_matches_nothing() {
    let server = TestServer::start();
    let client = server.client().await;
    client.create("/a", b"1").await.unwrap();
    let minus_one = Version::Exactly(-1);
    let acl = [Acl::world(Perms::READ)];
    for refused in [
        client.set_data("/a", b"2").version(minus_one).await.map(drop),
        client.set_acl("/a", &acl).version(minus_one).await.map(drop),
        client.delete("/a").version(minus_one).await,
        client.delete("/a").version(minus_one).guaranteed().await,
        client.multi().delete("/a").version(minus_one).await.map(drop),
        client.multi().check("/a", minus_one).await.map(drop),
    ] {
        assert!(refused.unwrap_err().is_bad_version());
    }
    client.delete("/a").version(minus_one).in_background();
    let (data, stat) = client.get_data("/a").await.unwrap();
    assert_eq!((&data[..], stat.version, stat.aversion), (&b"1"[..], 0, 0));
}

#[tokio::test]
async fn multis_are_done_completely_or_not_at_all() {
    let server = TestServer::start();
    let client = server.client().await;
    let results = client
        .multi()
        .create("/m", b"1")
        .create("/m/s-", b"")
        .ephemeral_sequential()
        .check("/m", Version::Exactly(0))
        .set_data("/m", b"2")
        .delete("/m/s-0000000000")
        .await
        .unwrap();
    assert_eq!(results[1].path(), Some("/m/s-0000000000"));
    assert_eq!(results[3].stat().unwrap().version, 1);
    assert_eq!((&results[2], &results[4]), (&OpResult::Checked, &OpResult::Deleted));
    let error =
        client.multi().set_data("/m", b"3").check("/m", Version::Exactly(9)).delete("/m").await.unwrap_err();
    assert!(matches!(&error, Error::Multi { code: ErrorCode::BadVersion, index: 1, operation: "check", .. }));
    assert_eq!(&client.get_data("/m").await.unwrap().0[..], b"2");
    let found = client.multi_read().get_data("/m").get_children("/").get_data("/none").await.unwrap();
    assert!(matches!(&found[0], Ok(ReadResult::Data(data, _)) if data == "2"));
    assert!(matches!(&found[1], Ok(ReadResult::Children(names)) if names.len() == 2));
    assert!(found[2].as_ref().is_err_and(Error::is_no_node));
}

#[tokio::test]
async fn identities_and_access() {
    let server = TestServer::start();
    let client = server.builder("").auth("digest", "bob:pw").connect().await.unwrap();
    let whole = [Acl { perms: Perms::ALL, id: ostler_client::Id::new("auth", "") }];
    client.create("/mine", b"").acl(&whole[..]).await.unwrap();
    let other = server.client().await;
    assert_eq!(other.get_data("/mine").await.unwrap_err().code(), Some(ErrorCode::NoAuth));
    other.add_auth("digest", "bob:pw").await.unwrap();
    other.get_data("/mine").await.unwrap();
    let users = other.who_am_i().await.unwrap();
    assert!(users.contains(&Id::new("digest", "bob")));
    assert_eq!(other.get_acl("/mine").await.unwrap().0[0].id.scheme, "digest");
    other.set_acl("/mine", &[Acl::world(Perms::READ)]).version(Version::Exactly(0)).await.unwrap();
    assert!(matches!(other.add_auth("nonsense", "x").await, Err(Error::AuthFailed)));
    // The server closed the connection. The session goes on, with the accepted identity.
    assert_eq!(other.get_data("/mine").await.unwrap().1.aversion, 1);
}

#[tokio::test]
async fn chroots_and_namespaces_are_prefixes_of_paths() {
    let server = TestServer::start();
    let real = server.client().await;
    let client = server.builder("/r").connect().await.unwrap();
    client.create("/", b"").creating_parents().await.unwrap();
    let inner = client.using_namespace("x/y").unwrap();
    let made = inner.create("/n-", b"").ephemeral_sequential().creating_parents().await.unwrap();
    assert!(real.exists(&format!("/r/x/y{}", made.path)).await.unwrap().is_some());
    assert_eq!(inner.get_ephemerals("/").await.unwrap(), [made.path]);
    assert_eq!(inner.namespace(), "/r/x/y");
    let config = inner.get_config().await;
    assert!(config.is_ok(), "{config:?}");
}

#[tokio::test]
async fn a_namespace_ends_at_its_root_and_not_within_a_name() {
    let server = TestServer::start();
    let real = server.client().await;
    let client = real.using_namespace("app").unwrap();
    for path in ["/app2/theirs", "/app/mine"] {
        real.create(path, b"").ephemeral().creating_parents().await.unwrap();
    }
    assert_eq!(client.get_ephemerals("/").await.unwrap(), ["/mine"]);
    assert_eq!(client.get_ephemerals("/m").await.unwrap(), ["/mine"]);

    // Sequential znodes directly below the root have names of digits only.
    let made = client.create("/", b"").sequential().await.unwrap();
    assert_eq!(made.path, "/0000000001");
    let made = client.multi().create("/", b"").sequential().await.unwrap();
    assert_eq!(made[0].path(), Some("/0000000002"));
    let fresh = real.using_namespace("fresh").unwrap();
    let made = fresh.create("/", b"").sequential().creating_parents().await.unwrap();
    assert_eq!(made.path, "/0000000000");
    let mut names = real.get_children("/").await.unwrap();
    names.sort();
    assert_eq!(names, ["app", "app2", "fresh", "zookeeper"]);
}

#[tokio::test]
async fn the_error_names_a_parent_by_its_path_below_the_namespace() {
    let server = TestServer::start();
    let real = server.client().await;
    real.create("/app", b"").await.unwrap();
    real.create("/app/held", b"").ephemeral().await.unwrap();
    let client = real.using_namespace("app").unwrap();
    let error = client.create("/held/a/b", b"").creating_parents().await.unwrap_err();
    assert!(error.to_string().contains(" /held/a:"), "{error}");
    real.create("/shut", b"").acl(vec![Acl::world(Perms::READ)]).await.unwrap();
    let client = real.using_namespace("shut/app").unwrap();
    let error = client.create("/a", b"").creating_parents().await.unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::NoAuth), "{error}");
    assert!(error.to_string().contains(" /:"), "{error}");
}

#[tokio::test]
async fn data_is_compressed_once_whatever_the_order_of_the_options() {
    let server = TestServer::start();
    let client = server.client().await;
    let text = "text ".repeat(100);
    client.create("/before", b"").compressed().data(text.clone()).await.unwrap();
    client.create("/twice", &text).compressed().compressed().await.unwrap();
    client.create("/set", b"").await.unwrap();
    client.set_data("/set", b"").compressed().compressed().data(text.clone()).await.unwrap();
    client.create("/again", b"").await.unwrap();
    client.set_data("/again", &text).compressed().compressed().idempotent().await.unwrap();
    for path in ["/before", "/twice", "/set", "/again"] {
        let (data, stat) = client.get_data(path).decompressed().await.unwrap();
        assert!(data == text && stat.data_length < 100, "{path}");
    }
}
