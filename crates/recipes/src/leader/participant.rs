//! The participants of an election.

use crate::{error::Result, queue_place};
use ostler_client::Client;

/// A participant of an election.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Participant {
    /// The id that the participant has chosen.
    pub id: String,
    /// Whether the participant was the first in the queue. It may not know this yet.
    pub is_leader: bool,
    /// The path of the participant's znode.
    pub node: String,
}

/// All participants, in the order of the queue.
pub(crate) async fn all(client: &Client, path: &str, word: &str) -> Result<Vec<Participant>> {
    let mut found = Vec::new();
    for node in queue_place::participant_nodes(client, path, word).await? {
        let is_leader = found.is_empty();
        found.extend(at(client, node, is_leader).await?);
    }
    Ok(found)
}

/// The first participant in the queue.
pub(crate) async fn leader(client: &Client, path: &str, word: &str) -> Result<Option<Participant>> {
    for node in queue_place::participant_nodes(client, path, word).await? {
        if let Some(leader) = at(client, node, true).await? {
            return Ok(Some(leader));
        }
    }
    Ok(None)
}

/// The participant whose znode is `node`; `None` if the znode is gone.
pub(crate) async fn at(client: &Client, node: String, is_leader: bool) -> Result<Option<Participant>> {
    match client.get_data(&node).await {
        Ok((data, _)) => {
            let id = String::from_utf8_lossy(&data).into_owned();
            Ok(Some(Participant { id, is_leader, node }))
        }
        Err(error) if error.is_no_node() => Ok(None),
        Err(error) => Err(error.into()),
    }
}
