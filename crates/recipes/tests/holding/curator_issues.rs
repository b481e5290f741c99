//! Known bugs of Curator's recipes, by their numbers: each fails here if the bug is put in.

use crate::world::{Recipe, SESSION, World, connect, patiently};
use ostler_client::{Client, ConnectionState, Session, paths};
use ostler_recipes::{
    fencing::Fence,
    leader::{LeaderChange, LeaderLatch, LeaderSelector, Leadership, SelectorState},
    lock::{InterProcessMutex, InterProcessReadWriteLock, InterProcessSemaphore, Owner},
};
use ostler_testkit::{CutPoint, FrameProxy, HeldFrame, SeenFrame};
use std::time::Duration;
use tokio::time::{advance, pause, resume, sleep};

async fn wait_for_state(client: &Client, wanted: ConnectionState) {
    let mut states = client.states();
    while patiently(wanted, states.next()).await.unwrap().state != wanted {}
}

fn is_op(seen: &SeenFrame, wanted: &str) -> bool {
    matches!(seen, SeenFrame::Request { op: Some(op), .. } if format!("{op:?}").starts_with(wanted))
}

/// How many creates of children have gone through a proxy.
fn creates(proxy: &FrameProxy) -> usize {
    proxy.seen().iter().filter(|seen| is_op(seen, "Create")).count()
}

async fn leads_again(changes: &mut ostler_recipes::leader::LeaderChanges) -> Fence {
    loop {
        match patiently("leads again", changes.next()).await {
            Some(LeaderChange::IsLeader(fence)) => return fence,
            Some(LeaderChange::NotLeader) => {}
            None => panic!("the latch has ended"),
        }
    }
}

/// The clients' time passes at once, and the servers' does not: a session is over for its client, and at the server it
/// lives on until somebody says otherwise.
async fn pass_time_for_clients(time: Duration) {
    pause();
    advance(time).await;
    resume();
}

/// The servers are down until a leader's session is over for its client, and come back with its old znode still there:
/// it led again by that znode, which then expired under it.
#[tokio::test]
async fn curator_696_a_latch_does_not_lead_by_the_znode_of_a_session_that_is_over() {
    let mut world = World::start().await;
    let client = world.client().await;
    let latch = LeaderLatch::new(&client, "/latch", "a");
    let mut changes = latch.changes();
    latch.start();
    let old = leads_again(&mut changes).await;
    world.server.kill().await;
    pass_time_for_clients(SESSION).await;
    patiently("over", old.session().ended()).await;
    world.server.restart().await.unwrap();
    tokio::select! {
        new = leads_again(&mut changes) => panic!("leads by {} with {} there", new.node(), old.node()),
        () = world.until("waits behind the old one", |c| (c.ephemerals, c.watches) == (2, 1)) => {}
    }
    world.server.expire(old.session().id()).await.unwrap();
    let new = leads_again(&mut changes).await;
    assert_ne!(new.node(), old.node());
    new.verify().await.unwrap();
}

/// A znode is created, and the reply does not come before the session is over. The server comes back, and the znode is
/// still there. Gives its session.
async fn lose_the_reply(world: &mut World, client: &Client, mut reply: HeldFrame) -> Session {
    reply.reached().await.unwrap();
    let session = client.session().await.unwrap();
    world.server.kill().await;
    reply.cut();
    pass_time_for_clients(SESSION).await;
    patiently("over", session.ended()).await;
    world.server.restart().await.unwrap();
    session
}

/// The contender with the lowest number. The next session's znode may be there already.
async fn oldest_contender(client: &Client, path: &str) -> String {
    let names = client.get_children(path).await.unwrap();
    let number = |name: &String| name[name.len() - 10..].to_owned();
    names.into_iter().min_by_key(number).expect("a contender has a znode")
}

/// Likewise for a lock: the znode that is about to go with its session was taken for the new one's.
#[tokio::test]
async fn curator_604_a_mutex_is_not_acquired_by_the_znode_of_a_session_that_is_over() {
    let mut world = World::start().await;
    let (proxy, client) = world.proxied().await;
    let created = proxy.hold_at(CutPoint::BeforeReply(1));
    world.client().await.create("/a", b"").await.unwrap();
    let mutex = InterProcessMutex::new(&client, "/a");
    let mut acquiring = tokio::spawn(async move { mutex.acquire().await });
    let session = lose_the_reply(&mut world, &client, created).await;
    let observer = world.client().await;
    let old = oldest_contender(&observer, "/a").await;
    tokio::select! {
        guard = &mut acquiring => panic!("acquired by {} with {old} there", guard.unwrap().unwrap().node()),
        () = world.until("waits behind the old one", |c| (c.ephemerals, c.watches) == (2, 2)) => {}
    }
    world.server.expire(session.id()).await.unwrap();
    let guard = patiently("acquired", acquiring).await.unwrap().unwrap();
    assert!(!guard.node().ends_with(&old));
    let owner = observer.exists(guard.node()).await.unwrap().unwrap().ephemeral_owner;
    assert_eq!(Some(owner), client.session_id().map(|session| session.0));
    guard.fence().verify().await.unwrap();
    guard.release().await.unwrap();
}

/// Protection found the znode of the session before: as CURATOR-604, for the latch.
#[tokio::test]
async fn curator_498_a_latch_does_not_take_the_znode_of_a_session_that_is_over_for_its_own() {
    let mut world = World::start().await;
    let (proxy, client) = world.proxied().await;
    world.client().await.create("/latch", b"").await.unwrap();
    let created = proxy.hold_at(CutPoint::BeforeReply(1));
    let latch = LeaderLatch::new(&client, "/latch", "");
    latch.start();
    let session = lose_the_reply(&mut world, &client, created).await;
    let observer = world.client().await;
    tokio::select! {
        // The client deletes what it may have made, and that may come first.
        fence = latch.wait_for_leadership() => {
            let node = fence.unwrap().node().to_owned();
            let owner = observer.exists(&node).await.unwrap().map(|stat| stat.ephemeral_owner);
            let all = observer.get_children("/latch").await.unwrap();
            let is_own = owner == client.session_id().map(|session| session.0);
            assert!(is_own && all == [paths::name(&node)], "leads by {node}, of an earlier session: {all:?}");
        }
        () = world.until("waits behind the old one", |c| (c.ephemerals, c.watches) == (2, 1)) => {}
    }
    world.server.expire(session.id()).await.unwrap();
    let fence = patiently("leads", latch.wait_for_leadership()).await.unwrap();
    assert_eq!(world.client().await.get_children("/latch").await.unwrap().len(), 1);
    fence.verify().await.unwrap();
}

/// Two reconnects in quick succession: the second one deleted the znode by which the first had made it lead.
#[tokio::test]
async fn curator_620_reconnects_in_quick_succession_leave_one_leader_with_a_znode() {
    let world = World::start().await;
    let (proxy, client) = world.proxied().await;
    let latch = LeaderLatch::new(&client, "/latch", "a");
    latch.start();
    let first = patiently("leads", latch.wait_for_leadership()).await.unwrap();
    let other = world.client().await;
    let second = LeaderLatch::new(&other, "/latch", "b");
    second.start();
    world.until("both", |c| (c.ephemerals, c.watches) == (2, 2)).await;
    for _ in 0..10 {
        // Each cut falls into what the reconnect before it has set going, at another place of it.
        for step in 1..4 {
            proxy.cut_now();
            wait_for_state(&client, ConnectionState::Reconnected).await;
            for _ in 0..step {
                tokio::task::yield_now().await;
            }
        }
        let fence = patiently("leads again", async {
            loop {
                match latch.leadership() {
                    Some(fence) => return fence,
                    None => sleep(Duration::from_millis(1)).await,
                }
            }
        })
        .await;
        assert_eq!(fence.node(), first.node());
        assert!(other.exists(fence.node()).await.unwrap().is_some());
        assert!(!second.has_leadership());
    }
    assert_eq!(other.get_children("/latch").await.unwrap().len(), 2);
}

/// Both lose their connections and come back; each gave up its znode while the other one looked.
#[tokio::test]
async fn curator_653_after_both_have_reconnected_one_leads() {
    let world = World::start().await;
    let (proxy, a) = world.proxied().await;
    let b = connect(&proxy.connect_string(), SESSION).await;
    let (first, second) = (LeaderLatch::new(&a, "/latch", "a"), LeaderLatch::new(&b, "/latch", "b"));
    first.start();
    let fence = patiently("leads", first.wait_for_leadership()).await.unwrap();
    second.start();
    world.until("both", |c| (c.ephemerals, c.watches) == (2, 2)).await;
    let observer = world.client().await;
    let before = observer.get_children("/latch").await.unwrap();
    for _ in 0..10 {
        proxy.cut_now();
        a.wait_connected().await.unwrap();
        b.wait_connected().await.unwrap();
        assert!(!second.has_leadership());
        let again = patiently("leads", first.wait_for_leadership()).await.unwrap();
        assert_eq!(again.node(), fence.node());
        again.verify().await.unwrap();
    }
    let mut after = observer.get_children("/latch").await.unwrap();
    after.sort();
    let mut before = before;
    before.sort();
    assert_eq!(before, after, "both have kept their places");
    first.close().await;
    patiently("the other", second.wait_for_leadership()).await.unwrap();
}

/// A reconnect made a latch throw its znode away and create another, once for each event.
#[tokio::test]
async fn curator_644_a_reconnect_to_the_same_session_creates_nothing() {
    let world = World::start().await;
    let (proxy, client) = world.proxied().await;
    let latch = LeaderLatch::new(&client, "/latch", "");
    let mut changes = latch.changes();
    latch.start();
    let first = leads_again(&mut changes).await;
    let made = creates(&proxy);
    for _ in 0..5 {
        proxy.cut_now();
        assert!(matches!(patiently("told", changes.next()).await, Some(LeaderChange::NotLeader)));
        assert_eq!(leads_again(&mut changes).await.node(), first.node());
    }
    assert_eq!(creates(&proxy), made);
}

/// Two latches never saw each other's znodes and created new ones for ever, when one of them was lost.
#[tokio::test]
async fn curator_645_two_latches_settle_when_the_leader_goes() {
    let world = World::start().await;
    let (proxy, a) = world.proxied().await;
    let b = connect(&proxy.connect_string(), SESSION).await;
    let leader = LeaderLatch::new(&world.client().await, "/latch", "leader");
    leader.start();
    patiently("leads", leader.wait_for_leadership()).await.unwrap();
    let (first, second) = (LeaderLatch::new(&a, "/latch", "a"), LeaderLatch::new(&b, "/latch", "b"));
    first.start();
    world.until("first", |c| (c.ephemerals, c.watches) == (2, 2)).await;
    second.start();
    world.until("second", |c| (c.ephemerals, c.watches) == (3, 3)).await;
    // Both reconnect while the leader goes.
    proxy.cut_now();
    leader.close().await;
    patiently("leads", first.wait_for_leadership()).await.unwrap();
    world.until("settled", |c| (c.ephemerals, c.watches) == (2, 2)).await;
    assert_eq!(creates(&proxy), 2, "one znode for each");
}

/// Whoever was before them has gone when they come to watch it.
#[tokio::test]
async fn curator_645_two_latches_settle_when_the_leader_goes_before_it_is_watched() {
    for cut in [false, true] {
        let world = World::start().await;
        let leader = LeaderLatch::new(&world.client().await, "/latch", "leader");
        leader.start();
        patiently("leads", leader.wait_for_leadership()).await.unwrap();
        let (mut latches, mut looks) = (Vec::new(), Vec::new());
        for id in ["a", "b"] {
            let (proxy, client) = world.proxied().await;
            // After the create it looks at the queue.
            let mut look = proxy.hold_at(CutPoint::BeforeReply(2));
            let latch = LeaderLatch::new(&client, "/latch", id);
            latch.start();
            patiently(id, look.reached()).await.unwrap();
            latches.push((latch, proxy, client));
            looks.push(look);
        }
        leader.close().await;
        for look in looks {
            if cut {
                look.cut();
            } else {
                look.pass();
            }
        }
        world.until("settled", |c| (c.ephemerals, c.watches) == (2, 2)).await;
        for (latch, proxy, _) in &latches {
            assert_eq!(creates(proxy), 1, "{}: one znode for each", latch.id());
        }
        patiently("leads", latches[0].0.wait_for_leadership()).await.unwrap();
    }
}

/// After a restore of the servers without the election's znode, nobody created it again.
#[tokio::test]
async fn curator_724_a_latch_recovers_when_the_path_itself_is_gone() {
    let world = World::start().await;
    let other = world.client().await;
    let (proxy, client) = world.proxied().await;
    let latch = LeaderLatch::new(&client, "/some/latch", "");
    let mut changes = latch.changes();
    latch.start();
    let first = leads_again(&mut changes).await;
    // Gone with its session while it was away.
    proxy.block();
    wait_for_state(&client, ConnectionState::Suspended).await;
    world.expire(&client).await;
    other.delete("/some").deleting_children().await.unwrap();
    proxy.heal();
    let second = leads_again(&mut changes).await;
    assert!(second.token() > first.token());
    // Gone while its session lives, and while nobody was away. All at once: it would come back between two deletes.
    let all = other.multi().delete(second.node()).delete("/some/latch").delete("/some");
    all.await.unwrap();
    let third = leads_again(&mut changes).await;
    assert!(third.token() > second.token());
    third.verify().await.unwrap();
    // And while it waits behind somebody.
    let behind = LeaderLatch::new(&other, "/some/latch", "");
    behind.start();
    world.until("behind", |c| (c.ephemerals, c.watches) == (2, 2)).await;
    other.delete("/some").deleting_children().await.unwrap();
    patiently("one of them leads", async {
        tokio::select! {
            leads = latch.wait_for_leadership() => drop(leads.unwrap()),
            leads = behind.wait_for_leadership() => drop(leads.unwrap()),
        }
    })
    .await;
    world.until("both have come back", |c| (c.ephemerals, c.watches) == (2, 2)).await;
    assert!(!(latch.has_leadership() && behind.has_leadership()));
}

/// When a server was lost, selectors left old znodes behind for which everybody waited, and had several each.
#[tokio::test]
async fn curator_188_selectors_leave_no_old_znodes_behind() {
    let mut world = World::start().await;
    let mut selectors = Vec::new();
    for number in 0..3 {
        let client = world.client().await;
        let lead = |_: Leadership| std::future::pending();
        let selector = LeaderSelector::builder(&client, "/selector", lead).id(&number.to_string());
        selectors.push((selector.auto_requeue().start(), client));
        world.until("queued", move |c| c.ephemerals == number + 1).await;
    }
    let observer = world.client().await;
    for round in 0..4 {
        world.server.kill().await;
        for (_, client) in &selectors {
            wait_for_state(client, ConnectionState::Suspended).await;
        }
        assert!(selectors.iter().all(|(selector, _)| !selector.has_leadership()));
        world.server.restart().await.unwrap();
        patiently(round, async {
            loop {
                let leading = selectors.iter().filter(|(selector, _)| selector.has_leadership()).count();
                assert!(leading <= 1);
                let nodes = observer.get_children("/selector").await.unwrap_or_default().len();
                if leading == 1 && nodes == 3 {
                    return;
                }
                sleep(Duration::from_millis(2)).await;
            }
        })
        .await;
    }
    for (selector, _) in &selectors {
        selector.close().await;
    }
    world.until_clean("selectors").await;
}

/// A selector whose attempt failed stood still, and nobody could see that.
#[tokio::test]
async fn curator_15_a_selector_that_cannot_contend_says_so() {
    let world = World::start().await;
    let client = world.client().await;
    client.create("/ephemeral", b"").ephemeral().await.unwrap();
    let selector =
        LeaderSelector::builder(&client, "/ephemeral", |_: Leadership| async {}).auto_requeue().start();
    let state = patiently("idle", selector.wait_for(|state| matches!(state, SelectorState::Idle(_)))).await;
    let SelectorState::Idle(Some(error)) = state else { panic!("{state:?}") };
    assert!(error.to_string().contains("NoChildrenForEphemerals"), "{error}");
    let latch = LeaderLatch::new(&client, "/ephemeral", "");
    latch.start();
    let error = patiently("told", latch.wait_for_leadership()).await.unwrap_err();
    assert!(error.to_string().contains("NoChildrenForEphemerals"), "{error}");
}

/// A release that meets a connection loss must not leave the znode, for which its own process then waited.
#[tokio::test]
async fn curator_595_and_678_a_release_that_meets_connection_loss_leaves_no_znode() {
    let world = World::start().await;
    // No connection at all, or none from its first request on.
    let losses = [None, Some(CutPoint::BeforeRequest(1)), Some(CutPoint::BeforeReply(1))];
    for (recipe, loss) in Recipe::ALL.into_iter().flat_map(|recipe| losses.map(|loss| (recipe, loss))) {
        let (proxy, client) = world.proxied().await;
        let held = recipe.hold(&client, "/a").await.unwrap();
        if let Some(loss) = loss {
            proxy.reset();
            proxy.cut_at(loss);
            patiently(recipe, held.release()).await;
        } else {
            proxy.block();
            patiently(recipe, held.fence.session().suspended()).await;
            // For longer than anybody would wait for the release.
            let _ = tokio::time::timeout(Duration::from_millis(50), held.release()).await;
            proxy.heal();
        }
        let again = patiently(recipe, recipe.hold(&client, "/a")).await.unwrap();
        again.release().await;
        world.until_clean(recipe).await;
        world.client().await.delete("/a").deleting_children().quietly().await.unwrap();
    }
}

/// A writer that became a reader let those pass who had waited for the write lock.
#[tokio::test]
async fn curator_621_and_276_a_downgrade_lets_no_writer_in() {
    let world = World::start().await;
    let (a, b, c) = (world.client().await, world.client().await, world.client().await);
    let lock = InterProcessReadWriteLock::new(&a, "/rw");
    let writer = lock.acquire_write().await.unwrap();
    let waiting =
        tokio::spawn(async move { InterProcessReadWriteLock::new(&b, "/rw").acquire_write().await });
    world.until("waits", |n| (n.ephemerals, n.watches) == (2, 1)).await;
    let token = writer.token();
    let reader = patiently("downgraded", writer.downgrade()).await.unwrap();
    assert_eq!(lock.writer_nodes().await.unwrap().len(), 1);
    // Another reader comes after the writer that waits.
    let late = tokio::spawn(async move { InterProcessReadWriteLock::new(&c, "/rw").acquire_read().await });
    world.until("both wait", |n| (n.ephemerals, n.watches) == (3, 2)).await;
    assert!(!waiting.is_finished() && !late.is_finished());
    assert!(reader.is_held());
    assert_eq!(reader.fence().token(), token, "not larger than that of the writer who waits");
    reader.fence().verify().await.unwrap();
    reader.release().await.unwrap();
    let next = patiently("the next writer", waiting).await.unwrap().unwrap();
    assert!(next.token() > token && !late.is_finished());
    next.release().await.unwrap();
    patiently("the late reader", late).await.unwrap().unwrap().release().await.unwrap();
    world.until_clean("downgrade").await;
}

/// A contender waited for a child of the lock that is no contender.
#[tokio::test]
async fn curator_43_other_znodes_below_a_lock_are_not_waited_for() {
    let world = World::start().await;
    let client = world.client().await;
    client.create("/a/0", b"").creating_parents().await.unwrap();
    for recipe in [Recipe::Mutex, Recipe::Write, Recipe::Read, Recipe::Latch, Recipe::Selector] {
        patiently(recipe, recipe.hold(&client, "/a")).await.unwrap().release().await;
    }
}

/// A semaphore's lease stayed when the wait for it was interrupted, or the connection lost in it.
#[tokio::test]
async fn curator_335_and_462_a_lease_that_was_waited_for_in_vain_is_returned() {
    let world = World::start().await;
    let (proxy, client) = world.proxied().await;
    let other = world.client().await;
    let semaphore = InterProcessSemaphore::new(&client, "/s", 1);
    let lease = InterProcessSemaphore::new(&other, "/s", 1).acquire().await.unwrap();
    for cut in [false, true] {
        let waiting = semaphore.acquire_within(Duration::from_millis(200));
        if cut {
            proxy.block();
        }
        assert!(waiting.await.unwrap().is_none());
        proxy.heal();
        world.until("nothing is left of it", |c| (c.ephemerals, c.watches) == (1, 0)).await;
    }
    lease.release().await.unwrap();
    patiently("free again", semaphore.acquire()).await.unwrap().release().await.unwrap();
    world.until_clean("semaphore").await;
}

/// A second acquisition through another object of the same lock waited for the first one. Here the object and its
/// clones share what an owner holds; another object is another lock to it, as in Curator, and says so by waiting.
#[tokio::test]
async fn netflix_75_clones_of_a_lock_are_one_lock_to_its_owner() {
    let world = World::start().await;
    let client = world.client().await;
    let (lock, me) = (InterProcessMutex::new(&client, "/a"), Owner::new());
    let guard = lock.acquire_as(&me).await.unwrap();
    let again = patiently("at once", lock.clone().acquire_as(&me)).await.unwrap();
    let another = InterProcessMutex::new(&client, "/a");
    assert!(another.acquire_as_within(&me, Duration::from_millis(50)).await.unwrap().is_none());
    guard.release().await.unwrap();
    again.release().await.unwrap();
}
