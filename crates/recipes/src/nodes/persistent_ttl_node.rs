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

/// A znode that outlives its owner for a while, whatever becomes of the session: it has a TTL, and a child, also with a
/// TTL, that is touched twice in that time. When the touching ends, the server deletes the child and then the znode.
/// Curator's `PersistentTtlNode`.
///
/// Servers delete so only with `extendedTypesEnabled`. Closed or dropped, it is left to them.
#[derive(Debug)]
pub struct PersistentTtlNode {
    node: PersistentNode,
    _touching: BackgroundTask,
}

impl PersistentTtlNode {
    /// Begins to keep it there.
    ///
    /// # Errors
    /// [`Error::BadPath`](ostler_client::Error::BadPath).
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn start(
        client: &Client,
        path: &str,
        ttl: Duration,
        data: impl AsRef<[u8]>,
    ) -> Result<PersistentTtlNode> {
        let mut builder = PersistentNode::builder(client, CreateMode::PersistentWithTtl(ttl), path, data);
        builder.plan.deleted_at_end = false;
        let node = builder.start()?;
        let work = touch(client.clone(), paths::join(path, TOUCHED), ttl);
        Ok(PersistentTtlNode { node, _touching: BackgroundTask::spawn(client, work) })
    }

    /// Waits until it is there for the first time; gives its path.
    ///
    /// # Errors
    /// Those of [`PersistentNode::created`]: `Unimplemented` where servers have no TTLs.
    pub async fn created(&self) -> Result<String> {
        self.node.created().await
    }

    /// The data that it has, or will have.
    pub fn data(&self) -> Bytes {
        self.node.data()
    }

    /// Sets its data, and waits until a server has it.
    ///
    /// # Errors
    /// Those of [`PersistentNode::set_data`].
    pub async fn set_data(&self, data: impl AsRef<[u8]>) -> Result<()> {
        self.node.set_data(data).await
    }

    /// The creations from now on.
    pub fn creations(&self) -> Creations {
        self.node.creations()
    }
}

/// Touches the child until dropped. What goes wrong is made good by the next touch.
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
            Err(ostler_client::Error::Closed) => return,
            // The znode above may not be there yet.
            Err(error) => tracing::debug!(path, %error, "not touched"),
            Ok(()) => {}
        }
    }
}
