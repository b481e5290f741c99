//! A count that all see, a number that all add to, and numbers drawn in blocks. `cargo run -p ostler-recipes --example
//! counters` runs it against a server of its own; with a connect string, against that.

use ostler_client::{Client, RetryPolicy};
use ostler_recipes::counter::{
    CachedAtomicNumber, DistributedAtomicLong, DistributedAtomicValue, PromotedToLock, Result, SharedCount,
};
use ostler_testkit::TestServer;
use std::{num::NonZeroU16, time::Duration};
use tokio::try_join;

type Done = std::result::Result<(), Box<dyn std::error::Error>>;

#[tokio::main]
async fn main() -> Done {
    let mut own = None;
    let servers = match std::env::args().nth(1) {
        Some(servers) => servers,
        None => own.insert(TestServer::start().await?).connect_string(),
    };
    let (a, b) = try_join!(Client::connect(&servers), Client::connect(&servers))?;
    shared(&a, &b).await?;
    atomic(&a, &b).await?;
    cached(&a, &b).await
}

async fn shared(a: &Client, b: &Client) -> Done {
    let (of_a, of_b) =
        try_join!(SharedCount::start(a, "/examples/count", 1), SharedCount::start(b, "/examples/count", 1))?;
    let (mut changes, old) = (of_b.changes(), of_a.versioned_value()?);
    println!("shared count: a sets it: {}", of_a.try_set(&old, old.value + 1).await?);
    if let Some(changed) = changes.next().await {
        println!("shared count: b sees that it has grown by {}", changed?.value - old.value);
    }
    println!("shared count: b sets it from what a had read: {}", of_b.try_set(&old, 0).await?);
    Ok(())
}

async fn atomic(a: &Client, b: &Client) -> Done {
    let number = |client| {
        let retry = RetryPolicy::exponential(Duration::from_millis(5), Duration::from_millis(100), 3);
        let (lock, limit) = ("/examples/number-lock", Duration::from_secs(5));
        let promotion = PromotedToLock::at(client, lock, limit, RetryPolicy::once(Duration::ZERO));
        DistributedAtomicLong::new(client, "/examples/number", retry).promoted_to_lock(promotion)
    };
    let before = number(a).get().await?;
    let (of_a, of_b) = try_join!(add(number(a)), add(number(b)))?;
    let after = number(a).get().await?;
    println!("number: a has added {of_a}, b {of_b}, together {}", after - before);

    let value = DistributedAtomicValue::new(a, "/examples/value", RetryPolicy::none());
    value.force_set("old").await?;
    println!("value: from old to new: {}", value.compare_and_set("old", "new").await?.succeeded);
    println!("value: once more: {}", value.compare_and_set("old", "newer").await?.succeeded);
    Ok(())
}

async fn add(number: DistributedAtomicLong) -> Result<u32> {
    let mut added = 0;
    for _ in 0..50 {
        added += u32::from(number.increment().await?.succeeded);
    }
    Ok(added)
}

async fn cached(a: &Client, b: &Client) -> Done {
    const BLOCK: NonZeroU16 = NonZeroU16::new(10).unwrap();
    let ids = |client| {
        CachedAtomicNumber::new(
            DistributedAtomicLong::new(client, "/examples/ids", RetryPolicy::default()),
            BLOCK,
        )
    };
    let (mut of_a, mut of_b) = (ids(a), ids(b));
    for _ in 0..3 {
        println!("ids: a draws {}, b {}", of_a.next().await?, of_b.next().await?);
    }
    Ok(())
}
