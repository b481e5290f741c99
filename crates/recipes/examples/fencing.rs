//! A holder that stands still for longer than its session lasts, and writes when it goes on. `cargo run -p
//! ostler-recipes --example fencing` runs it against a server of its own; with a connect string, against that, which
//! takes longer if its ticks are longer.

use ostler_client::Client;
use ostler_recipes::{fencing::Token, lock::InterProcessMutex};
use ostler_testkit::TestServer;
use std::{
    error::Error,
    sync::{Arc, Mutex, PoisonError, mpsc},
    thread,
    time::Duration,
};

const LOCK: &str = "/examples/fenced";
const LEDGER: &str = "/examples/ledger";

type Done = Result<(), Box<dyn Error + Send + Sync>>;

/// A store that is not ZooKeeper: it remembers the largest token, and refuses smaller ones.
#[derive(Default)]
struct Store(Mutex<u64>);

impl Store {
    fn write(&self, token: Token) -> bool {
        let mut largest = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let accepted = *largest <= token.number();
        *largest = token.number().max(*largest);
        accepted
    }
}

#[tokio::main]
async fn main() -> Done {
    let mut own = None;
    let servers = match std::env::args().nth(1) {
        Some(servers) => servers,
        None => own.insert(TestServer::start().await?).connect_string(),
    };
    let store = Arc::new(Store::default());
    let (says, heard) = mpsc::channel();
    // On a thread and a runtime of its own, so that it can stand still as a whole, as a process does.
    let (of_first, to) = (store.clone(), servers.clone());
    let first = thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(paused_holder(&to, &of_first, &says))
    });
    heard.recv()?;

    let client = Client::connect(&servers).await?;
    let guard = InterProcessMutex::new(&client, LOCK).acquire().await?;
    println!("second holds it, with token {}", guard.token());
    guard.multi().set_data(LEDGER, "second").await?;
    println!("second has written; the store takes its write: {}", store.write(guard.token()));

    first.join().map_err(|_| "the first holder has panicked")??;
    let (data, _) = client.get_data(LEDGER).await?;
    println!("the ledger says: {}", String::from_utf8_lossy(&data));
    Ok(guard.release().await?)
}

/// Its session is shorter than its pause.
async fn paused_holder(servers: &str, store: &Store, says: &mpsc::Sender<()>) -> Done {
    let client = Client::builder(servers).session_timeout(Duration::from_secs(1)).connect().await?;
    client.create(LEDGER, "").creating_parents().or_set_data().await?;
    let guard = InterProcessMutex::new(&client, LOCK).acquire().await?;
    println!("first holds it, with token {}, and is paused", guard.token());
    says.send(())?;
    let granted = client.session_timeout().ok_or("no session")?;
    // Not a task's sleep: nothing of this client runs meanwhile.
    thread::sleep(granted * 3);

    println!("first goes on, and takes itself for the holder: {}", guard.is_held());
    match guard.multi().set_data(LEDGER, "first").await {
        Ok(_) => println!("first has written"),
        Err(error) => println!("first is refused: {error}"),
    }
    println!("the store takes its write: {}", store.write(guard.token()));
    Ok(())
}
