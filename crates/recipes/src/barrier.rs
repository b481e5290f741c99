//! Barriers: a barrier that processes wait for, and a double barrier that a number of processes enter and leave
//! together.

use crate::until_answered::{fired, until_answered};
use ostler_client::{Client, Result};
use std::time::Duration;

mod double;

pub use double::DistributedDoubleBarrier;

/// A barrier: a znode that processes wait for until it is deleted. Curator's `DistributedBarrier`.
///
/// A wait goes on over connection losses and lost sessions. It calls `sync` first, so what it sees is never older than
/// the call. The exception is a leader that its followers have left and that does not know it yet: it answers `sync` at
/// once. The barrier can be set again before a process that was released acts. When the barrier is removed, all waiting
/// processes go on.
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

    /// Sets the barrier: calls of [`wait`](DistributedBarrier::wait) wait from now on. Has no effect if it is set.
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

    /// Removes the barrier: all waiting processes go on. Has no effect if it is not set.
    ///
    /// # Errors
    /// Those of delete, except `NoNode`.
    pub async fn remove(&self) -> Result<()> {
        until_answered(&self.client, || self.client.delete(&self.path).quietly()).await
    }

    /// Waits until the barrier is not set. Returns at once if it is not set.
    ///
    /// # Errors
    /// [`Error::Closed`](ostler_client::Error::Closed); those of exists.
    pub async fn wait(&self) -> Result<()> {
        // This client's server can lag behind the server at which the barrier was set.
        until_answered(&self.client, || self.client.sync(&self.path)).await?;
        loop {
            let look = || self.client.exists(&self.path).watch();
            match until_answered(&self.client, look).await? {
                (None, _) => return Ok(()),
                (Some(_), changed) => fired(changed.await)?,
            }
        }
    }

    /// Waits until the barrier is not set, at most for `limit`. Returns false if it is still set then, or if
    /// that is not known by then.
    ///
    /// The limit counts from the call and includes the requests, so one that is shorter than a round trip never succeeds.
    ///
    /// # Errors
    /// Those of [`wait`](DistributedBarrier::wait).
    pub async fn wait_within(&self, limit: Duration) -> Result<bool> {
        match tokio::time::timeout(limit, self.wait()).await {
            Ok(waited) => waited.map(|()| true),
            Err(_) => Ok(false),
        }
    }
}
