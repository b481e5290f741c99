//! How far the work on each shard has come: a znode for each shard, written through the fence of the shard's owner.
//!
//! The check that the worker owns the shard and the write are one transaction. So a former owner cannot write any more,
//! however long it was paused. The znode also has the token of its writer, as a store outside of ZooKeeper needs it.

use ostler_client::paths;
use ostler_recipes::{
    Result,
    fencing::{Fence, Token},
};
use serde::{Deserialize, Serialize};

/// The data of a shard's znode.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Record {
    token: Option<Token>,
    worker: String,
    steps: u64,
}

/// The progress of all shards, as one worker writes it.
#[derive(Debug)]
pub(crate) struct Progress {
    path: String,
    worker: String,
}

impl Progress {
    pub(crate) fn new(path: &str, worker: &str) -> Progress {
        Progress { path: path.to_owned(), worker: worker.to_owned() }
    }

    /// Does one more step with a shard.
    ///
    /// # Errors
    /// [`NotHeld`](ostler_recipes::Error::NotHeld): the shard has another owner, and nothing was done.
    pub(crate) async fn step(&self, shard: &str, fence: &Fence) -> Result<()> {
        let path = paths::join(&self.path, shard);
        let read = match fence.session().get_data(&path).await {
            Err(error) if error.is_no_node() => None,
            read => Some(read?.0),
        };
        // Data that is no record counts as none.
        let before: Record =
            read.as_deref().and_then(|data| serde_json::from_slice(data).ok()).unwrap_or_default();
        let token = Some(fence.token());
        let next = Record { token, worker: self.worker.clone(), steps: before.steps + 1 };
        // Numbers and text can be written as JSON.
        let data = serde_json::to_vec(&next).unwrap_or_default();
        match read {
            Some(_) => fence.multi().set_data(&path, &data).await?,
            None => fence.multi().create(&path, &data).await?,
        };
        Ok(())
    }
}
