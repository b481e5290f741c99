//! The rights to see groups, and to hand over.

use crate::world::{AS_ANN, AS_BOB, World};
use ostler_client::{Acl, Id, Perms};
use serde_json::{Value, json};

fn digest_acl(user: &str) -> Vec<Acl> {
    let id = match user {
        "ann" => "ann:RYbu6l5aZwqon8VWmkcGvezdzfc=",
        _ => "bob:wrong",
    };
    vec![Acl { perms: Perms::ALL, id: Id::new("digest", id) }]
}

const LATCH: &str = "_c_970e5c47-4962-4e75-8c04-568be4164a0a-latch-";

/// A group that one may not read is left out and counted; an id that one may not read is not shown.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn acls_decide_what_a_viewer_sees() {
    let world = World::start().await;
    let client = world.client().await;
    client.create("/open", b"").await.unwrap();
    client
        .create(&format!("/open/{LATCH}"), b"secret")
        .ephemeral_sequential()
        .acl(digest_acl("ann"))
        .await
        .unwrap();
    client.create("/closed", b"").await.unwrap();
    client.create(&format!("/closed/{LATCH}"), b"me").ephemeral_sequential().await.unwrap();
    client.set_acl("/closed", &digest_acl("ann")).await.unwrap();
    // The leases are the children of another znode than the group's.
    client.create("/semaphore/leases", b"").creating_parents().await.unwrap();
    let lease = LATCH.replace("latch-", "lease-");
    client.create(&format!("/semaphore/leases/{lease}"), b"me").ephemeral_sequential().await.unwrap();
    client.set_acl("/semaphore/leases", &digest_acl("ann")).await.unwrap();

    let seen = |who: &str| {
        let (status, list) = world.get_as(who, "/recipes");
        assert_eq!(status, 200, "{list}");
        let item = |item: &Value| (item["path"].as_str().unwrap().to_owned(), item["holder"]["id"].clone());
        let items: Vec<_> = list["items"].as_array().unwrap().iter().map(item).collect();
        (items, list["left_out"].as_u64().unwrap())
    };
    assert_eq!(seen(AS_BOB), (vec![("/open".into(), Value::Null)], 2));
    assert_eq!(seen(""), (vec![("/open".into(), Value::Null)], 2));
    let all = vec![
        ("/closed".into(), json!("me")),
        ("/open".into(), json!("secret")),
        ("/semaphore".into(), json!("me")),
    ];
    assert_eq!(seen(AS_ANN), (all, 0));
    for path in ["/closed", "/semaphore"] {
        assert_eq!(world.get_as(AS_BOB, &format!("/recipes/group?path={path}")).0, 404, "{path}");
        assert_eq!(world.get_as(AS_ANN, &format!("/recipes/group?path={path}")).0, 200, "{path}");
    }
    // Of what the holder's session owns, bob is not shown what he may not list.
    let (_, group) = world.get_as(AS_BOB, "/recipes/group?path=/open");
    assert_eq!(group["hand_over"]["owns_left_out"], 2, "{group}");
    assert_eq!(group["hand_over"]["owns"].as_array().unwrap().len(), 1, "{group}");
}

/// A group that is shown to nobody is counted apart from those that others may see.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn groups_below_too_many_znodes_are_counted() {
    let world = World::start().await;
    let client = world.client().await;
    // The group, the znodes above it, and the root.
    let below = |znodes: usize| "/a".repeat(znodes - 1);
    for path in [below(64), format!("/b{}", below(64))] {
        client.create(&path, b"").creating_parents().await.unwrap();
        client.create(&format!("{path}/{LATCH}"), b"me").ephemeral_sequential().await.unwrap();
    }
    let (_, list) = world.get("/recipes");
    let paths: Vec<_> = list["items"].as_array().unwrap().iter().map(|item| item["path"].clone()).collect();
    assert_eq!((paths, &list["too_deep"], &list["left_out"]), (vec![json!(below(64))], &json!(1), &json!(0)));
    let (status, refusal) = world.get(&format!("/recipes/group?path=/b{}", below(64)));
    assert_eq!(status, 404, "{refusal}");
    assert!(refusal["sentence"].as_str().unwrap().contains("more than 64 znodes"), "{refusal}");
}

/// Whoever may not read an ancestor does not learn what is below it, whatever the ACLs there are.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_ancestor_that_may_not_be_read_hides_what_is_below() {
    let world = World::start().await;
    let client = world.client().await;
    client.create("/tenants/acme/lock", b"").creating_parents().await.unwrap();
    client.create("/open", b"").await.unwrap();
    for path in ["/tenants/acme/lock", "/open"] {
        client.create(&format!("{path}/{LATCH}"), b"me").ephemeral_sequential().await.unwrap();
    }
    client.set_acl("/tenants", &digest_acl("ann")).await.unwrap();
    let seen = |who: &str| {
        let (_, list) = world.get_as(who, "/recipes");
        (list["items"].as_array().unwrap().len(), list["left_out"].as_u64().unwrap())
    };
    assert_eq!((seen(AS_BOB), seen(AS_ANN)), ((1, 1), (2, 0)));
    assert_eq!(world.get_as(AS_BOB, "/recipes/group?path=/tenants/acme/lock").0, 404);
    let (_, group) = world.get_as(AS_BOB, "/recipes/group?path=/open");
    assert_eq!(group["hand_over"]["owns_left_out"], 1, "{group}");
    assert_eq!(group["hand_over"]["owns"].as_array().unwrap().len(), 1, "{group}");
    let (_, group) = world.get_as(AS_ANN, "/recipes/group?path=/open");
    assert_eq!(group["hand_over"]["owns"].as_array().unwrap().len(), 2, "{group}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_operators_hand_over() {
    let world = World::start().await;
    let client = world.client().await;
    client.create("/latch", b"").await.unwrap();
    let holder = client.create(&format!("/latch/{LATCH}"), b"me").ephemeral_sequential().await.unwrap().path;
    let body = json!({ "path": "/latch", "holder": holder, "way": "expire" });
    let ask = |who: &str| {
        let (status, answer) = world.post_as(who, "/recipes/hand-over", &body);
        (status, answer["code"].as_str().unwrap_or_default().to_owned())
    };
    assert_eq!(ask(AS_BOB), (403, "FORBIDDEN".into()));
    // A request without an identity of its own needs the page's token.
    assert_eq!(ask(""), (403, "OTHER_SITE".into()));
    assert!(client.exists(&holder).await.unwrap().is_some());
    for wrong in [json!({}), json!({ "path": "/latch" }), json!([])] {
        let (status, answer) = world.post_as(AS_ANN, "/recipes/hand-over", &wrong);
        assert_eq!((status, &answer["code"]), (400, &json!("BAD_REQUEST")), "{answer}");
    }
    assert_eq!(ask(AS_ANN), (200, String::new()));
}

/// A group that an operator may not read is not handed over, either.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operator_does_not_hand_over_what_the_tree_hides() {
    let world = World::start().await;
    let client = world.client().await;
    client.create("/latch", b"").await.unwrap();
    let holder = client.create(&format!("/latch/{LATCH}"), b"me").ephemeral_sequential().await.unwrap().path;
    client.set_acl("/latch", &digest_acl("bob")).await.unwrap();
    let body = json!({ "path": "/latch", "holder": holder, "way": "expire" });
    assert_eq!(world.post_as(AS_ANN, "/recipes/hand-over", &body).0, 404);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_only_console_has_no_path_to_hand_over() {
    let world = World::start_with(&["admin.readOnly=true"]).await;
    let (status, answer) = world.post_as(AS_ANN, "/recipes/hand-over", &json!({}));
    assert_eq!((status, &answer["code"]), (404, &json!("NOT_FOUND")), "{answer}");
    assert_eq!(world.get("/recipes").0, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_viewers_see_groups() {
    let viewers = format!("admin.viewers={}", crate::world::ANN);
    let world = World::start_with(&["admin.readOnly=false", &viewers]).await;
    for path in ["/recipes", "/recipes/group?path=/a"] {
        assert_eq!(world.get(path).0, 401, "{path}");
        assert_eq!(world.get_as(AS_BOB, path).0, 403, "{path}");
        assert_ne!(world.get_as(AS_ANN, path).0, 403, "{path}");
    }
}
