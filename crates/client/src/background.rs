//! What goes on until it is done, whoever waits for it or not.

use crate::{
    client::Client,
    delete::DeletePlan,
    error::{Error, Result},
    operation::Call,
    paths::join,
    protected::ProtectionId,
    retry::{RetryPolicy, Tries},
};
use ostler_client_core::ConnectionState;
use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};
use tokio::{runtime::Handle, sync::oneshot, time::sleep};
use tracing::{Instrument, Span};

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

/// Deletes a znode in the background, as `plan` says. It is asked for now, before whatever the client is asked for
/// next, and costs no task unless the first answer says that there is more to do.
pub(crate) fn delete(plan: DeletePlan) {
    let span = plan.topic.span();
    plan.quietly().ask_for_nobody(move |plan, outcome| {
        if matches!(&outcome, Ok(reply) if reply.error == 0) {
            return;
        }
        let (to, call) = oneshot::channel();
        // The other end is right here.
        let _ = to.send(outcome);
        let (tries, first) = (Tries::new(RetryPolicy::none()), Some((call, span)));
        Deletion::Planned { plan, tries, first }.spawn();
    });
}

/// Goes on with a delete that was tried, in the background. With `unknown` it may have been done, unheard.
pub(crate) fn go_on_deleting(plan: DeletePlan, unknown: bool) {
    let mut tries = Tries::new(RetryPolicy::none());
    tries.unknown = unknown;
    Deletion::Planned { plan: plan.quietly(), tries, first: None }.spawn();
}

/// Deletes whatever was created with `id` below `parent`.
pub(crate) fn delete_protected(client: &Client, parent: String, id: ProtectionId) {
    Deletion::Protected { client: client.with_retry(RetryPolicy::none()), parent, id }.spawn();
}

/// What is to be deleted.
enum Deletion {
    /// A znode, as was said of it; perhaps with a try that was made already.
    Planned { plan: DeletePlan, tries: Tries, first: Option<(Call, Span)> },
    /// Whatever has the id in its name.
    Protected { client: Client, parent: String, id: ProtectionId },
}

impl Deletion {
    fn client(&self) -> &Client {
        match self {
            Deletion::Planned { plan, .. } => &plan.client,
            Deletion::Protected { client, .. } => client,
        }
    }

    fn path(&self) -> &str {
        match self {
            Deletion::Planned { plan, .. } => &plan.topic.path,
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
                    Err(error) if goes_on(self.client(), &error) => {
                        tries += 1;
                        let wait = WAITS.wait(tries, Duration::ZERO, tries.into()).unwrap_or_default();
                        sleep(wait).await;
                    }
                    // What was held by the session went with it.
                    Err(error) if error.is_session_over() => return tracing::debug!(%error, "not deleted"),
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

/// Whether another try may do better. What is bound to a session ends with that, and everything with the client; what
/// is refused for good stays refused.
pub(crate) fn goes_on(client: &Client, error: &Error) -> bool {
    let error = error.last_try();
    let next_session = || client.session.is_none() && client.state().state != ConnectionState::Closed;
    error.may_pass() || (error.is_session_expired() && next_session())
}
