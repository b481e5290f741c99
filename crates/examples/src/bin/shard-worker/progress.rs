//! How far the work on each shard has come: a znode for each shard, written through the fence of the shard's owner.
//!
//! The check that the worker owns the shard and the write are one transaction. So a former owner cannot write any more,
//! however long it was paused. The transaction also checks the version that was read: a new owner may have read it at a
//! server that had not heard of the former owner's last step. The znode has the token of its writer, as a store outside of
//! ZooKeeper needs it.

use ostler_client::{Version, paths};
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
    /// [`NotHeld`](ostler_recipes::Error::NotHeld): the shard has another owner, and nothing was done. `BadVersion` or
    /// `NodeExists`: the server that was read is behind.
    pub(crate) async fn step(&self, shard: &str, fence: &Fence) -> Result<()> {
        let path = paths::join(&self.path, shard);
        let read = match fence.session().get_data(&path).await {
            Err(error) if error.is_no_node() => None,
            read => Some(read?),
        };
        // Data that is no record counts as none.
        let before: Option<Record> = read.as_ref().and_then(|(data, _)| serde_json::from_slice(data).ok());
        let before = before.unwrap_or_default();
        let token = Some(fence.token());
        let next = Record { token, worker: self.worker.clone(), steps: before.steps + 1 };
        // Numbers and text can be written as JSON.
        let data = serde_json::to_vec(&next).unwrap_or_default();
        match read {
            Some((_, stat)) => {
                let version = Version::Exactly(stat.version);
                fence.multi().set_data(&path, &data).version(version).await?
            }
            None => fence.multi().create(&path, &data).await?,
        };
        Ok(())
    }
}
