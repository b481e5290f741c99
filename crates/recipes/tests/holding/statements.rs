//! The promises of ZooKeeper's papers and tutorials about elections and locks, one by one.

use crate::world::{Recipe, SESSION, World, connect, open_journal, patiently};
use ostler_client::{Client, ConnectionState};
use ostler_recipes::{
    Error,
    leader::{
        Acknowledgement, CloseMode, LatchState, LeaderChange, LeaderLatch, LeaderSelector, Leadership,
        SelectorState, UnfairElection,
    },
    lock::{InterProcessMutex, Owner},
};
use ostler_testkit::{CutPoint, FrameProxy, SeenFrame};
use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};
use tokio::sync::mpsc;

/// Many tasks over several clients take a lock again and again.
async fn contend(world: &World, recipe: Recipe, clients: usize, rounds: usize) {
    let inside = Arc::new(AtomicUsize::new(0));
    let mut tasks = Vec::new();
    for _ in 0..clients {
        let (client, inside) = (world.client().await, inside.clone());
        tasks.push(tokio::spawn(async move {
            for _ in 0..rounds {
                let held = recipe.hold(&client, "/contended").await.unwrap();
                assert_eq!(inside.fetch_add(1, SeqCst), 0, "{recipe:?}: two hold");
                assert!(held.fence.is_held());
                tokio::task::yield_now().await;
                inside.fetch_sub(1, SeqCst);
                held.release().await;
            }
            client.close().await;
        }));
    }
    for task in tasks {
        patiently(recipe, task).await.unwrap();
    }
    world.until_clean(recipe).await;
}

#[tokio::test]
async fn r1_at_most_one_holds_and_can_be_sure_of_it() {
    let world = World::start().await;
    for recipe in Recipe::ALL.into_iter().filter(|recipe| *recipe != Recipe::Read) {
        contend(&world, recipe, 5, 6).await;
        let client = world.client().await;
        client.delete("/contended").deleting_children().quietly().await.unwrap();
    }
}

#[tokio::test]
async fn r1_a_holder_can_take_the_lock_again() {
    let world = World::start().await;
    let client = world.client().await;
    let lock = InterProcessMutex::new(&client, "/a");
    let (me, you) = (Owner::new(), Owner::new());
    let first = lock.acquire_as(&me).await.unwrap();
    let second = lock.clone().acquire_as(&me).await.unwrap();
    let third = second.another_guard();
    assert_eq!((first.token(), first.node()), (third.token(), third.node()));
    assert!(lock.is_held_by(&me) && !lock.is_held_by(&you));
    assert!(lock.acquire_as_within(&you, Duration::from_millis(50)).await.unwrap().is_none());
    first.release().await.unwrap();
    drop(second);
    assert!(third.is_held() && third.fence().verify().await.is_ok(), "as often released as taken");
    third.release().await.unwrap();
    let yours = patiently("the other owner", lock.acquire_as(&you)).await.unwrap();
    assert!(!lock.is_held_by(&me));
    yours.release().await.unwrap();
    world.until_clean("reentrance").await;
}

#[tokio::test]
async fn r1_two_futures_of_one_owner_share_one_acquisition() {
    let world = World::start().await;
    let client = world.client().await;
    let lock = InterProcessMutex::new(&client, "/a");
    let me = Owner::new();
    let (one, two) = tokio::join!(lock.acquire_as(&me), lock.acquire_as(&me));
    let (one, two) = (one.unwrap(), two.unwrap());
    assert_eq!(one.node(), two.node());
    drop((one, two));
    world.until_clean("shared").await;
}

#[tokio::test]
async fn r1_death_releases_and_the_next_one_learns_of_it() {
    let world = World::start().await;
    for recipe in Recipe::ALL {
        let path = format!("/{recipe:?}");
        let (holder, next) = (world.client().await, world.client().await);
        let held = recipe.hold_first(&holder, &path).await;
        let waiting = tokio::spawn({
            let (next, path) = (next.clone(), path.clone());
            async move { recipe.hold(&next, &path).await.unwrap() }
        });
        let expected = recipe.with_one_waiting();
        world.until("in the queue", move |c| (c.ephemerals, c.watches) == expected).await;
        // Its session ends with it, without a word of release.
        holder.close().await;
        let taken = patiently(recipe, waiting).await.unwrap();
        assert!(taken.fence.verify().await.is_ok());
        assert!(!held.fence.is_held());
        taken.release().await;
        world.until_clean(recipe).await;
    }
}

#[tokio::test]
async fn r2_in_an_unfair_election_the_creator_of_the_znode_leads_and_the_others_watch_it() {
    let world = World::start().await;
    let mut waiting = Vec::new();
    let (to, mut won) = mpsc::unbounded_channel();
    let first = UnfairElection::new(&world.client().await, "/unfair", "first");
    let mut leadership = first.campaign().await.unwrap();
    assert_eq!(first.leader().await.unwrap().unwrap().id, "first");
    for number in 0..4 {
        let (client, to) = (world.client().await, to.clone());
        waiting.push(tokio::spawn(async move {
            let election = UnfairElection::new(&client, "/unfair", &format!("{number}"));
            to.send((number, election.campaign().await.unwrap(), client)).unwrap();
        }));
    }
    drop(to);
    world.until("all watch", |c| (c.ephemerals, c.watches) == (1, 4)).await;
    let mut kept = Vec::new();
    let mut leaders = Vec::new();
    for left in (0..4).rev() {
        let token = leadership.token();
        leadership.resign().await.unwrap();
        let (number, next, client) = patiently("the next", won.recv()).await.unwrap();
        assert!(next.token() > token);
        world.until("the others watch again", move |c| (c.ephemerals, c.watches) == (1, left)).await;
        leaders.push(number);
        kept.push(client);
        leadership = next;
    }
    leadership.resign().await.unwrap();
    leaders.sort_unstable();
    assert_eq!(leaders, [0, 1, 2, 3]);
    assert!(first.leader().await.unwrap().is_none());
    world.until_clean("unfair").await;
}

#[tokio::test]
async fn r3_in_a_fair_election_leading_goes_in_the_order_of_arrival() {
    let world = World::start().await;
    let mut latches = Vec::new();
    for number in 0..6 {
        let latch = LeaderLatch::new(&world.client().await, "/fair", &number.to_string());
        latch.start();
        // In the queue before the next one comes.
        world.until("in the queue", move |c| (c.ephemerals, c.watches) == (number + 1, number + 1)).await;
        latches.push(latch);
    }
    let ids: Vec<String> =
        latches[0].participants().await.unwrap().into_iter().map(|participant| participant.id).collect();
    assert_eq!(ids, ["0", "1", "2", "3", "4", "5"]);
    for (number, latch) in latches.iter().enumerate() {
        let before = world.server.counts().unwrap().events;
        patiently(number, latch.wait_for_leadership()).await.unwrap();
        assert!(latches[number + 1..].iter().all(|later| !later.has_leadership()));
        let leader = latch.leader().await.unwrap().unwrap();
        assert_eq!((leader.id, leader.is_leader), (number.to_string(), true));
        latch.close().await;
        if let Some(next) = latches.get(number + 1) {
            patiently(number, next.wait_for_leadership()).await.unwrap();
            let events = world.server.counts().unwrap().events - before;
            // One for whoever is next, and one for the leader that watched itself.
            assert!(events <= 2, "{events} events for one change");
        }
    }
}

/// The one before me dies while an older one still leads: I am not the leader by that.
#[tokio::test]
async fn r3_the_predecessors_death_does_not_make_a_leader() {
    let world = World::start().await;
    let (a, b, c) = (world.client().await, world.client().await, world.client().await);
    let mut latches = Vec::new();
    for (place, client) in [&a, &b, &c].into_iter().enumerate() {
        let latch = LeaderLatch::new(client, "/fair", "");
        latch.start();
        world.until("in the queue", move |n| (n.ephemerals, n.watches) == (place + 1, place + 1)).await;
        latches.push(latch);
    }
    b.close().await;
    world.until("c watches a", |n| (n.ephemerals, n.watches) == (2, 2)).await;
    assert!(latches[0].has_leadership() && !latches[2].has_leadership());
    latches[0].close().await;
    patiently("c", latches[2].wait_for_leadership()).await.unwrap();
}

#[tokio::test]
async fn r4_a_leader_says_that_it_has_run_its_procedure() {
    let world = World::start().await;
    let (client, follower) = (world.client().await, world.client().await);
    let ready = Acknowledgement::new(&follower, "/ready/election");
    let waiting = tokio::spawn({
        let ready = ready.clone();
        async move { ready.wait().await }
    });
    let latch = LeaderLatch::new(&client, "/election", "one");
    latch.start();
    let fence = patiently("leads", latch.wait_for_leadership()).await.unwrap();
    assert_eq!(ready.now().await.unwrap(), None, "it leads, and has not said so");
    let of_leader = Acknowledgement::new(&client, "/ready/election");
    of_leader.acknowledge(&fence, "port 80").await.unwrap();
    let said = patiently("acknowledged", waiting).await.unwrap().unwrap();
    assert_eq!((said.token, &*said.leader, &*said.data), (fence.token(), fence.node(), &b"port 80"[..]));

    // It is void when the leader is gone, even though its session lives and the znode with it.
    latch.close().await;
    assert!(client.exists("/ready/election").await.unwrap().is_some());
    assert_eq!(ready.now().await.unwrap(), None);
    assert!(of_leader.acknowledge(&fence, "late").await.unwrap_err().is_not_held());

    let next = LeaderLatch::new(&follower, "/election", "two");
    next.start();
    let fence = patiently("leads", next.wait_for_leadership()).await.unwrap();
    assert_eq!(ready.now().await.unwrap(), None);
    ready.acknowledge(&fence, "port 81").await.unwrap();
    assert_eq!(patiently("acknowledged", of_leader.wait()).await.unwrap().data, "port 81");
    ready.withdraw(&fence).await.unwrap();
    assert_eq!(of_leader.now().await.unwrap(), None);
}

#[tokio::test]
async fn r5_a_create_whose_reply_is_lost_leaves_no_orphan() {
    let world = World::start().await;
    let other = world.client().await;
    other.create("/a", b"").await.unwrap();
    let (proxy, ours) = world.proxied().await;
    proxy.cut_at(CutPoint::BeforeReply(1));
    let guard = patiently("found again", InterProcessMutex::new(&ours, "/a").acquire()).await.unwrap();
    assert_eq!(proxy.cuts().len(), 1);
    assert_eq!(other.get_children("/a").await.unwrap().len(), 1, "one znode, the one that was created first");
    assert!(guard.node().ends_with("lock-0000000000"));
    guard.release().await.unwrap();
    let next = patiently("nothing is in its way", InterProcessMutex::new(&other, "/a").acquire()).await;
    next.unwrap().release().await.unwrap();
    world.until_clean("r5").await;
}

#[tokio::test]
async fn r6_after_expiry_the_lock_is_gone_and_its_holder_is_informed() {
    let world = World::start().await;
    let client = world.client().await;
    for recipe in Recipe::ALL {
        let held = recipe.hold(&client, "/a").await.unwrap();
        let lost = {
            let fence = held.fence.clone();
            tokio::spawn(async move { fence.lost().await })
        };
        world.expire(&client).await;
        patiently(recipe, lost).await.unwrap();
        assert!(held.fence.verify().await.unwrap_err().is_not_held());
        assert!(!held.fence.is_held());
        // It contends anew, in another session.
        let again = patiently(recipe, recipe.hold(&client, "/a"));
        let again = if matches!(recipe, Recipe::Latch | Recipe::Selector) {
            // These do so by themselves.
            held.release().await;
            again.await.unwrap()
        } else {
            again.await.unwrap()
        };
        assert!(again.fence.verify().await.is_ok());
        again.release().await;
        world.until_clean(recipe).await;
        client.delete("/a").deleting_children().quietly().await.unwrap();
    }
}

#[tokio::test]
async fn r6_lock_lost_with_its_session_is_acquired_anew() {
    let world = World::start().await;
    let client = world.client().await;
    let (lock, me) = (InterProcessMutex::new(&client, "/a"), Owner::new());
    let old = lock.acquire_as(&me).await.unwrap();
    world.expire(&client).await;
    patiently("over", old.fence().session().ended()).await;
    assert!(!lock.is_held_by(&me));
    let new = patiently("anew", lock.acquire_as(&me)).await.unwrap();
    assert!(new.token() > old.token());
    drop(old);
    new.fence().verify().await.unwrap();
    new.release().await.unwrap();
    world.until_clean("anew").await;
}

#[tokio::test]
async fn r6_a_holder_knows_by_its_own_clock_that_its_session_may_be_over() {
    let mut world = World::start().await;
    let session = Duration::from_millis(600);
    let client = connect(&world.server.connect_string(), session).await;
    let guard = InterProcessMutex::new(&client, "/a").acquire().await.unwrap();
    world.server.kill().await;
    patiently("suspended", guard.lost()).await;
    patiently("over", guard.fence().session().ended()).await;
    assert!(!guard.is_held());
    assert!(guard.fence().verify().await.unwrap_err().is_not_held(), "without a server");
}

#[tokio::test]
async fn r7_a_latch_from_start_to_close() {
    let world = World::start().await;
    let client = world.client().await;
    let latch = LeaderLatch::new(&client, "/latch", "me");
    let mut changes = latch.changes();
    assert!(matches!(latch.state(), LatchState::Latent) && !latch.has_leadership());
    // Nothing would ever end this wait.
    for waited in [
        patiently("at once", latch.wait_for_leadership()).await.map(Some),
        patiently("at once", latch.wait_for_leadership_within(Duration::MAX)).await,
    ] {
        assert!(matches!(waited, Err(Error::NotStarted { .. })), "{waited:?}");
    }
    latch.start();
    latch.start();
    let fence = patiently("leads", latch.wait_for_leadership()).await.unwrap();
    assert!(latch.has_leadership() && matches!(latch.state(), LatchState::Started));
    assert_eq!(latch.leadership().unwrap().node(), fence.node());
    let told = patiently("told", changes.next()).await;
    assert!(matches!(told, Some(LeaderChange::IsLeader(of)) if of.token() == fence.token()));

    let second = LeaderLatch::new(&world.client().await, "/latch", "you").close_mode(CloseMode::NotifyLeader);
    let mut of_second = second.changes();
    second.start();
    assert!(second.wait_for_leadership_within(Duration::from_millis(100)).await.unwrap().is_none());
    let all = second.participants().await.unwrap();
    let listed: Vec<_> = all.iter().map(|one| (&*one.id, one.is_leader)).collect();
    assert_eq!(listed, [("me", true), ("you", false)]);
    assert_eq!(client.get_children("/latch").await.unwrap().len(), 2, "started once");

    // Silent: no word of the end.
    latch.close().await;
    assert!(patiently("closed", changes.next()).await.is_none());
    assert!(!latch.has_leadership() && matches!(latch.state(), LatchState::Closed));
    assert!(matches!(latch.wait_for_leadership().await, Err(Error::Closed { .. })));
    patiently("the next leads", second.wait_for_leadership()).await.unwrap();
    let told = patiently("told", of_second.next()).await;
    assert!(matches!(told, Some(LeaderChange::IsLeader(_))));
    second.close().await;
    assert!(matches!(patiently("told", of_second.next()).await, Some(LeaderChange::NotLeader)));
    assert!(patiently("closed", of_second.next()).await.is_none());
    assert!(second.leader().await.unwrap().is_none());
    world.until_clean("latch").await;
}

#[tokio::test]
async fn r7_leadership_is_given_up_at_once_when_the_connection_is_suspended_and_taken_up_with_the_same_znode()
{
    let world = World::start().await;
    let (proxy, client) = world.proxied().await;
    let latch = LeaderLatch::new(&client, "/latch", "");
    let mut changes = latch.changes();
    latch.start();
    let first = patiently("leads", latch.wait_for_leadership()).await.unwrap();
    assert!(matches!(changes.next().await, Some(LeaderChange::IsLeader(_))));
    let mut states = client.states();
    proxy.block();
    while states.next().await.unwrap().state != ConnectionState::Suspended {}
    assert!(!latch.has_leadership(), "at once: nobody has told the latch yet");
    assert!(matches!(patiently("told", changes.next()).await, Some(LeaderChange::NotLeader)));
    proxy.heal();
    let told = patiently("leads again", changes.next()).await;
    assert!(matches!(told, Some(LeaderChange::IsLeader(of)) if of.node() == first.node()));
    assert!(latch.has_leadership());
}

/// The latch's own task stands still, so that nobody can have told it.
#[test]
fn r7_has_leadership_knows_of_a_suspended_connection_before_the_latch_does() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let of_latch = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (world, proxy, client) = runtime.block_on(async {
        let world = World::start().await;
        let (proxy, client) = world.proxied().await;
        (world, proxy, client)
    });
    let latch = LeaderLatch::new(&client, "/latch", "");
    of_latch.block_on(async {
        latch.start();
        patiently("leads", latch.wait_for_leadership()).await.unwrap();
    });
    assert!(latch.has_leadership());
    runtime.block_on(async {
        let mut states = client.states();
        proxy.block();
        while patiently("suspended", states.next()).await.unwrap().state != ConnectionState::Suspended {}
    });
    assert!(!latch.has_leadership());
    drop((latch, world));
}

#[tokio::test]
async fn r7_after_lost_a_latch_contends_anew() {
    let world = World::start().await;
    let client = world.client().await;
    let latch = LeaderLatch::new(&client, "/latch", "");
    let mut changes = latch.changes();
    latch.start();
    let first = patiently("leads", latch.wait_for_leadership()).await.unwrap();
    assert!(matches!(changes.next().await, Some(LeaderChange::IsLeader(_))));
    world.expire(&client).await;
    assert!(matches!(patiently("told", changes.next()).await, Some(LeaderChange::NotLeader)));
    let told = patiently("leads again", changes.next()).await;
    let Some(LeaderChange::IsLeader(second)) = told else { panic!("{told:?}") };
    assert!(second.token() > first.token() && second.node() != first.node());
    assert!(first.verify().await.unwrap_err().is_not_held());
}

/// Several clients in one program: each leads for a while and hands over, and counts how often it has led.
#[tokio::test]
async fn r8_selectors_lead_in_turns_until_their_function_returns() {
    let world = World::start().await;
    let (to, mut led) = mpsc::unbounded_channel();
    let leading = Arc::new(AtomicUsize::new(0));
    let mut selectors = Vec::new();
    for number in 0..4_usize {
        let client = world.client().await;
        let (to, leading) = (to.clone(), leading.clone());
        let times = Arc::new(AtomicUsize::new(0));
        let lead = move |leadership: Leadership| {
            let (to, leading, times) = (to.clone(), leading.clone(), times.clone());
            async move {
                assert_eq!(leading.fetch_add(1, SeqCst), 0, "two lead");
                leadership.fence().verify().await.unwrap();
                leading.fetch_sub(1, SeqCst);
                to.send((number, times.fetch_add(1, SeqCst) + 1)).unwrap();
            }
        };
        let id = number.to_string();
        let builder = LeaderSelector::builder(&client, "/selector", lead).id(&id);
        selectors.push(builder.auto_requeue().start());
        world.until("connected", move |c| c.sessions == number + 1).await;
    }
    let mut counts = [0; 4];
    while counts.iter().any(|times| *times < 5) {
        let (number, times) = patiently("the next leads", led.recv()).await.unwrap();
        counts[number] = times;
    }
    println!("each has led so often: {counts:?}");
    for selector in &selectors {
        selector.close().await;
        assert!(matches!(selector.state(), SelectorState::Closed) && !selector.requeue());
    }
    world.until_clean("selectors").await;
}

#[tokio::test]
async fn r8_a_selector_is_requeued_interrupted_and_closed() {
    let world = World::start().await;
    let client = world.client().await;
    let (to, mut led) = mpsc::unbounded_channel();
    let dropped = Arc::new(Mutex::new(0));
    struct CountDrop(Arc<Mutex<i32>>);
    impl Drop for CountDrop {
        fn drop(&mut self) {
            *self.0.lock().unwrap() += 1;
        }
    }
    let counted = dropped.clone();
    let lead = move |leadership: Leadership| {
        let _ = to.send(leadership);
        let until = CountDrop(counted.clone());
        async move {
            let _until = until;
            std::future::pending::<()>().await;
        }
    };
    let selector = LeaderSelector::builder(&client, "/selector", lead).id("me").start();
    let first = patiently("leads", led.recv()).await.unwrap();
    assert!(selector.has_leadership() && !selector.requeue());
    assert_eq!(selector.leader().await.unwrap().unwrap().id, "me");
    assert_eq!(selector.participants().await.unwrap().len(), 1);
    selector.interrupt_leadership();
    patiently("idle", selector.wait_for(|state| matches!(state, SelectorState::Idle(None)))).await;
    assert_eq!(*dropped.lock().unwrap(), 1);
    // CURATOR-671: whoever sees that it does not lead any more can requeue it.
    assert!(!selector.has_leadership() && selector.requeue());
    let second = patiently("leads again", led.recv()).await.unwrap();
    assert!(second.token() > first.token());
    assert!(first.fence().verify().await.unwrap_err().is_not_held());
    selector.close().await;
    assert_eq!(*dropped.lock().unwrap(), 2, "closed after its function has ended");
    world.until_clean("selector").await;
}

#[tokio::test]
async fn r8_the_function_is_dropped_when_leadership_is_in_doubt() {
    let world = World::start().await;
    let (proxy, client) = world.proxied().await;
    let (to, mut told) = mpsc::unbounded_channel();
    struct TellDrop(mpsc::UnboundedSender<Option<Leadership>>);
    impl Drop for TellDrop {
        fn drop(&mut self) {
            let _ = self.0.send(None);
        }
    }
    let lead = move |leadership: Leadership| {
        let _ = to.send(Some(leadership));
        let until = TellDrop(to.clone());
        async move {
            let _until = until;
            std::future::pending::<()>().await;
        }
    };
    let selector = LeaderSelector::builder(&client, "/selector", lead).auto_requeue().start();
    let first = patiently("leads", told.recv()).await.unwrap().unwrap();
    proxy.block();
    assert!(patiently("dropped", told.recv()).await.unwrap().is_none(), "suspended");
    assert!(!selector.has_leadership());
    proxy.heal();
    let second = patiently("leads again", told.recv()).await.unwrap().unwrap();
    assert!(second.token() > first.token());
    world.expire(&client).await;
    assert!(patiently("dropped", told.recv()).await.unwrap().is_none(), "expired");
    let third = patiently("leads again", told.recv()).await.unwrap().unwrap();
    client.delete(third.fence().node()).await.unwrap();
    assert!(patiently("dropped", told.recv()).await.unwrap().is_none(), "deleted by hand");
    selector.close().await;
    world.until_clean("selector").await;
}

#[tokio::test]
async fn r8_a_functions_panic_ends_its_leadership_and_not_the_selector() {
    let world = World::start().await;
    let client = world.client().await;
    let (to, mut led) = mpsc::unbounded_channel();
    let lead = move |_: Leadership| {
        let _ = to.send(());
        async { panic!("as planned by the test") }
    };
    let selector = LeaderSelector::builder(&client, "/selector", lead).auto_requeue().start();
    for _ in 0..3 {
        patiently("leads again", led.recv()).await.unwrap();
    }
    selector.close().await;
    world.until_clean("selector").await;
}

#[tokio::test]
async fn r9_recipes_work_below_a_namespace_and_with_the_names_of_curator() {
    let world = World::start().await;
    let client = world.client().await;
    let app = client.using_namespace("app").unwrap();
    let guard = InterProcessMutex::new(&app, "/locks/a").acquire().await.unwrap();
    let name = client.get_children("/app/locks/a").await.unwrap().remove(0);
    let (protection, rest) = name.split_at("_c_01234567-89ab-cdef-0123-456789abcdef-".len());
    assert!(protection.starts_with("_c_") && rest == "lock-0000000000", "{name}");
    assert_eq!(guard.node(), format!("/locks/a/{name}"));
    guard.multi().create("/b", b"").await.unwrap();
    assert!(client.exists("/app/b").await.unwrap().is_some());
}

/// The journal and the proxy, on which the tests above rely, see what they are to see.
#[tokio::test]
async fn a_free_lock_is_taken_and_released_with_three_requests() {
    let world = World::start().await;
    let other: Client = world.client().await;
    open_journal(&other).await;
    other.create("/a", b"").await.unwrap();
    let proxy = FrameProxy::start(world.server.address()).await.unwrap();
    let client = connect(&proxy.connect_string(), SESSION).await;
    proxy.reset();
    let guard = InterProcessMutex::new(&client, "/a").acquire().await.unwrap();
    guard.release().await.unwrap();
    let ops = proxy.seen();
    assert!(
        matches!(&ops[..], [SeenFrame::Request { .. }, SeenFrame::Request { .. }, SeenFrame::Request { .. }]),
        "{ops:?}"
    );
}
