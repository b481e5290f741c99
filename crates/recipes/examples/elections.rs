//! Three candidates of a latch, the leader's acknowledgement, and an election without a queue. `cargo run -p
//! ostler-recipes --example elections` runs it against a server of its own; with a connect string, against that.

use ostler_client::Client;
use ostler_recipes::leader::{Acknowledgement, LeaderChange, LeaderLatch, UnfairElection};
use ostler_testkit::TestServer;
use std::{error::Error, time::Duration};
use tokio::time::sleep;

type Done = Result<(), Box<dyn Error>>;

#[tokio::main]
async fn main() -> Done {
    let mut own = None;
    let servers = match std::env::args().nth(1) {
        Some(servers) => servers,
        None => own.insert(TestServer::start().await?).connect_string(),
    };
    latches(&servers).await?;
    unfair(&servers).await
}

/// Each leads until it is closed; who comes next was decided when they came.
async fn latches(servers: &str) -> Done {
    let mut latches = Vec::new();
    for id in ["a", "b", "c"] {
        let client = Client::connect(servers).await?;
        let latch = LeaderLatch::new(&client, "/examples/latch", id);
        latch.start();
        tokio::spawn(announce(client, id, latch.changes()));
        while !latch.participants().await?.iter().any(|participant| participant.id == id) {
            sleep(Duration::from_millis(10)).await;
        }
        latches.push(latch);
    }
    let onlooker = Client::connect(servers).await?;
    let ready = Acknowledgement::new(&onlooker, "/examples/latch-ready");
    for latch in latches {
        let leader = latch.wait_for_leadership().await?;
        let acknowledged = loop {
            let acknowledged = ready.wait().await?;
            if acknowledged.token == leader.token() {
                break acknowledged;
            }
        };
        println!("an onlooker knows: {}", String::from_utf8_lossy(&acknowledged.data));
        latch.close().await;
    }
    Ok(())
}

/// The acts of a candidate that leads: first its procedure, then a line that says so.
async fn announce(client: Client, id: &str, mut changes: ostler_recipes::leader::LeaderChanges) {
    let ready = Acknowledgement::new(&client, "/examples/latch-ready");
    while let Some(change) = changes.next().await {
        if let LeaderChange::IsLeader(fence) = change {
            println!("{id} leads, with token {}", fence.token());
            sleep(Duration::from_millis(200)).await;
            if let Err(error) = ready.acknowledge(&fence, format!("{id} is ready")).await {
                println!("{id} could not say so: {error}");
            }
        }
    }
}

/// Whoever creates the znode first leads; the others see it go and all try.
async fn unfair(servers: &str) -> Done {
    let mut candidates = Vec::new();
    for id in ["x", "y", "z"] {
        let client = Client::connect(servers).await?;
        candidates.push(tokio::spawn(async move {
            let election = UnfairElection::new(&client, "/examples/unfair", id);
            let leadership = election.campaign().await?;
            println!("{id} was first, with token {}", leadership.token());
            sleep(Duration::from_millis(200)).await;
            leadership.resign().await
        }));
    }
    for candidate in candidates {
        candidate.await??;
    }
    Ok(())
}
