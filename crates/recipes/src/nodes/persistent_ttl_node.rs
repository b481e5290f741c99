//! A znode that the server deletes some time after its owner is gone.

use crate::{
    background::BackgroundTask,
    nodes::{Creations, PersistentNode},
};
use ostler_client::{Bytes, Client, CreateMode, Result, paths};
use std::time::Duration;
use tokio::time::{MissedTickBehavior, interval};

/// The child that is touched. `DEFAULT_CHILD_NODE_NAME` in Curator.
const TOUCHED: &str = "touch";
/// Touches in one TTL. `DEFAULT_TOUCH_SCHEDULE_FACTOR` in Curator.
const TOUCHES: u32 = 2;

/// A znode that outlives its owner, and its session, for a while. The znode has a TTL, and a child with a TTL that the
/// owner touches twice in that time. When the owner stops, the server deletes the child and then the znode. Curator's
/// `PersistentTtlNode`.
///
/// Servers have TTLs only with `extendedTypesEnabled`. When this is closed or dropped, the znode is left to the server.
#[derive(Debug)]
#[must_use = "a node that is dropped is deleted after its TTL"]
pub struct PersistentTtlNode {
    node: PersistentNode,
    touching: BackgroundTask,
}

impl PersistentTtlNode {
    /// Starts to create the znode and to keep it.
    ///
    /// # Errors
    /// [`Error::BadPath`](ostler_client::Error::BadPath).
    pub fn start(
        client: &Client,
        path: &str,
        ttl: Duration,
        data: impl AsRef<[u8]>,
    ) -> Result<PersistentTtlNode> {
        let mode = CreateMode::PersistentWithTtl(ttl);
        let mut builder = PersistentNode::builder(client, path, data).mode(mode);
        builder.plan.deleted_at_end = false;
        let node = builder.start()?;
        let work = touch(client.clone(), paths::join(path, TOUCHED), ttl);
        Ok(PersistentTtlNode { node, touching: BackgroundTask::spawn(client, work) })
    }

    /// Waits until the znode is created for the first time; returns its path.
    ///
    /// # Errors
    /// Those of [`PersistentNode::created`]: `Unimplemented` where servers have no TTLs.
    pub async fn created(&self) -> Result<String> {
        self.node.created().await
    }

    /// The data that the znode has, or will have.
    pub fn data(&self) -> Bytes {
        self.node.data()
    }

    /// Sets the znode's data, and waits until that is done.
    ///
    /// # Errors
    /// Those of [`PersistentNode::set_data`].
    pub async fn set_data(&self, data: impl AsRef<[u8]>) -> Result<()> {
        self.node.set_data(data).await
    }

    /// A stream of the znode's creations from now on.
    pub fn creations(&self) -> Creations {
        self.node.creations()
    }

    /// Keeps the znode no longer, and waits until no request of this value is under way. The server deletes the znode
    /// after its TTL. Further callers wait for the same.
    pub async fn close(&self) {
        self.touching.stop().await;
        self.node.close().await;
    }
}

/// Touches the child until dropped. The next touch makes up for one that fails.
async fn touch(client: Client, path: String, ttl: Duration) {
    let mut ticks = interval((ttl / TOUCHES).max(Duration::from_millis(1)));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let touched = match client.set_data(&path, b"").await {
            Err(error) if error.is_no_node() => {
                client.create(&path, b"").ttl(ttl).or_set_data().await.map(drop)
            }
            set => set.map(drop),
        };
        match touched {
            Err(error) if error.is_closed() => return,
            // The znode above may not be there yet.
            Err(error) => tracing::debug!(path, %error, "not touched"),
            Ok(()) => {}
        }
    }
}
