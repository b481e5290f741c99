//! The tasks of a contender. Each acquires a resource now and then, writes the znode that only a holder may write, and
//! releases the resource.

use super::{
    Resource,
    control::{Holding, JobControl, Note},
};
use ostler_client::{Client, ClientBuilder};
use ostler_recipes::{
    fencing::Fence,
    leader::{LeaderLatch, LeaderSelector, Leadership},
    lock::{InterProcessMutex, InterProcessReadWriteLock, InterProcessSemaphoreMutex, Owner},
};
use std::{sync::Arc, time::Duration};
use tokio::time::sleep;

/// The longest pause between two writes of a holder; twice this is the longest pause before the next attempt.
const PAUSE_MS: u64 = 150;
/// The longest that a task waits for a lock.
const PATIENCE_MS: u64 = 4_000;
/// How often a waiting task checks whether it is to end.
const LOOK_MS: u64 = 10;

/// Everything that a process does: one task for each resource, until the world asks them to stop.
pub(super) async fn live(control: Arc<JobControl>, builder: ClientBuilder, resources: Vec<Resource>) {
    let client = match builder.connect_lazy() {
        Ok(client) => client,
        Err(error) => return control.note(Note::Broken(error.to_string())),
    };
    let start = |resource| tokio::spawn(job(control.clone(), client.clone(), resource));
    let jobs: Vec<_> = resources.into_iter().map(start).collect();
    for job in jobs {
        if let Err(error) = job.await {
            control.note(Note::Broken(error.to_string()));
        }
    }
    control.note(Note::Done);
    while !control.closes() {
        sleep(Duration::from_millis(LOOK_MS)).await;
    }
    client.close().await;
    control.note(Note::Closed);
}

async fn job(control: Arc<JobControl>, client: Client, resource: Resource) {
    // The guarded znode. It may exist already; errors come again in the recipe.
    let _ = client.create(&resource.guarded(), b"0").creating_parents().idempotent().await;
    match resource {
        Resource::Mutex => mutex(&control, &client).await,
        Resource::Latch => latch(&control, &client).await,
        Resource::Selector => selector(&control, &client).await,
        Resource::Semaphore => semaphore(&control, &client).await,
        Resource::ReadWrite => read_write(&control, &client).await,
    }
}

/// Pauses. False if the task is to end.
async fn wants(control: &JobControl) -> bool {
    loop {
        control.pause(2 * PAUSE_MS).await;
        if control.stops() || !control.is_quiet() {
            return !control.stops();
        }
    }
}

fn patience(control: &JobControl) -> Duration {
    Duration::from_millis(1 + control.below(PATIENCE_MS))
}

/// Holds a resource for a while, as long as its fence reports it as held.
async fn hold(control: &Arc<JobControl>, resource: Resource, fence: &Fence) {
    let still = {
        let fence = fence.clone();
        move || fence.is_held()
    };
    hold_while(control, resource, fence, still).await;
}

async fn hold_while(
    control: &Arc<JobControl>,
    resource: Resource,
    fence: &Fence,
    still: impl Fn() -> bool + Clone + Send + 'static,
) {
    if !still() {
        return control.note(Note::TooLate);
    }
    let holder = Holding::of(resource, fence);
    control.note(Note::Holds(holder));
    let _held = control.report_held_while(holder, still.clone());
    if control.rest_ms > 0 && control.below(3) == 0 {
        rest(control).await;
    }
    let writes = if control.below(8) == 0 { 12 } else { control.below(4) };
    for _ in 0..writes {
        control.pause(PAUSE_MS).await;
        if still() {
            control.note(Note::StillHolds(holder));
        } else if control.below(2) == 0 {
            return;
        }
        // A task may write without asking the recipe first: the fence must refuse the write if needed.
        write(control, holder, fence).await;
    }
}

/// Does nothing for a while. Returns early if the task is to end.
async fn rest(control: &JobControl) {
    let looks = control.below(control.rest_ms) / LOOK_MS;
    for _ in 0..looks {
        if control.stops() {
            return;
        }
        sleep(Duration::from_millis(LOOK_MS)).await;
    }
}

async fn write(control: &JobControl, holder: Holding, fence: &Fence) {
    let token = holder.token.to_string();
    if fence.multi().set_data(&holder.resource.guarded(), token).await.is_ok() {
        control.note(Note::Wrote(holder));
    }
}

async fn mutex(control: &Arc<JobControl>, client: &Client) {
    let (lock, owner) = (InterProcessMutex::new(client, Resource::Mutex.path()), Owner::new());
    while wants(control).await {
        let guard = match control.below(3) {
            0 => lock.acquire().await.map(Some),
            1 => lock.acquire_as_within(&owner, patience(control)).await,
            _ => lock.acquire_within(patience(control)).await,
        };
        let Ok(Some(guard)) = guard else { continue };
        hold(control, Resource::Mutex, guard.fence()).await;
        if lock.is_held_by(&owner)
            && let Ok(again) = lock.acquire_as(&owner).await
            && guard.is_held()
            && again.token() != guard.token()
        {
            control.note(Note::Broken(format!(
                "[one holder] an owner holds with {}, and again with {}",
                guard.token(),
                again.token()
            )));
        }
        if control.below(3) > 0 {
            let _ = guard.release().await;
        }
    }
}

async fn semaphore(control: &Arc<JobControl>, client: &Client) {
    let lock = InterProcessSemaphoreMutex::new(client, Resource::Semaphore.path());
    while wants(control).await {
        let Ok(Some(guard)) = lock.acquire_within(patience(control)).await else { continue };
        hold(control, Resource::Semaphore, guard.fence()).await;
        if control.below(3) > 0 {
            let _ = guard.release().await;
        }
    }
}

async fn read_write(control: &Arc<JobControl>, client: &Client) {
    let lock = InterProcessReadWriteLock::new(client, Resource::ReadWrite.path());
    while wants(control).await {
        let owner = Owner::new();
        if control.below(3) > 0 {
            let Ok(Some(guard)) = lock.acquire_write_as_within(&owner, patience(control)).await else {
                continue;
            };
            hold(control, Resource::ReadWrite, guard.fence()).await;
            if control.below(3) > 0 {
                let _ = guard.release().await;
            }
        } else if let Ok(Some(guard)) = lock.acquire_read_as_within(&owner, patience(control)).await {
            control.pause(PAUSE_MS).await;
            let _ = guard.release().await;
        }
    }
}

async fn latch(control: &Arc<JobControl>, client: &Client) {
    while wants(control).await {
        let latch = Arc::new(LeaderLatch::new(client, Resource::Latch.path(), "contender"));
        latch.start();
        for _ in 0..1 + control.below(2) {
            if let Ok(Some(fence)) = latch.wait_for_leadership_within(patience(control)).await {
                let (asked, token) = (latch.clone(), fence.token());
                let leads = move || asked.leadership().is_some_and(|of| of.token() == token);
                hold_while(control, Resource::Latch, &fence, leads).await;
            }
        }
        if control.below(3) > 0 {
            latch.close().await;
        }
    }
}

async fn selector(control: &Arc<JobControl>, client: &Client) {
    while wants(control).await {
        let leads = {
            let control = control.clone();
            move |leadership: Leadership| {
                let control = control.clone();
                async move { hold(&control, Resource::Selector, leadership.fence()).await }
            }
        };
        let selector =
            LeaderSelector::builder(client, Resource::Selector.path(), leads).auto_requeue().start();
        control.pause(PATIENCE_MS).await;
        if control.below(4) == 0 {
            selector.interrupt_leadership();
            control.pause(PAUSE_MS).await;
        }
        selector.close().await;
    }
}
