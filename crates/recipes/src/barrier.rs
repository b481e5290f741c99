//! A barrier, and one that a number of processes enter and leave together.

use crate::until_answered::{fired, until_answered};
use ostler_client::{Client, Result};
use std::time::Duration;

mod double;

pub use double::DistributedDoubleBarrier;

/// A znode that holds back everybody who waits for it to go. Curator's `DistributedBarrier`.
///
/// Waiting goes on through lost connections and sessions; what is seen is never older than the call, but at a leader
/// that its followers have left and that does not know it yet: there `sync` is answered at once. That the barrier is
/// gone is true at one moment: it can be set again before the caller acts. Everybody who waits is woken at once, which
/// is what a barrier is for.
#[derive(Debug, Clone)]
pub struct DistributedBarrier {
    client: Client,
    path: String,
}

impl DistributedBarrier {
    /// The barrier at `path`.
    pub fn new(client: &Client, path: &str) -> DistributedBarrier {
        DistributedBarrier { client: client.clone(), path: path.to_owned() }
    }

    /// Sets it: who waits from now on, waits. Does nothing if it is set.
    ///
    /// # Errors
    /// Those of create.
    pub async fn set(&self) -> Result<()> {
        let create = || self.client.create(&self.path, b"").creating_container_parents();
        match until_answered(&self.client, create).await {
            Err(error) if error.is_node_exists() => Ok(()),
            made => made.map(drop),
        }
    }

    /// Removes it: everybody goes on. Does nothing if it is not set.
    ///
    /// # Errors
    /// Those of delete but `NoNode`.
    pub async fn remove(&self) -> Result<()> {
        until_answered(&self.client, || self.client.delete(&self.path).quietly()).await
    }

    /// Waits until it is not set.
    ///
    /// # Errors
    /// [`Error::Closed`](ostler_client::Error::Closed); those of exists.
    pub async fn wait(&self) -> Result<()> {
        // The server that is asked can be behind the one at which the barrier was set.
        until_answered(&self.client, || self.client.sync(&self.path)).await?;
        loop {
            let look = || self.client.exists(&self.path).watch();
            match until_answered(&self.client, look).await? {
                (None, _) => return Ok(()),
                (Some(_), changed) => fired(changed.await)?,
            }
        }
    }

    /// Waits until it is not set, but no longer than `limit`; false if it still is.
    ///
    /// # Errors
    /// Those of [`wait`](DistributedBarrier::wait).
    pub async fn wait_at_most(&self, limit: Duration) -> Result<bool> {
        match tokio::time::timeout(limit, self.wait()).await {
            Ok(waited) => waited.map(|()| true),
            Err(_) => Ok(false),
        }
    }
}
