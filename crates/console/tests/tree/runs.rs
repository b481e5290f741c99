//! Changes of whole subtrees.

use crate::server::{Site, acl, digest_id};
use ostler_client::{Acl, Client, CreateMode, Id, Perms};
use serde_json::{Value, json};
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

fn ann(perms: Perms) -> Vec<Acl> {
    vec![Acl { perms, id: Id::new("digest", digest_id("ann:pw")) }]
}

async fn fill(client: &Client, parent: &str, count: usize) {
    if client.exists(parent).await.unwrap().is_none() {
        client.create(parent, b"").await.unwrap();
    }
    let names: Vec<String> = (0..count).map(|n| format!("{parent}/{n:06}")).collect();
    for some in names.chunks(500) {
        some.iter().fold(client.multi(), |multi, path| multi.create(path, b"12").and()).await.unwrap();
    }
}

fn plan(site: &Site, login: &str, query: &str) -> Value {
    let (status, plan) = site.get_as(login, &format!("tree/plan?{query}"));
    assert_eq!(status, 200, "{plan}");
    plan
}

fn delete_all(site: &Site, login: &str, plan: &Value, confirm: &str) -> (u16, Value) {
    site.post_as(login, "tree/delete-all", json!({ "plan": plan["id"], "confirm": confirm }))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_counts_what_a_delete_would_meet() {
    let site = Site::start();
    let client = site.client("").await;
    client.create("/t", b"1234").await.unwrap();
    client.create("/t/locks", b"").await.unwrap();
    client.create("/t/locks/_c_x-lock-", b"1").ephemeral_sequential().await.unwrap();
    client.create("/t/shut", b"12345").acl(ann(Perms::ALL)).await.unwrap();
    let of_ann = site.client("ann:pw").await;
    of_ann.create("/t/shut/in", b"").await.unwrap();
    let (_, _watch) = client.get_data("/t").watch().await.unwrap();
    let mut of_all = plan(&site, "", "path=/t&kind=delete");
    let id = of_all["id"].take();
    assert_eq!(id.as_str().unwrap().len(), 64);
    let owner = of_all["owners"].take();
    assert_eq!((owner.as_array().unwrap().len(), &owner[0]["count"]), (1, &json!(1)));
    assert!(owner[0]["address"].as_str().unwrap().starts_with("127.0.0.1:"), "{owner}");
    assert_eq!(
        of_all,
        json!({
            "id": null, "path": "/t", "znodes": 4, "bytes": 5, "ephemerals": 1, "owners": null, "watches": 1,
            "locks": ["/t/locks"], "refused": ["/t/shut"], "expires_in_ms": 300_000, "as_of_zxid": "0x7",
        })
    );
    let of_ann = plan(&site, "ann:pw", "path=/t");
    assert_eq!(
        (&of_ann["znodes"], &of_ann["bytes"], &of_ann["refused"]),
        (&json!(5), &json!(10), &json!([]))
    );
    for special in ["/", "/zookeeper", "/zookeeper/config", "/zookeeper/quota"] {
        let (status, answer) = site.get(&format!("tree/plan?path={special}"));
        assert_eq!((status, &answer["code"]), (400, &json!("BAD_REQUEST")), "{special}");
    }
    assert_eq!(site.get("tree/plan?path=/t/shut").0, 403);
    assert_eq!(site.get("tree/plan?path=/none").0, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subtree_is_deleted_with_progress() {
    let site = Site::start();
    let client = site.client("").await;
    fill(&client, "/t", 3000).await;
    fill(&client, "/t/000007", 300).await;
    client.create("/t2", b"").await.unwrap();
    let planned = plan(&site, "", "path=/t");
    assert_eq!(planned["znodes"], 3301);
    let (status, answer) = delete_all(&site, "", &planned, "T");
    assert_eq!((status, &answer["code"]), (400, &json!("BAD_REQUEST")));
    let (_, run) = delete_all(&site, "", &planned, "t");
    let end = site.until_over("", &run);
    assert_eq!(
        end,
        json!({ "done": 3301, "of": 3301, "state": "done", "sentence": "/t and all below it is deleted.", "left": [] })
    );
    let mut left = client.get_children("/").await.unwrap();
    left.sort();
    assert_eq!(left, ["t2", "zookeeper"]);
    // A plan is used once.
    assert_eq!(delete_all(&site, "", &planned, "t").1["code"], "PLAN");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_is_bound_to_its_maker_its_kind_and_its_moment() {
    let site = Site::start();
    let client = site.client("").await;
    fill(&client, "/t", 20).await;
    let planned = plan(&site, "", "path=/t&kind=delete");
    assert_eq!(delete_all(&site, "ann:pw", &planned, "t").1["code"], "PLAN");
    let other = json!({ "plan": planned["id"], "acl": acl(&["world:anyone:r"]) });
    assert_eq!(site.post("tree/set-acl-all", other).1["code"], "PLAN");
    client.create("/t/000003/new", b"").await.unwrap();
    let (_, run) = delete_all(&site, "", &planned, "t");
    let end = site.until_over("", &run);
    assert_eq!((&end["state"], &end["left"][0]), (&json!("stopped"), &json!("/t/000003/new")), "{end}");
    assert!(client.exists("/t/000003/new").await.unwrap().is_some(), "what the plan did not show is there");
    let id = run["run"].as_str().unwrap();
    assert_eq!(site.get_as("ann:pw", &format!("tree/runs?id={id}")).0, 404);
    assert_eq!(site.post_as("ann:pw", "tree/stop-run", json!({ "id": id })).0, 404);
    assert_eq!(site.get("tree/runs?id=").0, 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delete_stops_at_the_first_refusal_and_says_what_is_left() {
    let site = Site::start();
    let client = site.client("").await;
    fill(&client, "/t", 250).await;
    client.create("/t/000120/in", b"").await.unwrap();
    client.create("/t/000120/more", b"").await.unwrap();
    // Its children may be seen, but not deleted.
    client.set_acl("/t/000120", &[Acl { perms: Perms::READ, id: Id::new("world", "anyone") }]).await.unwrap();
    let planned = plan(&site, "", "path=/t");
    assert_eq!(planned["refused"], json!(["/t/000120/in", "/t/000120/more"]));
    let (_, run) = delete_all(&site, "", &planned, "t");
    let end = site.until_over("", &run);
    assert_eq!(
        (&end["state"], &end["done"], &end["of"]),
        (&json!("stopped"), &json!(120), &json!(253)),
        "{end}"
    );
    assert_eq!(
        end["sentence"],
        "Stopped at /t/000120/in: The ACL of the parent does not let you delete its children (DELETE)."
    );
    let left: Vec<&str> = end["left"].as_array().unwrap().iter().map(|path| path.as_str().unwrap()).collect();
    assert_eq!(
        (left.len(), &left[..4]),
        (100, &["/t/000120/in", "/t/000120/more", "/t/000120", "/t/000121"][..])
    );
    assert_eq!(client.get_children("/t").await.unwrap().len(), 130);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_znode_whose_children_are_hidden_stops_a_delete() {
    let site = Site::start();
    let client = site.client("").await;
    fill(&client, "/t", 3).await;
    client.create("/t/000001/in", b"").await.unwrap();
    client.set_acl("/t/000001", &ann(Perms::ALL)).await.unwrap();
    let (_, run) = delete_all(&site, "", &plan(&site, "", "path=/t"), "t");
    let end = site.until_over("", &run);
    assert_eq!((&end["state"], &end["left"][0]), (&json!("stopped"), &json!("/t/000001")), "{end}");
    assert!(end["sentence"].as_str().unwrap().contains("(READ)"), "{end}");
    let (_, run) = delete_all(&site, "ann:pw", &plan(&site, "ann:pw", "path=/t"), "t");
    assert_eq!(site.until_over("ann:pw", &run)["state"], "done");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_stopped_by_whoever_began_it() {
    let site = Site::start();
    let client = site.client("").await;
    fill(&client, "/t", 20_000).await;
    let (_, run) = delete_all(&site, "", &plan(&site, "", "path=/t"), "t");
    assert_eq!(site.post("tree/stop-run", json!({ "id": run["run"] })).0, 200);
    let end = site.until_over("", &run);
    assert_eq!(end["state"], "stopped", "{end}");
    let done = end["done"].as_u64().unwrap() as usize;
    assert_eq!(client.get_children("/t").await.unwrap().len(), 20_000 - done);
    assert_eq!(end["left"].as_array().unwrap().len(), 100);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_acl_is_set_on_a_subtree() {
    let site = Site::start();
    let client = site.client("").await;
    fill(&client, "/t", 130).await;
    client.create("/t/000005/in", b"").await.unwrap();
    let planned = plan(&site, "", "path=/t&kind=set-acl");
    let wanted = |planned: &Value, entries: &[&str]| json!({ "plan": planned["id"], "acl": acl(entries) });
    let (_, run) =
        site.post("tree/set-acl-all", wanted(&planned, &["digest:ann:pw:cdrwa", "world:anyone:r"]));
    let end = site.until_over("", &run);
    assert_eq!((&end["state"], &end["done"]), (&json!("done"), &json!(132)), "{end}");
    for path in ["/t", "/t/000005", "/t/000005/in", "/t/000129"] {
        assert_eq!(client.get_acl(path).await.unwrap().0.len(), 2, "{path}");
    }
    let planned = plan(&site, "", "path=/t&kind=set-acl");
    assert_eq!(planned["refused"].as_array().unwrap().len(), 100);
    let (_, run) = site.post("tree/set-acl-all", wanted(&planned, &["world:anyone:cdrwa"]));
    let end = site.until_over("", &run);
    assert_eq!(
        (&end["state"], &end["done"], &end["left"]),
        (&json!("stopped"), &json!(0), &json!(["/t/000000"])),
        "{end}"
    );
    let bad = site.post(
        "tree/set-acl-all",
        json!({ "plan": planned["id"], "acl": [{ "scheme": "world", "perms": "z" }] }),
    );
    assert_eq!(bad.0, 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subtree_is_copied_and_moved() {
    let site = Site::start();
    let client = site.client("").await;
    fill(&client, "/t", 220).await;
    client.create("/t/000001/box", b"").container().await.unwrap();
    client.create("/t/000001/big", &vec![7; 900_000]).await.unwrap();
    client.create("/t/000002/big", &vec![8; 900_000]).await.unwrap();
    let both = vec![ann(Perms::ALL).remove(0), Acl { perms: Perms::READ, id: Id::new("world", "anyone") }];
    client.create("/t/acl", b"x").acl(both.clone()).await.unwrap();
    let copy = |login: &str, body: Value| site.post_as(login, "tree/copy", body);
    // Without ADMIN the digest in the ACL is not to be seen.
    let (_, run) = copy("", json!({ "from": "/t", "to": "/c" }));
    let end = site.until_over("", &run);
    assert_eq!((&end["state"], &end["left"]), (&json!("stopped"), &json!(["/t/acl"])), "{end}");
    assert!(client.exists("/c").await.unwrap().is_none(), "nothing is copied");
    let (_, run) = copy("ann:pw", json!({ "from": "/t", "to": "/u" }));
    let end = site.until_over("ann:pw", &run);
    assert_eq!(
        (&end["state"], &end["done"], &end["of"]),
        (&json!("done"), &json!(225), &json!(225)),
        "{end}"
    );
    assert_eq!(client.get_all_children_number("/u").await.unwrap(), 224);
    assert_eq!(client.get_data("/u/000002/big").await.unwrap().0, vec![8; 900_000]);
    assert_eq!(&client.get_data("/u/000219").await.unwrap().0[..], b"12");
    assert_eq!(site.get("tree/node?path=/u/000001/box").1["kind"], "container");
    assert_eq!(site.client("ann:pw").await.get_acl("/u/acl").await.unwrap().0, both);
    assert_eq!(client.get_all_children_number("/t").await.unwrap(), 224, "it is still there");
    let (_, run) = copy("ann:pw", json!({ "from": "/t", "to": "/moved", "move": true }));
    let end = site.until_over("ann:pw", &run);
    assert_eq!(
        (&end["state"], &end["done"], &end["of"]),
        (&json!("done"), &json!(450), &json!(450)),
        "{end}"
    );
    assert!(client.exists("/t").await.unwrap().is_none());
    assert_eq!(client.get_all_children_number("/moved").await.unwrap(), 224);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_copied_is_said_first() {
    let site = Site::start();
    let client = site.client("").await;
    fill(&client, "/t", 3).await;
    client.create("/t/000001/mine", b"").ephemeral().await.unwrap();
    for (from, to, code) in [
        ("/t", "/t", "BAD_REQUEST"),
        ("/t", "/t/x", "BAD_REQUEST"),
        ("/", "/x", "BAD_REQUEST"),
        ("/t", "/zookeeper", "BAD_REQUEST"),
        ("/t/000000", "/t/000002", "NODEEXISTS"),
        ("/none", "/x", "NONODE"),
        ("t", "/x", "BAD_REQUEST"),
    ] {
        let (_, answer) = site.post("tree/copy", json!({ "from": from, "to": to }));
        assert_eq!(answer["code"], code, "{from} {to}");
    }
    let (_, run) = site.post("tree/copy", json!({ "from": "/t", "to": "/x" }));
    let end = site.until_over("", &run);
    assert_eq!((&end["state"], &end["left"]), (&json!("stopped"), &json!(["/t/000001/mine"])), "{end}");
    assert!(client.exists("/x").await.unwrap().is_none());
    let (_, run) = site.post("tree/copy", json!({ "from": "/t/000000", "to": "/none/x" }));
    let end = site.until_over("", &run);
    assert_eq!(end["state"], "stopped", "{end}");
    assert!(end["sentence"].as_str().unwrap().contains("The parent does not exist"), "{end}");
}

#[tokio::test(flavor = "multi_thread")]
async fn null_data_are_copied_as_null() {
    let site = Site::start();
    let client = site.client("").await;
    client.create("/t", b"").without_data().await.unwrap();
    client.create("/t/empty", b"").await.unwrap();
    client.create("/t/null", b"").without_data().await.unwrap();
    client.create("/t/null/below", b"x").await.unwrap();
    let is_null = |path: &str| site.get(&format!("tree/data?path={path}")).1["is_null"] == true;
    assert!(is_null("/t") && !is_null("/t/empty"));
    let (_, run) = site.post("tree/copy", json!({ "from": "/t", "to": "/u" }));
    let end = site.until_over("", &run);
    assert_eq!((&end["state"], &end["done"]), (&json!("done"), &json!(4)), "{end}");
    let copied = ["/u", "/u/empty", "/u/null", "/u/null/below"].map(is_null);
    assert_eq!(copied, [true, false, true, false]);
}

/// The copy has the old ACL, so the original is kept.
#[tokio::test(flavor = "multi_thread")]
async fn a_move_deletes_no_znode_whose_acl_has_changed_since_it_was_copied() {
    let site = Site::start();
    let client = site.client("").await;
    fill(&client, "/t", 8000).await;
    client.set_acl("/t/000001", &[Acl::world(Perms::ALL)]).await.unwrap();
    let (_, run) = site.post("tree/copy", json!({ "from": "/t", "to": "/moved", "move": true }));
    while client.exists("/moved/000002").await.unwrap().is_none() {}
    client.set_acl("/t/000002", &[Acl { perms: Perms::READ, id: Id::new("world", "anyone") }]).await.unwrap();
    let end = site.until_over("", &run);
    assert_eq!((&end["state"], &end["left"]), (&json!("stopped"), &json!(["/t/000002"])), "{end}");
    assert!(client.exists("/t/000002").await.unwrap().is_some());
}

/// Later znodes are not copied, so a queue cannot keep a copy busy for ever.
#[tokio::test(flavor = "multi_thread")]
async fn the_copy_of_a_queue_that_grows_ends() {
    let site = Site::start();
    let client = site.client("").await;
    fill(&client, "/q", 2000).await;
    let (writer, stop) = (site.client("").await, Arc::new(AtomicBool::new(false)));
    let stopping = stop.clone();
    let grows = tokio::spawn(async move {
        let mut count = 0;
        while !stopping.load(Ordering::Relaxed) {
            let multi = (0..1000).fold(writer.multi(), |multi, _| {
                multi.create("/q/job-", b"").mode(CreateMode::PersistentSequential).and()
            });
            multi.await.unwrap();
            count += 1000;
        }
        count
    });
    let (_, run) = site.post("tree/copy", json!({ "from": "/q", "to": "/c" }));
    let end = tokio::task::block_in_place(|| site.until_over("", &run));
    stop.store(true, Ordering::Relaxed);
    let grown = grows.await.unwrap();
    assert_eq!((&end["state"], &end["done"]), (&json!("done"), &end["of"]), "{end}");
    assert!(grown > 2000, "it has grown by {grown} only");
    assert_eq!(json!(client.get_all_children_number("/c").await.unwrap() + 1), end["of"]);
}
