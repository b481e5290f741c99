//! Hand-overs, as an operator asks for them.

use crate::world::{ANN, AS_ANN, PATIENCE, World};
use ostler_client::{Acl, Client, CreateMode, Id, Perms};
use ostler_recipes::{
    Error,
    leader::{LeaderLatch, LeaderSelector, Leadership},
};
use serde_json::{Value, json};
use std::{fs, future::pending, time::Duration};
use tokio::time::timeout;

/// The old leader stops, the next one leads, and the fence refuses what the old one writes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_of_ostler_is_fenced() {
    let world = World::start_with(&["admin.readOnly=false", "audit.enable=true"]).await;
    let (one, two) = (world.client().await, world.client().await);
    one.create("/state", b"").await.unwrap();
    let (first, next) = (LeaderLatch::new(&one, "/latch", "one"), LeaderLatch::new(&two, "/latch", "two"));
    first.start();
    let fence = first.wait_for_leadership().await.unwrap();
    next.start();
    let before = world.group_when("/latch", |group| group["waiting"] == 1).await;
    fence.multi().set_data("/state", b"1").await.unwrap();
    assert_eq!(before["hand_over"]["way"], "fence");

    let (status, answer) = world.hand_over("/latch", "fence");
    assert_eq!((status, &answer["done"]), (200, &json!(true)), "{answer}");
    let refused = fence.multi().set_data("/state", b"2").await;
    assert!(matches!(refused, Err(Error::NotHeld { .. })), "{refused:?}");
    let leads = timeout(PATIENCE, next.wait_for_leadership()).await.unwrap().unwrap();
    assert!(leads.token() > fence.token());
    leads.multi().set_data("/state", b"3").await.unwrap();
    let until = tokio::time::Instant::now() + PATIENCE;
    while first.has_leadership() {
        assert!(tokio::time::Instant::now() < until, "the old leader leads on");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    // Its session lives on, and it stands at the end of the queue.
    let after = world.group_when("/latch", |group| group["waiting"] == 1).await;
    assert_eq!((&after["holder"]["id"], &after["queue"][1]["id"]), (&json!("two"), &json!("one")));
    assert_eq!(after["queue"][1]["session"], before["holder"]["session"]);
    assert_eq!(after["handovers_last_hour"], 1);

    // The page of before shows a holder that holds no more.
    let holder = &before["holder"];
    let body =
        json!({ "path": "/latch", "holder": holder["path"], "token": holder["token"], "way": "fence" });
    let (status, answer) = world.post_as(AS_ANN, "/recipes/hand-over", &body);
    assert_eq!((status, &answer["code"]), (409, &json!("PLAN")), "{answer}");

    let deleted = format!("operation=delete\tznode={}\tresult=success", holder["path"].as_str().unwrap());
    let line = audited(&world, &deleted).await;
    assert!(line.contains("user=") && line.contains("ann") && line.contains("ip=127.0.0.1"), "{line}");
}

/// The line of the audit log that has this text.
async fn audited(world: &World, text: &str) -> String {
    let until = tokio::time::Instant::now() + PATIENCE;
    loop {
        let logs = walk(world.dir.path());
        let lines = logs.iter().flat_map(|log| log.lines());
        if let Some(line) = lines.into_iter().find(|line| line.contains(text)) {
            return line.to_owned();
        }
        assert!(tokio::time::Instant::now() < until, "{text} is not in {logs:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// The texts of the audit logs in a folder.
fn walk(dir: &std::path::Path) -> Vec<String> {
    let entries: Vec<_> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    let inner = entries.iter().filter(|path| path.is_dir()).flat_map(|path| walk(path));
    let logs = entries.iter().filter(|path| path.to_string_lossy().contains("audit"));
    let own = logs.filter(|path| path.is_file()).map(|path| fs::read_to_string(path).unwrap());
    own.chain(inner).collect()
}

/// The operator may read the group; the znode is deleted by the server's rights.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operator_needs_no_permission_to_delete() {
    let world = World::start().await;
    let client = world.client().await;
    let latch = LeaderLatch::new(&client, "/latch", "one");
    latch.start();
    let fence = latch.wait_for_leadership().await.unwrap();
    let id = Id::new("digest", ANN.strip_prefix("digest:").unwrap());
    client.set_acl("/latch", &[Acl { perms: Perms::READ, id }]).await.unwrap();
    let holder = world.client().await;
    let (status, group) = world.get_as(AS_ANN, "/recipes/group?path=/latch");
    assert_eq!(status, 200, "{group}");
    let body = json!({ "path": "/latch", "holder": group["holder"]["path"], "way": "fence" });
    let (status, answer) = world.post_as(AS_ANN, "/recipes/hand-over", &body);
    assert_eq!(status, 200, "{answer}");
    assert!(holder.exists(fence.node()).await.unwrap().is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_selector_of_ostler_is_fenced() {
    let world = World::start().await;
    let client = world.client().await;
    let (to, mut led) = tokio::sync::mpsc::unbounded_channel();
    let lead = move |leadership: Leadership| {
        to.send(leadership.fence().clone()).unwrap();
        async { pending::<()>().await }
    };
    let selector = LeaderSelector::builder(&client, "/selector", lead).id("one").auto_requeue().start();
    let first = timeout(PATIENCE, led.recv()).await.unwrap().unwrap();
    world.group_when("/selector", |group| group["hand_over"]["way"] == "fence").await;
    assert_eq!(world.hand_over("/selector", "fence").0, 200);
    let second = timeout(PATIENCE, led.recv()).await.unwrap().unwrap();
    assert!(second.token() > first.token() && first.verify().await.is_err());
    selector.close().await;
}

/// The names of all recognised kinds of other libraries, with the data of their parents.
const FOREIGN: [(&str, &str, &str); 13] = [
    ("/latch", "", "_c_970e5c47-4962-4e75-8c04-568be4164a0a-latch-"),
    ("/lock", "", "_c_970e5c47-4962-4e75-8c04-568be4164a0a-lock-"),
    ("/write", "", "_c_970e5c47-4962-4e75-8c04-568be4164a0a-__WRIT__"),
    ("/read", "", "_c_970e5c47-4962-4e75-8c04-568be4164a0a-__READ__"),
    ("/lease/leases", "", "_c_970e5c47-4962-4e75-8c04-568be4164a0a-lease-"),
    ("/kazoo", "", "5f967df430fc424f9be669fafab4a7eb__lock__"),
    ("/kazoo-election", "", "5f967df430fc424f9be669fafab4a7eb__lock__"),
    ("/kazoo-read", "", "5f967df430fc424f9be669fafab4a7eb__rlock__"),
    ("/zookeeper-lock", "", "x-7-"),
    ("/election", "", "n_"),
    ("/go", "", "_c_970e5c4749624e758c04568be4164a0a-lock-"),
    ("/other", "", "latch-"),
    ("/version-8", "", "_c_970e5c47-4962-8e75-8c04-568be4164a0a-latch-"),
];

/// A holder's znode, which exists.
async fn foreign_holders(client: &Client) -> Vec<(String, String)> {
    let mut made = Vec::new();
    for (parent, data, name) in FOREIGN {
        client.create(parent, data).creating_parents().await.unwrap();
        let path = format!("{parent}/{name}");
        let created = client.create(&path, b"me").mode(CreateMode::EphemeralSequential).await.unwrap();
        made.push((parent.trim_end_matches("/leases").to_owned(), created.path));
    }
    client.create("/kazoo-semaphore", b"2").await.unwrap();
    let lease = "/kazoo-semaphore/8223bb3c3590491d80396adbfede6ba2";
    client.create(lease, b"me").ephemeral().await.unwrap();
    made.push(("/kazoo-semaphore".into(), lease.into()));
    made
}

/// Not even by a request that no page makes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_foreign_holder_is_never_deleted() {
    let world = World::start().await;
    let client = world.client().await;
    // The program watches its znodes, as one of Ostler's would.
    let holders = foreign_holders(&client).await;
    let mut watches = Vec::new();
    for (_, holder) in &holders {
        watches.push(client.get_data(holder).watch().await.unwrap().1);
    }
    let (_, list) = world.get("/recipes");
    assert_eq!(list["items"].as_array().unwrap().len(), holders.len(), "all of them are recognised: {list}");
    for (group, holder) in &holders {
        let shown = world.group(group);
        assert_eq!(shown["holder"]["path"], **holder, "{shown}");
        assert_eq!(shown["hand_over"]["way"], "expire", "{shown}");
        for way in ["fence", "revoke", "none", "delete"] {
            let (status, answer) = world.hand_over(group, way);
            assert!(status == 409 || status == 400, "{group} {way}: {status} {answer}");
        }
        let (data, stat) = client.get_data(holder).await.unwrap();
        assert_eq!((&*data, stat.version), (&b"me"[..], 0), "{holder} is as it was");
    }
    // The end of the session is what is left.
    let owns = world.group("/latch")["hand_over"]["owns"].clone();
    let mut expected: Vec<&str> = holders.iter().map(|(_, holder)| &**holder).collect();
    expected.sort_unstable();
    assert_eq!(owns, json!(expected));
    let session = client.session_id().unwrap();
    let (status, answer) = world.hand_over("/latch", "expire");
    assert_eq!((status, &answer["done"]), (200, &json!(true)), "{answer}");
    let other = world.client().await;
    for (_, holder) in &holders {
        assert!(other.exists(holder).await.unwrap().is_none(), "{holder} goes with its session {session}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_end_of_a_session_is_audited() {
    let world = World::start_with(&["admin.readOnly=false", "audit.enable=true"]).await;
    let client = world.client().await;
    client.create("/lock", b"").await.unwrap();
    client
        .create("/lock/_c_970e5c47-4962-4e75-8c04-568be4164a0a-lock-", b"")
        .ephemeral_sequential()
        .await
        .unwrap();
    let session = client.session_id().unwrap();
    assert_eq!(world.hand_over("/lock", "expire").0, 200);
    let line = audited(&world, "operation=expireSession").await;
    let expected = format!("session={session}\tuser=");
    assert!(line.contains(&expected) && line.contains("ann") && line.ends_with("result=success"), "{line}");
}

/// Where all holders' znodes have one path, the token says which one is meant.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_holder_of_a_path_that_others_have_is_named_by_its_token() {
    let world = World::start().await;
    let client = world.client().await;
    let election = ostler_recipes::leader::UnfairElection::new(&client, "/unfair", "one");
    let leadership = election.campaign().await.unwrap();
    let ask = |token: Value| {
        let body = json!({ "path": "/unfair", "holder": "/unfair/leader", "token": token, "way": "expire" });
        world.post_as(AS_ANN, "/recipes/hand-over", &body)
    };
    assert_eq!(ask(Value::Null).0, 400);
    assert_eq!(ask(json!("0x1")).0, 409);
    assert!(leadership.fence().verify().await.is_ok());
    assert_eq!(ask(json!(leadership.token().to_string())).0, 200);
}

/// A writer does not hold as long as another reader does.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_who_waits_is_not_next_while_others_hold() {
    let world = World::start().await;
    let clients = [world.client().await, world.client().await, world.client().await];
    clients[0].create("/lock", b"").await.unwrap();
    let mut made = Vec::new();
    for (client, word) in clients.iter().zip(["__READ__", "__READ__", "__WRIT__"]) {
        let path = format!("/lock/_c_970e5c47-4962-4e75-8c04-568be4164a0a-{word}");
        made.push(client.create(&path, b"me").ephemeral_sequential().await.unwrap().path);
    }
    let (status, answer) = world.hand_over("/lock", "expire");
    let sentence = answer["sentence"].as_str().unwrap();
    assert_eq!((status, &answer["done"]), (200, &json!(true)), "{answer}");
    let others = format!("Others still hold: 1. The first who waits is {}.", made[2]);
    assert!(sentence.ends_with(&others), "{sentence}");
    let (_, answer) = world.hand_over("/lock", "expire");
    let sentence = answer["sentence"].as_str().unwrap();
    assert!(sentence.ends_with(&format!("Next in the queue is {}.", made[2])), "{sentence}");
}
