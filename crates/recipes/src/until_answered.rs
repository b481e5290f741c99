//! Asking until there is an answer, through lost connections and lost sessions.

use ostler_client::{Client, Error, ErrorCode, Result, RetryPolicy, WatchedEvent};
use std::time::Duration;
use tokio::time::sleep;

const WAITS: RetryPolicy =
    RetryPolicy::exponential(Duration::from_millis(20), Duration::from_secs(2), u32::MAX);

/// Whether the same question may be answered later, by a server that is not cut off, or in another session.
pub(crate) fn passes(error: &Error) -> bool {
    error.may_pass()
        || matches!(error, Error::SessionExpired { .. })
        || error.code() == Some(ErrorCode::SessionExpired)
}

/// Asks until a server has answered or refused, or the client is closed. Only for what does no harm if it is done
/// twice. Asked through a [`Session`](ostler_client::Session) it ends with that.
pub(crate) async fn until_answered<T, F>(client: &Client, mut ask: impl FnMut() -> F) -> Result<T>
where
    F: IntoFuture<Output = Result<T>>,
{
    let mut tries = 0;
    loop {
        match ask().await {
            Err(error) if passes(&error) => {}
            answer => return answer,
        }
        tries += 1;
        pause(tries).await;
        client.wait_connected().await?;
    }
}

/// What a watch of a client's says: there is to be another look, also if somebody has removed it, or nothing more will
/// be told.
pub(crate) fn fired(event: Result<WatchedEvent>) -> Result<()> {
    match event {
        Ok(_) | Err(Error::WatchRemoved { .. }) => Ok(()),
        Err(_) => Err(Error::Closed),
    }
}

/// Between looks at what a server refuses, which nobody tells of being allowed: each time twice as long.
const REFUSED_WAITS: RetryPolicy =
    RetryPolicy::exponential(Duration::from_millis(100), Duration::from_secs(60), u32::MAX);

/// For how long what was refused so many times is left.
pub(crate) fn refused_for(times: u32) -> Duration {
    REFUSED_WAITS.wait(times, Duration::ZERO, times.into()).unwrap_or_default()
}

/// Waits before try number `tries` + 1: a server that refuses at once must not be asked in a tight loop.
pub(crate) async fn pause(tries: u32) {
    sleep(WAITS.wait(tries, Duration::ZERO, tries.into()).unwrap_or_default()).await;
}

/// Waits until there is no connection: what is asked then waits for the next one.
pub(crate) async fn disconnected(client: &Client) {
    let mut states = client.states();
    while states.next().await.is_some() {
        if !client.is_connected() {
            return;
        }
    }
    // The client is closed, which whoever asks is told.
    std::future::pending().await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_passes_by_itself() {
        let server = |code| Error::Server { code, operation: "create", path: "/".into() };
        for (error, expected) in [
            (Error::NotConnected { operation: "create", path: "/".into() }, true),
            (Error::SessionExpired { operation: "create", path: "/".into() }, true),
            (server(ErrorCode::SessionExpired), true),
            // At a server that is cut off, or one that the session has left.
            (server(ErrorCode::NotReadOnly), true),
            (server(ErrorCode::SessionMoved), true),
            (server(ErrorCode::NoAuth), false),
            (Error::Closed, false),
        ] {
            assert_eq!(passes(&error), expected, "{error}");
        }
    }
}
