//! `contend SERVERS RECIPE NAME`: takes /contended again and again, and says so in /journal. The counterpart of
//! `interop/recipes/Contend.java`, for one lock with it.
//!
//! `contend SERVERS hold NAME`: holds a lock, and when it finds that it was paused, writes at once.

use ostler_client::{Client, CreateMode, RetryPolicy};
use ostler_recipes::{
    Error, Result,
    fencing::Fence,
    leader::{LeaderLatch, LeaderSelector, Leadership},
    lock::{InterProcessMutex, InterProcessReadWriteLock, InterProcessSemaphore, InterProcessSemaphoreMutex},
};
use std::{
    process::exit,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::time::sleep;

const SESSION: Duration = Duration::from_secs(2);
/// Longer without a look at the clock is a pause.
const PAUSE: Duration = Duration::from_millis(500);

#[tokio::main(worker_threads = 2)]
async fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [servers, recipe, name] = &arguments[..] else {
        eprintln!("usage: contend SERVERS RECIPE NAME");
        exit(2);
    };
    let retry = RetryPolicy::exponential(Duration::from_millis(20), Duration::from_millis(500), 30);
    let client = Client::builder(servers).session_timeout(SESSION).retry(retry).connect().await;
    let done = match client {
        Ok(client) => contend(&client, recipe, name).await,
        Err(error) => Err(error.into()),
    };
    if let Err(error) = done {
        // What it holds goes with its session, all at once.
        println!("trouble: {error}");
        exit(3);
    }
}

async fn contend(client: &Client, recipe: &str, name: &str) -> Result<()> {
    println!("ready");
    let path = &*format!("/contended/{recipe}");
    match recipe {
        "hold" => return hold(client, path).await,
        "selector" => return select(client, path, name).await,
        _ => {}
    }
    let mutex = InterProcessMutex::new(client, path);
    let semaphore_mutex = InterProcessSemaphoreMutex::new(client, path);
    let semaphore = InterProcessSemaphore::new(client, path, 1);
    let read_write = InterProcessReadWriteLock::new(client, path);
    for round in 0_u64.. {
        match recipe {
            "mutex" => {
                let guard = mutex.acquire().await?;
                turn(client, guard.fence(), name).await?;
                guard.release().await?;
            }
            "semaphore-mutex" => {
                let guard = semaphore_mutex.acquire().await?;
                turn(client, guard.fence(), name).await?;
                guard.release().await?;
            }
            "semaphore" => {
                let lease = semaphore.acquire().await?;
                turn(client, lease.fence(), name).await?;
                lease.release().await?;
            }
            "latch" => {
                let latch = LeaderLatch::new(client, path, name);
                latch.start();
                let fence = latch.wait_for_leadership().await?;
                turn(client, &fence, name).await?;
                latch.close().await;
            }
            "read-write" if round % 3 == 0 => {
                let guard = read_write.read().await?;
                read(client, guard.fence(), name).await?;
                guard.release().await?;
            }
            "read-write" => {
                let guard = read_write.write().await?;
                turn(client, guard.fence(), name).await?;
                if round % 3 == 1 {
                    guard.release().await?;
                } else {
                    let guard = guard.downgrade().await?;
                    read(client, guard.fence(), name).await?;
                    guard.release().await?;
                }
            }
            other => {
                println!("trouble: no recipe {other}");
                exit(2);
            }
        }
    }
    Ok(())
}

async fn select(client: &Client, path: &str, name: &str) -> Result<()> {
    let own: Arc<str> = name.into();
    let lead = move |leadership: Leadership| {
        let name = own.clone();
        async move {
            if let Err(error) = turn(leadership.client(), leadership.fence(), &name).await {
                println!("trouble: {error}");
                exit(3);
            }
        }
    };
    let selector = LeaderSelector::builder(client, path, lead).id(name).auto_requeue().start();
    selector.wait_for(|_| false).await;
    Ok(())
}

/// Where whoever holds alone puts its mark: one place for each recipe.
fn mark(fence: &Fence) -> String {
    format!("/holder-{}", fence.node().split('/').nth(2).unwrap_or_default())
}

/// Whoever holds alone: nobody else's mark may be there.
async fn turn(client: &Client, fence: &Fence, name: &str) -> Result<()> {
    let marked = client.create(&mark(fence), name).ephemeral().idempotent().await;
    if let Err(error) = marked {
        if !error.is_node_exists() {
            return Err(error.into());
        }
        let other = client.get_data(&mark(fence)).await;
        println!(
            "VIOLATION: {name} holds {} with token {} in session {}, and so does {other:?}",
            fence.node(),
            fence.token(),
            fence.session().id()
        );
    }
    match fence.multi().create_mode("/journal/at-", name, CreateMode::PersistentSequential).commit().await {
        Err(error @ Error::NotHeld { .. }) if fence.session().is_alive() => {
            println!("VIOLATION: {name} holds, and the server does not know of it: {error}");
        }
        done => drop(done?),
    }
    sleep(Duration::from_millis(fence.token().number() % 3)).await;
    client.delete(&mark(fence)).idempotent().await?;
    Ok(())
}

/// Readers share, but with no writer.
async fn read(client: &Client, fence: &Fence, name: &str) -> Result<()> {
    for look in 0..2 {
        if client.exists(&mark(fence)).await?.is_some() {
            let (other, queue) =
                (client.get_data(&mark(fence)).await, client.get_children("/contended/read-write").await);
            println!("VIOLATION: {name} reads by {}, look {look}, beside {other:?}; {queue:?}", fence.node());
        }
        sleep(Duration::from_millis(look)).await;
    }
    Ok(())
}

async fn hold(client: &Client, path: &str) -> Result<()> {
    let lock = InterProcessMutex::new(client, path);
    loop {
        let guard = lock.acquire().await?;
        let mut looked = Instant::now();
        println!("holding {}", guard.token().number());
        while looked.elapsed() < PAUSE {
            looked = Instant::now();
            // Not a task's sleep: from a pause this thread is to go on by itself.
            std::thread::sleep(Duration::from_millis(5));
        }
        match guard
            .multi()
            .create_mode("/journal/at-", "paused", CreateMode::PersistentSequential)
            .commit()
            .await
        {
            Err(error) if error.is_not_held() => println!("refused"),
            Err(error) => println!("not known: {error}"),
            Ok(_) => println!("WRITTEN"),
        }
        drop(guard);
    }
}
