//! The program of docs/get-started/rust.md, which needs a server at 127.0.0.1:2181, or at the connect string that it
//! gets.

use ostler_client::Client;
use ostler_recipes::lock::InterProcessMutex;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let servers = std::env::args().nth(1).unwrap_or("127.0.0.1:2181".into());
    let client = Client::connect(&servers).await?;

    // A znode, and a watch on it.
    client.create("/hello", b"world").await?;
    let ((data, _), changed) = client.get_data("/hello").watch().await?;
    println!("/hello has the data {}", String::from_utf8_lossy(&data));

    // The watch fires once, at the next change.
    client.set_data("/hello", b"everybody").await?;
    let event = changed.await?;
    println!("event: {:?} {}", event.kind, event.path);

    // A lock: of all programs that do this, one at a time goes on.
    let lock = InterProcessMutex::new(&client, "/lock");
    let guard = lock.acquire().await?;
    println!("I hold the lock");
    guard.release().await?;

    client.delete("/hello").await?;
    client.close().await;
    Ok(())
}
