//! Asking a holder to give a lock up. Curator's `Revoker`.

use crate::{
    error::{Error, Result},
    fencing::Fence,
};
use ostler_client::Client;

/// What is written into the holder's znode.
const REVOKE: &[u8] = b"__REVOKE__";

/// Asks the holder of a lock's znode to give it up: one of a mutex's
/// [`participant_nodes`](super::InterProcessMutex::participant_nodes), the first of which is the holder's, or of a
/// read-write lock's [`reader_nodes`](super::InterProcessReadWriteLock::reader_nodes) and
/// [`writer_nodes`](super::InterProcessReadWriteLock::writer_nodes). Nothing happens if it is gone.
///
/// # Errors
/// The client's.
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
            Err(error) if error.is_no_node() || error.is_session_over() => return Err(not_held()),
            read => read?,
        };
        if data == REVOKE {
            return Ok(());
        }
        changed.await.map_err(|_| not_held())?;
    }
}
