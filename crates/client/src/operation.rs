//! An operation under way, and its retries.

use crate::{
    client::Client,
    error::{Error, ErrorContext, Result},
    outcome::{Outcome, Reply},
    retry::wait_before,
    tracing::{self, Instrument, Span},
};
use ostler_client_core::{Chroot, Failure};
use ostler_proto::{error::ErrorCode, id::SessionId, jute::JuteError, request::Request};
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

/// Reads the result of an operation from its reply.
pub(crate) type Decode<T> = fn(Reply, &Chroot) -> std::result::Result<T, ReplyError>;

/// Makes a read's request from its path. The flag asks for a watch.
pub(crate) type MakeRequest = for<'x> fn(Cow<'x, str>, bool) -> Request<'x>;

/// One request under way.
pub(crate) struct Direct<T> {
    pub(crate) call: Call,
    pub(crate) client: Client,
    pub(crate) context: OperationContext,
    pub(crate) decode: Decode<T>,
    /// Makes the request for a retry; `None` if a second execution could do harm.
    pub(crate) repeat: Option<MakeRequest>,
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
            result_of(reply, &direct.context, |reply| (direct.decode)(reply, &direct.client.chroot))
        };
        match (result, direct.repeat) {
            (Err(error), Some(make_request)) if error.is_connection_trouble() => {
                let retrying = try_again(
                    direct.client.clone(),
                    direct.context.clone(),
                    direct.decode,
                    make_request,
                    error,
                );
                let retrying = retrying.instrument(direct.span.clone());
                self.inner = Inner::Boxed(Box::pin(retrying));
                self.poll(cx)
            }
            (result, _) => Poll::Ready(result),
        }
    }
}

/// The retries of a request whose first try has failed with `error`.
async fn try_again<T: Send>(
    client: Client,
    context: OperationContext,
    decode: Decode<T>,
    make_request: MakeRequest,
    error: Error,
) -> Result<T> {
    let attempt = || {
        let call = client.call(&make_request(client.chroot.absolute(&context.path), false));
        finish(call, &context, |reply| decode(reply, &client.chroot))
    };
    let (mut error, begun, mut tries) = (error, Instant::now(), 0);
    while error.is_connection_trouble() {
        tries += 1;
        wait_for_try(&client, tries, begun, &error).await.ok_or(error)?;
        match attempt().await {
            Err(next) => error = next,
            done => return done,
        }
    }
    Err(error)
}

/// Waits before another try; `None` if the policy gives up or the budget is used up.
async fn wait_for_try(client: &Client, tries: u32, begun: Instant, error: &Error) -> Option<()> {
    let wait = wait_before(tries, client.retry, Some(client.shared()), begun)?;
    tracing::debug!(%error, tries, ?wait, "trying again");
    sleep(wait).await;
    Some(())
}

impl<T> fmt::Debug for Operation<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Operation").finish_non_exhaustive()
    }
}

/// A request under way: the receiver of its outcome.
pub(crate) type Call = oneshot::Receiver<Outcome>;

/// The name, path and session of an operation, for errors, spans and retries.
#[derive(Debug, Clone)]
pub(crate) struct OperationContext {
    pub(crate) operation: &'static str,
    /// The path, as the caller gave it.
    pub(crate) path: Box<str>,
    pub(crate) session: Option<SessionId>,
}

impl OperationContext {
    pub(crate) fn error_context(&self) -> ErrorContext<'_> {
        ErrorContext { operation: self.operation, path: &self.path, session: self.session }
    }

    /// The error of an operation that asks for a version that no request can ask for.
    pub(crate) fn bad_version(&self) -> Error {
        self.error_context().code(ErrorCode::BadVersion.code())
    }

    /// The span of the operation, from its request to its result.
    pub(crate) fn span(&self) -> Span {
        tracing::debug_span!(target: "ostler_client", "operation", name = self.operation, path = &*self.path)
    }
}

/// Why a reply has no result.
pub(crate) enum ReplyError {
    /// The server's error code.
    Code(i32),
    /// The body cannot be read.
    Jute(JuteError),
    /// An error that is complete already.
    Other(Error),
}

impl From<JuteError> for ReplyError {
    fn from(cause: JuteError) -> ReplyError {
        ReplyError::Jute(cause)
    }
}

impl From<Error> for ReplyError {
    fn from(error: Error) -> ReplyError {
        ReplyError::Other(error)
    }
}

impl Reply {
    /// The reply, if it has no error.
    pub(crate) fn ok(self) -> std::result::Result<Reply, ReplyError> {
        match self.error {
            0 => Ok(self),
            code => Err(ReplyError::Code(code)),
        }
    }
}

/// Waits for the reply to a request, and decodes it.
pub(crate) async fn finish<T>(
    call: Call,
    context: &OperationContext,
    decode: impl FnOnce(Reply) -> std::result::Result<T, ReplyError>,
) -> Result<T> {
    result_of(call.await, context, decode)
}

fn result_of<T>(
    reply: std::result::Result<Outcome, oneshot::error::RecvError>,
    context: &OperationContext,
    decode: impl FnOnce(Reply) -> std::result::Result<T, ReplyError>,
) -> Result<T> {
    let error_context = context.error_context();
    // The sender is gone if the client's task has ended.
    let reply = reply.unwrap_or(Err(Failure::Closed)).map_err(|failure| error_context.failure(failure))?;
    decode(reply).map_err(|trouble| match trouble {
        ReplyError::Code(code) => error_context.code(code),
        ReplyError::Jute(cause) => error_context.bad_reply(cause),
        ReplyError::Other(error) => error,
    })
}

/// Tries an operation until it is done or refused, or the policy gives up. `first` is under way already.
pub(crate) async fn retried<T, F>(client: &Client, first: F, mut again: impl FnMut() -> F + Send) -> Result<T>
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
                wait_for_try(client, tries, begun, &error).await.ok_or(error)?;
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
    pub(crate) fn context(&self, operation: &'static str, path: &str) -> OperationContext {
        OperationContext { operation, path: path.into(), session: self.session }
    }
}
