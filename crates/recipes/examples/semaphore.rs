//! Five workers and two leases; then the number of leases grows. `cargo run -p ostler-recipes --example semaphore` runs
//! it against a server of its own; with a connect string, against that.

use ostler_client::Client;
use ostler_recipes::{Result, counter::SharedCount, lock::InterProcessSemaphore};
use ostler_testkit::TestServer;
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};
use tokio::{sync::watch, time::sleep};

const WORK: Duration = Duration::from_millis(300);

#[tokio::main]
async fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let mut own = None;
    let servers = match std::env::args().nth(1) {
        Some(servers) => servers,
        None => own.insert(TestServer::start().await?).connect_string(),
    };
    let (working, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let mut workers = Vec::new();
    for number in 0..5 {
        let client = Client::connect(&servers).await?;
        let (working, most) = (working.clone(), most.clone());
        workers.push(tokio::spawn(async move {
            let semaphore = InterProcessSemaphore::new(&client, "/examples/semaphore", 2);
            let lease = semaphore.acquire().await?;
            let now = working.fetch_add(1, SeqCst) + 1;
            most.fetch_max(now, SeqCst);
            println!("worker {number} works, with token {}", lease.token());
            sleep(WORK).await;
            working.fetch_sub(1, SeqCst);
            lease.release().await
        }));
    }
    for worker in workers {
        worker.await??;
    }
    println!("at work at once, at most: {}", most.load(SeqCst));
    let client = Client::connect(&servers).await?;
    grown(&client).await
}

/// As many leases as a shared count says.
async fn grown(client: &Client) -> std::result::Result<(), Box<dyn std::error::Error>> {
    let count = SharedCount::start(client, "/examples/semaphore-size", 1).await?;
    count.set(1).await?;
    let (size, sizes) = watch::channel(1);
    let mut changes = count.changes();
    tokio::spawn(async move {
        while let Some(Ok(changed)) = changes.next().await {
            // Those who wait for leases have gone, if nobody takes it.
            let _ = size.send(changed.value);
        }
    });
    let semaphore = InterProcessSemaphore::new(client, "/examples/semaphore-sized", sizes);
    let first = semaphore.acquire().await?;
    let more =
        tokio::spawn(async move { Result::Ok((semaphore.acquire().await?, semaphore.acquire().await?)) });
    sleep(WORK).await;
    println!("one lease is held, others were given out: {}", more.is_finished());
    count.set(3).await?;
    let (second, third) = more.await??;
    println!(
        "with a size of 3 all are given out: tokens {}, {}, {}",
        first.token(),
        second.token(),
        third.token()
    );
    Ok(())
}
