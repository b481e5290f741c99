//! What a process does with the recipes: it wants something now and then, holds it, writes what only a holder may write,
//! and gives it back.

use super::{
    Thing,
    desk::{Desk, Holder, Note},
};
use ostler_client::{Client, ClientBuilder};
use ostler_recipes::{
    fencing::Fence,
    leader::{LeaderLatch, LeaderSelector, Leadership},
    lock::{InterProcessMutex, InterProcessReadWriteLock, InterProcessSemaphoreMutex, Owner},
};
use std::{sync::Arc, time::Duration};
use tokio::time::sleep;

/// How long somebody holds something between two writes, and rests before wanting it again, at most.
const PAUSE_MS: u64 = 150;
/// The longest that somebody waits for a lock in vain.
const PATIENCE_MS: u64 = 4_000;
/// How often those who are to end look whether the rest is to end, too.
const LOOK_MS: u64 = 10;

/// All that a process does.
pub(super) async fn live(desk: Arc<Desk>, builder: ClientBuilder, things: Vec<Thing>) {
    let client = match builder.start() {
        Ok(client) => client,
        Err(error) => return desk.note(Note::Broken(error.to_string())),
    };
    let start = |thing| tokio::spawn(job(desk.clone(), client.clone(), thing));
    let jobs: Vec<_> = things.into_iter().map(start).collect();
    for job in jobs {
        if let Err(error) = job.await {
            desk.note(Note::Broken(error.to_string()));
        }
    }
    desk.note(Note::Done);
    while !desk.closes() {
        sleep(Duration::from_millis(LOOK_MS)).await;
    }
    client.close().await;
    desk.note(Note::Closed);
}

async fn job(desk: Arc<Desk>, client: Client, thing: Thing) {
    // What is guarded. Somebody else may have made it, and trouble is met again below.
    let _ = client.create(&thing.guarded(), b"0").creating_parents().idempotent().await;
    match thing {
        Thing::Mutex => mutex(&desk, &client).await,
        Thing::Latch => latch(&desk, &client).await,
        Thing::Selector => selector(&desk, &client).await,
        Thing::Semaphore => semaphore(&desk, &client).await,
        Thing::ReadWrite => read_write(&desk, &client).await,
    }
}

/// Rests; false once nothing more is wanted.
async fn wants(desk: &Desk) -> bool {
    loop {
        desk.pause(2 * PAUSE_MS).await;
        if desk.stops() || !desk.is_quiet() {
            return !desk.stops();
        }
    }
}

fn patience(desk: &Desk) -> Duration {
    Duration::from_millis(1 + desk.below(PATIENCE_MS))
}

/// Holds something for a while.
async fn hold(desk: &Arc<Desk>, thing: Thing, fence: &Fence) {
    let still = {
        let fence = fence.clone();
        move || fence.is_held()
    };
    hold_while(desk, thing, fence, still).await;
}

async fn hold_while(
    desk: &Arc<Desk>,
    thing: Thing,
    fence: &Fence,
    still: impl Fn() -> bool + Clone + Send + 'static,
) {
    if !still() {
        return desk.note(Note::TooLate);
    }
    let holder = Holder::of(thing, fence);
    desk.note(Note::Holds(holder));
    let _belief = desk.believes(holder, still.clone());
    if desk.rest_ms > 0 && desk.below(3) == 0 {
        rest(desk).await;
    }
    let writes = if desk.below(8) == 0 { 12 } else { desk.below(4) };
    for _ in 0..writes {
        desk.pause(PAUSE_MS).await;
        if still() {
            desk.note(Note::StillHolds(holder));
        } else if desk.below(2) == 0 {
            return;
        }
        // Some write without a look: that is what the fence is for.
        write(desk, holder, fence).await;
    }
}

/// Does nothing for a while, unless it is to end.
async fn rest(desk: &Desk) {
    let looks = desk.below(desk.rest_ms) / LOOK_MS;
    for _ in 0..looks {
        if desk.stops() {
            return;
        }
        sleep(Duration::from_millis(LOOK_MS)).await;
    }
}

async fn write(desk: &Desk, holder: Holder, fence: &Fence) {
    let token = holder.token.to_string();
    if fence.multi().set_data(&holder.thing.guarded(), token).commit().await.is_ok() {
        desk.note(Note::Wrote(holder));
    }
}

async fn mutex(desk: &Arc<Desk>, client: &Client) {
    let (lock, owner) = (InterProcessMutex::new(client, Thing::Mutex.path()), Owner::new());
    while wants(desk).await {
        let guard = match desk.below(3) {
            0 => lock.acquire().await.map(Some),
            1 => lock.acquire_as_within(&owner, patience(desk)).await,
            _ => lock.acquire_within(patience(desk)).await,
        };
        let Ok(Some(guard)) = guard else { continue };
        hold(desk, Thing::Mutex, guard.fence()).await;
        if lock.is_held_by(&owner)
            && let Ok(again) = lock.acquire_as(&owner).await
            && guard.is_held()
            && again.token() != guard.token()
        {
            desk.note(Note::Broken(format!(
                "[one holder] an owner holds with {}, and again with {}",
                guard.token(),
                again.token()
            )));
        }
        if desk.below(3) > 0 {
            let _ = guard.release().await;
        }
    }
}

async fn semaphore(desk: &Arc<Desk>, client: &Client) {
    let lock = InterProcessSemaphoreMutex::new(client, Thing::Semaphore.path());
    while wants(desk).await {
        let Ok(Some(guard)) = lock.acquire_within(patience(desk)).await else { continue };
        hold(desk, Thing::Semaphore, guard.fence()).await;
        if desk.below(3) > 0 {
            let _ = guard.release().await;
        }
    }
}

async fn read_write(desk: &Arc<Desk>, client: &Client) {
    let lock = InterProcessReadWriteLock::new(client, Thing::ReadWrite.path());
    while wants(desk).await {
        let owner = Owner::new();
        if desk.below(3) > 0 {
            let Ok(Some(guard)) = lock.write_as_within(&owner, patience(desk)).await else { continue };
            hold(desk, Thing::ReadWrite, guard.fence()).await;
            if desk.below(3) > 0 {
                let _ = guard.release().await;
            }
        } else if let Ok(Some(guard)) = lock.read_as_within(&owner, patience(desk)).await {
            desk.pause(PAUSE_MS).await;
            let _ = guard.release().await;
        }
    }
}

async fn latch(desk: &Arc<Desk>, client: &Client) {
    while wants(desk).await {
        let latch = Arc::new(LeaderLatch::new(client, Thing::Latch.path(), "contender"));
        latch.start();
        for _ in 0..1 + desk.below(2) {
            if let Ok(Some(fence)) = latch.wait_for_leadership_within(patience(desk)).await {
                let (asked, token) = (latch.clone(), fence.token());
                let leads = move || asked.leadership().is_some_and(|of| of.token() == token);
                hold_while(desk, Thing::Latch, &fence, leads).await;
            }
        }
        if desk.below(3) > 0 {
            latch.close().await;
        }
    }
}

async fn selector(desk: &Arc<Desk>, client: &Client) {
    while wants(desk).await {
        let leads = {
            let desk = desk.clone();
            move |leadership: Leadership| {
                let desk = desk.clone();
                async move { hold(&desk, Thing::Selector, leadership.fence()).await }
            }
        };
        let selector = LeaderSelector::builder(client, Thing::Selector.path(), leads).auto_requeue().start();
        desk.pause(PATIENCE_MS).await;
        if desk.below(4) == 0 {
            selector.interrupt_leadership();
            desk.pause(PAUSE_MS).await;
        }
        selector.close().await;
    }
}
