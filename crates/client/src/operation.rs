//! An operation under way, and its further tries.

use crate::{
    client::Client,
    error::{About, Error, Result},
    retry::RetryPolicy,
    shared::{Outcome, Reply},
};
use ostler_client_core::{Chroot, Failure};
use ostler_proto::{id::SessionId, jute::JuteError, request::Request};
use std::{
    borrow::Cow,
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
};
use tokio::{
    sync::oneshot,
    time::{Instant, sleep},
};
use tracing::{Instrument, Span};

/// An operation that was handed to the client: a future of its result.
///
/// The order of a client's operations is the order in which they were handed over, and many can be under way at once.
/// Dropping the future does not take back a request that was sent.
#[must_use = "an operation is a future; without an await its result is not known"]
pub struct Operation<T> {
    inner: Inner<T>,
}

enum Inner<T> {
    /// One request, without an allocation. The usual case.
    Direct(Direct<T>),
    /// Any other operation.
    Boxed(Boxed<T>),
}

type Boxed<T> = Pin<Box<dyn Future<Output = Result<T>> + Send>>;

/// How a reply is read.
pub(crate) type Decode<T> = fn(Reply, &Chroot) -> std::result::Result<T, Trouble>;

/// Makes a read's request from its path. The flag asks for a watch.
pub(crate) type Again = for<'x> fn(Cow<'x, str>, bool) -> Request<'x>;

/// One request under way.
pub(crate) struct Direct<T> {
    pub(crate) call: Call,
    pub(crate) client: Client,
    pub(crate) topic: Topic,
    pub(crate) decode: Decode<T>,
    /// Makes the request again, for requests that do no harm if they are done twice.
    pub(crate) again: Option<Again>,
    pub(crate) span: Span,
}

impl<T> Operation<T> {
    pub(crate) fn new(future: impl Future<Output = Result<T>> + Send + 'static) -> Operation<T> {
        Operation { inner: Inner::Boxed(Box::pin(future)) }
    }

    pub(crate) fn direct(direct: Direct<T>) -> Operation<T> {
        Operation { inner: Inner::Direct(direct) }
    }

    pub(crate) fn refused(error: Error) -> Operation<T>
    where
        T: Send + 'static,
    {
        Operation::new(std::future::ready(Err(error)))
    }
}

impl<T: Send + 'static> Future for Operation<T> {
    type Output = Result<T>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<T>> {
        let direct = match &mut self.inner {
            Inner::Boxed(future) => return future.as_mut().poll(cx),
            Inner::Direct(direct) => direct,
        };
        let result = {
            let _entered = direct.span.enter();
            let reply = ready!(Pin::new(&mut direct.call).poll(cx));
            result_of(reply, &direct.topic, |reply| (direct.decode)(reply, &direct.client.chroot))
        };
        match (result, direct.again) {
            (Err(error), Some(again)) if error.is_connection_trouble() => {
                let retrying =
                    try_again(direct.client.clone(), direct.topic.clone(), direct.decode, again, error);
                let retrying = retrying.instrument(direct.span.clone());
                self.inner = Inner::Boxed(Box::pin(retrying));
                self.poll(cx)
            }
            (result, _) => Poll::Ready(result),
        }
    }
}

/// The further tries of a request whose first try has failed with `error`.
async fn try_again<T: Send>(
    client: Client,
    topic: Topic,
    decode: Decode<T>,
    again: Again,
    error: Error,
) -> Result<T> {
    let attempt = || {
        let call = client.call(&again(client.chroot.absolute(&topic.path), false));
        finish(call, &topic, |reply| decode(reply, &client.chroot))
    };
    let (mut error, begun, mut tries) = (error, Instant::now(), 0);
    while error.is_connection_trouble() {
        tries += 1;
        wait_for_try(client.retry, tries, begun, &error).await.ok_or(error)?;
        match attempt().await {
            Err(next) => error = next,
            done => return done,
        }
    }
    Err(error)
}

/// Waits before another try; `None` if the policy gives up.
async fn wait_for_try(policy: RetryPolicy, tries: u32, begun: Instant, error: &Error) -> Option<()> {
    let elapsed = begun.elapsed();
    let wait = policy.wait(tries, elapsed, elapsed.subsec_nanos().into())?;
    tracing::debug!(%error, tries, ?wait, "trying again");
    sleep(wait).await;
    Some(())
}

impl<T> fmt::Debug for Operation<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Operation").finish_non_exhaustive()
    }
}

/// A request that was handed over.
pub(crate) type Call = oneshot::Receiver<Outcome>;

/// The name, path and session of an operation, for errors, spans and further tries.
#[derive(Debug, Clone)]
pub(crate) struct Topic {
    pub(crate) operation: &'static str,
    /// The path, as the caller gave it.
    pub(crate) path: Box<str>,
    pub(crate) session: Option<SessionId>,
}

impl Topic {
    pub(crate) fn about(&self) -> About<'_> {
        About { operation: self.operation, path: &self.path, session: self.session }
    }

    /// The span of the operation, from its request to its result.
    pub(crate) fn span(&self) -> Span {
        tracing::debug_span!(target: "ostler_client", "operation", name = self.operation, path = &*self.path)
    }
}

/// Why a reply gives no result.
pub(crate) enum Trouble {
    Code(i32),
    Jute(JuteError),
    Other(Error),
}

impl From<JuteError> for Trouble {
    fn from(cause: JuteError) -> Trouble {
        Trouble::Jute(cause)
    }
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Trouble {
        Trouble::Other(error)
    }
}

impl Reply {
    /// The reply, if it has no error.
    pub(crate) fn ok(self) -> std::result::Result<Reply, Trouble> {
        match self.error {
            0 => Ok(self),
            code => Err(Trouble::Code(code)),
        }
    }
}

/// Waits for the reply to a request, and decodes it.
pub(crate) async fn finish<T>(
    call: Call,
    topic: &Topic,
    decode: impl FnOnce(Reply) -> std::result::Result<T, Trouble>,
) -> Result<T> {
    result_of(call.await, topic, decode)
}

fn result_of<T>(
    reply: std::result::Result<Outcome, oneshot::error::RecvError>,
    topic: &Topic,
    decode: impl FnOnce(Reply) -> std::result::Result<T, Trouble>,
) -> Result<T> {
    let about = topic.about();
    // The sender is gone if the client's task has ended.
    let reply = reply.unwrap_or(Err(Failure::Closed)).map_err(|failure| about.failure(failure))?;
    decode(reply).map_err(|trouble| match trouble {
        Trouble::Code(code) => about.code(code),
        Trouble::Jute(cause) => about.bad_reply(cause),
        Trouble::Other(error) => error,
    })
}

/// Repeats an operation until it is done or refused, or the policy gives up. `first` is under way already.
pub(crate) async fn retried<T, F>(
    policy: RetryPolicy,
    first: F,
    mut again: impl FnMut() -> F + Send,
) -> Result<T>
where
    F: Future<Output = Result<T>> + Send,
{
    let begun = Instant::now();
    let mut tries = 0;
    let mut attempt = first;
    loop {
        match attempt.await {
            Err(error) if error.is_connection_trouble() => {
                tries += 1;
                wait_for_try(policy, tries, begun, &error).await.ok_or(error)?;
                attempt = again();
            }
            result => return result,
        }
    }
}

/// An operation in its span.
pub(crate) fn spanned<T>(
    span: Span,
    future: impl Future<Output = Result<T>> + Send + 'static,
) -> Operation<T> {
    Operation::new(future.instrument(span))
}

impl Client {
    pub(crate) fn topic(&self, operation: &'static str, path: &str) -> Topic {
        Topic { operation, path: path.into(), session: self.session }
    }
}
