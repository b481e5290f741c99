//! Work that goes on in the background: deletes that are tried until they succeed, and futures that outlive their
//! caller.

use crate::{
    client::Client,
    delete::DeletePlan,
    error::{Error, Result},
    operation::Call,
    paths::join,
    protected::ProtectionId,
    retry::{RetryPolicy, Tries},
    tracing::{self, Instrument, Span},
};
use ostler_client_core::ConnectionState;
use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};
use tokio::{runtime::Handle, sync::oneshot, time::sleep};

/// The waits between the tries of a background delete.
const WAITS: RetryPolicy =
    RetryPolicy::exponential(Duration::from_millis(50), Duration::from_secs(5), u32::MAX);

/// A future that goes on in a task of its own if it is dropped before its end.
pub(crate) struct RunToEnd<T: Send + 'static> {
    /// `None` after its end.
    work: Option<Pin<Box<dyn Future<Output = T> + Send>>>,
    runtime: Handle,
}

/// Runs `work` to its end, even if the returned future is dropped. Only then a task is spawned.
pub(crate) fn run_to_end<T: Send + 'static>(
    client: &Client,
    work: impl Future<Output = T> + Send + 'static,
) -> RunToEnd<T> {
    RunToEnd { work: Some(Box::pin(work)), runtime: client.shared().runtime.clone() }
}

impl<T: Send + 'static> Future for RunToEnd<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        // After its end the future stays pending if it is polled again.
        let Some(work) = &mut self.work else { return Poll::Pending };
        let done = ready!(work.as_mut().poll(cx));
        self.work = None;
        Poll::Ready(done)
    }
}

impl<T: Send + 'static> Drop for RunToEnd<T> {
    fn drop(&mut self) {
        if let Some(work) = self.work.take() {
            self.runtime.spawn(work);
        }
    }
}

/// Deletes a znode in the background. The request is sent now, before any later request of the client. A task is
/// spawned only if the first reply does not complete the delete.
pub(crate) fn delete(plan: DeletePlan) {
    let span = plan.context.span();
    plan.quietly().send_detached(move |plan, outcome| {
        if matches!(&outcome, Ok(reply) if reply.error == 0) {
            return;
        }
        let (to, call) = oneshot::channel();
        // The receiver, `call`, still exists.
        let _ = to.send(outcome);
        let (tries, first) = (Tries::new(RetryPolicy::none()), Some((call, span)));
        Deletion::Planned { plan, tries, first }.spawn();
    });
}

/// Continues a delete in the background. `may_be_done`: an earlier try may have been done without a reply.
pub(crate) fn continue_deleting(plan: DeletePlan, may_be_done: bool) {
    let mut tries = Tries::new(RetryPolicy::none());
    tries.may_be_done = may_be_done;
    Deletion::Planned { plan: plan.quietly(), tries, first: None }.spawn();
}

/// Deletes every child of `parent` with `id` in its name.
pub(crate) fn delete_protected(client: &Client, parent: String, id: ProtectionId) {
    Deletion::Protected { client: client.with_retry(RetryPolicy::none()), parent, id }.spawn();
}

/// A delete in the background.
enum Deletion {
    /// Of one znode, with the options of the caller. `first` is a try that is under way already.
    Planned { plan: DeletePlan, tries: Tries, first: Option<(Call, Span)> },
    /// Of every child of `parent` with the id in its name.
    Protected { client: Client, parent: String, id: ProtectionId },
}

impl Deletion {
    fn client(&self) -> &Client {
        match self {
            Deletion::Planned { plan, .. } => &plan.client,
            Deletion::Protected { client, .. } => client,
        }
    }

    #[cfg(feature = "tracing")]
    fn path(&self) -> &str {
        match self {
            Deletion::Planned { plan, .. } => &plan.context.path,
            Deletion::Protected { parent, .. } => parent,
        }
    }

    async fn attempt(&mut self) -> Result<()> {
        match self {
            Deletion::Planned { plan, tries, first } => plan.try_again(tries, first.take()).await,
            Deletion::Protected { client, parent, id } => find_and_delete(client, parent, *id).await,
        }
    }

    fn spawn(mut self) {
        let span = tracing::debug_span!(target: "ostler_client", "background delete", path = self.path());
        let runtime = self.client().shared().runtime.clone();
        let work = async move {
            let mut tries = 0;
            loop {
                match self.attempt().await {
                    Ok(()) => return,
                    Err(error) if may_succeed_later(self.client(), &error) => {
                        tries += 1;
                        let wait = WAITS.next_wait(tries, Duration::ZERO, tries.into()).unwrap_or_default();
                        sleep(wait).await;
                    }
                    // The znodes of the session were deleted with it.
                    Err(error) if error.is_session_over() || error.is_closed() => {
                        return tracing::debug!(%error, "not deleted");
                    }
                    Err(error) => return tracing::warn!(%error, "a znode is not deleted"),
                }
            }
        };
        runtime.spawn(work.instrument(span));
    }
}

async fn find_and_delete(client: &Client, parent: &str, id: ProtectionId) -> Result<()> {
    client.sync(parent).await?;
    let names = match client.get_children(parent).await {
        Err(error) if error.is_no_node() => return Ok(()),
        names => names?,
    };
    for name in names.iter().filter(|name| id.is_in(name)) {
        client.delete(&join(parent, name)).quietly().await?;
    }
    Ok(())
}

/// Whether another try may succeed. Not if the session is over that the handle is bound to, if the client is closed, or
/// if the server refuses the operation for another reason than its own state.
pub(crate) fn may_succeed_later(client: &Client, error: &Error) -> bool {
    let error = error.last_try();
    let next_session = || client.session.is_none() && client.state().state != ConnectionState::Closed;
    error.is_retryable() || (error.is_session_expired() && next_session())
}
