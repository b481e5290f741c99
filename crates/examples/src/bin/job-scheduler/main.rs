//! A job scheduler: several instances run, one of them leads and runs the jobs, and no deposed leader's result gets
//! into the database.
//!
//! An election alone cannot promise that. A leader may be paused, for example by its virtual machine, at any moment.
//! When it goes on it believes for some milliseconds that it still leads. So each result carries the leadership's
//! fencing token, and PostgreSQL refuses a token that is older than one it has seen: `results.rs`.

mod results;

use clap::Parser;
use ostler_examples::{ConnectOptions, give_back, start_log, stop_signal};
use ostler_recipes::{leader::LatchState, prelude::*};
use results::{Outcome, Results};
use std::{error::Error, time::Duration};
use tokio::time::sleep;

const ELECTION: &str = "/examples/scheduler/election";

/// Runs jobs one after the other, in one instance at a time, and writes their results to PostgreSQL.
#[derive(Debug, Parser)]
struct Options {
    #[command(flatten)]
    connect: ConnectOptions,
    /// The name of this instance.
    #[arg(long)]
    name: String,
    /// The database, as libpq writes it. Tables are created if they are missing.
    #[arg(long, default_value = "host=localhost user=postgres dbname=postgres")]
    postgres: String,
    /// How long a job takes, in ms.
    #[arg(long, value_name = "MS", default_value_t = 500)]
    job_ms: u64,
    /// How long to wait between two jobs, in ms.
    #[arg(long, value_name = "MS", default_value_t = 500)]
    pause_ms: u64,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    start_log();
    let options = Options::parse();
    let results = Results::open(&options.postgres, &options.name).await?;
    let client = options.connect.connect().await?;
    let latch = LeaderLatch::new(&client, ELECTION, &options.name);
    latch.start();
    let ended = tokio::select! {
        stopped = stop_signal() => stopped.map_err(Into::into),
        // An instance whose database is gone, or does not answer in time, ends. So another one leads that may have one.
        ended = contend(&latch, &results, &options) => ended,
    };
    // Without these the next leader would have to wait until this session expires.
    give_back(latch.close()).await;
    client.close().await;
    ended
}

/// Leads whenever it is elected. Returns only with an error.
async fn contend(latch: &LeaderLatch, results: &Results, options: &Options) -> Result<(), Box<dyn Error>> {
    loop {
        tracing::info!("waits to be elected");
        let leadership = latch.wait_for_leadership().await?;
        lead(latch, &leadership, results, options).await?;
        if let LatchState::Failed(error) = latch.state() {
            return Err(error.into());
        }
    }
}

/// Runs jobs until this instance does not lead any more.
async fn lead(
    latch: &LeaderLatch,
    leadership: &Fence,
    results: &Results,
    options: &Options,
) -> Result<(), Box<dyn Error>> {
    let token = leadership.token();
    // Before anything else: from now on the database refuses earlier leaders, also those who do not know that they
    // are.
    if results.take_over(token).await? == Outcome::Refused {
        tracing::warn!("the database has seen a later leader than {token}");
        return wait_for_end(leadership).await;
    }
    tracing::info!("leads, with token {token}");
    // The connection may be suspended, or another client may have deleted the znode. Then no new job begins.
    while latch.leadership().is_some_and(|now| now.token() == token) {
        let job = results.next_job().await?;
        tracing::info!("job {job}: begins");
        let result = run(job, options).await;
        // It does not matter here whether the instance still leads, and for how long: the database decides.
        match results.write(token, job, &result).await? {
            Outcome::Written => tracing::info!("job {job}: the result is written"),
            Outcome::Refused => {
                tracing::warn!("job {job}: the result is REFUSED, because a later leader is there");
                break;
            }
        }
        sleep(Duration::from_millis(options.pause_ms)).await;
    }
    tracing::info!("does not lead any more");
    Ok(())
}

/// Waits until a leadership that the database has refused is over.
///
/// # Errors
/// It is not over: the larger token is not that of a later leader of this ensemble.
async fn wait_for_end(leadership: &Fence) -> Result<(), Box<dyn Error>> {
    match leadership.verify().await {
        // This instance still led after the database had refused it. It would lead on, and run nothing.
        Ok(()) => Err("the database has a larger token; was the data of the servers reset?".into()),
        Err(error) if error.is_not_held() => {
            leadership.lost().await;
            Ok(())
        }
        // Nobody knows yet. The next leadership tells, or this one once it is connected again.
        Err(error) if error.is_retryable() => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// The job itself, which stands for something that takes long.
async fn run(job: i64, options: &Options) -> String {
    sleep(Duration::from_millis(options.job_ms)).await;
    format!("the square of {job} is {}", job.saturating_mul(job))
}
