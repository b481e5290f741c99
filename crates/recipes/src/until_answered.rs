//! Repeats a request until a server answers it, over connection losses and lost sessions.

use ostler_client::{Client, Error, ErrorCode, Result, RetryPolicy, Watch, WatchedEvent};
use std::time::Duration;
use tokio::time::sleep;

/// The event of a watch. `None` if the program has removed the watch by `remove_watches`: then no event comes, and the
/// caller reads again.
pub(crate) async fn event_unless_removed(watch: Watch) -> Result<Option<WatchedEvent>> {
    match watch.await {
        Err(Error::WatchRemoved { .. }) => Ok(None),
        event => event.map(Some),
    }
}

/// The waits between attempts of a request that has no answer.
const WAITS: RetryPolicy =
    RetryPolicy::exponential(Duration::from_millis(20), Duration::from_secs(2), u32::MAX);

/// Whether the same request may succeed later: at a server that is not cut off, or in another session.
pub(crate) fn is_transient(error: &Error) -> bool {
    error.is_retryable()
        || matches!(error, Error::SessionExpired { .. })
        || error.code() == Some(ErrorCode::SessionExpired)
}

/// Repeats a request until a server has answered or refused it, or the client is closed. The request must do no harm if
/// it is done twice. A request through a [`Session`](ostler_client::Session) ends with that session.
pub(crate) async fn until_answered<T, F>(client: &Client, mut ask: impl FnMut() -> F) -> Result<T>
where
    F: IntoFuture<Output = Result<T>>,
{
    let mut tries = 0;
    loop {
        match ask().await {
            Err(error) if is_transient(&error) => {}
            answer => return answer,
        }
        tries += 1;
        pause(tries).await;
        client.wait_connected().await?;
    }
}

/// Turns the end of a watch into a result: `Ok` if the caller is to read again (also if the watch was removed), an
/// error if the client is closed and no event will come.
pub(crate) fn fired(event: Result<WatchedEvent>) -> Result<()> {
    match event {
        Ok(_) | Err(Error::WatchRemoved { .. }) => Ok(()),
        Err(Error::AuthFailed) => Err(Error::AuthFailed),
        Err(_) => Err(Error::Closed),
    }
}

/// The waits between attempts of a request that the server refuses: there is no event when it becomes allowed. Each
/// wait is twice as long as the one before.
const REFUSED_WAITS: RetryPolicy =
    RetryPolicy::exponential(Duration::from_millis(100), Duration::from_secs(60), u32::MAX);

/// The wait after a request was refused this number of times.
pub(crate) fn wait_after_refusals(times: u32) -> Duration {
    REFUSED_WAITS.next_wait(times, Duration::ZERO, times.into()).unwrap_or_default()
}

/// Waits before try number `tries` + 1: a server that refuses at once must not be asked in a tight loop.
pub(crate) async fn pause(tries: u32) {
    sleep(WAITS.next_wait(tries, Duration::ZERO, tries.into()).unwrap_or_default()).await;
}

/// Waits until the client has no connection. A request that is sent after that waits for the next connection.
pub(crate) async fn disconnected(client: &Client) {
    let mut states = client.states();
    while states.next().await.is_some() {
        if !client.is_connected() {
            return;
        }
    }
    // The client is closed: requests that are under way end with that error.
    std::future::pending().await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_errors_of_connections_and_sessions_are_transient() {
        let server = |code| Error::Server { code, operation: "create", path: "/".into() };
        for (error, expected) in [
            (Error::NotConnected { operation: "create", path: "/".into() }, true),
            (Error::SessionExpired { operation: "create", path: "/".into() }, true),
            (server(ErrorCode::SessionExpired), true),
            // From a server that is cut off, and from a server that the session has left.
            (server(ErrorCode::NotReadOnly), true),
            (server(ErrorCode::SessionMoved), true),
            (server(ErrorCode::NoAuth), false),
            (Error::Closed, false),
        ] {
            assert_eq!(is_transient(&error), expected, "{error}");
        }
    }
}
