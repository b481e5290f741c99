//! Whoever is told that it is over can rely on it, also who asks a second time.

use crate::world::{World, patiently};
use ostler_client::Client;
use ostler_recipes::leader::{LeaderLatch, LeaderSelector, Leadership, SelectorState};
use ostler_testkit::{CutPoint, Direction};
use std::{
    future::pending,
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering::SeqCst},
        mpsc,
    },
    time::Duration,
};
use tokio::{sync::Notify, time::timeout};

const BRIEFLY: Duration = Duration::from_millis(60);

/// Sets a mark when it is dropped.
struct Marks(Arc<AtomicBool>);

impl Drop for Marks {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_selector_that_is_closed_twice_is_waited_for_twice() {
    let world = World::start().await;
    let client = world.client().await;
    let (leads, over) = (Arc::new(Notify::new()), Arc::new(AtomicBool::new(false)));
    let (let_go, blocked) = mpsc::channel::<()>();
    let function = {
        let (leads, over, blocked) = (leads.clone(), over.clone(), Arc::new(Mutex::new(blocked)));
        move |_: Leadership| {
            let (leads, marks, blocked) = (leads.clone(), Marks(over.clone()), blocked.clone());
            async move {
                leads.notify_one();
                // Without an await, so nobody can drop it meanwhile.
                let _ = blocked.lock().unwrap().recv();
                drop(marks);
            }
        }
    };
    let selector = LeaderSelector::builder(&client, "/e", function).start();
    patiently("it leads", leads.notified()).await;
    assert!(timeout(BRIEFLY, selector.close()).await.is_err());
    let closing = async {
        selector.close().await;
        (over.load(SeqCst), client.get_children("/e").await.unwrap().len())
    };
    let letting_go = async { let_go.send(()).unwrap() };
    let (found, ()) = patiently("closed", async { tokio::join!(closing, letting_go) }).await;
    assert_eq!(found, (true, 0));
    patiently("a third time", selector.close()).await;
    world.until_clean("the selector").await;
}

/// No state comes after it, so to wait on would be for ever.
#[tokio::test]
async fn a_wait_for_a_selectors_state_ends_when_it_is_closed() {
    let world = World::start().await;
    let client = world.client().await;
    let selector = LeaderSelector::builder(&client, "/e", |_: Leadership| pending::<()>()).start();
    let leads = |state: &SelectorState| matches!(state, SelectorState::Leading(_));
    let found = patiently("it leads", selector.wait_for(leads)).await;
    assert!(leads(&found), "{found:?}");
    let (found, ()) =
        patiently("closed", async { tokio::join!(selector.wait_for(|_| false), selector.close()) }).await;
    assert!(matches!(found, SelectorState::Closed), "{found:?}");
    let found = patiently("closed before", selector.wait_for(leads)).await;
    assert!(matches!(found, SelectorState::Closed), "{found:?}");
    world.until_clean("the selector").await;
}

#[tokio::test]
async fn a_latch_that_is_closed_twice_is_waited_for_twice() {
    let world = World::start().await;
    let other = world.client().await;
    let (proxy, ours) = world.proxied().await;
    let latch = LeaderLatch::new(&ours, "/e", "a");
    latch.start();
    patiently("it leads", latch.wait_for_leadership()).await.unwrap();
    proxy.silence(Direction::ToServer);
    assert!(timeout(BRIEFLY, latch.close()).await.is_err());
    let closing = async {
        latch.close().await;
        other.get_children("/e").await.unwrap().len()
    };
    let (found, ()) = patiently("closed", async { tokio::join!(closing, async { proxy.heal() }) }).await;
    assert_eq!(found, 0);
    patiently("a third time", latch.close()).await;
    world.until_clean("the latch").await;
}

/// Closed while a message of it is on its way: while nobody can know whether there will be a znode, it is not closed.
async fn closed_at(point: CutPoint, start: impl FnOnce(&Client) -> Closing) {
    let world = World::start().await;
    let other = world.client().await;
    other.create("/e", b"").await.unwrap();
    let (proxy, ours) = world.proxied().await;
    let mut frame = proxy.hold_at(point);
    let closing = start(&ours);
    patiently(point, frame.reached()).await.unwrap();
    let mut closing = closing();
    assert!(
        timeout(BRIEFLY, &mut closing).await.is_err(),
        "{point}: closed, and its znode may be there or come"
    );
    frame.pass();
    patiently(point, closing).await;
    assert_eq!(other.get_children("/e").await.unwrap(), [""; 0], "{point}");
    world.until_clean(point).await;
}

type Closing = Box<dyn FnOnce() -> Pin<Box<dyn Future<Output = ()>>>>;

/// The first request is the create, and the second the look at the queue.
fn points() -> impl Iterator<Item = CutPoint> {
    (1..=2).flat_map(|request| [CutPoint::BeforeRequest(request), CutPoint::BeforeReply(request)])
}

#[tokio::test]
async fn a_latch_that_is_closed_while_it_comes_is_gone_then() {
    for point in points() {
        closed_at(point, |client| {
            let latch = LeaderLatch::new(client, "/e", "a");
            latch.start();
            Box::new(|| Box::pin(async move { latch.close().await }))
        })
        .await;
    }
}

#[tokio::test]
async fn a_selector_that_is_closed_while_it_comes_is_gone_then() {
    for point in points() {
        closed_at(point, |client| {
            let selector = LeaderSelector::builder(client, "/e", |_: Leadership| pending::<()>()).start();
            Box::new(|| Box::pin(async move { selector.close().await }))
        })
        .await;
    }
}
