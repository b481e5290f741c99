//! Waits for a connection by which the ensemble takes writes, and repeats an attempt in the next session.

use crate::{error::Result, until_answered::pause};
use ostler_client::{Client, ConnectionState, Session};

/// Whether writes reach a majority of the servers now. In read-only mode only reads are answered.
pub(crate) fn is_writable(state: ConnectionState) -> bool {
    matches!(state, ConnectionState::Connected | ConnectionState::Reconnected)
}

/// Waits until writes reach a majority of the servers.
pub(crate) async fn wait_writable(client: &Client) -> Result<()> {
    let mut states = client.states();
    while let Some(state) = states.next().await {
        if is_writable(state.state) {
            return Ok(());
        }
    }
    // The stream ends with the client. This returns the error.
    Ok(client.wait_connected().await.map(drop)?)
}

/// The number of times that servers may answer that a session has expired while the client takes it for alive. A server
/// knows of an expiry before the client does, so one such answer is usual. A follower also gives this answer to each
/// multi with an ephemeral znode in a local session. That is an error.
const EXPIRED_ANSWERS_MAX: u32 = 5;

/// Runs `attempt` in the present session, and again in the next one if the session ends before the attempt is done.
pub(crate) async fn in_a_session<T, F>(client: &Client, mut attempt: impl FnMut(Session) -> F) -> Result<T>
where
    F: Future<Output = Result<T>> + Send,
{
    let mut expired_answers = 0;
    loop {
        let session = client.session().await?;
        match attempt(session.clone()).await {
            Err(crate::Error::Client(error)) if error.is_session_over() => {
                if session.is_alive() {
                    expired_answers += 1;
                    if expired_answers > EXPIRED_ANSWERS_MAX {
                        return Err(error.into());
                    }
                    pause(expired_answers).await;
                } else {
                    expired_answers = 0;
                }
                tracing::debug!(%error, "contending again in another session");
            }
            done => return done,
        }
    }
}
