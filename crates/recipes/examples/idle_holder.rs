//! `idle_holder SERVERS PATH SESSION_MS [unproven]`: holds a lock and writes nothing, so that its server need not ask
//! anybody. `interop/recipes/cut_off.py` cuts that off from the others.
//!
//! It says when it began to hold, and until when it took itself for the holder, in microseconds since 1970.

use ostler_client::Client;
use ostler_recipes::{Result, lock::InterProcessMutex};
use std::{
    process::exit,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

/// How often it asks itself whether it holds.
const LOOK: Duration = Duration::from_millis(1);

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (servers, path, session_ms, prove) = match &arguments[..] {
        [servers, path, session_ms] => (servers, path, session_ms, true),
        [servers, path, session_ms, word] if word == "unproven" => (servers, path, session_ms, false),
        _ => {
            eprintln!("usage: idle_holder SERVERS PATH SESSION_MS [unproven]");
            exit(2);
        }
    };
    let session = Duration::from_millis(session_ms.parse().unwrap_or(1000));
    let client = Client::builder(servers).session_timeout(session).prove_holding(prove).connect().await;
    let done = match client {
        Ok(client) => hold(&client, path).await,
        Err(error) => Err(error.into()),
    };
    if let Err(error) = done {
        println!("trouble: {error}");
        exit(3);
    }
}

async fn hold(client: &Client, path: &str) -> Result<()> {
    let guard = InterProcessMutex::new(client, path).acquire().await?;
    println!("holds from {}", now());
    let mut until = now();
    // The time is taken before the question: it is not said to hold for longer than it did.
    loop {
        let asked = now();
        if !guard.is_held() {
            break;
        }
        until = asked;
        tokio::time::sleep(LOOK).await;
    }
    println!("held until {until}");
    Ok(())
}

fn now() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros())
}
