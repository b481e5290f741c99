//! Whoever is told that it is over can rely on it, also who asks a second time.

use crate::world::{World, patiently};
use ostler_recipes::leader::{LeaderLatch, LeaderSelector, Leadership};
use ostler_testkit::Direction;
use std::{
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
