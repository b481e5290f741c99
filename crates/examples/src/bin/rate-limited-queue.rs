//! A queue whose consumers together begin no more than a number of items in any second, unless one is paused.
//!
//! The limit is a semaphore with as many leases as there may be items a second. A consumer takes a lease for each
//! item, and returns it one second later, however fast it was. So those that have begun an item within the last second
//! hold a lease each, and there are no more leases. This compares no clocks of different machines. It only needs them
//! to run equally fast. A consumer that is killed keeps its leases until its session expires, which makes the others
//! slower for a moment.
//!
//! A consumer that is paused can exceed the limit. Its virtual machine may pause it after it has got its lease and before
//! it handles the item. When it goes on its session and its lease may be over, and it handles one item more than the
//! others leave room for. Only the system to which it writes can prevent that. ZooKeeper does it for writes by the fence
//! of the lease, `lease.multi()`. Any other system has to count by itself: a token does not say which of several leases
//! are over.

use clap::{Parser, Subcommand};
use ostler_examples::{ConnectOptions, give_back, start_log, stop_signal};
use ostler_recipes::prelude::*;
use std::{error::Error, time::Duration};
use tokio::{sync::mpsc, time::sleep};

const QUEUE: &str = "/examples/queue/items";
/// While an item is handled it has a znode here. With these an item is handled at least once.
const LOCKS: &str = "/examples/queue/locks";
const RATE: &str = "/examples/queue/rate";
const SECOND: Duration = Duration::from_secs(1);
const AGAIN_AFTER: Duration = Duration::from_millis(100);

/// Puts items into a queue, or handles them at a limited rate.
#[derive(Debug, Parser)]
struct Options {
    #[command(flatten)]
    connect: ConnectOptions,
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Put items into the queue.
    Put {
        /// The items are named by this prefix and a number.
        #[arg(long, default_value = "item")]
        prefix: String,
        /// The number of items.
        #[arg(long, default_value_t = 20)]
        count: u32,
    },
    /// Handle items until SIGTERM or SIGINT.
    Work {
        /// The name of this consumer.
        #[arg(long)]
        name: String,
        /// The number of items that all consumers together may begin in a second. They must all be given the same.
        #[arg(long, value_name = "N", default_value_t = 5)]
        per_second: u32,
    },
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    start_log();
    let options = Options::parse();
    let client = options.connect.connect().await?;
    let ended = run(&client, options.task).await;
    client.close().await;
    ended
}

async fn run(client: &Client, task: Task) -> Result<(), Box<dyn Error>> {
    let queue = DistributedQueue::builder(client, QUEUE).lock_path(LOCKS).build().await?;
    match task {
        Task::Put { prefix, count } => put(&queue, &prefix, count).await,
        Task::Work { name, per_second } => work(client, &queue, &name, per_second).await,
    }
}

async fn put(queue: &DistributedQueue, prefix: &str, count: u32) -> Result<(), Box<dyn Error>> {
    for number in 1..=count {
        let item = format!("{prefix}-{number}");
        // An item whose reply is lost may be in the queue or not. It is put again, so it may be there twice, but it is
        // not lost. Whoever handles items must be able to see the same one again in any case.
        while let Err(error) = queue.put(&item).await {
            if !error.is_retryable() && !error.is_outcome_unknown() && !error.is_session_over() {
                return Err(error.into());
            }
            tracing::warn!("puts {item} again: {error}");
            sleep(AGAIN_AFTER).await;
        }
        tracing::info!("has put {item}");
    }
    Ok(())
}

async fn work(
    client: &Client,
    queue: &DistributedQueue,
    name: &str,
    per_second: u32,
) -> Result<(), Box<dyn Error>> {
    // The ensemble may grant another timeout. A lease of a consumer that is killed must last for its second.
    if client.session_timeout().is_some_and(|timeout| timeout < 2 * SECOND) {
        return Err("the session's timeout must be two seconds or more".into());
    }
    let (returned, mut all_returned) = mpsc::channel(1);
    let rate = Rate { leases: InterProcessSemaphore::new(client, RATE, per_second), returned };
    let handler = name.to_owned();
    let consumer = queue.consume(move |item: Bytes| {
        let (rate, handler) = (rate.clone(), handler.clone());
        async move {
            let lease = rate.lease().await;
            handle(&item, &handler);
            rate.return_after_a_second(lease);
            // An error would put the item back, at the end of the queue.
            Ok::<_, std::convert::Infallible>(())
        }
    });
    tracing::info!("{name} handles items, and all consumers together {per_second} a second");
    stop_signal().await?;
    // An item that waits for a lease is left to others.
    drop(consumer);
    // The session ends only when the leases have lasted for their second. Otherwise each consumer that ends would let
    // others begin items too early.
    give_back(all_returned.recv()).await;
    Ok(())
}

/// The work itself, which stands for something that is fast, and that must not be done too often.
fn handle(item: &[u8], handler: &str) {
    tracing::info!("{handler} handles {}", String::from_utf8_lossy(item));
}

/// The limit that all consumers share.
#[derive(Debug, Clone)]
struct Rate {
    leases: InterProcessSemaphore,
    /// Each lease has a clone until it is returned, so the channel ends with the last one.
    returned: mpsc::Sender<()>,
}

impl Rate {
    /// Waits until one more item may be begun.
    async fn lease(&self) -> Lease {
        loop {
            match self.leases.acquire().await {
                // This process may have been paused for longer than its session lasts. It may also be paused after this
                // look, which no look can prevent.
                Ok(lease) if lease.is_held() => return lease,
                Ok(_) => {}
                Err(error) => {
                    tracing::warn!("no lease: {error}");
                    sleep(AGAIN_AFTER).await;
                }
            }
        }
    }

    fn return_after_a_second(&self, lease: Lease) {
        let returned = self.returned.clone();
        tokio::spawn(async move {
            sleep(SECOND).await;
            if let Err(error) = lease.release().await {
                tracing::warn!("the lease is returned in the background: {error}");
            }
            drop(returned);
        });
    }
}
