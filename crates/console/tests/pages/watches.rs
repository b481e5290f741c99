//! Watches by path, by session, and of one path.

use crate::{
    raw::Raw,
    site::{Site, encoded, names},
};
use ostler_client::{Acl, Id, Perms};
use ostler_proto::op::Op;
use serde_json::{Value, json};
use std::collections::BTreeSet;

const HOSTILE: &str = "/<img src=x onerror=alert(1)>\u{202e}gnp\"\\";

fn row<'a>(page: &'a Value, path: &str) -> &'a Value {
    page["items"].as_array().unwrap().iter().find(|row| row["path"] == path).unwrap()
}

#[test]
fn watches_are_listed_by_path_and_by_session() {
    let site = Site::start();
    let (mut one, mut two) = (Raw::connect(site.clients), Raw::connect(site.clients));
    one.watch(Op::Exists, &["/a".into(), "/b".into(), HOSTILE.into()]);
    one.watch(Op::GetChildren, &["/".into()]);
    one.add_watch("/a", false);
    two.watch(Op::Exists, &["/a".into()]);
    two.add_watch("/", true);
    let page = site.get("watches?by=path");
    assert_eq!(names(&page)[..3], ["items", "next", "truncated"]);
    assert_eq!(
        page["totals"],
        json!({ "data": 4, "children": 1, "persistent": 1, "persistent_recursive": 1, "connections": 2, "paths": 4 })
    );
    let all = |path: &str, connections, kinds: [usize; 4]| {
        json!({ "path": path, "connections": connections, "data": kinds[0], "children": kinds[1], "persistent": kinds[2],
            "persistent_recursive": kinds[3], "server": 0 })
    };
    assert_eq!(*row(&page, "/a"), all("/a", 2, [2, 0, 1, 0]));
    assert_eq!(*row(&page, "/"), all("/", 2, [0, 1, 0, 1]));
    assert_eq!(*row(&page, HOSTILE), all(HOSTILE, 1, [1, 0, 0, 0]));
    let by_session = site.get("watches?by=session");
    let rows = by_session["items"].as_array().unwrap();
    let of = |raw: &Raw, count| json!({ "session": raw.session.to_string(), "address": raw.address(), "server": 0, "count": count });
    // A persistent watch is one of the data and one of the children.
    assert_eq!(rows, &[of(&one, 5), of(&two, 2)]);
    let filtered = site.get(&format!("watches?by=session&address={}", encoded(&two.address())));
    assert_eq!(filtered["items"], json!([of(&two, 2)]));
    let of_session = site.get(&format!("watches?session={}", two.session));
    assert_eq!(of_session["items"].as_array().unwrap().len(), 2);
    assert_eq!(of_session["totals"]["connections"], 1);
    for wrong in ["by=x", "cursor=x", "session=x", "path=x", "by=path&address=1"] {
        assert_eq!(site.get_as("", &format!("watches?{wrong}")).0, 400, "{wrong}");
    }
}

#[test]
fn the_connections_that_a_change_notifies() {
    let site = Site::start();
    let mut all: Vec<Raw> = (0..5).map(|_| Raw::connect(site.clients)).collect();
    all[0].watch(Op::Exists, &["/a/b".into()]);
    all[1].add_watch("/a/b", false);
    all[2].add_watch("/a", true);
    all[3].add_watch("/", true);
    all[3].watch(Op::Exists, &["/a/b".into()]);
    all[4].watch(Op::Exists, &["/a".into(), "/a/b/c".into()]);
    let page = site.get("watches?path=/a/b");
    let kinds = |at: usize| {
        let id = all[at].session.to_string();
        let row = page["items"].as_array().unwrap().iter().find(|row| row["session"] == id)?;
        assert_eq!(row["address"], all[at].address());
        Some(row["kinds"].clone())
    };
    assert_eq!(kinds(0), Some(json!(["data"])));
    assert_eq!(kinds(1), Some(json!(["persistent"])));
    assert_eq!(kinds(2), Some(json!(["persistent_recursive"])));
    assert_eq!(kinds(3), Some(json!(["data", "persistent_recursive"])));
    assert_eq!(kinds(4), None);
    assert_eq!(
        page["totals"],
        json!({ "data": 2, "children": 0, "persistent": 1, "persistent_recursive": 2, "connections": 4, "paths": 1 })
    );
    let pages = site.all("watches?path=/a/b&limit=1");
    assert_eq!(&pages, page["items"].as_array().unwrap());
    let address = encoded(&all[2].address());
    let filtered = site.get(&format!("watches?path=/a/b&address={address}"));
    assert_eq!(filtered["items"].as_array().unwrap().len(), 1);
    assert_eq!(
        site.get("watches?path=/none")["items"].as_array().unwrap().len(),
        1,
        "the recursive one at /"
    );
}

/// Watches come and go while somebody turns the pages, which are of one survey.
#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_watches_are_paged() {
    const WATCHES: usize = 10_000;
    let site = Site::start();
    site.client("").await.create("/watched", b"").await.unwrap();
    let mut raw = Raw::connect(site.clients);
    let paths: Vec<String> = (0..WATCHES).map(|number| format!("/watched/{number:05}")).collect();
    raw.watch(Op::Exists, &paths);
    let mut herd = Raw::connect(site.clients);
    herd.watch(Op::Exists, &paths[77..78]);
    let (mut seen, mut cursor, mut pages) = (Vec::new(), String::new(), 0);
    loop {
        let page = site.get(&format!("watches?by=path&limit=999{cursor}"));
        seen.extend(
            page["items"].as_array().unwrap().iter().map(|row| row["path"].as_str().unwrap().to_owned()),
        );
        pages += 1;
        herd.watch(Op::Exists, &[format!("/later/{pages}")]);
        let Some(next) = page["next"].as_str() else { break };
        assert!(!next.contains("watched"), "a cursor has no names in it");
        cursor = format!("&cursor={}", encoded(next));
    }
    assert_eq!((pages, seen.len()), (WATCHES.div_ceil(999), WATCHES));
    assert_eq!(seen[0], paths[77], "the largest herd comes first");
    assert_eq!(seen.iter().collect::<BTreeSet<_>>().len(), WATCHES);
    // A cursor of a survey that is forgotten goes on at the same place of the next one.
    let page = site.get(&format!("watches?by=path&limit=5&cursor={}", encoded("0:999:9999")));
    assert!(
        page["items"].as_array().unwrap().len() <= 5 && page["next"].is_null() || page["next"].is_string()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn hidden_paths_are_hidden() {
    let site = Site::start();
    let ann = site.client("ann:pw").await;
    let id = ostler_server_core::auth::digest_id("ann:pw");
    let hidden = [Acl { perms: Perms::ALL, id: Id::new("digest", id) }];
    ann.create("/secret", b"").acl(&hidden).await.unwrap();
    let mut raw = Raw::connect(site.clients);
    raw.watch(Op::Exists, &["/secret/plan".into(), "/top".into()]);
    let paths = |login: &str| {
        let (_, page) = site.get_as(login, "watches");
        let paths =
            page["items"].as_array().unwrap().iter().map(|row| row["path"].as_str().unwrap().to_owned());
        paths.collect::<Vec<_>>()
    };
    assert_eq!(paths(""), ["/secret/...", "/top"]);
    assert_eq!(paths("ann:pw"), ["/secret/plan", "/top"]);
}
