//! Revocation: a process asks the holder of a lock to release it. Curator's `Revoker`.

use crate::{
    error::{Error, Result},
    fencing::Fence,
    until_answered::event_unless_removed,
};
use ostler_client::Client;

/// The data that is written into the holder's znode.
const REVOKE: &[u8] = b"__REVOKE__";

/// Asks the participant whose znode is `node` to release its lock. For a mutex take a znode from
/// [`participant_nodes`](super::InterProcessMutex::participant_nodes), whose first one is the holder's. For a
/// read-write lock take one from [`reader_nodes`](super::InterProcessReadWriteLock::reader_nodes) or
/// [`writer_nodes`](super::InterProcessReadWriteLock::writer_nodes). Has no effect if the znode is gone.
///
/// This replaces the data of the znode, also what the holder has set by `node_data`.
///
/// # Errors
/// The client's errors.
pub async fn attempt_revoke(client: &Client, node: &str) -> Result<()> {
    match client.set_data(node, REVOKE).await {
        Err(error) if error.is_no_node() => Ok(()),
        written => Ok(written.map(drop)?),
    }
}

pub(crate) async fn requested(fence: &Fence) -> Result<()> {
    let not_held = || Error::NotHeld { node: fence.node().into(), token: fence.token() };
    loop {
        let ((data, _), changed) = match fence.session().get_data(fence.node()).watch().await {
            Err(error) if error.is_no_node() || error.is_session_over() || error.is_closed() => {
                return Err(not_held());
            }
            read => read?,
        };
        if data == REVOKE {
            return Ok(());
        }
        event_unless_removed(changed).await.map_err(|_| not_held())?;
    }
}
