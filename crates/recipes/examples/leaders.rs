//! Several participants of one election, each of which leads for a moment and hands over. `cargo run -p ostler-recipes
//! --example leaders` runs it against a server of its own; with a connect string, against that.

use ostler_client::Client;
use ostler_recipes::{Result, leader::LeaderSelector, leader::Leadership};
use ostler_testkit::TestServer;
use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering::Relaxed},
    },
    time::Duration,
};
use tokio::time::sleep;

const PARTICIPANTS: usize = 4;

#[tokio::main]
async fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let mut own = None;
    let servers = match std::env::args().nth(1) {
        Some(servers) => servers,
        None => own.insert(TestServer::start().await?).connect_string(),
    };
    let mut participants = Vec::new();
    for number in 0..PARTICIPANTS {
        participants.push(participant(&servers, &format!("participant {number}")).await?);
    }
    sleep(Duration::from_secs(10)).await;
    println!("that is enough");
    for participant in &participants {
        participant.close().await;
    }
    Ok(())
}

async fn participant(servers: &str, name: &str) -> Result<LeaderSelector> {
    let client = Client::connect(servers).await?;
    let (own, times) = (Arc::<str>::from(name), Arc::new(AtomicU32::new(0)));
    let lead = move |leadership: Leadership| {
        let (name, times) = (own.clone(), times.fetch_add(1, Relaxed) + 1);
        async move {
            println!("{name} leads, time {times}, with token {}", leadership.token());
            sleep(Duration::from_millis(500)).await;
            println!("{name} hands over");
        }
    };
    Ok(LeaderSelector::builder(&client, "/examples/leaders", lead).id(name).auto_requeue().start())
}
