//! A pool of workers that share shards: each shard has at most one owner, and the shards are divided anew when a worker
//! comes or goes.
//!
//! A former owner that was paused may still run when its shards have new owners. So each write goes through the fence of
//! its shard, which refuses the writes of a former owner: `progress.rs`.

mod progress;

use clap::Parser;
use ostler_examples::{ConnectOptions, give_back, start_log, stop_signal};
use ostler_recipes::prelude::*;
use progress::Progress;
use std::{error::Error, pin::pin, time::Duration};
use tokio::time::sleep;

const POOL: &str = "/examples/shards/pool";
const PROGRESS: &str = "/examples/shards/progress";

/// Works on its share of the shards.
#[derive(Debug, Parser)]
struct Options {
    #[command(flatten)]
    connect: ConnectOptions,
    /// The name of this worker, which no other worker has.
    #[arg(long)]
    name: String,
    /// The number of shards, which must be the same at all workers.
    #[arg(long, value_name = "N", default_value_t = 8)]
    shards: u32,
    /// The shards are divided when no worker has come or gone for this time, in ms.
    #[arg(long, value_name = "MS", default_value_t = 500)]
    settle_ms: u64,
    /// How long to wait between two steps with each shard, in ms.
    #[arg(long, value_name = "MS", default_value_t = 200)]
    pause_ms: u64,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    start_log();
    let options = Options::parse();
    let client = options.connect.connect().await?;
    let ended = run(&client, &options).await;
    // Ends the membership too, and after an error the ownership: so the others divide the shards at once.
    client.close().await;
    ended
}

/// Works on one share after the other, until SIGTERM or SIGINT.
async fn run(client: &Client, options: &Options) -> Result<(), Box<dyn Error>> {
    client.create(PROGRESS, b"").creating_parents().or_set_data().await?;
    let progress = Progress::new(PROGRESS, &options.name);
    let shards = (0..options.shards).map(|shard| format!("{shard:03}"));
    let settle = Duration::from_millis(options.settle_ms);
    let mut member = SetPartitioner::start(client, POOL, &options.name, shards, settle)?;
    let (mut stopped, mut ends) = (pin!(stop_signal()), false);
    while !ends {
        let share = tokio::select! {
            stopped = &mut stopped => {
                stopped?;
                break;
            }
            share = member.acquire() => share?,
        };
        tracing::info!("works on {}", share.items().join(" "));
        let end = tokio::select! {
            stopped = &mut stopped => {
                stopped?;
                ends = true;
                "the worker ends".to_owned()
            }
            end = share.ended() => format!("{end:?}"),
            // Returns only with an error.
            failed = work(&progress, &share, options) => return Err(failed.into()),
        };
        // The work is dropped here, so no further request follows. Requests of one session are done in their order: a
        // write that is under way is done before the shards are released.
        tracing::info!("stops {}: {end}", share.items().join(" "));
        match give_back(share.release()).await {
            // The release goes on in the background, and the next share waits for it.
            None => {}
            Some(Err(error)) if error.is_retryable() => {
                tracing::warn!("the release has no answer yet: {error}")
            }
            Some(released) => released?,
        }
    }
    Ok(())
}

/// Does one step with each shard after the other, until it is dropped. Returns only an error that does not pass.
async fn work(progress: &Progress, share: &Share, options: &Options) -> ostler_recipes::Error {
    loop {
        for (shard, fence) in share.fences() {
            match progress.step(shard, fence).await {
                Ok(()) => {}
                Err(error) if error.is_not_held() => tracing::warn!("shard {shard}: REFUSED, {error}"),
                // The share ends, the connection comes back, or the server hears of the last step.
                Err(error) if error.is_retryable() || is_behind(&error) => {
                    tracing::warn!("shard {shard}: {error}")
                }
                Err(error) => return error,
            }
        }
        sleep(Duration::from_millis(options.pause_ms)).await;
    }
}

/// Whether the server that was read had not heard of the last step yet.
fn is_behind(error: &ostler_recipes::Error) -> bool {
    error.client().is_some_and(|error| error.is_bad_version() || error.is_node_exists())
}
