//! The rights: for each identity, endpoint and ACL, the console does what a client of the same identity can do.

use crate::server::{Site, base64, digest_id};
use ostler_client::{Acl, Client, ErrorCode, Id, Perms, Version};
use serde_json::{Value, json};

const LOGINS: [&str; 4] = ["", "ann:pw", "bob:pw", "super:secret"];

/// ACLs that differ in each permission for each kind of identity.
fn acls() -> Vec<Vec<Acl>> {
    let entry = |scheme: &str, id: String, perms| Acl { perms, id: Id::new(scheme, id) };
    let mut lists = vec![vec![Acl::world(Perms::ALL)]];
    let each = [Perms::READ, Perms::WRITE, Perms::CREATE, Perms::DELETE, Perms::ADMIN];
    for perms in each {
        lists.push(vec![Acl::world(perms)]);
        lists.push(vec![entry("digest", digest_id("ann:pw"), perms)]);
        lists.push(vec![
            entry("ip", "127.0.0.1".into(), perms),
            entry("digest", digest_id("bob:pw"), Perms::ALL),
        ]);
    }
    lists.push(vec![
        entry("digest", digest_id("ann:pw"), Perms(Perms::READ.0 | Perms::WRITE.0)),
        entry("ip", "10.0.0.0/8".into(), Perms::ALL),
        entry("world", "anyone".into(), Perms::CREATE),
    ]);
    lists
}

/// The code of a refusal; `None` if nothing was refused.
fn code(answer: &(u16, Value)) -> Option<String> {
    (answer.0 != 200).then(|| answer.1["code"].as_str().unwrap_or("?").to_owned())
}

fn client_code<T>(result: Result<T, ostler_client::Error>) -> Option<String> {
    let code: ErrorCode = result.err()?.code().expect("the client has lost its connection");
    Some(format!("{code:?}").to_uppercase())
}

/// A parent with a child, whose ACL is both the parent's and the child's.
async fn build(keeper: &Client, top: &str, acl: &[Acl]) {
    keeper.create(top, b"").await.unwrap();
    keeper.create(&format!("{top}/n"), b"data").await.unwrap();
    keeper.create(&format!("{top}/n/kid"), b"kid").await.unwrap();
    keeper.set_acl(&format!("{top}/n"), acl).await.unwrap();
}

/// The endpoint, what it answers, and what a client gets that does the same.
async fn both(site: &Site, client: &Client, (login, path): (&str, &str), what: &str) -> [Option<String>; 2] {
    let kid = format!("{path}/kid");
    let new = |name: &str| format!("{path}/{name}-{}", login.replace(':', "-"));
    let get = |query: &str| code(&site.get_as(login, &format!("tree/{query}")));
    let post = |endpoint: &str, body: Value| code(&site.post_as(login, &format!("tree/{endpoint}"), body));
    let acl = client.get_acl(path).await;
    match what {
        "data" => [get(&format!("data?path={path}")), client_code(client.get_data(path).await)],
        // getACL shows the Stat as well.
        "node" => [get(&format!("node?path={path}")), client_code(acl)],
        "children" => [get(&format!("children?path={path}")), client_code(client.get_children(path).await)],
        "plan" => {
            let mut asked = get(&format!("plan?path={path}"));
            asked = asked.or_else(|| get(&format!("plan?path={path}&kind=set-acl")));
            [asked, client_code(client.get_all_children_number(path).await)]
        }
        "create" => [
            post("create", json!({ "path": new("a"), "data": "" })),
            client_code(client.create(&new("b"), b"").await),
        ],
        "set" => [
            post("set", json!({ "path": path, "data": base64("x") })),
            client_code(client.set_data(path, b"y").await),
        ],
        "set-acl" => {
            let sent = json!([{ "scheme": "world", "id": "anyone", "perms": "cdrwa" }]);
            [
                post("set-acl", json!({ "path": path, "acl": sent, "version": 77 })),
                client_code(
                    client.set_acl(path, &[Acl::world(Perms::ALL)]).version(Version::Exactly(77)).await,
                ),
            ]
        }
        "delete" => [
            post("delete", json!({ "path": kid, "version": 77 })),
            client_code(client.delete(&kid).version(Version::Exactly(77)).await),
        ],
        other => panic!("{other}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_endpoint_refuses_what_a_client_of_the_same_identity_is_refused() {
    let site = Site::start_with(&format!(
        "admin.readOnly=false\nDigestAuthenticationProvider.superDigest={}\n",
        digest_id("super:secret")
    ));
    let keeper = site.client("super:secret").await;
    let (mut allowed, mut refused) = (0, 0);
    for (number, acl) in acls().iter().enumerate() {
        let top = format!("/t{number}");
        build(&keeper, &top, acl).await;
        let path = format!("{top}/n");
        for login in LOGINS {
            let client = site.client(login).await;
            for what in ["node", "data", "children", "plan", "create", "set", "set-acl", "delete"] {
                let [console, as_client] = both(&site, &client, (login, &path), what).await;
                assert_eq!(console, as_client, "{what} as {login:?} with {acl:?}");
                match console.as_deref() {
                    Some("NOAUTH") => refused += 1,
                    None | Some("BADVERSION") => allowed += 1,
                    other => panic!("{what} as {login:?} with {acl:?}: {other:?}"),
                }
            }
            rights_are_those_that_were_met(&site, &client, (login, &path)).await;
            children_of_it(&site, &client, (login, &top, &path)).await;
            client.close().await;
        }
    }
    assert!(allowed > 100 && refused > 100, "{allowed} allowed, {refused} refused");
}

/// The rights that are shown are those that a client has.
async fn rights_are_those_that_were_met(site: &Site, client: &Client, (login, path): (&str, &str)) {
    let (_, answer) = site.get_as(login, &format!("tree/node?path={path}"));
    let rights = &answer["rights"];
    let is_open = |result: Option<String>| result.as_deref() != Some("NOAUTH");
    let met = json!({
        "read": is_open(client_code(client.get_data(path).await)),
        "write": is_open(client_code(client.set_data(path, b"z").version(Version::Exactly(77)).await)),
        "create": is_open(client_code(client.create(&format!("{path}/kid"), b"").await)),
        "delete": is_open(client_code(client.delete(&format!("{path}/kid")).version(Version::Exactly(77)).await)),
        "admin": is_open(client_code(client.set_acl(path, &[Acl::world(Perms::ALL)]).version(Version::Exactly(77)).await)),
    });
    assert_eq!(*rights, met, "{login:?} {path}");
    if let Ok((acl, stat)) = client.get_acl(path).await {
        let shown: Vec<Value> = acl.iter().map(|entry| json!([entry.id.scheme, entry.id.id])).collect();
        let all = answer["acl"].as_array().unwrap().iter();
        let seen: Vec<Value> = all.map(|entry| json!([entry["scheme"], entry["id"]])).collect();
        assert_eq!((seen, &answer["stat"]["mzxid"]), (shown, &json!(stat.mzxid.to_string())));
    }
}

/// In the list of its parent a row shows the Stat exactly if a client gets it.
async fn children_of_it(site: &Site, client: &Client, (login, top, path): (&str, &str, &str)) {
    let (_, list) = site.get_as(login, &format!("tree/children?path={top}"));
    let row = &list["items"][0];
    let may_read = client_code(client.exists(path).await).is_none();
    let gets_stat = may_read || client_code(client.get_acl(path).await).is_none();
    assert_eq!(
        (&row["may_read"], row["data_length"].is_number()),
        (&json!(may_read), gets_stat),
        "{login:?} {row}"
    );
}
