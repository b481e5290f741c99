//! The client handle.

use crate::{
    builder::ClientBuilder,
    dial::Dialer,
    error::{Error, Result},
    operation::{Call, Operation, finish, spanned},
    outcome::{Outcome, Recipient},
    retry::RetryPolicy,
    session::Session,
    shared::Shared,
    states::StateStream,
    tracing::Instrument,
};
use ostler_client_core::{AuthInfo, Chroot, ConnectionState, SessionState, WatchId};
use ostler_proto::{
    acl::Acl,
    id::{SessionId, Zxid},
    path,
    request::Request,
};
use std::{sync::Arc, time::Duration};
use tokio::time::timeout;

/// A client of Ostler or ZooKeeper. Clones share its session.
///
/// Dropping the last clone closes the session; this needs the runtime to live on. A program that ends at once should
/// call [`close`](Client::close).
#[derive(Debug, Clone)]
#[must_use = "a client closes its session when its last clone is dropped"]
pub struct Client {
    pub(crate) handle: Arc<Handle>,
    pub(crate) chroot: Chroot,
    /// The session that this handle is bound to, if it is.
    pub(crate) session: Option<SessionId>,
    pub(crate) retry: RetryPolicy,
}

/// The part that all clones share. It is dropped with the last clone.
#[derive(Debug)]
pub(crate) struct Handle {
    pub(crate) shared: Arc<Shared>,
    /// For connections beside the client's own one.
    pub(crate) dialer: Dialer,
    pub(crate) connection_timeout: Duration,
    /// The ACL of creates that name none.
    pub(crate) default_acl: Vec<Acl>,
}

impl Drop for Handle {
    fn drop(&mut self) {
        // The request goes on without a receiver of its reply.
        drop(self.shared.close());
    }
}

impl Client {
    /// Connects to one of the servers in `servers`, `host1:2181,host2:2181/root`, and opens a session.
    ///
    /// For more options see [`Client::builder`].
    ///
    /// # Errors
    /// [`Error::ConnectString`]; [`Error::Unreachable`] if there is no session within the connection timeout.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub async fn connect(servers: &str) -> Result<Client> {
        Client::builder(servers).connect().await
    }

    /// The runtime in which the client was connected, and in which its own tasks run. Spawn tasks here that must last
    /// as long as the client: the runtime of a caller may end earlier.
    pub fn runtime(&self) -> &tokio::runtime::Handle {
        &self.handle.shared.runtime
    }

    /// Options of a client for these servers, `host1:2181,host2:2181/root`.
    pub fn builder(servers: &str) -> ClientBuilder {
        ClientBuilder::new(servers)
    }

    /// Ends the session. Its ephemeral znodes are deleted, and later operations fail with [`Error::Closed`]. Earlier
    /// operations are done first; background work that has to wait for a connection is given up. All clones and every
    /// [`Session`] are closed as well.
    ///
    /// This returns with the server's reply, or when the connection is lost or given up: half of the session's timeout
    /// after the server's last sign of life at the latest. Then the session ends with its timeout. Without a connection
    /// it returns at once.
    pub async fn close(&self) {
        let span = self.context("closeSession", "").span();
        // The client is closed, whether the server replies or not.
        let _ = self.handle.shared.close().instrument(span).await;
    }

    /// The connection's state now. It is `Lost` as soon as, by this machine's monotonic clock, a server may have
    /// expired the session, even if the streams of [`states`](Client::states) do not have that state yet.
    pub fn state(&self) -> SessionState {
        let (reported, alive) = self.handle.shared.state_now();
        match (reported.session, alive) {
            (Some(_), None) if reported.state != ConnectionState::Closed => {
                SessionState::new(ConnectionState::Lost, reported.session)
            }
            _ => reported,
        }
    }

    /// Whether requests reach a server now.
    pub fn is_connected(&self) -> bool {
        self.state().state.is_connected()
    }

    /// The changes of the connection's state, beginning with the state now.
    pub fn states(&self) -> StateStream {
        self.handle.shared.subscribe()
    }

    /// Waits until requests reach a server.
    ///
    /// # Errors
    /// [`Error::AuthFailed`] if the client has ended because the server refuses its credentials; [`Error::Closed`] if it
    /// is closed otherwise.
    pub async fn wait_connected(&self) -> Result<SessionState> {
        let mut states = self.states();
        while let Some(state) = states.next().await {
            if state.state.is_connected() {
                return Ok(state);
            }
        }
        Err(self.handle.shared.end_error())
    }

    /// Waits until requests reach a server, at most for `limit`. Returns false after that time. Curator's
    /// `blockUntilConnected`.
    ///
    /// # Errors
    /// Those of [`wait_connected`](Client::wait_connected), at once: a loop until this is true ends with the client.
    pub async fn wait_connected_within(&self, limit: Duration) -> Result<bool> {
        match timeout(limit, self.wait_connected()).await {
            Ok(connected) => connected.map(|_| true),
            Err(_) => Ok(false),
        }
    }

    /// A handle whose operations are done in the present session or not at all: once that session is over, they fail
    /// with [`Error::SessionChanged`]. Waits for a session if there is none.
    ///
    /// # Errors
    /// Those of [`wait_connected`](Client::wait_connected).
    pub async fn session(&self) -> Result<Session> {
        loop {
            // By the clock the session can be over although no task has reported it yet.
            self.handle.shared.deadline();
            if let (_, Some(id)) = self.handle.shared.state_now() {
                return Ok(Session::new(id, Client { session: Some(id), ..self.clone() }));
            }
            self.wait_connected().await?;
        }
    }

    /// The present session's id; `None` while there is none, and from the moment on at which a server may have
    /// expired it.
    pub fn session_id(&self) -> Option<SessionId> {
        self.handle.shared.state_now().1
    }

    /// The session timeout that the server has granted; `None` before the first session.
    pub fn session_timeout(&self) -> Option<Duration> {
        self.handle.shared.session_timeout()
    }

    /// The zxid of the newest transaction that this client has seen.
    pub fn last_zxid(&self) -> Zxid {
        self.handle.shared.last_zxid()
    }

    /// Counters of this client's operations, bytes, events and connections. Needs the feature `metrics`, which is on by
    /// default.
    #[cfg(feature = "metrics")]
    pub fn metrics(&self) -> crate::metrics::Metrics {
        self.handle.shared.metrics()
    }

    /// A handle whose paths are below `namespace`, a path below this handle's root. The znode need not exist:
    /// [`creating_parents`](crate::Create::creating_parents) creates it. The handle of a [`Session`] stays bound to that
    /// session. Curator's `usingNamespace`.
    ///
    /// # Errors
    /// [`Error::BadPath`].
    pub fn using_namespace(&self, namespace: &str) -> Result<Client> {
        let chroot = self.chroot.join(namespace).ok_or_else(|| Error::BadPath { path: namespace.into() })?;
        Ok(Client { chroot, ..self.clone() })
    }

    /// This handle's root, as a path from the servers' root. Curator's `getNamespace`.
    pub fn namespace(&self) -> &str {
        self.chroot.root()
    }

    /// A handle with another retry policy. The handle of a [`Session`] stays bound to that session.
    pub fn with_retry(&self, policy: RetryPolicy) -> Client {
        Client { retry: policy, ..self.clone() }
    }

    /// This handle's retry policy.
    pub fn retry_policy(&self) -> RetryPolicy {
        self.retry
    }

    /// Adds an identity to this connection and all later ones, for example `digest` and `user:password`. The request is
    /// handed to the client now, by this call.
    ///
    /// # Errors
    /// [`Error::AuthFailed`]: the server refuses the identity and closes the connection. [`Error::NotConnected`] and
    /// [`Error::SessionExpired`], as of other operations. After an error the client does not use the identity.
    pub fn add_auth(&self, scheme: &str, auth: impl Into<Vec<u8>>) -> Operation<()> {
        let context = self.context("addAuth", scheme);
        let call = self.handle.shared.add_auth(AuthInfo { scheme: scheme.to_owned(), auth: auth.into() });
        spanned(context.span(), async move { finish(call, &context, |reply| reply.ok().map(drop)).await })
    }

    /// This handle, not bound to a session.
    pub(crate) fn unbound(&self) -> Client {
        Client { session: None, ..self.clone() }
    }

    pub(crate) fn call(&self, request: &Request<'_>) -> Call {
        self.handle.shared.submit(request, self.session, None)
    }

    /// Sends a request without a waiting caller; `act` is called with the outcome.
    pub(crate) fn call_detached(&self, request: &Request<'_>, act: impl FnOnce(Outcome) + Send + 'static) {
        self.handle.shared.submit_for(Recipient::Callback(Box::new(act)), request, self.session, None);
    }

    pub(crate) fn call_with_watch(&self, request: &Request<'_>, watch: WatchId) -> Call {
        self.handle.shared.submit(request, self.session, Some(watch))
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.handle.shared
    }
}

/// Whether a znode can have this path.
pub(crate) fn checked(path: &str) -> Result<()> {
    match path::is_valid(path) {
        true => Ok(()),
        false => Err(Error::BadPath { path: path.into() }),
    }
}
