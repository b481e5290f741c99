//! Changes of one znode, and who may ask for them.

use crate::server::{Site, acl, base64, digest_id};
use ostler_client::{Acl, Id, Perms};
use serde_json::{Value, json};

/// All paths that change something.
pub(crate) const CHANGES: [&str; 9] = [
    "tree/create",
    "tree/set",
    "tree/delete",
    "tree/set-acl",
    "tree/try-acl",
    "tree/delete-all",
    "tree/set-acl-all",
    "tree/stop-run",
    "tree/copy",
];

#[tokio::test(flavor = "multi_thread")]
async fn a_znode_from_its_create_to_its_delete() {
    let site = Site::start_with("admin.readOnly=false\nextendedTypesEnabled=true\n");
    let client = site.client("").await;
    let made = site.post(
        "tree/create",
        json!({ "path": "/n", "data": base64("hi"), "acl": acl(&["world:anyone:cdrwa"]) }),
    );
    assert_eq!(
        (made.0, &made.1["path"], &made.1["stat"]["data_length"]),
        (200, &json!("/n"), &json!(2)),
        "{made:?}"
    );
    assert_eq!(site.post("tree/create", json!({ "path": "/n" })).1["code"], "NODEEXISTS");
    assert_eq!(site.post("tree/create", json!({ "path": "/x/y" })).1["code"], "NONODE");
    let deep = site.post(
        "tree/create",
        json!({ "path": "/x/y/z-", "mode": "persistent_sequential", "parents": true, "data": "" }),
    );
    assert_eq!(deep.1["path"], "/x/y/z-0000000000");
    let digits = site.post("tree/create", json!({ "path": "/x/", "mode": "persistent_sequential" }));
    assert_eq!(digits.1["path"], "/x/0000000001");
    let ttl = site.post("tree/create", json!({ "path": "/t", "mode": "ttl", "ttl_ms": 60000 }));
    assert_eq!((ttl.0, site.get("tree/node?path=/t").1["ttl_ms"].clone()), (200, json!(60000)));
    site.post("tree/create", json!({ "path": "/c", "mode": "container" }));
    assert_eq!(site.get("tree/node?path=/c").1["kind"], "container");
    for wrong in [
        json!({ "path": "/e", "mode": "ephemeral" }),
        json!({ "path": "/e", "mode": "what" }),
        json!({ "path": "/e", "mode": "ttl" }),
        json!({ "path": "/e", "mode": "ttl", "ttl_ms": 0 }),
        json!({ "path": "e" }),
        json!({ "path": "/e", "data": "?" }),
        json!({ "path": "/e", "acl": [{ "scheme": "world", "id": "anyone", "perms": "q" }] }),
        json!({ "data": "" }),
        json!(7),
    ] {
        let (status, answer) = site.post("tree/create", wrong.clone());
        assert_eq!((status, &answer["code"]), (400, &json!("BAD_REQUEST")), "{wrong}");
    }
    assert!(client.exists("/e").await.unwrap().is_none());

    let set = |data: &str, version| {
        site.post("tree/set", json!({ "path": "/n", "data": base64(data), "version": version }))
    };
    assert_eq!(set("mine", 0).1["stat"]["version"], 1);
    client.set_data("/n", b"\xfftheirs").await.unwrap();
    let (status, late) = set("late", 1);
    assert_eq!((status, &late["code"], &late["path"]), (409, &json!("BADVERSION"), &json!("/n")));
    assert_eq!(
        (&late["theirs"]["data"], &late["theirs"]["stat"]["version"]),
        (&json!(base64(b"\xfftheirs")), &json!(2))
    );
    assert_eq!(&client.get_data("/n").await.unwrap().0[..], b"\xfftheirs");

    let late = site.post("tree/delete", json!({ "path": "/n", "version": 1 }));
    assert_eq!((late.0, &late.1["code"]), (409, &json!("BADVERSION")));
    assert_eq!(site.post("tree/delete", json!({ "path": "/x" })).1["code"], "NOTEMPTY");
    assert_eq!(
        site.post("tree/delete", json!({ "path": "/n", "version": 2 })),
        (200, json!({ "deleted": true }))
    );
    assert_eq!(site.post("tree/delete", json!({ "path": "/n" })).1["code"], "NONODE");
    assert_eq!(site.post("tree/delete", json!({ "path": "/zookeeper" })).0, 409);
}

/// Versions begin at 0 with each create.
#[tokio::test(flavor = "multi_thread")]
async fn a_znode_that_was_created_anew_is_not_the_one_that_was_seen() {
    let site = Site::start();
    let client = site.client("").await;
    client.create("/n", b"old").await.unwrap();
    let seen = site.get("tree/data?path=/n").1;
    assert_eq!(seen["czxid"], site.get("tree/node?path=/n").1["stat"]["czxid"], "{seen}");
    client.delete("/n").await.unwrap();
    client.create("/n", b"new").await.unwrap();
    let changes = |seen: &Value| {
        let (czxid, mzxid) = (&seen["czxid"], &seen["mzxid"]);
        [
            ("tree/set", json!({ "data": base64("draft"), "czxid": czxid, "mzxid": mzxid })),
            ("tree/set", json!({ "data": base64("draft"), "mzxid": mzxid })),
            ("tree/set-acl", json!({ "acl": acl(&["world:anyone:cdrwa"]), "czxid": czxid })),
            ("tree/delete", json!({ "czxid": czxid })),
        ]
        .map(|(change, mut body)| {
            (body["path"], body["version"]) = (json!("/n"), json!(0));
            (change, body)
        })
    };
    for (change, body) in changes(&seen) {
        let (status, answer) = site.post(change, body.clone());
        assert_eq!((status, &answer["code"]), (409, &json!("BADVERSION")), "{change} {body}: {answer}");
        let is_anew = !body["czxid"].is_null();
        assert_eq!(answer["sentence"].as_str().unwrap().contains("created anew"), is_anew, "{answer}");
        if change == "tree/set" {
            assert_eq!(answer["theirs"]["data"], base64("new"), "{answer}");
        }
    }
    let (data, stat) = client.get_data("/n").await.unwrap();
    assert_eq!((&data[..], stat.version, stat.aversion), (&b"new"[..], 0, 0), "nothing was changed");
    // The znode that is there now has been seen.
    let [(set, body), _, (set_acl, with_acl), (delete, last)] = changes(&site.get("tree/data?path=/n").1);
    assert_eq!(site.post(set_acl, with_acl).0, 200);
    assert_eq!(site.post(set, body).0, 200);
    assert_eq!(site.post(delete, last.clone()).1["code"], "BADVERSION", "the data were set");
    let mut last = last;
    last["version"] = json!(1);
    assert_eq!(site.post(delete, last.clone()).0, 200);
    assert_eq!(site.post(delete, last).1["code"], "NONODE");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_acl_is_tried_and_set() {
    let site = Site::start();
    let client = site.client("").await;
    client.create("/a", b"").await.unwrap();
    let wanted =
        json!({ "path": "/a", "acl": acl(&["digest:ann:pw:cdrwa", "world:anyone:r"]), "version": 0 });
    let only_read = json!({ "read": true, "write": false, "create": false, "delete": false, "admin": false });
    let tried = site.post("tree/try-acl", wanted.clone()).1;
    assert_eq!((&tried["before"]["admin"], &tried["after"]), (&json!(true), &only_read));
    let (_, of_ann) = site.post_as("ann:pw", "tree/try-acl", wanted.clone());
    assert_eq!(of_ann["after"], of_ann["before"]);
    assert_eq!(client.get_acl("/a").await.unwrap().1.aversion, 0, "trying changes nothing");
    assert_eq!(site.post("tree/set-acl", wanted.clone()).1["stat"]["aversion"], 1);
    let (acls, _) = site.client("ann:pw").await.get_acl("/a").await.unwrap();
    let ann = Acl { perms: Perms::ALL, id: Id::new("digest", digest_id("ann:pw")) };
    assert_eq!(acls, [ann, Acl { perms: Perms::READ, id: Id::new("world", "anyone") }]);
    assert_eq!(site.post("tree/set-acl", wanted.clone()).1["code"], "NOAUTH");
    assert_eq!(site.post_as("ann:pw", "tree/set-acl", wanted).1["code"], "BADVERSION");
    for wrong in [json!([]), json!([{ "scheme": "nope", "id": "x", "perms": "r" }])] {
        let (_, answer) = site.post_as("ann:pw", "tree/set-acl", json!({ "path": "/a", "acl": wrong }));
        assert_eq!(answer["code"], "INVALIDACL");
    }
    // `auth` stands for the caller.
    let auth = json!({ "path": "/a", "acl": [{ "scheme": "auth", "id": "", "perms": "ra" }] });
    assert_eq!(site.post("tree/try-acl", auth.clone()).1["code"], "INVALIDACL");
    assert_eq!(site.post_as("ann:pw", "tree/try-acl", auth).1["after"]["admin"], true);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_is_no_larger_than_a_clients() {
    let site = Site::start_with("admin.readOnly=false\njute.maxbuffer=20000\n");
    let create = |path: &str, size: usize| {
        site.post("tree/create", json!({ "path": path, "data": base64(vec![7; size]) }))
    };
    assert_eq!(create("/fits", 19_000).0, 200);
    let (status, large) = create("/large", 20_100);
    assert_eq!((status, &large["code"], &large["path"]), (413, &json!("TOO_LARGE"), &json!("/large")));
    // This is not even read.
    assert_eq!(create("/huge", 600_000).1["code"], "TOO_LARGE");
    assert_eq!(site.get("tree/node?path=/large").0, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_writing_no_path_that_changes_exists() {
    for lines in ["", "admin.readOnly=true\n"] {
        let site = Site::start_with(lines);
        for path in CHANGES {
            let (status, answer) = site.post(path, json!({ "path": "/n" }));
            assert_eq!((status, &answer["code"]), (404, &json!("NOT_FOUND")), "{path}");
            assert_eq!(site.post_as("ann:pw", path, json!({})).0, 404, "{path}");
        }
        assert_eq!(site.get("tree/node?path=/").0, 200);
        let reader = site.client("").await;
        assert_eq!(reader.get_children("/").await.unwrap(), ["zookeeper"]);
    }
}

/// Neither another site's page nor a form can change anything, and a page needs its token.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_of_another_site_or_without_the_token_changes_nothing() {
    let site = Site::start();
    let client = site.client("").await;
    client.create("/n", b"").await.unwrap();
    let zxid = || site.get("tree/node?path=/").1["as_of_zxid"].clone();
    let (before, token) = (zxid(), site.token());
    let body = |path: &str| match path {
        "tree/create" => json!({ "path": "/evil", "data": "" }),
        "tree/set" => json!({ "path": "/n", "data": base64("evil") }),
        "tree/copy" => json!({ "from": "/n", "to": "/evil" }),
        "tree/delete-all" => json!({ "plan": "x", "confirm": "n" }),
        "tree/set-acl-all" => json!({ "plan": "x", "acl": acl(&["world:anyone:r"]) }),
        "tree/stop-run" => json!({ "id": "x" }),
        "tree/delete" => json!({ "path": "/n" }),
        _ => json!({ "path": "/n", "acl": acl(&["world:anyone:r"]) }),
    };
    let json_type = ("Content-Type", "application/json".to_owned());
    let token = ("X-Ostler-Token", token);
    let of = |name: &'static str, value: &str| (name, value.to_owned());
    let cases: [(&str, Vec<(&str, String)>); 8] = [
        ("no token", vec![json_type.clone()]),
        ("another token", vec![json_type.clone(), of("X-Ostler-Token", &"00".repeat(32))]),
        ("a form", vec![of("Content-Type", "application/x-www-form-urlencoded"), token.clone()]),
        ("plain text", vec![of("Content-Type", "text/plain"), token.clone()]),
        ("no type", vec![token.clone()]),
        ("another origin", vec![json_type.clone(), token.clone(), of("Origin", "http://evil.example")]),
        (
            "a page of another site",
            vec![json_type.clone(), token.clone(), of("Sec-Fetch-Site", "cross-site")],
        ),
        ("another name", vec![json_type.clone(), token.clone(), of("Host", "evil.example")]),
    ];
    for path in CHANGES {
        for (case, headers) in &cases {
            let (status, answer): (u16, Value) = site.post_with(headers, path, body(path));
            assert!(status == 403 || status == 400, "{path}, {case}: {status} {answer}");
            assert!(
                answer["code"] == "OTHER_SITE" || answer["code"] == "BAD_REQUEST",
                "{path}, {case}: {answer}"
            );
        }
    }
    assert_eq!(zxid(), before, "something was changed");
    // With all of it, it is done.
    assert_eq!(site.post_with(&[json_type, token], "tree/delete", body("tree/delete")).0, 200);
    assert_ne!(zxid(), before);
}
