//! The parts that all example programs have: the options of the connection, the log, and the end by a signal.
//!
//! `docs/examples.md` says what each program shows, and how to run it.
#![deny(missing_docs)]

use axum::Router;
use ostler_client::{Client, Result, RetryPolicy};
use std::{io::IsTerminal, time::Duration};
use tokio::{
    net::TcpListener,
    signal::unix::{SignalKind, signal},
    sync::oneshot,
    time::{sleep, timeout},
};
use tracing_subscriber::EnvFilter;

/// How long a program that ends waits for others: for servers, or for its own clients.
const PATIENCE_AT_END: Duration = Duration::from_secs(5);

/// The options of a program's connection.
#[derive(Debug, Clone, clap::Args)]
pub struct ConnectOptions {
    /// The servers, and a root for all paths if there is one.
    #[arg(
        long,
        value_name = "HOST:PORT,...",
        default_value = "127.0.0.1:2181,127.0.0.1:2182,127.0.0.1:2183"
    )]
    pub servers: String,
    /// How long the ensemble waits for a sign of this program before it ends its session, in ms.
    #[arg(long, value_name = "MS", default_value_t = 6000)]
    pub session_ms: u64,
}

impl ConnectOptions {
    /// Opens a session, and logs its states from then on.
    ///
    /// # Errors
    /// Those of [`ClientBuilder::connect`](ostler_client::ClientBuilder::connect).
    pub async fn connect(&self) -> Result<Client> {
        // Fast at first: an ensemble elects its next leader within some tenths of a second.
        let retry = RetryPolicy::exponential(Duration::from_millis(50), Duration::from_secs(1), 30);
        let timeout = Duration::from_millis(self.session_ms);
        let client = Client::builder(&self.servers).session_timeout(timeout).retry(retry).await?;
        let mut states = client.states();
        tokio::spawn(async move {
            while let Some(now) = states.next().await {
                tracing::info!("connection: {:?}", now.state);
            }
        });
        Ok(client)
    }
}

/// Writes the log to standard output. `RUST_LOG=debug` shows more of it.
pub fn start_log() {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_target(false)
        .with_ansi(std::io::stdout().is_terminal())
        .init();
}

/// Waits for SIGTERM or SIGINT, by which systemd, Kubernetes and Ctrl-C ask a program to end. From the first poll on,
/// these signals do not kill the program.
///
/// # Errors
/// Signals cannot be listened to.
pub async fn stop_signal() -> std::io::Result<()> {
    let (mut term, mut int) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    tokio::select! {
        _ = term.recv() => {}
        _ = int.recv() => {}
    }
    tracing::info!("ends");
    Ok(())
}

/// Waits until a program has given back what it holds, so that others need not wait until its session expires. Without a
/// connection to a server that could take for ever, so this returns `None` after five seconds.
pub async fn give_back<T>(returned: impl Future<Output = T>) -> Option<T> {
    let returned = timeout(PATIENCE_AT_END, returned).await.ok();
    if returned.is_none() {
        tracing::warn!("no server has answered: what is held is given back later, or ends with the session");
    }
    returned
}

/// Serves requests until SIGTERM or SIGINT, and does `before_end` then. After that it ends the requests that it has, for
/// five seconds: a client may never send the rest of its request.
///
/// # Errors
/// Signals cannot be listened to.
pub async fn serve(
    listener: TcpListener,
    app: Router,
    before_end: impl Future<Output = ()> + Send + 'static,
) -> std::io::Result<()> {
    let (ends, ended) = oneshot::channel();
    let stopped = async {
        let stopped = stop_signal().await;
        before_end.await;
        // The receiver is there as long as requests are served.
        let _ = ends.send(stopped);
    };
    let served = axum::serve(listener, app).with_graceful_shutdown(stopped);
    let overdue = async {
        let stopped = ended.await;
        sleep(PATIENCE_AT_END).await;
        stopped
    };
    tokio::select! {
        served = served => served,
        stopped = overdue => {
            tracing::warn!("requests that are not done are given up");
            stopped.unwrap_or(Ok(()))
        }
    }
}
