//! The answers for one znode, member by member.

use crate::server::{Site, acl, base64, digest_id, encoded};
use ostler_client::{Acl, CreateMode, Id, Perms};
use serde_json::{Value, json};

/// Replaces what differs from run to run, if it looks right.
fn steady(mut answer: Value) -> Value {
    fn walk(value: &mut Value, name: &str) {
        match value {
            Value::Object(members) => members.iter_mut().for_each(|(name, value)| walk(value, name)),
            Value::Array(items) => items.iter_mut().for_each(|item| walk(item, name)),
            Value::Number(number)
                if name.ends_with("time_ms") && number.as_i64() > Some(1_600_000_000_000) =>
            {
                *value = json!("now");
            }
            Value::String(text)
                if name == "session" || name == "ephemeral_owner" || name.ends_with("address") =>
            {
                assert!(text.starts_with("0x") || text.starts_with("127.0.0.1:"), "{text}");
                *value = json!("some");
            }
            _ => {}
        }
    }
    walk(&mut answer, "");
    answer
}

#[tokio::test(flavor = "multi_thread")]
async fn a_znode_with_everything() {
    let site = Site::start();
    let client = site.client("ann:pw").await;
    client.create("/q", b"").await.unwrap();
    client.create("/zookeeper/quota/q", b"").creating_parents().await.unwrap();
    client
        .create(
            "/zookeeper/quota/q/zookeeper_limits",
            b"count=-1,bytes=-1=;byteHardLimit=100;countHardLimit=9",
        )
        .await
        .unwrap();
    client.create("/zookeeper/quota/q/zookeeper_stats", b"count=0,bytes=0").await.unwrap();
    let ann = Acl { perms: Perms::ALL, id: Id::new("digest", digest_id("ann:pw")) };
    let both = vec![ann, Acl { perms: Perms::READ, id: Id::new("world", "anyone") }];
    client.create("/q/lock-", b"data").ephemeral_sequential().acl(both).await.unwrap();
    let (_, _watch) = client.get_data("/q/lock-0000000000").watch().await.unwrap();
    let node = |login: &str| steady(site.get_as(login, "tree/node?path=/q/lock-0000000000").1);
    let expected = |id: &str, rest: bool| {
        json!({
            "path": "/q/lock-0000000000",
            "stat": {
                "czxid": "0x6", "mzxid": "0x6", "pzxid": "0x6", "ctime_ms": "now", "mtime_ms": "now", "version": 0,
                "cversion": 0, "aversion": 0, "ephemeral_owner": "some", "data_length": 4, "num_children": 0,
            },
            "kind": "ephemeral",
            "ttl_ms": null,
            "quota": {
                "path": "/q", "znodes": 2, "bytes": 4, "znodes_soft": null, "bytes_soft": null, "znodes_hard": 9,
                "bytes_hard": 100,
            },
            "watches": { "data": 1, "children": 0, "persistent": 0 },
            "owner": { "session": "some", "address": "some", "alive": true },
            "acl": [
                { "scheme": "digest", "id": id, "perms": "cdrwa" },
                { "scheme": "world", "id": "anyone", "perms": "r" },
            ],
            "rights": { "read": true, "write": rest, "create": rest, "delete": rest, "admin": rest },
            "may_be_deleted": true,
            "name": { "sequence": 0 },
            "as_of_zxid": "0x6",
        })
    };
    assert_eq!(node(""), expected("ann:x", false));
    assert_eq!(node("ann:pw"), expected(&digest_id("ann:pw"), true));
}

#[tokio::test(flavor = "multi_thread")]
async fn kinds_and_refusals() {
    let site = Site::start_with("admin.readOnly=false\nextendedTypesEnabled=true\n");
    let client = site.client("ann:pw").await;
    let ttl = CreateMode::PersistentWithTtl(std::time::Duration::from_secs(3600));
    client.create("/ttl", b"").mode(ttl).await.unwrap();
    client.create("/box", b"").container().await.unwrap();
    client.create("/mine", b"x").await.unwrap();
    let ann = |perms| vec![Acl { perms, id: Id::new("digest", digest_id("ann:pw")) }];
    client.set_acl("/mine", &ann(Perms(Perms::ADMIN.0 | Perms::WRITE.0))).await.unwrap();
    let (_, node) = site.get("tree/node?path=/ttl");
    assert_eq!((&node["kind"], &node["ttl_ms"]), (&json!("ttl"), &json!(3_600_000)));
    assert_eq!(site.get("tree/node?path=/box").1["kind"], "container");
    assert_eq!(site.get("tree/node?path=/zookeeper/quota").1["kind"], "system");
    let no_rights =
        json!({ "read": false, "write": false, "create": false, "delete": false, "admin": false });
    assert_eq!(
        site.get("tree/node?path=/mine"),
        (
            403,
            json!({
                "code": "NOAUTH", "sentence": "The znode exists, but its ACL does not let you read it.",
                "path": "/mine", "rights": no_rights,
            })
        )
    );
    // getACL needs READ or ADMIN, and shows the Stat. getData needs READ.
    let (status, node) = site.get_as("ann:pw", "tree/node?path=/mine");
    assert_eq!(
        (status, &node["rights"]["read"], &node["rights"]["admin"]),
        (200, &json!(false), &json!(true))
    );
    let (status, data) = site.get_as("ann:pw", "tree/data?path=/mine");
    assert_eq!((status, &data["code"], &data["rights"]["write"]), (403, &json!("NOAUTH"), &json!(true)));
    assert_eq!(
        site.get("tree/node?path=/box/a/b"),
        (
            404,
            json!({
                "code": "NONODE",
                "sentence": "There is no such znode. The nearest one above that exists is /box.",
                "path": "/box/a/b", "nearest": "/box",
            })
        )
    );
    for wrong in ["", "path=", "path=a", "path=/a/", "path=/a//b", "path=/a/../b", "path=/a%00b", "path=%ff"]
    {
        let (status, answer) = site.get(&format!("tree/node?{wrong}"));
        assert_eq!((status, &answer["code"]), (400, &json!("BAD_REQUEST")), "{wrong}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn data_whole_in_parts_and_as_a_file() {
    let site = Site::start();
    let client = site.client("").await;
    let bytes: Vec<u8> = (0..200_000_u32).map(|n| (n % 251) as u8).collect();
    client.create("/d", &bytes).await.unwrap();
    client.create("/null", b"").without_data().await.unwrap();
    client.create("/empty", b"").await.unwrap();
    let (_, begin) = site.get("tree/data?path=/d");
    assert_eq!((&begin["data"], &begin["length"]), (&json!(base64(&bytes[..65_536])), &json!(200_000)));
    assert_eq!(
        (&begin["version"], &begin["mzxid"], &begin["is_null"]),
        (&json!(0), &json!("0x2"), &json!(false))
    );
    let part = |range: &str| site.get(&format!("tree/data?path=/d&{range}")).1["data"].clone();
    assert_eq!(part("from=199990&length=100"), base64(&bytes[199_990..]));
    assert_eq!(part("from=200001"), "");
    assert_eq!(part("length=200000"), base64(&bytes));
    assert_eq!(site.get("tree/data?path=/d&from=-1").0, 400);
    assert_eq!(site.get("tree/data?path=/null").1["is_null"], true);
    assert_eq!(site.get("tree/data?path=/empty").1["is_null"], false);
    let mut file = site.raw("", "tree/data?path=/d&download=1");
    let header = |name: &str| file.headers()[name].to_str().unwrap().to_owned();
    assert_eq!(header("content-type"), "application/octet-stream");
    assert_eq!(header("content-disposition"), "attachment; filename=\"d.bin\"");
    assert_eq!((&*header("x-content-type-options"), &*header("cache-control")), ("nosniff", "no-store"));
    assert_eq!(file.body_mut().read_to_vec().unwrap(), bytes);
}

/// Names come as JSON strings and nothing else, whatever is in them.
#[tokio::test(flavor = "multi_thread")]
async fn hostile_names_and_data_are_text() {
    let site = Site::start();
    let client = site.client("").await;
    let names = [
        "<img src=x onerror=alert(1)>",
        "\u{202e}gpj.exe",
        "a\u{200b}b",
        "\"};alert(1)",
        "<script>alert(1)<",
        "%2e%2e%2f",
        "a\\..\\b",
        "&amp;?x=1#y",
        "\u{a0}",
        "line\u{2028}end",
    ];
    client.create("/h", b"").await.unwrap();
    for name in names {
        client.create(&format!("/h/{name}"), "<script>alert(1)</script>").await.unwrap();
    }
    let (_, list) = site.get("tree/children?path=/h");
    let mut listed: Vec<&str> =
        list["items"].as_array().unwrap().iter().map(|row| row["name"].as_str().unwrap()).collect();
    let mut sorted = names.to_vec();
    sorted.sort_unstable();
    assert_eq!(listed, sorted);
    listed.dedup();
    for name in names {
        let path = format!("/h/{name}");
        let mut raw = site.raw("", &format!("tree/node?path={}", encoded(&path)));
        assert_eq!(raw.headers()["content-type"], "application/json", "{name}");
        assert_eq!(raw.headers()["x-content-type-options"], "nosniff");
        let node: Value = serde_json::from_str(&raw.body_mut().read_to_string().unwrap()).unwrap();
        assert_eq!(node["path"], path);
        let file = site.raw("", &format!("tree/data?path={}&download=1", encoded(&path)));
        let disposition = file.headers()["content-disposition"].to_str().unwrap();
        let name =
            disposition.strip_prefix("attachment; filename=\"").unwrap().strip_suffix(".bin\"").unwrap();
        assert!(name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c)), "{disposition}");
    }
    // A sentence does not turn the text around it.
    let (_, refused) = site.get(&format!("tree/node?path={}", encoded("/\u{202e}x/")));
    assert!(!refused["sentence"].as_str().unwrap().contains('\u{202e}'));
    assert_eq!(refused["path"], "/\u{202e}x/");
}

#[tokio::test(flavor = "multi_thread")]
async fn with_enforced_logins_nothing_is_shown_without_one() {
    let site =
        Site::start_with("admin.readOnly=false\nenforce.auth.enabled=true\nenforce.auth.schemes=digest\n");
    for path in ["node?path=/", "data?path=/", "children?path=/", "plan?path=/a"] {
        let (status, answer) = site.get(&format!("tree/{path}"));
        assert_eq!((status, &answer["code"]), (401, &json!("SIGN_IN")), "{path}");
    }
    assert_eq!(site.get_as("ann:pw", "tree/node?path=/").0, 200);
    let tried = json!({ "path": "/", "acl": acl(&["world:anyone:r"]) });
    assert_eq!(site.post("tree/try-acl", tried).0, 401);
}
