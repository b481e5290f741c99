//! Groups as the pages show them.

use crate::world::World;
use ostler_recipes::{
    leader::{LeaderLatch, LeaderSelector, Leadership, UnfairElection},
    lock::{InterProcessMutex, InterProcessReadWriteLock, InterProcessSemaphore},
};
use serde_json::{Value, json};
use std::future::pending;

/// Each recipe of Ostler is recognised by what it really writes, and only those that watch their own znode are fenced.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ostlers_recipes_are_recognised() {
    let world = World::start().await;
    let (one, two) = (world.client().await, world.client().await);
    let latch = LeaderLatch::new(&one, "/o/latch", "one");
    latch.start();
    latch.wait_for_leadership().await.unwrap();
    let other = LeaderLatch::new(&two, "/o/latch", "two");
    other.start();
    let lead = |_: Leadership| async { pending::<()>().await };
    let selector = LeaderSelector::builder(&one, "/o/selector", lead).id("one").start();
    selector.wait_for(|_| selector.has_leadership()).await;
    let _mutex = InterProcessMutex::new(&one, "/o/mutex").acquire().await.unwrap();
    let lock = InterProcessReadWriteLock::new(&one, "/o/rw");
    let _readers = (lock.acquire_read().await.unwrap(), lock.acquire_read().await.unwrap());
    let lease = InterProcessSemaphore::new(&one, "/o/semaphore", 1).acquire().await.unwrap();
    let _waiting =
        tokio::spawn(async move { InterProcessSemaphore::new(&two, "/o/semaphore", 1).acquire().await });
    let _unfair = UnfairElection::new(&one, "/o/unfair", "one").campaign().await.unwrap();

    let latch = world.group_when("/o/latch", |group| group["waiting"] == 1).await;
    assert_eq!(latch["holder"]["id"], "one");
    assert_eq!(latch["queue"][1]["id"], "two");
    assert_eq!((&latch["queue"][0]["place"], &latch["queue"][1]["holds"]), (&json!(1), &json!(false)));
    let semaphore = world.group_when("/o/semaphore", |group| group["waiting"] == 1).await;
    assert_eq!(semaphore["holder"]["token"], lease.token().to_string());
    assert_eq!(semaphore["queue"].as_array().unwrap().len(), 2, "{semaphore}");
    let expected = [
        ("/o/latch", "latch", 1, 1, "fence"),
        ("/o/mutex", "mutex", 1, 0, "expire"),
        ("/o/rw", "read_write", 2, 0, "expire"),
        ("/o/selector", "selector", 1, 0, "fence"),
        ("/o/semaphore", "semaphore", 1, 1, "expire"),
        ("/o/unfair", "election", 1, 0, "expire"),
    ];
    for (path, kind, holding, waiting, way) in expected {
        let group = world.group(path);
        let holds = group["queue"].as_array().unwrap().iter().filter(|one| one["holds"] == true).count();
        let found = (&group["kind"], &group["made_by"], holds, &group["waiting"], &group["hand_over"]["way"]);
        assert_eq!(found, (&json!(kind), &json!("ostler"), holding, &json!(waiting), &json!(way)), "{group}");
        assert_eq!(
            (&group["confidence"], group["alarms"].as_array().unwrap().len()),
            (&json!("sure"), 0),
            "{group}"
        );
        assert_eq!(group["holder"]["session"], format!("{}", one.session_id().unwrap()));
        assert!(group["holder"]["address"].as_str().unwrap().starts_with("127.0.0.1:"), "{group}");
        assert!(group["queue"][0]["silent_for_ms"].is_u64(), "{group}");
    }
    let owns = &world.group("/o/mutex")["hand_over"]["owns"];
    assert_eq!(owns.as_array().unwrap().len(), 7, "{owns}");
    assert_eq!(paths(&world, ""), expected.map(|(path, ..)| path));
}

fn paths(world: &World, query: &str) -> Vec<String> {
    let (status, list) = world.get(&format!("/recipes{query}"));
    assert_eq!(status, 200, "{list}");
    list["items"].as_array().unwrap().iter().map(|item| item["path"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mutex_whose_program_waits_for_it_can_be_revoked() {
    let world = World::start().await;
    let client = world.client().await;
    let guard = InterProcessMutex::new(&client, "/mutex").acquire().await.unwrap();
    let asked = tokio::spawn(async move {
        guard.revocation_requested().await.unwrap();
        guard
    });
    let group = world.group_when("/mutex", |group| group["hand_over"]["way"] == "revoke").await;
    assert_eq!(world.hand_over("/mutex", "fence").0, 409);
    let (status, answer) = world.hand_over("/mutex", "revoke");
    assert_eq!((status, &answer["done"]), (200, &json!(true)), "{answer}");
    let guard = asked.await.unwrap();
    assert_eq!(guard.node(), group["holder"]["path"].as_str().unwrap(), "the holder decides when to release");
    guard.release().await.unwrap();
}

/// Names and data of clients go out as text in JSON, whatever they are.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_ids_are_text() {
    let world = World::start().await;
    let client = world.client().await;
    let hostile = "<img src=x onerror=alert(1)>\"'\u{202e}</script>";
    let path = "/<b>&\"quoted'";
    let latch = LeaderLatch::new(&client, path, hostile);
    latch.start();
    latch.wait_for_leadership().await.unwrap();
    let (_, list) = world.get("/recipes");
    assert_eq!(
        (&list["items"][0]["path"], &list["items"][0]["holder"]["id"]),
        (&json!(path), &json!(hostile))
    );
    client.create("/locks", b"").await.unwrap();
    client.create("/locks/lock-", b"\x12\x34\xff").ephemeral_sequential().await.unwrap();
    let long = client
        .create("/locks/lock-", &("x".to_owned() + &"ä".repeat(10_000)))
        .ephemeral_sequential()
        .await
        .unwrap();
    let group = world.group_when("/locks", |group| group["waiting"] == 1).await;
    assert_eq!(group["queue"][0]["id"], Value::Null, "no text");
    let shown = group["queue"][1]["id"].as_str().unwrap();
    assert!(shown.starts_with("xä") && shown.chars().count() <= 200, "{} {shown}", long.path);
    assert_eq!(group["alarms"][0]["kind"], "same_session");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_have_pages_and_filters() {
    let world = World::start().await;
    assert_eq!(world.get("/recipes").1["rules"].as_array().unwrap().len(), 11, "nothing is recognised");
    let client = world.client().await;
    for parent in ["/a", "/b", "/b/c", "/d"] {
        client.create(parent, b"").await.unwrap();
        client.create(&format!("{parent}/n_"), b"host").ephemeral_sequential().await.unwrap();
    }
    client.create("/d/n_", b"host").ephemeral_sequential().await.unwrap();
    // A znode that no session's end deletes, before others.
    client.create("/e", b"").await.unwrap();
    client.create("/e/lock-", b"").sequential().await.unwrap();
    client.create("/e/lock-", b"").ephemeral_sequential().await.unwrap();
    world.group_when("/e", |group| group["waiting"] == 2).await;
    assert_eq!(paths(&world, ""), ["/a", "/b", "/b/c", "/d", "/e"]);
    assert_eq!(paths(&world, "?under=/b"), ["/b", "/b/c"]);
    assert_eq!(world.get("/recipes").1["rules"], json!([]));
    assert_eq!(paths(&world, "?kind=mutex"), ["/e"]);
    assert_eq!(paths(&world, "?alarm=any"), ["/d", "/e"]);
    assert_eq!(paths(&world, "?alarm=no_holder"), ["/e"]);
    let (_, first) = world.get("/recipes?limit=3");
    assert_eq!((first["items"].as_array().unwrap().len(), &first["total"]), (3, &json!(5)));
    let (_, rest) = world.get(&format!("/recipes?limit=3&cursor={}", first["next"].as_str().unwrap()));
    assert_eq!(
        (&rest["items"][0]["path"], &rest["next"], &rest["truncated"]),
        (&json!("/d"), &Value::Null, &json!(false))
    );
    let stuck = world.group("/e");
    assert_eq!(
        (&stuck["holder"], &stuck["waiting"], &stuck["hand_over"]["way"]),
        (&Value::Null, &json!(2), &json!("none"))
    );
    assert_eq!(stuck["queue"][0]["session"], Value::Null);
    for wrong in ["?kind=x", "?alarm=x", "?limit=0", "?limit=1001", "?limit=x", "?cursor=!", "?under=x"] {
        let (status, answer) = world.get(&format!("/recipes{wrong}"));
        assert_eq!((status, &answer["code"]), (400, &json!("BAD_REQUEST")), "{wrong} {answer}");
    }
    for (path, status) in [("/none", 404), ("x", 400), ("/a/n_0000000000", 404)] {
        assert_eq!(world.get(&format!("/recipes/group?path={path}")).0, status, "{path}");
    }
}

/// The console counts what it has seen.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn handovers_are_counted() {
    let world = World::start().await;
    let client = world.client().await;
    let lock = InterProcessMutex::new(&client, "/mutex");
    let guard = lock.acquire().await.unwrap();
    let first = world.group("/mutex");
    assert_eq!(first["handovers_last_hour"], 0);
    guard.release().await.unwrap();
    let guard = lock.acquire().await.unwrap();
    let second =
        world.group_when("/mutex", |group| group["holder"]["token"] != first["holder"]["token"]).await;
    assert_eq!(
        (&second["handovers_last_hour"], &second["holder"]["token"]),
        (&json!(1), &json!(guard.token().to_string()))
    );
}
