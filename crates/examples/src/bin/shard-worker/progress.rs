//! How far the work on each shard has come: a znode for each shard, fenced by the token of the shard's owner.
//!
//! The znode has the token of its last writer. A write is done only if its own token is not smaller, and the znode has
//! not changed since the token was compared. So a former owner cannot write after a later one, however long it was
//! paused.

use ostler_client::{Client, Result, Version, Zxid, paths};
use ostler_recipes::fencing::Token;
use serde::{Deserialize, Serialize};

/// The data of a shard's znode.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Record {
    token: u64,
    worker: String,
    steps: u64,
}

/// The outcome of a step.
#[derive(Debug)]
pub(crate) enum Step {
    Done,
    /// An owner with this later token has written. Nothing was done.
    Refused(Token),
}

/// The progress of all shards, as one worker writes it.
#[derive(Debug)]
pub(crate) struct Progress {
    client: Client,
    path: String,
    worker: String,
}

impl Progress {
    pub(crate) fn new(client: &Client, path: &str, worker: &str) -> Progress {
        Progress { client: client.clone(), path: path.to_owned(), worker: worker.to_owned() }
    }

    /// Does one more step with a shard.
    pub(crate) async fn step(&self, shard: &str, token: Token) -> Result<Step> {
        let path = paths::join(&self.path, shard);
        let (record, version) = match self.client.get_data(&path).await {
            // Data that is no record counts as none.
            Ok((data, stat)) => (serde_json::from_slice(&data).unwrap_or_default(), Some(stat.version)),
            Err(error) if error.is_no_node() => (Record::default(), None),
            Err(error) => return Err(error),
        };
        if record.token > token.number() {
            return Ok(Step::Refused(Token(Zxid(record.token))));
        }
        let next = Record { token: token.number(), worker: self.worker.clone(), steps: record.steps + 1 };
        // Numbers and text can be written as JSON.
        let data = serde_json::to_vec(&next).unwrap_or_default();
        match version {
            Some(version) => {
                self.client.set_data(&path, &data).version(Version::Exactly(version)).await.map(drop)?
            }
            None => self.client.create(&path, &data).creating_parents().await.map(drop)?,
        }
        Ok(Step::Done)
    }
}
