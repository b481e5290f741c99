//! The changes of one znode in the logs.

use crate::server::{Site, acl, base64, digest_id};
use ostler_client::{Acl, Id, Perms};
use serde_json::{Value, json};

fn ann(perms: Perms) -> Vec<Acl> {
    vec![Acl { perms, id: Id::new("digest", digest_id("ann:pw")) }]
}

fn all(site: &Site, login: &str, path: &str, limit: usize) -> Vec<Value> {
    let (mut rows, mut next) = (Vec::new(), String::new());
    loop {
        let (status, page) = site.get_as(login, &format!("tree/history?path={path}&limit={limit}{next}"));
        assert_eq!(status, 200, "{page}");
        rows.extend(page["items"].as_array().unwrap().iter().cloned());
        match page["next"].as_str() {
            Some(cursor) => next = format!("&cursor={cursor}"),
            None => return rows,
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_life_of_a_znode_newest_first() {
    let site = Site::start();
    let client = site.client("").await;
    client.create("/n", b"one").await.unwrap();
    client.create("/other", b"x").await.unwrap();
    client.set_data("/n", b"two").await.unwrap();
    client.set_acl("/n", &[Acl::world(Perms::ALL)]).await.unwrap();
    client.multi().set_data("/n", b"three").delete("/n").create("/n", b"four").await.unwrap();
    client.delete("/n").await.unwrap();
    let session = json!(client.session_id().unwrap().to_string());
    let (status, page) = site.get("tree/history?path=/n");
    assert_eq!(status, 200, "{page}");
    let times: Vec<Value> =
        page["items"].as_array().unwrap().iter().map(|row| row["time_ms"].clone()).collect();
    let row = |zxid: &str, time: usize, kind: &str, version: Option<i32>, data: Option<&str>| {
        json!({
            "zxid": zxid, "time_ms": times[time], "session": session, "kind": kind, "version": version,
            "data": data.map(base64), "length": data.map(str::len), "hidden": false,
            "acl": (kind != "delete").then(|| acl(&["world:anyone:cdrwa"])), "acl_is_masked": false,
            "znode": (kind != "delete").then(|| json!({ "kind": "persistent", "ttl_ms": null })),
        })
    };
    let expected = [
        row("0x7", 0, "delete", None, None),
        row("0x6", 1, "create", Some(0), Some("four")),
        row("0x6", 2, "delete", None, None),
        row("0x6", 3, "set", Some(2), Some("three")),
        row("0x5", 4, "set_acl", Some(1), None),
        row("0x4", 5, "set", Some(1), Some("two")),
        row("0x2", 6, "create", Some(0), Some("one")),
    ];
    assert_eq!(page["items"], json!(expected));
    assert_eq!(
        (&page["exists"], &page["next"], &page["back_to_zxid"]),
        (&json!(false), &json!(null), &json!("0x1"))
    );
    assert_eq!(page["sentence"], "The logs on this server's disk go back to the beginning.");
    for limit in 1..7 {
        assert_eq!(all(&site, "", "/n", limit), expected, "{limit}");
    }
    assert_eq!(all(&site, "", "/never", 5), [] as [Value; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_history_over_several_logs() {
    let mut site = Site::start_with("admin.readOnly=false\nsnapCount=20\nautopurge.purgeInterval=0\n");
    for round in 0..3 {
        let client = site.client("").await;
        for n in 0..30 {
            client.create(&format!("/n{round}-{n}"), b"").await.unwrap();
            if n % 10 == 0 {
                let data = format!("{round}-{n}");
                client.create("/n", &data).or_set_data().await.unwrap();
            }
        }
        client.close().await;
        site.restart();
    }
    let rows = all(&site, "", "/n", 2);
    assert_eq!(rows.len(), 9, "{rows:?}");
    let data: Vec<&str> = rows.iter().map(|row| row["data"].as_str().unwrap()).collect();
    let expected: Vec<String> = (0..9).rev().map(|n| base64(format!("{}-{}", n / 3, n % 3 * 10))).collect();
    assert_eq!(data, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn values_are_for_those_who_may_read_the_znode() {
    let site = Site::start();
    let client = site.client("ann:pw").await;
    client.create("/shut", b"secret").acl(ann(Perms::ALL)).await.unwrap();
    assert_eq!(site.get("tree/history?path=/shut").0, 403);
    assert_eq!(all(&site, "ann:pw", "/shut", 9)[0]["data"], base64("secret"));
    // A znode in its place can be read by all, the value that its ACL hid cannot.
    client.delete("/shut").await.unwrap();
    let of_all = all(&site, "", "/shut", 9);
    assert_eq!(
        (&of_all[1]["data"], &of_all[1]["length"], &of_all[1]["hidden"]),
        (&json!(null), &json!(null), &json!(true))
    );
    client.create("/shut", b"open").await.unwrap();
    let of_all = all(&site, "", "/shut", 9);
    assert_eq!((&of_all[0]["data"], &of_all[2]["data"]), (&json!(base64("open")), &json!(null)));
    assert_eq!(all(&site, "ann:pw", "/shut", 9)[2]["data"], base64("secret"));
    // Below a znode that cannot be read, nobody else sees what was deleted.
    client.create("/top", b"").await.unwrap();
    client.create("/top/gone", b"").await.unwrap();
    client.delete("/top/gone").await.unwrap();
    client.set_acl("/top", &ann(Perms::ALL)).await.unwrap();
    assert_eq!(site.get("tree/history?path=/top/gone").0, 403);
    assert_eq!(all(&site, "ann:pw", "/top/gone", 9).len(), 2);
}

/// A log does not repeat the ACL of a znode that was created in an older one.
#[tokio::test(flavor = "multi_thread")]
async fn values_are_hidden_by_an_acl_that_an_older_log_tells() {
    let mut site = Site::start();
    let client = site.client("ann:pw").await;
    client.create("/secret", b"one").acl(ann(Perms::ALL)).await.unwrap();
    client.create("/open", b"one").await.unwrap();
    client.close().await;
    site.restart();
    let client = site.client("ann:pw").await;
    for path in ["/secret", "/open"] {
        client.set_data(path, b"two").await.unwrap();
        client.delete(path).await.unwrap();
    }
    let hidden = |rows: &[Value]| -> Vec<(Value, Value, Value)> {
        rows.iter().map(|row| (row["kind"].clone(), row["data"].clone(), row["hidden"].clone())).collect()
    };
    let row = |kind: &str, data: Option<&str>, hidden| (json!(kind), json!(data.map(base64)), json!(hidden));
    for limit in [1, 9] {
        assert_eq!(
            hidden(&all(&site, "", "/secret", limit)),
            [row("delete", None, false), row("set", None, true), row("create", None, true)],
            "{limit}"
        );
        for (login, path) in [("ann:pw", "/secret"), ("", "/open")] {
            assert_eq!(
                hidden(&all(&site, login, path, limit)),
                [
                    row("delete", None, false),
                    row("set", Some("two"), false),
                    row("create", Some("one"), false)
                ],
                "{path} {limit}"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_acl_holds_from_its_set_on_over_several_logs() {
    let mut site = Site::start();
    let client = site.client("ann:pw").await;
    client.create("/n", b"0").acl(ann(Perms::ALL)).await.unwrap();
    client.close().await;
    site.restart();
    let client = site.client("ann:pw").await;
    client.set_data("/n", b"1").await.unwrap();
    client.close().await;
    site.restart();
    let client = site.client("ann:pw").await;
    client.set_data("/n", b"2").await.unwrap();
    client.set_acl("/n", &[Acl::world(Perms::ALL)]).await.unwrap();
    client.set_data("/n", b"3").await.unwrap();
    client.close().await;
    site.restart();
    let client = site.client("").await;
    client.set_data("/n", b"4").await.unwrap();
    let data = |site: &Site, limit| -> Vec<Value> {
        let rows = all(site, "", "/n", limit);
        rows.iter().filter(|row| row["kind"] != "set_acl").map(|row| row["data"].clone()).collect()
    };
    let expected = json!([base64("4"), base64("3"), null, null, null]);
    assert_eq!((json!(data(&site, 1)), json!(data(&site, 9))), (expected.clone(), expected));
}

/// Where no log tells the ACL, it is today's only if it was never set.
#[tokio::test(flavor = "multi_thread")]
async fn without_the_log_of_its_create_a_value_is_shown_by_an_acl_that_was_never_set() {
    let site = Site::start_with("admin.readOnly=false\nsnapCount=20\nautopurge.purgeInterval=0\n");
    let client = site.client("ann:pw").await;
    for path in ["/same", "/set", "/gone"] {
        client.create(path, b"0").await.unwrap();
    }
    client.set_acl("/set", &[Acl::world(Perms::ALL)]).await.unwrap();
    for n in 0..200 {
        client.create(&format!("/n{n}"), b"").await.unwrap();
    }
    let logs = site.logs();
    assert!(logs.len() > 1, "{logs:?}");
    std::fs::remove_file(&logs[0]).unwrap();
    for path in ["/same", "/set", "/gone"] {
        client.set_data(path, b"1").await.unwrap();
    }
    client.delete("/gone").await.unwrap();
    let newest = |login: &str, path: &str| {
        let rows = all(&site, login, path, 9);
        rows.iter().find(|row| row["kind"] == "set").unwrap()["data"].clone()
    };
    assert_eq!(newest("", "/same"), base64("1"));
    assert_eq!((newest("", "/set"), newest("ann:pw", "/set")), (json!(null), json!(null)));
    assert_eq!(newest("", "/gone"), json!(null));
}

/// The id of a session is half of what it takes to take it over.
#[tokio::test(flavor = "multi_thread")]
async fn sessions_are_for_those_who_may_see_the_server() {
    let site =
        Site::start_with(&format!("admin.readOnly=false\nadmin.viewers=digest:{}\n", digest_id("view:pw")));
    let client = site.client("").await;
    client.create("/n", b"").await.unwrap();
    let (_, _watch) = client.get_data("/n").watch().await.unwrap();
    client.create("/n/mine", b"").await.unwrap();
    assert_eq!(all(&site, "ann:pw", "/n", 9)[0]["session"], json!(null));
    assert!(all(&site, "view:pw", "/n", 9)[0]["session"].is_string());
    let node = |login: &str| site.get_as(login, "tree/node?path=/n").1["watches"].clone();
    assert_eq!((node("ann:pw"), node("view:pw")["data"].clone()), (json!(null), json!(1)));
    let row = |login: &str| site.get_as(login, "tree/children?path=/").1["items"][0]["watched"].clone();
    assert_eq!((row("ann:pw"), row("view:pw")), (json!(null), json!(true)));
    client.create("/n/eph", b"").ephemeral().await.unwrap();
    let owner = |login: &str| site.get_as(login, "tree/node?path=/n/eph").1["owner"]["address"].clone();
    assert!(owner("ann:pw").is_null() && owner("view:pw").is_string());
    let plan = |login: &str| site.get_as(login, "tree/plan?path=/n").1;
    assert!(plan("ann:pw")["watches"].is_null() && plan("ann:pw")["owners"][0]["address"].is_null());
    assert!(plan("view:pw")["watches"].is_number() && plan("view:pw")["owners"][0]["address"].is_string());
}

/// A deleted znode can be put back as it was: with its ACL, and of its kind.
#[tokio::test(flavor = "multi_thread")]
async fn each_change_tells_the_acl_and_the_kind_that_the_znode_had() {
    let mut site = Site::start_with("admin.readOnly=false\nextendedTypesEnabled=true\n");
    let client = site.client("ann:pw").await;
    let both = || [ann(Perms::ALL).remove(0), Acl { perms: Perms::READ, id: Id::new("world", "anyone") }];
    client.create("/box", b"1").container().await.unwrap();
    client
        .create("/ttl", b"1")
        .ttl(std::time::Duration::from_millis(86_400_000))
        .acl(both().to_vec())
        .await
        .unwrap();
    client.create("/same", b"1").acl(both().to_vec()).await.unwrap();
    client.create("/mine", b"1").ephemeral().await.unwrap();
    client.create("/shut", b"1").acl(ann(Perms::ALL)).await.unwrap();
    client.delete("/mine").await.unwrap();
    client.close().await;
    site.restart();
    // An older log tells how these were created.
    let client = site.client("ann:pw").await;
    for path in ["/box", "/ttl", "/same", "/shut"] {
        client.set_data(path, b"2").await.unwrap();
    }
    client.set_acl("/box", &both()).await.unwrap();
    for path in ["/box", "/ttl", "/shut"] {
        client.delete(path).await.unwrap();
    }
    let of = |login: &str, path: &str| -> Vec<(Value, Value, Value, Value)> {
        let row = |row: &Value| ["kind", "acl", "acl_is_masked", "znode"].map(|key| row[key].clone());
        all(&site, login, path, 9)
            .iter()
            .map(row)
            .map(|[kind, acl, masked, znode]| (kind, acl, masked, znode))
            .collect()
    };
    let whole = acl(&["digest:ann:pw:cdrwa", "world:anyone:r"]);
    let masked = json!([
        { "scheme": "digest", "id": "ann:x", "perms": "cdrwa" }, { "scheme": "world", "id": "anyone", "perms": "r" }
    ]);
    let open = acl(&["world:anyone:cdrwa"]);
    let row = |kind: &str, acl: &Value, is_masked: bool, znode: (&str, Value)| {
        (json!(kind), acl.clone(), json!(is_masked), json!({ "kind": znode.0, "ttl_ms": znode.1 }))
    };
    let gone = || (json!("delete"), json!(null), json!(false), json!(null));
    let container = || ("container", json!(null));
    assert_eq!(
        of("ann:pw", "/box"),
        [
            gone(),
            row("set_acl", &whole, false, container()),
            row("set", &open, false, container()),
            row("create", &open, false, container()),
        ]
    );
    assert_eq!(of("", "/box")[1], row("set_acl", &masked, true, container()));
    let ttl = || ("ttl", json!(86_400_000));
    assert_eq!(of("ann:pw", "/ttl")[1], row("set", &whole, false, ttl()));
    assert_eq!(of("", "/ttl")[1..], [row("set", &masked, true, ttl()), row("create", &masked, true, ttl())]);
    // It exists, and no other ACL was ever set.
    assert_eq!(of("ann:pw", "/same")[0], row("set", &whole, false, ("persistent", json!(null))));
    assert_eq!(of("", "/same")[0], row("set", &masked, true, ("persistent", json!(null))));
    assert_eq!(of("", "/mine")[1], row("create", &open, false, ("ephemeral", json!(null))));
    // Somebody who could not read it does not see who could.
    assert_eq!(of("", "/shut")[1], (json!("set"), json!(null), json!(false), json!(null)));
}
