//! The census of clients.

use crate::{
    raw::{Handshake, Raw},
    site::{Site, names},
};
use ostler_proto::{acl::Perms, jute::Writer, op::Op};
use serde_json::{Value, json};

fn get_data(path: &str) -> Vec<u8> {
    let mut body = Vec::new();
    body.string(path);
    body.bool(false);
    body
}

fn container(path: &str) -> Vec<u8> {
    const CONTAINER: i32 = 4;
    let mut body = Vec::new();
    body.string(path);
    body.buffer(Some(b""));
    body.i32(1);
    body.i32(Perms::ALL.0);
    body.string("world");
    body.string("anyone");
    body.i32(CONTAINER);
    body
}

fn kind<'a>(page: &'a Value, kind: &str) -> Option<&'a Value> {
    page["kinds"].as_array().unwrap().iter().find(|row| row["kind"] == kind)
}

#[test]
fn clients_are_guessed_by_their_habits() {
    let site = Site::start();
    let at = site.clients;
    let root = || (1, Op::GetData.code(), get_data("/"));
    let mut standard = Raw::connect(at);
    standard.ask(&[root()]);
    let mut curator = Raw::connect(at);
    curator.ask(&[(1, Op::GetData.code(), get_data("/zookeeper/config"))]);
    let mut both = Raw::connect(at);
    both.ask(&[
        (1, Op::GetData.code(), get_data("/zookeeper/config")),
        (2, Op::CreateContainer.code(), container("/c")),
    ]);
    let mut c = Raw::connect(at);
    c.ask(&[(1_795_690_393, Op::GetData.code(), get_data("/"))]);
    let mut go = Raw::shake_hands(at, Handshake { read_only: None, ..Handshake::default() });
    go.ask(&[root()]);
    let silent = Raw::connect(at);
    let first = Raw::connect(at);
    let back = Handshake { session: first.session, password: first.password, ..Handshake::default() };
    drop(first);
    let mut kazoo = Raw::shake_hands(at, back);
    kazoo.ask(&[root()]);
    let mut strange = Raw::connect(at);
    strange.ask(&[(1, 4711, Vec::new())]);
    let page = site.get("clients");
    assert_eq!(
        names(&page),
        [
            "kinds",
            "refused",
            "near_limit",
            "short_timeouts",
            "plaintext",
            "tls",
            "digest_only",
            "digest_only_count",
            "servers"
        ]
    );
    for (name, raw) in [
        ("java_or_kazoo", &standard),
        ("perhaps_curator", &curator),
        ("curator", &both),
        ("c", &c),
        ("no_flag", &go),
        ("silent", &silent),
        ("kazoo", &kazoo),
    ] {
        let row = kind(&page, name).unwrap_or_else(|| panic!("{name}: {page:#}"));
        assert_eq!((&row["count"], &row["examples"]), (&json!(1), &json!([raw.address()])), "{name}");
        assert!(row["sentence"].as_str().unwrap().ends_with('.'));
    }
    assert_eq!(page["plaintext"].as_u64().unwrap() + page["tls"].as_u64().unwrap(), 8 - closed(&page));
}

/// The connection of a client with an unknown operation may be closed.
fn closed(page: &Value) -> u64 {
    u64::from(kind(page, "unknown").is_none())
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_limits_and_identities_are_noted() {
    let site = Site::start_with("jute.maxbuffer=100000");
    let ann = site.client("ann:pw").await;
    let id = ostler_server_core::auth::digest_id("ann:pw");
    let hidden =
        [ostler_client::Acl { perms: ostler_client::Perms::ALL, id: ostler_client::Id::new("digest", id) }];
    ann.create("/secret", b"").acl(&hidden).await.unwrap();
    ann.create("/large", &vec![b'x'; 80_000]).await.unwrap();
    let mut raw = Raw::shake_hands(site.clients, Handshake { timeout_ms: 7_200_000, ..Handshake::default() });
    let refused: Vec<_> = (1..=3).map(|xid| (xid, Op::GetData.code(), get_data("/secret"))).collect();
    raw.ask(&refused);
    raw.ask(&[(4, Op::GetData.code(), get_data("/none"))]);
    let page = site.get("clients");
    assert_eq!(
        page["refused"],
        json!([{ "code": "NOAUTH", "operation": "getData", "address": "127.0.0.1", "count": 3 }])
    );
    assert_eq!(page["near_limit"][0]["address"], "127.0.0.1");
    assert!(page["near_limit"][0]["bytes"].as_u64().unwrap() >= 80_000);
    assert_eq!(
        page["short_timeouts"],
        json!([{ "address": "127.0.0.1", "asked_ms": 7_200_000, "got_ms": 3_600_000 }])
    );
    assert_eq!((&page["digest_only"][0]["id"], &page["digest_only_count"]), (&json!("ann"), &json!(1)));
    assert_eq!((&page["plaintext"], &page["tls"]), (&json!(2), &json!(0)));
}
