//! Sessions that live, sessions that have ended, and all that is known of one.

use crate::{
    raw::{Handshake, Raw},
    site::{Site, encoded, names},
};
use ostler_client::{Acl, CreateMode, Id, Perms};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Names that harm pages which take them for markup, or show them as they are.
const HOSTILE: &str = "<img src=x onerror=alert(1)>\u{202e}gnp\"\\";

async fn ephemeral(client: &ostler_client::Client, path: &str) {
    client.create(path, b"").mode(CreateMode::Ephemeral).await.unwrap();
}

fn ids(items: &[Value]) -> Vec<String> {
    items.iter().map(|item| item["id"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_lives_has_its_figures() {
    let site = Site::start();
    let ann = site.client("ann:pw").await;
    ephemeral(&ann, "/one").await;
    ephemeral(&ann, "/two").await;
    let mut raw = Raw::connect(site.clients);
    raw.watch(ostler_proto::op::Op::Exists, &["/one".into(), "/none".into()]);
    let page = site.get("sessions?state=live");
    assert_eq!(names(&page), ["items", "next", "truncated", "servers"]);
    assert_eq!(
        page["servers"],
        json!([{ "id": 0, "name": "this server", "state": "answered", "reason": null }])
    );
    let items = page["items"].as_array().unwrap();
    assert_eq!(items.len(), 2, "{page:#}");
    assert_eq!(
        names(&items[0]),
        [
            "id",
            "server",
            "address",
            "ids",
            "is_local",
            "timeout_ms",
            "last_heard_ago_ms",
            "longest_silence_ms",
            "ephemerals",
            "watches",
            "outstanding",
            "requests",
            "has_tls",
            "since_ms"
        ]
    );
    let of = |address: &str| items.iter().find(|item| item["address"] == address).unwrap();
    let watcher = of(&raw.address());
    assert_eq!(watcher["id"], raw.session.to_string());
    let figures = |item: &Value| {
        let names =
            ["server", "ids", "is_local", "timeout_ms", "ephemerals", "watches", "outstanding", "has_tls"];
        names.map(|name| item[name].clone())
    };
    let expected = |ids: Value, timeout, ephemerals, watches| {
        [
            json!(0),
            ids,
            json!(false),
            json!(timeout),
            json!(ephemerals),
            json!(watches),
            json!(0),
            json!(false),
        ]
    };
    assert_eq!(figures(watcher), expected(json!([]), 60_000, 0, 2));
    let other = items.iter().find(|item| item["id"] != watcher["id"]).unwrap();
    assert_eq!(figures(other), expected(json!(["digest:ann"]), 30_000, 2, 0), "no hash of the password");
    assert!(watcher["requests"].as_u64().unwrap() >= 3, "{watcher}");
    assert!(watcher["since_ms"].as_i64().unwrap() > 1_700_000_000_000);

    let found = |query: &str| site.get(&format!("sessions?{query}"))["items"].as_array().unwrap().len();
    assert_eq!((found("address=127.0.0.1"), found(&format!("address={}", encoded(&raw.address())))), (2, 1));
    assert_eq!((found("address=10.0.0.1"), found("server=0"), found("server=9")), (0, 2, 0));
    for wrong in ["state=dead", "limit=0", "limit=x", "cursor=x", "server=x"] {
        let (status, page) = site.get_as("", &format!("sessions?{wrong}"));
        assert_eq!((status, &page["code"]), (400, &json!("BAD_REQUEST")), "{wrong}: {page}");
    }
}

/// Sessions come and go while somebody turns the pages: those that were there all the time are each seen once.
#[test]
fn ten_thousand_sessions_are_paged() {
    const SESSIONS: usize = 10_000;
    let site = Site::start();
    let address = site.clients;
    let open = move || -> Vec<String> {
        // The connection is closed at once; the session lives on.
        let open = |_| Raw::shake_hands(address, Handshake { timeout_ms: 3_600_000, ..Handshake::default() });
        (0..SESSIONS / 20).map(open).map(|raw| raw.session.to_string()).collect()
    };
    let threads: Vec<_> = (0..20).map(|_| std::thread::spawn(open)).collect();
    let made: BTreeSet<String> = threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
    assert_eq!(made.len(), SESSIONS);
    let (mut seen, mut cursor, mut pages) = (Vec::new(), String::new(), 0);
    loop {
        let page = site.get(&format!("sessions?limit=777{cursor}"));
        seen.extend(ids(page["items"].as_array().unwrap()));
        pages += 1;
        drop(Raw::connect(address));
        let Some(next) = page["next"].as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    assert_eq!(pages, SESSIONS.div_ceil(777));
    let unique: BTreeSet<String> = seen.iter().cloned().collect();
    assert_eq!(unique.len(), seen.len(), "a session comes once");
    assert!(unique.is_superset(&made));
    let of_address = site.all("sessions?limit=1000&address=127.0.0.1");
    assert!(of_address.len() < 20, "few are connected: {}", of_address.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_end_has_its_cause_and_what_went_with_it() {
    let site = Site::start();
    let keeper = site.client("").await;
    let closer = site.client("").await;
    ephemeral(&closer, &format!("/{HOSTILE}")).await;
    closer.close().await;
    keeper.create("/locks", b"").await.unwrap();
    // The first in the queue loses its connection, and its session expires; the second one has the lock then.
    let mut first = Raw::shake_hands(site.clients, Handshake { timeout_ms: 400, ..Handshake::default() });
    let sequential = {
        use ostler_proto::jute::Writer;
        let mut body = Vec::new();
        body.string("/locks/lock-");
        body.buffer(Some(b""));
        body.i32(1);
        body.i32(31);
        body.string("world");
        body.string("anyone");
        body.i32(3);
        body
    };
    assert_eq!(first.ask(&[(1, 1, sequential)]), [0]);
    keeper.create("/locks/lock-", b"").mode(CreateMode::EphemeralSequential).await.unwrap();
    let (expired, from) = (first.session.to_string(), first.address());
    drop(first);
    let page = site.until("sessions?state=ended", |page| page["items"][0]["cause"] == "expired");
    assert_eq!(names(&page), ["items", "next", "truncated", "servers"]);
    let item = &page["items"][0];
    assert_eq!(
        names(item),
        [
            "id",
            "server",
            "address",
            "ended_ms",
            "part",
            "cause",
            "sentence",
            "verdict",
            "gaps_ms",
            "ephemerals",
            "ephemerals_count",
            "passed_on",
            "timeout_ms"
        ]
    );
    assert_eq!((&item["id"], &item["address"], &item["server"]), (&json!(expired), &json!(from), &json!(0)));
    assert_eq!((&item["verdict"], &item["timeout_ms"]), (&json!("client"), &json!(400)), "{item:#}");
    assert!(item["sentence"].as_str().unwrap().starts_with("The client went away: "), "{item:#}");
    assert_eq!(item["ephemerals"], json!(["/locks/lock-0000000000"]));
    assert_eq!(item["passed_on"][0]["path"], "/locks/lock-0000000000");
    assert_eq!(item["passed_on"][0]["to"], "/locks/lock-0000000001");
    let closed = &page["items"][1];
    assert_eq!((&closed["cause"], &closed["verdict"]), (&json!("closed_by_client"), &json!("client")));
    assert_eq!(closed["ephemerals"], json!([format!("/{HOSTILE}")]));

    let pages = site.all("sessions?state=ended&limit=1");
    assert_eq!(ids(&pages), ids(page["items"].as_array().unwrap()));
    let one = site.get(&format!("sessions/{expired}"));
    assert_eq!(names(&one), ["live", "ended", "ephemerals", "ephemerals_count", "sentences", "servers"]);
    assert_eq!((&one["live"], &one["ended"]), (&json!(null), item));
    let local = site.get("sessions?state=ended&local=1");
    assert_eq!(local["report"]["ends"].as_array().unwrap().len(), 3, "the connection of the first one, too");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_session_is_shown_alive_and_unknown() {
    let site = Site::start();
    let client = site.client("ann:pw").await;
    ephemeral(&client, &format!("/{HOSTILE}")).await;
    ephemeral(&client, "/a").await;
    let live = &site.get("sessions")["items"][0];
    let id = live["id"].as_str().unwrap();
    let one = site.get(&format!("sessions/{id}"));
    assert_eq!((&one["live"]["address"], &one["ended"]), (&live["address"], &json!(null)));
    assert_eq!(one["ephemerals"], json!([format!("/{HOSTILE}"), "/a"]));
    let sentences: Vec<&str> =
        one["sentences"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert!(sentences[0].starts_with("Nothing was lost: the session lives"), "{sentences:?}");
    assert!(sentences[1].starts_with("The session lives: its client is connected from"), "{sentences:?}");
    let (status, page) = site.get_as("", "sessions/0x1234");
    assert_eq!((status, &page["code"]), (404, &json!("NOT_FOUND")), "{page}");
    for wrong in ["1234", "0x", "0x11112222333344445", "x"] {
        assert_eq!(site.get_as("", &format!("sessions/{wrong}")).0, 400, "{wrong}");
    }
}

/// Names that the tree would not show are not shown here either.
#[tokio::test(flavor = "multi_thread")]
async fn names_of_hidden_znodes_are_hidden() {
    let site = Site::start();
    let ann = site.client("ann:pw").await;
    let id = ostler_server_core::auth::digest_id("ann:pw");
    let hidden = [Acl { perms: Perms::ALL, id: Id::new("digest", id) }];
    ann.create("/open", b"").await.unwrap();
    ann.create("/open/secret", b"").acl(&hidden).await.unwrap();
    ephemeral(&ann, "/open/secret/leader").await;
    ephemeral(&ann, "/open/seen").await;
    let session = site.get("sessions")["items"][0]["id"].as_str().unwrap().to_owned();
    let paths = |login: &str| {
        let (_, one) = site.get_as(login, &format!("sessions/{session}"));
        one["ephemerals"].clone()
    };
    assert_eq!(paths(""), json!(["/open/secret/...", "/open/seen"]));
    assert_eq!(paths("bob:pw"), paths(""));
    let all = json!(["/open/secret/leader", "/open/seen"]);
    assert_eq!((paths("ann:pw"), paths("super:secret")), (all.clone(), all.clone()));
    ann.close().await;
    site.until("sessions?state=ended", |page| page["items"][0]["id"] == session);
    let ended = |login: &str| site.get_as(login, "sessions?state=ended&local=1").1;
    assert_eq!(ended("")["items"][0]["ephemerals"], json!(["/open/secret/...", "/open/seen"]));
    assert_eq!(ended("super:secret")["items"][0]["ephemerals"], all);
    assert!(!ended("").to_string().contains("leader\""), "neither in the records");
}

#[test]
fn a_refused_frame_is_the_client_s_fault() {
    let site = Site::start();
    let mut raw = Raw::shake_hands(site.clients, Handshake { timeout_ms: 60_000, ..Handshake::default() });
    raw.garbage();
    let page = site.until("sessions?state=ended", |page| !page["items"].as_array().unwrap().is_empty());
    let item = &page["items"][0];
    assert_eq!((&item["cause"], &item["part"]), (&json!("frame_length"), &json!("connection")), "{item:#}");
    assert_eq!(item["verdict"], "client");
}
