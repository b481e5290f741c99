//! What goes on until it is done, whoever waits for it or not.

use crate::{
    client::Client,
    error::{Error, Result},
    paths::join,
    protected::ProtectionId,
    retry::RetryPolicy,
};
use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};
use tokio::{runtime::Handle, time::sleep};
use tracing::Instrument;

const WAITS: RetryPolicy =
    RetryPolicy::exponential(Duration::from_millis(50), Duration::from_secs(5), u32::MAX);

/// Work that is done by whoever waits for it, and in the background once nobody does.
pub(crate) struct EndedByAnybody<T: Send + 'static> {
    /// None when it is done.
    work: Option<Pin<Box<dyn Future<Output = T> + Send>>>,
    runtime: Handle,
}

/// Work that is brought to an end even if it is dropped. It costs no task of its own unless it is.
pub(crate) fn ended_by_anybody<T: Send + 'static>(
    client: &Client,
    work: impl Future<Output = T> + Send + 'static,
) -> EndedByAnybody<T> {
    EndedByAnybody { work: Some(Box::pin(work)), runtime: client.shared().runtime.clone() }
}

impl<T: Send + 'static> Future for EndedByAnybody<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        // Polled after its end it waits for ever, as nothing will come.
        let Some(work) = &mut self.work else { return Poll::Pending };
        let done = ready!(work.as_mut().poll(cx));
        self.work = None;
        Poll::Ready(done)
    }
}

impl<T: Send + 'static> Drop for EndedByAnybody<T> {
    fn drop(&mut self) {
        if let Some(work) = self.work.take() {
            self.runtime.spawn(work);
        }
    }
}

/// Deletes a znode, whatever its version, in the background.
pub(crate) fn delete(client: &Client, path: String) {
    let client = client.with_retry(RetryPolicy::none());
    spawn(&client.clone(), path.clone(), move || {
        let (client, path) = (client.clone(), path.clone());
        async move { client.delete(&path).quietly().send().await }
    });
}

/// Deletes whatever was created with `id` below `parent`.
pub(crate) fn delete_protected(client: &Client, parent: String, id: ProtectionId) {
    let client = client.with_retry(RetryPolicy::none());
    spawn(&client.clone(), parent.clone(), move || find_and_delete(client.clone(), parent.clone(), id));
}

async fn find_and_delete(client: Client, parent: String, id: ProtectionId) -> Result<()> {
    client.sync(&parent).await?;
    let names = match client.get_children(&parent).await {
        Err(error) if error.is_no_node() => return Ok(()),
        names => names?,
    };
    for name in names.iter().filter(|name| id.is_in(name)) {
        client.delete(&join(&parent, name)).quietly().await?;
    }
    Ok(())
}

fn spawn<F>(client: &Client, path: String, mut attempt: impl FnMut() -> F + Send + 'static)
where
    F: Future<Output = Result<()>> + Send,
{
    let span = tracing::debug_span!(target: "ostler_client", "background delete", path);
    let work = async move {
        let mut tries = 0;
        loop {
            match attempt().await {
                Ok(()) => return,
                Err(error) if goes_on(&error) => {
                    tries += 1;
                    let wait = WAITS.wait(tries, Duration::ZERO, tries.into()).unwrap_or_default();
                    sleep(wait).await;
                }
                // What was held by the session went with it.
                Err(error) if error.is_session_over() => return tracing::debug!(%error, "not deleted"),
                Err(error) => return tracing::warn!(%error, "a znode is left undeleted"),
            }
        }
    };
    client.shared().runtime.spawn(work.instrument(span));
}

/// With its session an ephemeral znode goes by itself; what is refused for good stays refused.
fn goes_on(error: &Error) -> bool {
    error.is_connection_trouble() || matches!(error, Error::SessionExpired { .. })
}
