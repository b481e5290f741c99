//! Each of the queues, with one consumer. `cargo run -p ostler-recipes --example queues` runs it against a server of
//! its own; with a connect string, against that.

use ostler_client::{Bytes, Client};
use ostler_recipes::queue::{DistributedQueue, SimpleDistributedQueue};
use ostler_testkit::TestServer;
use std::{
    error::Error,
    time::{Duration, SystemTime},
};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

type Done = Result<(), Box<dyn Error>>;

#[tokio::main]
async fn main() -> Done {
    let mut own = None;
    let servers = match std::env::args().nth(1) {
        Some(servers) => servers,
        None => own.insert(TestServer::start().await?).connect_string(),
    };
    let client = Client::connect(&servers).await?;
    let (to, mut consumed) = unbounded_channel();

    let queue = DistributedQueue::builder(&client, "/examples/queue")
        .lock_path("/examples/queue-locks")
        .build()
        .await?;
    for item in ["1", "fails once", "2"] {
        queue.put(item).await?;
    }
    let consumer = queue.consume(failing_once(to.clone()));
    print("queue", &mut consumed, 4).await?;
    drop(consumer);

    let queue = DistributedQueue::builder(&client, "/examples/priorities").build_priority_queue(1).await?;
    for (item, priority) in [("last", 7), ("first", -7), ("middle", 0)] {
        queue.put(item, priority).await?;
    }
    let consumer = queue.consume(hand(to.clone()));
    print("by priority", &mut consumed, 3).await?;
    drop(consumer);

    let queue = DistributedQueue::builder(&client, "/examples/delays").build_delay_queue().await?;
    queue.put("in half a second", SystemTime::now() + Duration::from_millis(500)).await?;
    queue.put("now", SystemTime::now()).await?;
    let consumer = queue.consume(hand(to.clone()));
    print("by time", &mut consumed, 2).await?;
    drop(consumer);

    let queue = DistributedQueue::builder(&client, "/examples/ids").build_id_queue().await?;
    queue.put("a", "keep").await?;
    queue.put("b", "drop").await?;
    println!("with ids: removed {}", queue.remove("drop").await?);
    let consumer = queue.consume(hand(to));
    print("with ids", &mut consumed, 1).await?;
    drop(consumer);

    let queue = SimpleDistributedQueue::new(&client, "/examples/simple");
    queue.offer("a").await?;
    println!("simple: {:?}, and then {:?}", queue.take().await?, queue.poll().await?);
    Ok(())
}

type Outcome = std::future::Ready<Result<(), &'static str>>;

/// A consumer that says what it got.
fn hand(to: UnboundedSender<Bytes>) -> impl FnMut(Bytes) -> Outcome + Send + 'static {
    move |item| std::future::ready(to.send(item).map_err(|_| "nobody listens"))
}

/// The same, but the first time it fails with one of the items, which is put back then.
fn failing_once(to: UnboundedSender<Bytes>) -> impl FnMut(Bytes) -> Outcome + Send + 'static {
    let (mut hand, mut has_failed) = (hand(to), false);
    move |item| {
        let fails = item == "fails once" && !std::mem::replace(&mut has_failed, true);
        let handed = hand(item);
        if fails { std::future::ready(Err("as it was to")) } else { handed }
    }
}

async fn print(queue: &str, consumed: &mut UnboundedReceiver<Bytes>, items: usize) -> Done {
    for _ in 0..items {
        let item = consumed.recv().await.ok_or("the consumer has gone")?;
        println!("{queue}: {}", String::from_utf8_lossy(&item));
    }
    Ok(())
}
