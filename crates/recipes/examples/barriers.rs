//! Three that wait at a barrier; then the three enter and leave a double one together. `cargo run -p ostler-recipes
//! --example barriers` runs it against a server of its own; with a connect string, against that.

use ostler_client::{Client, Result};
use ostler_recipes::barrier::{DistributedBarrier, DistributedDoubleBarrier};
use ostler_testkit::TestServer;
use std::time::Duration;
use tokio::time::{Instant, sleep};

const MEMBERS: u64 = 3;

#[tokio::main]
async fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let mut own = None;
    let servers = match std::env::args().nth(1) {
        Some(servers) => servers,
        None => own.insert(TestServer::start().await?).connect_string(),
    };
    let keeper = DistributedBarrier::new(&Client::connect(&servers).await?, "/examples/barrier");
    keeper.set().await?;
    let begun = Instant::now();
    let mut members = Vec::new();
    for number in 0..MEMBERS {
        let client = Client::connect(&servers).await?;
        members.push(tokio::spawn(async move { member(&client, number, begun).await }));
    }
    sleep(Duration::from_millis(500)).await;
    println!("the barrier is removed");
    keeper.remove().await?;
    for member in members {
        member.await??;
    }
    Ok(())
}

async fn member(client: &Client, number: u64, begun: Instant) -> Result<()> {
    let tell = |what: &str| println!("member {number} {what} after {} ms", begun.elapsed().as_millis());
    let barrier = DistributedBarrier::new(client, "/examples/barrier");
    if !barrier.wait_within(Duration::from_millis(100)).await? {
        tell("still waits");
    }
    barrier.wait().await?;
    tell("goes on");

    let mut both = DistributedDoubleBarrier::new(client, "/examples/double-barrier", MEMBERS as usize);
    sleep(Duration::from_millis(200 * number)).await;
    both.enter().await?;
    tell("has entered");
    sleep(Duration::from_millis(200 * number)).await;
    both.leave().await?;
    tell("has left");
    Ok(())
}
