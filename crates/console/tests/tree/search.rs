//! The search.

use crate::server::{Site, digest_id, encoded};
use ostler_client::{Acl, Client, Id, Perms};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// All finds, taken in pages of this size.
fn all(site: &Site, login: &str, query: &str, limit: usize) -> Vec<Value> {
    let (mut rows, mut next) = (Vec::new(), String::new());
    loop {
        let (status, page) = site.get_as(login, &format!("tree/search?{query}&limit={limit}{next}"));
        assert_eq!(status, 200, "{page}");
        let items = page["items"].as_array().unwrap();
        assert!(items.len() <= limit);
        rows.extend(items.iter().cloned());
        assert_eq!(page["done"], page["next"].is_null());
        match page["next"].as_str() {
            Some(cursor) => next = format!("&cursor={cursor}"),
            None => {
                assert_eq!(page["looked_at"], page["of"]);
                return rows;
            }
        }
    }
}

fn paths(rows: &[Value]) -> BTreeSet<String> {
    let paths: BTreeSet<String> = rows.iter().map(|row| row["path"].as_str().unwrap().to_owned()).collect();
    assert_eq!(paths.len(), rows.len(), "none twice");
    paths
}

fn set(paths: &[&str]) -> BTreeSet<String> {
    paths.iter().map(|path| (*path).to_owned()).collect()
}

async fn build(site: &Site) -> Client {
    let client = site.client("ann:pw").await;
    for (path, data) in [
        ("/app", "root"),
        ("/app/one", "needle"),
        ("/app/two", "hay"),
        ("/app/two/lock-0000000001", "x"),
        ("/other", "needle"),
        ("/app/shut", "needle"),
        ("/app/shut/lock-0000000002", "needle"),
    ] {
        client.create(path, data).await.unwrap();
    }
    client.create("/app/mine", b"").ephemeral().await.unwrap();
    client.create("/app/large", &vec![b'n'; 5000]).await.unwrap();
    client.set_acl("/app/shut", &[Acl { perms: Perms::ALL, id: Id::new("auth", "") }]).await.unwrap();
    client
}

#[tokio::test(flavor = "multi_thread")]
async fn znodes_are_found_by_each_criterion() {
    let site = Site::start();
    let client = build(&site).await;
    let session = client.session_id().unwrap();
    let mtime =
        |path: &str| site.get(&format!("tree/node?path={path}")).1["stat"]["mtime_ms"].as_i64().unwrap();
    let (large, one) = (mtime("/app/large"), mtime("/app/one"));
    for (query, expected) in [
        ("name=one".to_owned(), set(&["/app/one"])),
        ("name=o*".into(), set(&["/app/one", "/other"])),
        (format!("name={}", encoded("/app/*")), set(&["/app/one", "/app/two", "/app/mine", "/app/large"])),
        (format!("name={}", encoded("/app/**/lock-*")), set(&["/app/two/lock-0000000001"])),
        ("value=needle".into(), set(&["/app/one", "/other"])),
        ("value=needle&under=/app".into(), set(&["/app/one"])),
        ("value=nnn".into(), set(&[])),
        ("larger_than=4999".into(), set(&["/app/large"])),
        ("larger_than=5000".into(), set(&[])),
        (format!("owner={session}"), set(&["/app/mine"])),
        (format!("changed_since_ms={}", large + 1), set(&[])),
        ("name=o*&value=hay".into(), set(&[])),
        ("name=config".into(), set(&["/zookeeper/config"])),
    ] {
        for limit in [1, 2, 100] {
            assert_eq!(paths(&all(&site, "", &query, limit)), expected, "{query} {limit}");
        }
    }
    assert!(paths(&all(&site, "", &format!("changed_since_ms={one}&under=/app"), 9)).contains("/app/large"));
    let rows = all(&site, "", "name=one", 9);
    let time = rows[0]["mtime_ms"].clone();
    assert_eq!(
        rows,
        [
            json!({ "path": "/app/one", "kind": "persistent", "data_length": 6, "mtime_ms": time, "match": "name" })
        ]
    );
    assert_eq!(all(&site, "", "value=hay", 9)[0]["match"], "value");
    for wrong in [
        "",
        "name=",
        "under=/app",
        "under=app&name=x",
        "owner=zz&name=x",
        "larger_than=x",
        "cursor=e30&name=x",
    ] {
        assert_eq!(site.get(&format!("tree/search?{wrong}")).0, 400, "{wrong}");
    }
    let long = "x".repeat(300);
    assert_eq!(site.get(&format!("tree/search?name={long}")).0, 400);
    assert_eq!(site.get("tree/search?under=/none&name=x").0, 404);
    assert_eq!(site.get("tree/search?under=/app/shut&name=x").0, 403);
}

/// Neither the znode nor what is below it is found by somebody who could not find it as a client.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_client_could_not_find_is_not_found() {
    let site = Site::start();
    let _client = build(&site).await;
    let ann = |query: &str| paths(&all(&site, "ann:pw", query, 1));
    let nobody = |query: &str| paths(&all(&site, "", query, 1));
    assert_eq!(nobody("name=lock-*"), set(&["/app/two/lock-0000000001"]));
    assert_eq!(ann("name=lock-*"), set(&["/app/two/lock-0000000001", "/app/shut/lock-0000000002"]));
    assert_eq!(nobody("value=needle"), set(&["/app/one", "/other"]));
    assert_eq!(ann("value=needle").len(), 4);
    let _ = digest_id("ann:pw");
    assert_eq!(nobody("name=shut"), set(&[]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_search_goes_on_over_many_znodes_while_others_write() {
    let site = Site::start();
    let client = site.client("").await;
    client.create("/m", b"").await.unwrap();
    let names: Vec<String> = (0..6000).map(|n| format!("/m/s{n}")).collect();
    for some in names.chunks(500) {
        some.iter().fold(client.multi(), |multi, path| multi.create(path, b"").and()).await.unwrap();
    }
    let writes = async {
        for n in 0..400 {
            client.create(&format!("/m/w{n}"), b"").await.unwrap();
        }
    };
    let found = tokio::task::block_in_place(|| {
        let searching = std::thread::scope(|scope| {
            let search = scope.spawn(|| all(&site, "", "name=s*&under=/m", 900));
            tokio::runtime::Handle::current().block_on(writes);
            search.join().unwrap()
        });
        paths(&searching)
    });
    assert_eq!(found, names.into_iter().collect());
}
