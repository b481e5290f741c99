//! Ports that other machines reach: which identities are admitted, and by which names of the server.

use crate::site::{NOBODY, OPERATOR, SUPER, Site};
use ostler_client::{Acl, Client, Id, Perms};
use serde_json::json;

const ASKED: [&str; 5] = ["tree/children?path=/", "tree/node?path=/", "tree/data?path=/", "ensemble", "disk"];
/// Made-up logins: a digest proves only the identity of this user with this password.
const MADE_UP: [&str; 3] = [NOBODY, "bob:other", "super:wrong"];

async fn let_ann_read(client: &Client) {
    let id = Id::new("digest", ostler_server_core::auth::digest_id("ann:pw"));
    client.set_acl("/", &[Acl::world(Perms::ALL), Acl { perms: Perms::READ, id }]).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn without_tls_a_port_shows_nothing_to_a_login_that_anybody_can_make_up() {
    let viewer = ostler_server_core::auth::digest_id("vic:pw");
    let site = Site::start_exposed(&format!("admin.readOnly=false\nadmin.viewers=digest:{viewer}\n"));
    let_ann_read(&site.client().await).await;
    for path in ASKED {
        assert_eq!(site.get(path).0, 401, "{path}");
        for login in MADE_UP {
            let (status, answer) = site.get_as(login, path);
            assert_eq!((status, &answer["code"]), (403, &json!("FORBIDDEN")), "{login} {path}: {answer}");
        }
        for login in ["vic:pw", OPERATOR, SUPER] {
            assert_eq!(site.get_as(login, path).0, 200, "{login} {path}");
        }
    }
    // With READ at the root she may come, and sees the tree; the pages about the server are for viewers.
    assert_eq!(site.get_as("ann:pw", "tree/children?path=/").0, 200);
    assert_eq!(site.get_as("ann:pw", "disk").0, 403);
    let create = json!({ "path": "/made-up", "data": "" });
    for login in MADE_UP {
        let (status, answer) = site.post_as(login, "tree/create", create.clone());
        assert_eq!((status, &answer["code"]), (403, &json!("FORBIDDEN")), "{login}: {answer}");
    }
    assert_eq!(site.post_as("vic:pw", "tree/create", create).0, 200);
}

/// Somebody with a wrong password is informed of it, and can sign in anew.
#[test]
fn a_sign_in_that_the_port_does_not_admit_is_refused() {
    let site = Site::start_exposed("");
    let host = site.asked.to_string();
    let ((status, answer), cookie) = site.sign_in(&host, "super:wrong");
    assert_eq!((status, &answer["code"], &*cookie), (403, &json!("FORBIDDEN"), ""), "{answer}");
    let (status, me) = site.get_as("super:wrong", "me");
    assert_eq!((status, &me["needs_sign_in"]), (200, &json!(true)), "{me}");
    let ((status, _), cookie) = site.sign_in(&host, SUPER);
    assert_eq!(status, 200);
    let (_, me) = site.get_with_cookie(&cookie, "me");
    assert_eq!((&me["super"], &me["needs_sign_in"]), (&json!(true), &json!(false)), "{me}");
    assert_eq!(site.get_with_cookie(&cookie, "disk").0, 200);
}

/// The owner of a name can let it point to this server, and a browser then takes the owner's page for a page of this server.
#[test]
fn a_name_that_is_not_the_servers_own_is_refused_at_every_port() {
    let sites = [
        Site::start_exposed("admin.openToAll=true\nadmin.hostNames=ops.example; zk.example.com\n"),
        Site::start_with("admin.hostNames=ops.example\n"),
    ];
    for site in &sites {
        for path in ["me", "tree/children?path=/", "disk"] {
            let (status, answer) = site.get_by_name("evil.example", path);
            assert_eq!((status, &answer["code"]), (403, &json!("OTHER_SITE")), "{path}: {answer}");
            let sentence = answer["sentence"].as_str().unwrap();
            assert!(sentence.contains("evil.example") && sentence.contains("admin.hostNames"), "{sentence}");
            for own in
                ["127.0.0.1", "localhost", "LocalHost", "[::1]", "10.9.9.9", "ops.example", "OPS.example."]
            {
                assert_eq!(site.get_by_name(own, path).0, 200, "{own} {path}");
            }
        }
        let ((status, answer), _) = site.sign_in("evil.example", SUPER);
        assert_eq!((status, &answer["code"]), (403, &json!("OTHER_SITE")), "{answer}");
    }
    assert_eq!(sites[0].get_by_name("zk.example.com", "me").0, 200);
    assert_eq!(sites[1].get_by_name("zk.example.com", "me").0, 403);
}

/// The machine's own name needs no line.
#[test]
fn the_machines_name_is_the_servers_own() {
    let site = Site::start_exposed("admin.openToAll=true\n");
    let name = rustix::system::uname().nodename().to_str().unwrap().to_owned();
    assert_eq!(site.get_by_name(&name, "me").0, 200, "{name}");
}
