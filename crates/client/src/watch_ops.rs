//! Operations on watches: addWatch, checkWatches and removeWatches.

use crate::{
    client::{Client, checked},
    operation::{Operation, finish, retried, spanned},
    watch::{self, AddWatchMode, PendingWatch, WatchStream},
};
use ostler_proto::{error::ErrorCode, request::Request};

/// Which watches of a znode an operation applies to. ZooKeeper's `WatcherType`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WatcherType {
    /// Watches of the list of children.
    Children,
    /// Watches of data and existence.
    Data,
    /// All watches.
    Any,
    /// Persistent watches; servers since 3.9.
    Persistent,
    /// Persistent recursive watches; servers since 3.9.
    PersistentRecursive,
}

impl WatcherType {
    fn code(self) -> i32 {
        match self {
            WatcherType::Children => 1,
            WatcherType::Data => 2,
            WatcherType::Any => 3,
            WatcherType::Persistent => 4,
            WatcherType::PersistentRecursive => 5,
        }
    }
}

impl AddWatchMode {
    fn code(self) -> i32 {
        match self {
            AddWatchMode::Persistent => 0,
            AddWatchMode::PersistentRecursive => 1,
        }
    }
}

impl Client {
    /// Watches a znode, or all znodes below it, for as long as the stream lives. The znode need not exist. The
    /// request is handed to the client now, by this call.
    ///
    /// ```
    /// use ostler_client::{AddWatchMode, EventKind};
    ///
    /// # mod server { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/client/server.rs")); }
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> ostler_client::Result<()> {
    /// # let server = server::TestServer::start();
    /// # let client = server.client().await;
    /// let mut changes = client.add_watch("/services", AddWatchMode::PersistentRecursive).await?;
    /// client.create("/services/mail", b"").creating_parents().await?;
    /// while let Some(event) = changes.next().await {
    ///     assert_eq!(event.kind, EventKind::NodeCreated);
    ///     if event.path == "/services/mail" {
    ///         break;
    ///     }
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// `Unimplemented` from servers before 3.6, which close the connection after it.
    pub fn add_watch(&self, path: &str, mode: AddWatchMode) -> Operation<WatchStream> {
        if let Err(error) = checked(path) {
            return Operation::refused(error);
        }
        let context = self.context("addWatch", path);
        let ask = move |client: &Client, path: &str| {
            let pending = watch::stream(client.shared(), &client.chroot);
            let request = Request::AddWatch { path: client.chroot.absolute(path), mode: mode.code() };
            (client.call_with_watch(&request, pending.guard.id()), pending)
        };
        let (first, client) = (ask(self, path), self.clone());
        spanned(context.span(), async move {
            let attempt = async |(call, pending): (_, PendingWatch<WatchStream>)| {
                finish(call, &context, |reply| reply.ok().map(drop)).await?;
                Ok(pending.set())
            };
            retried(&client, attempt(first), || attempt(ask(&client, &context.path))).await
        })
    }

    /// Whether the server holds a watch of this client on a znode. The request is handed to the client now, by this call.
    pub fn check_watches(&self, path: &str, kind: WatcherType) -> Operation<bool> {
        if let Err(error) = checked(path) {
            return Operation::refused(error);
        }
        let context = self.context("checkWatches", path);
        let ask = move |client: &Client, path: &str| {
            client.call(&Request::CheckWatches { path: client.chroot.absolute(path), kind: kind.code() })
        };
        let (first, client) = (ask(self, path), self.clone());
        spanned(context.span(), async move {
            let attempt = |call| {
                finish(call, &context, |reply| match reply.error {
                    code if code == ErrorCode::NoWatcher.code() => Ok(false),
                    _ => reply.ok().map(|_| true),
                })
            };
            retried(&client, attempt(first), || attempt(ask(&client, &context.path))).await
        })
    }

    /// Removes all watches of these types that this client has on a znode. Each [`Watch`](crate::Watch) and
    /// [`WatchStream`] concerned ends. To remove a single watch, drop it. The request is handed to the client now, by this
    /// call.
    ///
    /// # Errors
    /// `NoWatcher` if there is none. After [`Error::ConnectionLoss`](crate::Error::ConnectionLoss) the watches are still
    /// set.
    pub fn remove_watches(&self, path: &str, kind: WatcherType) -> Operation<()> {
        if let Err(error) = checked(path) {
            return Operation::refused(error);
        }
        let context = self.context("removeWatches", path);
        let request = Request::RemoveWatches { path: self.chroot.absolute(path), kind: kind.code() };
        let call = self.call(&request);
        spanned(context.span(), async move { finish(call, &context, |reply| reply.ok().map(drop)).await })
    }
}
