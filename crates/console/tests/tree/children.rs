//! Lists of children, page by page.

use crate::server::{Site, encoded};
use ostler_client::{Acl, Client, Id, Perms};
use serde_json::{Value, json};
use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

/// All rows of a list, taken in pages.
fn all(site: &Site, query: &str, limit: usize) -> Vec<Value> {
    let (mut rows, mut next) = (Vec::new(), String::new());
    loop {
        let (status, page) = site.get(&format!("tree/children?{query}&limit={limit}{next}"));
        assert_eq!(status, 200, "{page}");
        let items = page["items"].as_array().unwrap();
        assert!(items.len() <= limit);
        rows.extend(items.iter().cloned());
        match page["next"].as_str() {
            Some(cursor) => next = format!("&cursor={cursor}"),
            None => return rows,
        }
    }
}

fn names(rows: &[Value]) -> Vec<&str> {
    rows.iter().map(|row| row["name"].as_str().unwrap()).collect()
}

async fn fill(client: &Client, parent: &str, names: impl Iterator<Item = String>) {
    let names: Vec<String> = names.collect();
    for some in names.chunks(500) {
        let multi = some
            .iter()
            .fold(client.multi(), |multi, name| multi.create(&format!("{parent}/{name}"), b"").and());
        multi.await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_has_what_the_caller_may_see() {
    let site = Site::start();
    let client = site.client("ann:pw").await;
    client.create("/p", b"").await.unwrap();
    client.create("/p/open", b"12345").await.unwrap();
    client.create("/p/open/child", b"").await.unwrap();
    let ann = vec![Acl { perms: Perms::ALL, id: Id::new("auth", "") }];
    client.create("/p/shut", b"secret").acl(ann.clone()).await.unwrap();
    let (_, list) = site.get("tree/children?path=/p");
    let open = |time: &Value| {
        json!({
            "name": "open", "kind": "persistent", "num_children": 1, "data_length": 5, "version": 0, "mzxid": "0x3",
            "mtime_ms": time, "has_quota": false, "watched": false, "may_read": true,
        })
    };
    let shut = json!({
        "name": "shut", "kind": null, "num_children": null, "data_length": null, "version": null, "mzxid": null,
        "mtime_ms": null, "has_quota": null, "watched": null, "may_read": false,
    });
    let time = list["items"][0]["mtime_ms"].clone();
    assert_eq!(
        list,
        json!({
            "items": [open(&time), shut], "next": null, "truncated": false, "as_of_zxid": "0x5", "cversion": 2,
            "changes_since": 0, "total": 2, "from": 0, "matching": 2,
        })
    );
    let (_, of_ann) = site.get_as("ann:pw", "tree/children?path=/p");
    assert_eq!(
        (&of_ann["items"][1]["data_length"], &of_ann["items"][1]["may_read"]),
        (&json!(6), &json!(true))
    );
    // A parent that cannot be read shows none.
    client.set_acl("/p", &ann).await.unwrap();
    assert_eq!(site.get("tree/children?path=/p").0, 403);
    assert_eq!(site.get("tree/children?path=/p/open").0, 200);
    assert_eq!(site.get("tree/children?path=/none").0, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn orders_prefixes_and_limits() {
    let site = Site::start();
    let client = site.client("").await;
    client.create("/p", b"").await.unwrap();
    for name in ["b-0000000001", "a-0000000002", "plain", "a-0000000000"] {
        client.create(&format!("/p/{name}"), b"").await.unwrap();
    }
    client.set_data("/p/b-0000000001", b"x").await.unwrap();
    for (query, expected) in [
        ("", ["a-0000000000", "a-0000000002", "b-0000000001", "plain"]),
        ("&order=desc", ["plain", "b-0000000001", "a-0000000002", "a-0000000000"]),
        ("&sort=sequence", ["plain", "a-0000000000", "b-0000000001", "a-0000000002"]),
        ("&sort=sequence&order=desc", ["a-0000000002", "b-0000000001", "a-0000000000", "plain"]),
        ("&sort=changed", ["a-0000000002", "plain", "a-0000000000", "b-0000000001"]),
        ("&sort=changed&order=desc", ["b-0000000001", "a-0000000000", "plain", "a-0000000002"]),
    ] {
        for limit in [1, 2, 3, 4, 1000] {
            assert_eq!(names(&all(&site, &format!("path=/p{query}"), limit)), expected, "{query} {limit}");
        }
        let prefixed = all(&site, &format!("path=/p{query}&starts_with=a-"), 1);
        let expected: Vec<&str> = expected.into_iter().filter(|name| name.starts_with("a-")).collect();
        assert_eq!(names(&prefixed), expected, "{query}");
    }
    for wrong in ["limit=0", "limit=1001", "limit=x", "sort=size", "order=up", "cursor=AAAA", "cursor=e30"] {
        let (status, answer) = site.get(&format!("tree/children?path=/p&{wrong}"));
        assert_eq!((status, &answer["code"]), (400, &json!("BAD_REQUEST")), "{wrong}");
    }
    let (_, first) = site.get("tree/children?path=/p&limit=1");
    client.create("/p/new", b"").await.unwrap();
    client.delete("/p/plain").await.unwrap();
    let cursor = first["next"].as_str().unwrap();
    let (_, second) = site.get(&format!("tree/children?path=/p&limit=1&cursor={cursor}"));
    assert_eq!((&second["cversion"], &second["changes_since"]), (&first["cversion"], &json!(2)));
}

/// A place is reached at once, in each order, also in a list that is long.
#[tokio::test(flavor = "multi_thread")]
async fn a_list_begins_at_any_place() {
    let site = Site::start();
    let client = site.client("").await;
    for (parent, count) in [("/few", 30_usize), ("/many", 5000)] {
        client.create(parent, b"").await.unwrap();
        fill(&client, parent, (0..count).map(|n| format!("{}-{n:010}", ["a", "b", "c"][n % 3]))).await;
        for sort in ["name", "sequence", "changed"] {
            for query in
                [format!("path={parent}&sort={sort}"), format!("path={parent}&sort={sort}&order=desc")]
            {
                for starts_with in ["", "b-", "x"] {
                    let query = format!("{query}&starts_with={starts_with}");
                    let rows = all(&site, &query, 1000);
                    let names = names(&rows);
                    for from in [0, 1, names.len() / 2, names.len().saturating_sub(1), names.len(), count + 9]
                    {
                        let (status, page) = site.get(&format!("tree/children?{query}&limit=3&from={from}"));
                        assert_eq!(status, 200, "{page}");
                        let expected: Vec<&str> = names.iter().skip(from).take(3).copied().collect();
                        let got: Vec<&str> = page["items"]
                            .as_array()
                            .unwrap()
                            .iter()
                            .map(|row| row["name"].as_str().unwrap())
                            .collect();
                        assert_eq!(got, expected, "{query} {from}");
                        assert_eq!(
                            (&page["from"], &page["matching"]),
                            (&json!(from), &json!(names.len())),
                            "{query}"
                        );
                        assert_eq!(page["total"], json!(count));
                        assert_eq!(page["next"].is_null(), from + 3 >= names.len(), "{query} {from}");
                        if let Some(cursor) = page["next"].as_str() {
                            let (_, next) =
                                site.get(&format!("tree/children?{query}&limit=1&cursor={cursor}"));
                            assert_eq!(next["items"][0]["name"], json!(names[from + 3]), "{query} {from}");
                        }
                    }
                }
            }
        }
    }
    let (_, page) = site.get("tree/children?path=/few&limit=1");
    let both = format!("from=1&cursor={}", page["next"].as_str().unwrap());
    for wrong in ["from=-1", "from=x", &both] {
        let (status, answer) = site.get(&format!("tree/children?path=/few&{wrong}"));
        assert_eq!((status, &answer["code"]), (400, &json!("BAD_REQUEST")), "{wrong}");
    }
}

/// A child that exists throughout is there once, in each order, while others come and go.
#[tokio::test(flavor = "multi_thread")]
async fn paging_is_stable_while_others_write() {
    const STEADY: usize = 12_000;
    let site = Site::start();
    let client = site.client("").await;
    client.create("/p", b"").await.unwrap();
    fill(&client, "/p", (0..STEADY).map(|n| format!("s{:05}-{n:010}", n * 7 % STEADY))).await;
    let stop = Arc::new(AtomicBool::new(false));
    let (writer, stopping) = (site.client("").await, stop.clone());
    let writes = tokio::spawn(async move {
        let mut n = 0_u64;
        while !stopping.load(Ordering::Relaxed) {
            n += 1;
            let path = format!("/p/s{:05}-x{n}", n * 3571 % STEADY as u64);
            writer.create(&path, b"").await.unwrap();
            if n.is_multiple_of(2) {
                writer.delete(&path).await.unwrap();
            }
        }
        n
    });
    for query in ["", "&order=desc", "&sort=sequence", "&sort=sequence&order=desc"] {
        let rows = tokio::task::block_in_place(|| all(&site, &format!("path=/p{query}"), 700));
        let names = names(&rows);
        let steady: Vec<&str> = names.iter().copied().filter(|name| !name.contains('x')).collect();
        assert_eq!(steady.len(), STEADY, "{query}");
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len(), "{query}: none twice");
    }
    stop.store(true, Ordering::Relaxed);
    assert!(writes.await.unwrap() > 10, "there were no writes");
}

#[tokio::test(flavor = "multi_thread")]
async fn names_of_any_letters_are_paged() {
    let site = Site::start();
    let client = site.client("").await;
    client.create("/p", b"").await.unwrap();
    let wanted: BTreeSet<String> =
        (0..300_u32).map(|n| format!("{}{n}", char::from_u32(0xa1 + n * 37).unwrap())).collect();
    for name in &wanted {
        client.create(&format!("/p/{name}"), b"").await.unwrap();
    }
    let rows = all(&site, "path=/p", 7);
    assert_eq!(names(&rows), wanted.iter().map(|name| &**name).collect::<Vec<_>>());
    let prefix = wanted.iter().nth(100).unwrap();
    let rows = all(&site, &format!("path=/p&starts_with={}", encoded(prefix)), 7);
    assert!(names(&rows).contains(&&**prefix));
}
