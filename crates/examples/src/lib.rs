//! The parts that all example programs have: the options of the connection, the log, and the end by a signal.
//!
//! `docs/examples.md` says what each program shows, and how to run it.
#![deny(missing_docs)]

use ostler_client::{Client, Result, RetryPolicy};
use std::{io::IsTerminal, time::Duration};
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;

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
