//! Transactions that are done only as long as the caller is the holder.

use super::Fence;
use crate::error::Result;
use ostler_client::{Acl, CreateMode, CreateOp, Multi, OpResult, Operation, Version, VersionedOp};
use std::{
    borrow::Cow,
    future::{Future, IntoFuture},
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

/// Operations that are done all together or not at all, and only if the caller is still the holder: add them, then await
/// it. It has the operations and options of the client's [`Multi`].
///
/// ```
/// # use ostler_recipes::lock::InterProcessMutex;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = ostler_testkit::TestServer::start().await?;
/// # let client = ostler_client::Client::connect(&server.connect_string()).await?;
/// # client.create("/ledger", b"").await?;
/// use ostler_client::Version;
///
/// let guard = InterProcessMutex::new(&client, "/locks/ledger").acquire().await?;
/// let results = guard
///     .multi()
///     .create("/ledger/entry-", b"42").sequential()
///     .set_data("/ledger", b"1 entry").version(Version::Exactly(0))
///     .await?;
/// assert_eq!(results[0].path(), Some("/ledger/entry-0000000000"));
/// # Ok(()) }
/// ```
#[derive(Debug)]
#[must_use = "nothing is done until it is awaited"]
pub struct FencedMulti<'a, Last = ()> {
    fence: &'a Fence,
    multi: Multi<'a, Last>,
    /// The number of checks before the caller's operations.
    checks: usize,
}

impl<Last> Clone for FencedMulti<'_, Last> {
    fn clone(&self) -> Self {
        FencedMulti { fence: self.fence, multi: self.multi.clone(), checks: self.checks }
    }
}

impl<'a> FencedMulti<'a> {
    pub(super) fn new(fence: &'a Fence, multi: Multi<'a>) -> FencedMulti<'a> {
        let checks = multi.len();
        FencedMulti { fence, multi, checks }
    }
}

impl<'a, Last> FencedMulti<'a, Last> {
    fn map<Next>(self, add: impl FnOnce(Multi<'a, Last>) -> Multi<'a, Next>) -> FencedMulti<'a, Next> {
        FencedMulti { fence: self.fence, multi: add(self.multi), checks: self.checks }
    }

    /// The same without options for the last operation, for loops: [`Multi::and`].
    pub fn and(self) -> FencedMulti<'a> {
        self.map(Multi::and)
    }

    /// Checks that the znode exists and has this version.
    pub fn check(self, path: &str, version: Version) -> FencedMulti<'a> {
        self.map(|multi| multi.check(path, version))
    }

    /// Creates a znode: without options a persistent one, with the client's
    /// [default ACL](ostler_client::ClientBuilder::default_acl).
    pub fn create(self, path: &str, data: impl AsRef<[u8]>) -> FencedMulti<'a, CreateOp> {
        self.map(|multi| multi.create(path, data))
    }

    /// Deletes a znode.
    pub fn delete(self, path: &str) -> FencedMulti<'a, VersionedOp> {
        self.map(|multi| multi.delete(path))
    }

    /// Sets a znode's data.
    pub fn set_data(self, path: &str, data: impl AsRef<[u8]>) -> FencedMulti<'a, VersionedOp> {
        self.map(|multi| multi.set_data(path, data))
    }

    /// Hands the operations to the client now; [`IntoFuture`] does the same. They are done in order, in one transaction.
    /// Returns a result for each.
    ///
    /// # Errors
    /// [`Error::NotHeld`](crate::Error::NotHeld): nothing was done, and nothing will be. The client's `Multi`: an operation fails and none was
    /// done; its index counts from the first operation that the caller added. `ConnectionLoss`: all or none were done.
    pub fn send(self) -> FencedOperation {
        let sent = (!self.fence.is_released()).then(|| self.multi.send());
        FencedOperation { fence: self.fence.clone(), checks: self.checks, sent }
    }
}

impl FencedMulti<'_, CreateOp> {
    /// The kind of the znode; persistent by default. It replaces the kinds that were set before: [`Multi::mode`].
    pub fn mode(self, mode: CreateMode) -> Self {
        self.map(|multi| multi.mode(mode))
    }

    /// Makes the znode ephemeral: [`Multi::ephemeral`].
    pub fn ephemeral(self) -> Self {
        self.map(Multi::ephemeral)
    }

    /// [`ephemeral`](FencedMulti::ephemeral) and [`sequential`](FencedMulti::sequential).
    pub fn ephemeral_sequential(self) -> Self {
        self.map(Multi::ephemeral_sequential)
    }

    /// Makes the znode sequential: [`Multi::sequential`].
    pub fn sequential(self) -> Self {
        self.map(Multi::sequential)
    }

    /// Makes the znode a container: [`Multi::container`].
    pub fn container(self) -> Self {
        self.map(Multi::container)
    }

    /// Gives the znode a TTL: [`Multi::ttl`].
    pub fn ttl(self, ttl: Duration) -> Self {
        self.map(|multi| multi.ttl(ttl))
    }

    /// The znode's ACL. The default is [`ClientBuilder::default_acl`](ostler_client::ClientBuilder::default_acl).
    pub fn acl<'c>(self, acl: impl Into<Cow<'c, [Acl]>>) -> Self {
        self.map(|multi| multi.acl(acl))
    }

    /// Creates a znode without data, which is not the same as empty data.
    pub fn without_data(self) -> Self {
        self.map(Multi::without_data)
    }
}

impl FencedMulti<'_, VersionedOp> {
    /// Sets the data, or deletes the znode, only if it has this version; any version by default.
    pub fn version(self, version: Version) -> Self {
        self.map(|multi| multi.version(version))
    }
}

impl<Last> IntoFuture for FencedMulti<'_, Last> {
    type Output = Result<Vec<OpResult>>;
    type IntoFuture = FencedOperation;

    fn into_future(self) -> FencedOperation {
        self.send()
    }
}

/// A [`FencedMulti`] that was handed to the client: a future of its results.
#[derive(Debug)]
#[must_use = "an operation is a future; without an await its result is not known"]
pub struct FencedOperation {
    fence: Fence,
    checks: usize,
    /// `None` if the fence was released before, so that nothing was sent.
    sent: Option<Operation<Vec<OpResult>>>,
}

impl Future for FencedOperation {
    type Output = Result<Vec<OpResult>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<Vec<OpResult>>> {
        let checks = self.checks;
        let Some(sent) = &mut self.sent else { return Poll::Ready(Err(self.fence.not_held())) };
        Poll::Ready(match ready!(Pin::new(sent).poll(cx)) {
            Ok(mut results) => {
                results.drain(..checks.min(results.len()));
                Ok(results)
            }
            Err(error) if error.is_session_over() || error.is_closed() => Err(self.fence.not_held()),
            Err(ostler_client::Error::Multi { index, .. }) if index < checks => Err(self.fence.not_held()),
            Err(ostler_client::Error::Multi { code, index, operation, path }) => {
                Err(ostler_client::Error::Multi { code, index: index - checks, operation, path }.into())
            }
            Err(error) => Err(error.into()),
        })
    }
}
