//! `fenced SERVERS latch|mutex NAME SESSION_MS`: holds and writes into /journal without end. After it was stopped for
//! as long as its session lasts it writes at once, and says what became of that. `interop/recipes/fencing.py` stops it.
//!
//! Every record is the token of whoever wrote it, so that the journal itself shows whether anybody has written after a
//! later holder.

use ostler_client::{Client, Error as ClientError, ErrorCode, RetryPolicy, Version};
use ostler_recipes::{
    Error, Result,
    fencing::Fence,
    leader::LeaderLatch,
    lock::{InterProcessMutex, MutexGuard},
};
use std::{
    process::exit,
    time::{Duration, Instant},
};

#[tokio::main(worker_threads = 2)]
async fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [servers, recipe, name, session_ms] = &arguments[..] else {
        eprintln!("usage: fenced SERVERS latch|mutex NAME SESSION_MS");
        exit(2);
    };
    let session = Duration::from_millis(session_ms.parse().unwrap_or(1000));
    let retry = RetryPolicy::exponential(Duration::from_millis(20), Duration::from_millis(500), 30);
    let done = match Client::builder(servers).session_timeout(session).retry(retry).connect().await {
        Ok(client) => hold(&client, recipe, name, session).await,
        Err(error) => Err(error.into()),
    };
    if let Err(error) = done {
        println!("trouble: {error}");
        exit(3);
    }
}

enum Held {
    Latch { fence: Fence, _latch: LeaderLatch },
    Mutex(MutexGuard),
}

impl Held {
    async fn take(client: &Client, recipe: &str, name: &str) -> Result<Held> {
        let path = &*format!("/fenced/{recipe}");
        if recipe == "mutex" {
            return Ok(Held::Mutex(InterProcessMutex::new(client, path).acquire().await?));
        }
        let latch = LeaderLatch::new(client, path, name);
        latch.start();
        let fence = latch.wait_for_leadership().await?;
        Ok(Held::Latch { fence, _latch: latch })
    }

    fn fence(&self) -> &Fence {
        match self {
            Held::Latch { fence, .. } => fence,
            Held::Mutex(guard) => guard.fence(),
        }
    }
}

async fn hold(client: &Client, recipe: &str, name: &str, session: Duration) -> Result<()> {
    let journal = &*format!("/journal/{recipe}/at-");
    loop {
        let held = Held::take(client, recipe, name).await?;
        let fence = held.fence();
        println!("holds {}", fence.token().number());
        if let Err(error) = write_until_paused(fence, journal, session).await {
            println!("lost {}: {error}", fence.token().number());
            continue;
        }
        // Whatever it knows or believes by now: it writes.
        let believes = if fence.is_held() { "believes to hold" } else { "knows that it does not hold" };
        let written = write(fence, journal).await;
        println!("after a pause it {believes}, its write is {}", outcome(written));
        println!("in its next session the write is {}", in_next_session(client, fence, journal).await);
    }
}

/// A write that no clock and no session stops: only the server refuses it.
async fn in_next_session(client: &Client, fence: &Fence, journal: &str) -> String {
    loop {
        let check = client.multi().check(fence.node(), Version::Any);
        let write = check.create(journal, record(fence)).sequential();
        match write.await {
            Err(ClientError::Multi { code: ErrorCode::NoNode, index: 0, .. }) => return "refused".to_owned(),
            // The present session may be one that is not known to be over.
            Err(error) if error.is_connection_trouble() || error.is_session_over() => {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            written => return outcome(written.map(drop).map_err(Error::from)),
        }
    }
}

/// Returns when it was paused; fails if it has lost what it holds otherwise.
async fn write_until_paused(fence: &Fence, journal: &str, session: Duration) -> Result<()> {
    loop {
        let looked = Instant::now();
        let written = write(fence, journal).await;
        if session <= looked.elapsed() {
            println!("a write was under way, and is {}", outcome(written));
            return Ok(());
        }
        written?;
        // Not a task's sleep: from a pause this thread is to go on by itself.
        std::thread::sleep(Duration::from_millis(5));
        if session <= looked.elapsed() {
            return Ok(());
        }
    }
}

fn record(fence: &Fence) -> String {
    fence.token().number().to_string()
}

async fn write(fence: &Fence, journal: &str) -> Result<()> {
    let write = fence.multi().create(journal, record(fence)).sequential();
    write.await.map(drop)
}

fn outcome(written: Result<()>) -> String {
    match written {
        Ok(()) => "WRITTEN".to_owned(),
        Err(error) if error.is_not_held() => "refused".to_owned(),
        Err(error) => format!("not known: {error}"),
    }
}
