//! Refusals of the servers reach the caller, and nothing is asked for again that is refused for good.

use crate::{
    servers::all_but,
    world::{Recipe, SESSION, World, builder, code, connect, patiently},
};
use ostler_client::{Client, ErrorCode, Perms, RetryPolicy};
use ostler_recipes::{Error, leader::UnfairElection, lock::InterProcessMutex};
use ostler_testkit::{CutPoint, FrameProxy, Op, SeenFrame, TestEnsemble, TestOptions, TestServer};
use std::{sync::Arc, time::Duration};
use tokio::task::{JoinSet, LocalSet};

const QUEUE: &str = "/mutex";

fn requests(proxy: &FrameProxy, wanted: Op) -> usize {
    let is_wanted =
        |seen: &&SeenFrame| matches!(seen, SeenFrame::Request { op: Some(op), .. } if *op == wanted);
    proxy.seen().iter().filter(is_wanted).count()
}

#[tokio::test]
async fn a_queue_that_takes_nobody_is_asked_once() {
    let world = World::start().await;
    let (proxy, ours) = world.proxied().await;
    let other = world.client().await;
    other.create(QUEUE, b"").acl(&all_but(Perms::CREATE)[..]).await.unwrap();
    let refused = patiently("refused", InterProcessMutex::new(&ours, QUEUE).acquire()).await;
    assert_eq!(code(&refused), Some(ErrorCode::NoAuth), "{refused:?}");
    assert_eq!(requests(&proxy, Op::Create2), 1);
}

#[tokio::test]
async fn a_queue_that_cannot_be_read_holds_nothing() {
    let world = World::start().await;
    let client = world.client().await;
    client.create(QUEUE, b"").acl(&all_but(Perms::READ)[..]).await.unwrap();
    let mutex = InterProcessMutex::new(&client, QUEUE);
    let refused = patiently("refused", mutex.acquire()).await;
    assert_eq!(code(&refused), Some(ErrorCode::NoAuth), "{refused:?}");
    let refused = mutex.participant_nodes().await;
    assert_eq!(code(&refused), Some(ErrorCode::NoAuth), "{refused:?}");
}

/// Whoever stands before us cannot be watched, so nobody would say when it is our turn.
#[tokio::test]
async fn a_znode_before_ours_that_cannot_be_read_ends_the_wait() {
    // The next of a mutex looks at its own znode as well.
    for recipe in [Recipe::Mutex, Recipe::Write] {
        let world = World::start().await;
        let (client, other) = (world.client().await, world.client().await);
        let held = recipe.hold(&other, QUEUE).await.unwrap();
        other.set_acl(held.fence.node(), &all_but(Perms::READ)).await.unwrap();
        let refused = patiently("refused", recipe.hold(&client, QUEUE)).await;
        assert_eq!(code(&refused), Some(ErrorCode::NoAuth), "{recipe:?}: {:?}", refused.err());
    }
}

#[tokio::test]
async fn an_own_znode_that_cannot_be_read_ends_the_wait() {
    let world = World::start().await;
    let other = world.client().await;
    let _held = Recipe::Mutex.hold(&other, QUEUE).await.unwrap();
    let proxy = FrameProxy::start(world.server.address()).await.unwrap();
    let unreadable = builder(&proxy.connect_string(), SESSION).default_acl(all_but(Perms::READ));
    let client = unreadable.connect().await.unwrap();
    let refused = patiently("refused", InterProcessMutex::new(&client, QUEUE).acquire()).await;
    assert_eq!(code(&refused), Some(ErrorCode::NoAuth), "{refused:?}");
    assert_eq!(requests(&proxy, Op::Create2), 1, "it does not count as deleted");
}

/// It is held as before then.
#[tokio::test]
async fn a_release_that_is_refused_says_so() {
    let world = World::start().await;
    let (client, other) = (world.client().await, world.client().await);
    let guard = InterProcessMutex::new(&client, QUEUE).acquire().await.unwrap();
    let node = guard.fence().node().to_owned();
    other.set_acl(QUEUE, &all_but(Perms::DELETE)).await.unwrap();
    let refused = patiently("refused", guard.release()).await;
    assert_eq!(code(&refused), Some(ErrorCode::NoAuth), "{refused:?}");
    assert!(other.exists(&node).await.unwrap().is_some());
}

/// The znode went with it, and that is all that a release is for.
#[tokio::test]
async fn a_release_after_the_end_of_the_session_succeeds() {
    let world = World::start().await;
    let client = world.client().await;
    let guard = InterProcessMutex::new(&client, QUEUE).acquire().await.unwrap();
    let session = guard.fence().session().clone();
    world.expire(&client).await;
    patiently("ended", session.ended()).await;
    patiently("released", guard.release()).await.unwrap();
}

/// By somebody's hand, with all that is in it: whoever waits there comes again.
#[tokio::test]
async fn a_queue_that_is_deleted_while_one_waits_is_made_anew() {
    let world = World::start().await;
    let (client, other) = (world.client().await, world.client().await);
    let held = Recipe::Mutex.hold(&other, QUEUE).await.unwrap();
    let waits = tokio::spawn({
        let mutex = InterProcessMutex::new(&client, QUEUE);
        async move { mutex.acquire().await }
    });
    let (nodes, watches) = Recipe::Mutex.with_one_waiting();
    world.until("one waits", move |c| c.ephemerals == nodes && c.watches == watches).await;
    let names = other.get_children(QUEUE).await.unwrap();
    let ours = names.iter().find(|name| !held.fence.node().ends_with(name.as_str())).unwrap();
    other.delete(&format!("{QUEUE}/{ours}")).await.unwrap();
    other.multi().delete(held.fence.node()).delete(QUEUE).await.unwrap();
    let guard = patiently("held", waits).await.unwrap().unwrap();
    guard.fence().verify().await.unwrap();
}

/// Another client deletes the znode of the next in the queue, and then that of the holder: the next is none any more, and
/// contends anew. Also if its connection was lost meanwhile.
#[tokio::test]
async fn the_next_whose_znode_is_deleted_before_the_holders_does_not_hold_by_it() {
    for cut in [false, true] {
        let world = World::start().await;
        let (proxy, client) = world.proxied().await;
        let other = world.client().await;
        let held = Recipe::Mutex.hold(&other, QUEUE).await.unwrap();
        let waits = tokio::spawn(async move { InterProcessMutex::new(&client, QUEUE).acquire().await });
        let expected = Recipe::Mutex.with_one_waiting();
        world.until("one waits", move |c| (c.ephemerals, c.watches) == expected).await;
        if cut {
            proxy.block();
        }
        let names = other.get_children(QUEUE).await.unwrap();
        let next = names.iter().find(|name| !held.fence.node().ends_with(name.as_str())).unwrap();
        let both = other.multi().delete(&format!("{QUEUE}/{next}")).delete(held.fence.node());
        both.create("/taken", b"").await.unwrap();
        proxy.heal();
        let guard = patiently("held", waits).await.unwrap().unwrap();
        assert!(!guard.node().ends_with(next.as_str()), "the znode {next} was deleted");
        guard.fence().verify().await.unwrap();
        guard.release().await.unwrap();
    }
}

/// Only that the znode goes is a loss.
#[tokio::test]
async fn data_of_the_holders_znode_may_change_while_it_is_held() {
    let world = World::start().await;
    let (client, other) = (world.client().await, world.client().await);
    for recipe in [Recipe::Mutex, Recipe::Unfair] {
        let held = recipe.hold(&client, "/a").await.unwrap();
        let lost = tokio::spawn({
            let fence = held.fence.clone();
            async move { fence.lost().await }
        });
        for _ in 0..2 {
            world.until("the holder watches", |c| c.watches == 1).await;
            // The watch is gone with it, until it is set anew.
            other.set_data(held.fence.node(), b"x").await.unwrap();
        }
        world.until("the holder watches", |c| c.watches == 1).await;
        assert!(!lost.is_finished(), "{recipe:?}");
        held.release().await;
        patiently(recipe, lost).await.unwrap();
        other.delete("/a").deleting_children().quietly().await.unwrap();
    }
}

/// The first time, and three times more.
#[tokio::test]
async fn a_check_without_an_answer_is_asked_for_as_often_as_the_policy_says() {
    // A proof that the session lives is a multi as well, and follows each reconnect. So there are none.
    let session = Duration::from_secs(3600);
    let options = TestOptions::new().session_timeouts(session, session);
    let server = TestServer::start_with(options).await.unwrap();
    let proxy = server.start_proxy().await.unwrap();
    let retry = RetryPolicy::times(3, Duration::from_millis(1));
    let client = Client::builder(&proxy.connect_string()).session_timeout(session).retry(retry);
    let client = client.prove_holding(false).connect().await.unwrap();
    let guard = InterProcessMutex::new(&client, QUEUE).acquire().await.unwrap();
    proxy.reset();
    // Every other request is a handshake.
    for number in (1..40).step_by(2) {
        proxy.cut_at(CutPoint::BeforeReply(number));
    }
    let asked = patiently("asked", guard.fence().verify()).await;
    match asked {
        Err(Error::Client(error)) if error.is_connection_trouble() => {}
        asked => panic!("{asked:?}"),
    }
    assert_eq!(requests(&proxy, Op::Multi), 4, "{:?}", proxy.seen());
    client.wait_connected().await.unwrap();
    proxy.reset();
    guard.fence().verify().await.unwrap();
}

/// A holder that does nothing else has the ensemble prove, again and again, that its session lives.
#[tokio::test]
async fn holder_has_its_session_proven_again_and_again() {
    // All at once: the session outlives a stall of a busy machine, so its proofs are rare.
    let mut proving = JoinSet::new();
    let here = LocalSet::new();
    for recipe in Recipe::ALL {
        let proven = async move {
            let world = World::start().await;
            let proxy = Arc::new(world.server.start_proxy().await.unwrap());
            let client = connect(&proxy.connect_string(), Duration::from_secs(6)).await;
            let held = recipe.hold(&client, "/a").await.unwrap();
            let (seen, before) = (proxy.clone(), requests(&proxy, Op::Multi));
            // The server commits each of them, which is when this is looked at again.
            world.until("two proofs", move |_| requests(&seen, Op::Multi) >= before + 2).await;
            assert!(held.fence.is_held(), "{recipe:?}");
            held.release().await;
        };
        proving.spawn_local_on(proven, &here);
    }
    here.run_until(proving.join_all()).await;
}

/// A server may not know yet that a session lives, so it is asked again, but not for ever.
#[tokio::test]
async fn a_session_that_lives_is_called_over_a_few_times() {
    let options = TestOptions::new().setting("localSessionsEnabled", "true");
    let ensemble = TestEnsemble::start_with(3, options).await.unwrap();
    ensemble.until_settled().await.unwrap();
    let leader = ensemble.leader().unwrap();
    let follower = ensemble.ids().into_iter().find(|id| *id != leader).unwrap();
    let proxy = FrameProxy::start(ensemble.member(follower).unwrap().address()).await.unwrap();
    let client = Client::builder(&proxy.connect_string()).connect().await.unwrap();
    client.create("/unfair", b"").await.unwrap();
    let unfair = UnfairElection::new(&client, "/unfair", "me");
    let refused = patiently("refused", unfair.campaign()).await.map(drop);
    assert_eq!(code(&refused), Some(ErrorCode::SessionExpired), "{refused:?}");
    assert_eq!(requests(&proxy, Op::Multi), 6, "{:?}", proxy.seen());
}
