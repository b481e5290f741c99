//! Slow requests, hot paths, pauses.

use crate::{
    raw::Raw,
    site::{Site, names},
};
use ostler_client::{Acl, Id, Perms};
use serde_json::{Value, json};

fn count(page: &Value, list: &str, path: &str) -> u64 {
    let all = page[list].as_array().unwrap();
    all.iter().find(|of| of["path"] == path).map_or(0, |of| of["count"].as_u64().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_requests_have_their_stages() {
    let site = Site::start_with("slowRequestThresholdMs=0");
    let client = site.client("").await;
    for number in 0..5 {
        client.create(&format!("/n{number}"), b"").await.unwrap();
    }
    client.get_data("/n0").await.unwrap();
    let page = site.get("slow");
    assert_eq!(names(&page), ["items", "next", "truncated", "threshold_ms", "count", "servers"]);
    assert_eq!(page["threshold_ms"], 0);
    let items = page["items"].as_array().unwrap();
    assert_eq!(page["count"].as_u64().unwrap(), items.len() as u64);
    let create = items.iter().find(|item| item["path"] == "/n4").unwrap();
    assert_eq!(
        names(create),
        ["server", "number", "at_ms", "kind", "path", "session", "address", "total_ms", "stages"]
    );
    assert_eq!((&create["kind"], &create["server"]), (&json!("create2"), &json!(0)));
    let stages: Vec<&str> =
        create["stages"].as_array().unwrap().iter().map(|of| of["name"].as_str().unwrap()).collect();
    assert_eq!(stages, ["queue", "propose", "own_disk", "quorum", "apply", "write"]);
    let times = create["stages"].as_array().unwrap().iter().map(|of| of["for_ms"].as_f64().unwrap());
    assert!(times.sum::<f64>() > 0.0 && create["total_ms"].as_f64().unwrap() > 0.0, "{create}");
    let sorted: Vec<i64> = items.iter().map(|item| item["at_ms"].as_i64().unwrap()).collect();
    assert!(sorted.is_sorted_by(|newer, older| newer >= older), "the newest first");
    assert_eq!(site.all("slow?limit=2").len(), items.len());
    let later = sorted[0] + 1;
    assert_eq!(site.get(&format!("slow?since_ms={later}"))["items"], json!([]));
    assert_eq!(site.get_as("", "slow?since_ms=x").0, 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_request_is_counted_while_that_is_asked_for() {
    let site = Site::start();
    let client = site.client("").await;
    client.create("/a", b"").await.unwrap();
    let sampled = site.get("hot");
    assert_eq!(
        names(&sampled),
        ["span_ms", "sampled_one_in", "reads", "writes", "addresses", "sessions", "measured", "servers"]
    );
    assert_eq!((&sampled["sampled_one_in"], &sampled["measured"]), (&json!(64), &json!(null)));
    for (wrong, status) in [(r#"{"seconds": 0}"#, 400), (r#"{"seconds": 61}"#, 400)] {
        assert_eq!(site.post_as("super:secret", "hot/measure", wrong).0, status, "{wrong}");
    }
    assert_eq!(site.post_as("super:secret", "hot/measure", r#"{"seconds": 6}"#).0, 200);
    for _ in 0..100 {
        client.get_data("/a").await.unwrap();
    }
    client.set_data("/a", b"x").await.unwrap();
    let page = site.get("hot");
    assert_eq!((count(&page, "reads", "/a"), count(&page, "writes", "/a")), (100, 1), "{page:#}");
    assert_eq!(page["sampled_one_in"], 1);
    assert!(page["measured"]["left_ms"].as_u64().unwrap() > 0);
    assert_eq!((&page["measured"]["at_most_too_few"], &page["measured"]["server"]), (&json!(0), &json!(0)));
    assert_eq!(page["addresses"][0]["address"], "127.0.0.1");
    assert!(page["addresses"][0]["count"].as_u64().unwrap() >= 101);
    let session = &site.get("sessions")["items"][0]["id"];
    assert_eq!(&page["sessions"][0]["session"], session);
    // The time is over: nothing more is counted, and what was counted is shown for a while.
    let over = site.until("hot", |page| page["measured"]["left_ms"] == 0);
    client.get_data("/a").await.unwrap();
    assert_eq!(count(&site.get("hot"), "reads", "/a"), 100);
    assert_eq!(over["span_ms"], 6000);
}

/// A viewer who may not read a znode does not learn the names below it.
#[tokio::test(flavor = "multi_thread")]
async fn hidden_paths_end_where_the_viewer_may_not_look() {
    let site = Site::start_with("slowRequestThresholdMs=0");
    let ann = site.client("ann:pw").await;
    let id = ostler_server_core::auth::digest_id("ann:pw");
    let hidden = [Acl { perms: Perms::ALL, id: Id::new("digest", id) }];
    ann.create("/open", b"").await.unwrap();
    ann.create("/open/secret", b"").acl(&hidden).await.unwrap();
    ann.create("/open/secret/a", b"").acl(&hidden).await.unwrap();
    ann.create("/open/secret/b", b"").acl(&hidden).await.unwrap();
    assert_eq!(site.post_as("super:secret", "hot/measure", r#"{"seconds": 60}"#).0, 200);
    ann.get_data("/open/secret/a").await.unwrap();
    ann.get_data("/open/secret/b").await.unwrap();
    ann.get_data("/open/secret").await.unwrap();
    drop(ann.get_data("/gone/away").await);
    let reads = |login: &str| {
        let (_, page) = site.get_as(login, "hot");
        let paths = page["reads"].as_array().unwrap().iter();
        paths.map(|of| format!("{} {}", of["path"].as_str().unwrap(), of["count"])).collect::<Vec<_>>()
    };
    // A path that never was could have been any: only its nearest parent that exists is shown.
    assert_eq!(reads(""), ["/open/secret/... 2", "/gone/... 1", "/open/secret 1"]);
    assert_eq!(reads("bob:pw"), reads(""));
    assert_eq!(reads("ann:pw"), ["/gone/... 1", "/open/secret 1", "/open/secret/a 1", "/open/secret/b 1"]);
    assert_eq!(
        reads("super:secret"),
        ["/gone/away 1", "/open/secret 1", "/open/secret/a 1", "/open/secret/b 1"]
    );
    // All that is hidden is counted, also beyond the limit of the list.
    assert_eq!(site.get("hot?limit=1")["reads"], json!([{ "path": "/open/secret/...", "count": 2 }]));
    let (_, slow) = site.get_as("", "slow");
    let text = slow.to_string();
    assert!(text.contains("/open/secret/...") && !text.contains("/open/secret/a"), "{text}");
}

#[test]
fn pauses_are_a_list() {
    let site = Site::start();
    drop(Raw::connect(site.clients));
    let page = site.get("pauses");
    assert_eq!(names(&page), ["items", "next", "truncated", "servers"]);
    for item in page["items"].as_array().unwrap() {
        assert_eq!(names(item), ["server", "at_ms", "for_ms", "kind"]);
    }
}
