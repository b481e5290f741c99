//! A mutex, its revocation, a semaphore mutex, a read-write lock and a multi lock, each between several clients. `cargo
//! run -p ostler-recipes --example locks` runs it against a server of its own; with a connect string, against that.

use ostler_client::Client;
use ostler_recipes::lock::{
    InterProcessMultiLock, InterProcessMutex, InterProcessReadWriteLock, InterProcessSemaphoreMutex, Owner,
    attempt_revoke,
};
use ostler_testkit::TestServer;
use std::{error::Error, time::Duration};
use tokio::{time::sleep, try_join};

const MOMENT: Duration = Duration::from_millis(100);

type Done = Result<(), Box<dyn Error>>;

#[tokio::main]
async fn main() -> Done {
    let mut own = None;
    let servers = match std::env::args().nth(1) {
        Some(servers) => servers,
        None => own.insert(TestServer::start().await?).connect_string(),
    };
    let (a, b) = try_join!(Client::connect(&servers), Client::connect(&servers))?;
    mutex(&a, &b).await?;
    semaphore_mutex(&a, &b).await?;
    read_write(&a, &b).await?;
    multi(&a, &b).await
}

async fn mutex(a: &Client, b: &Client) -> Done {
    let (of_a, of_b) =
        (InterProcessMutex::new(a, "/examples/mutex"), InterProcessMutex::new(b, "/examples/mutex"));
    let me = Owner::new();
    let held = of_a.acquire_as(&me).await?;
    let again = of_a.acquire_as(&me).await?;
    println!("mutex: a holds it twice, with token {}", held.token());
    println!(
        "mutex: b gets {:?} within 100 ms",
        of_b.acquire_within(MOMENT).await?.map(|guard| guard.token())
    );

    let nodes = of_b.participant_nodes().await?;
    attempt_revoke(b, &nodes[0]).await?;
    held.revocation_requested().await?;
    println!("mutex: a is asked to release it, and does");
    held.release().await?;
    again.release().await?;
    let guard = of_b.acquire().await?;
    println!("mutex: b holds it, with token {}", guard.token());
    Ok(guard.release().await?)
}

async fn semaphore_mutex(a: &Client, b: &Client) -> Done {
    let path = "/examples/semaphore-mutex";
    let held = InterProcessSemaphoreMutex::new(a, path).acquire().await?;
    let other = InterProcessSemaphoreMutex::new(b, path).acquire_within(MOMENT).await?;
    println!("semaphore mutex: a holds it, b got it: {}", other.is_some());
    Ok(held.release().await?)
}

async fn read_write(a: &Client, b: &Client) -> Done {
    let path = "/examples/read-write";
    let (of_a, of_b) = (InterProcessReadWriteLock::new(a, path), InterProcessReadWriteLock::new(b, path));
    let (one, two) = try_join!(of_a.acquire_read(), of_b.acquire_read())?;
    println!("read-write: two read at once");
    let writer = tokio::spawn(async move { of_b.acquire_write().await });
    while of_a.writer_nodes().await?.is_empty() {
        sleep(MOMENT).await;
    }
    println!("read-write: a writer waits for {} readers", of_a.reader_nodes().await?.len());
    try_join!(one.release(), two.release())?;
    let writer = writer.await??;
    println!("read-write: the writer writes, with token {}", writer.token());
    let reader = writer.downgrade().await?;
    println!("read-write: the writer has become a reader");
    Ok(reader.release().await?)
}

async fn multi(a: &Client, b: &Client) -> Done {
    let paths = ["/examples/multi-1", "/examples/multi-2"];
    let (of_a, of_b) = (InterProcessMultiLock::new(a, paths), InterProcessMutex::new(b, paths[1]));
    let second = of_b.acquire().await?;
    let both = of_a.acquire_within(MOMENT).await?;
    let first = InterProcessMutex::new(a, paths[0]);
    println!("multi: b holds one lock, a got both: {}", both.is_some());
    // Its lock is released in the background.
    while !first.participant_nodes().await?.is_empty() {
        sleep(MOMENT).await;
    }
    println!("multi: a has kept neither");
    second.release().await?;
    let both = of_a.acquire().await?;
    println!("multi: now a holds {}", both.guards().len());
    Ok(both.release().await?)
}
