//! The handle.

use crate::{
    builder::ClientBuilder,
    error::{Error, Result},
    metrics::Metrics,
    operation::{Call, Operation, finish, spanned},
    retry::RetryPolicy,
    session::Session,
    shared::{Outcome, Shared, Told},
    states::StateStream,
};
use ostler_client_core::{AuthInfo, Chroot, ConnectionState, SessionState, WatchId};
use ostler_proto::{
    id::{SessionId, Zxid},
    path,
    request::Request,
};
use std::{sync::Arc, time::Duration};
use tokio::time::timeout;
use tracing::Instrument;

/// A client of Ostler or ZooKeeper. Clones share its session; the last one dropped closes it.
#[derive(Debug, Clone)]
pub struct Client {
    pub(crate) handle: Arc<Handle>,
    pub(crate) chroot: Chroot,
    /// The one session in which operations of this handle may be done.
    pub(crate) session: Option<SessionId>,
    pub(crate) retry: RetryPolicy,
}

/// What all clones share. Dropped with the last of them.
#[derive(Debug)]
pub(crate) struct Handle {
    pub(crate) shared: Arc<Shared>,
}

impl Drop for Handle {
    fn drop(&mut self) {
        // Nobody waits for the answer.
        drop(self.shared.close());
    }
}

impl Client {
    /// Connects to one of the servers in `servers`, `host1:2181,host2:2181/root`, and opens a session.
    ///
    /// What else can be said is in [`Client::builder`].
    ///
    /// # Errors
    /// [`Error::ConnectString`]; [`Error::Unreachable`] if there is no session within the connection timeout.
    pub async fn connect(servers: &str) -> Result<Client> {
        Client::builder(servers).connect().await
    }

    /// The runtime in which the client was connected, and in which its own tasks run. What must last as long as the
    /// client is to be spawned here: the runtime in which it is used may end earlier.
    pub fn runtime(&self) -> &tokio::runtime::Handle {
        &self.handle.shared.runtime
    }

    /// Begins to describe a client.
    pub fn builder(servers: &str) -> ClientBuilder {
        ClientBuilder::new(servers)
    }

    /// Ends the session: its ephemeral znodes go, and every operation that follows fails with
    /// [`Error::Closed`]. Operations made before are done first; what goes on in the background and has to wait for a
    /// connection is given up. All clones are closed with it, and every [`Session`].
    pub async fn close(&self) {
        let span = self.topic("closeSession", "").span();
        // It is closed, whatever comes of the request.
        let _ = self.handle.shared.close().instrument(span).await;
    }

    /// The connection's state now. `Lost` from the moment on at which a server may have expired the session by
    /// this machine's monotonic clock, even if nothing has woken this process to say so.
    pub fn state(&self) -> SessionState {
        let (told, alive) = self.handle.shared.state_now();
        match (told.session, alive) {
            (Some(_), None) if told.state != ConnectionState::Closed => {
                SessionState { state: ConnectionState::Lost, ..told }
            }
            _ => told,
        }
    }

    /// Whether requests reach a server now.
    pub fn is_connected(&self) -> bool {
        self.state().state.is_connected()
    }

    /// Every change of the connection's state, beginning with the state now.
    pub fn states(&self) -> StateStream {
        self.handle.shared.subscribe()
    }

    /// Waits until requests reach a server.
    ///
    /// # Errors
    /// [`Error::Closed`].
    pub async fn wait_connected(&self) -> Result<SessionState> {
        let mut states = self.states();
        while let Some(state) = states.next().await {
            if state.state.is_connected() {
                return Ok(state);
            }
        }
        Err(Error::Closed)
    }

    /// Waits until requests reach a server, but no longer than `limit`. Curator's `blockUntilConnected`.
    pub async fn block_until_connected(&self, limit: Duration) -> bool {
        matches!(timeout(limit, self.wait_connected()).await, Ok(Ok(_)))
    }

    /// A handle whose operations are done in the present session or not at all: once that is over, they fail
    /// with [`Error::SessionChanged`]. Waits for a session if there is none.
    ///
    /// # Errors
    /// [`Error::Closed`].
    pub async fn session(&self) -> Result<Session> {
        loop {
            // By the clock the session can be over before anybody was woken to say so.
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

    /// Session timeout that the server has granted.
    pub fn session_timeout(&self) -> Option<Duration> {
        self.handle.shared.session_timeout()
    }

    /// The newest transaction that this client has seen.
    pub fn last_zxid(&self) -> Zxid {
        self.handle.shared.last_zxid()
    }

    /// Counts of what this client has done.
    pub fn metrics(&self) -> Metrics {
        self.handle.shared.metrics()
    }

    /// A handle whose paths lie below `namespace`; it need not exist yet
    /// ([`creating_parents`](crate::Create::creating_parents) makes it). Curator's `usingNamespace`.
    ///
    /// # Errors
    /// [`Error::BadPath`].
    pub fn using_namespace(&self, namespace: &str) -> Result<Client> {
        let chroot = self.chroot.join(namespace).ok_or_else(|| Error::BadPath { path: namespace.into() })?;
        Ok(Client { chroot, ..self.clone() })
    }

    /// The znode that this handle takes for the root, as the server knows it.
    pub fn namespace(&self) -> &str {
        self.chroot.root()
    }

    /// A handle that tries again as `policy` says.
    #[must_use]
    pub fn with_retry(&self, policy: RetryPolicy) -> Client {
        Client { retry: policy, ..self.clone() }
    }

    /// How this handle tries again.
    pub fn retry_policy(&self) -> RetryPolicy {
        self.retry
    }

    /// Shows another identity, on this connection and all that follow: `digest` and `user:password`, say.
    ///
    /// # Errors
    /// [`Error::AuthFailed`]: the server refuses it and closes the connection. [`Error::NotConnected`] and
    /// [`Error::SessionExpired`], as of other operations. Then it is not shown again.
    pub fn add_auth(&self, scheme: &str, auth: impl Into<Vec<u8>>) -> Operation<()> {
        let topic = self.topic("addAuth", scheme);
        let call = self.handle.shared.add_auth(AuthInfo { scheme: scheme.to_owned(), auth: auth.into() });
        spanned(topic.span(), async move { finish(call, &topic, |reply| reply.ok().map(drop)).await })
    }

    /// This handle, bound to no session.
    pub(crate) fn unbound(&self) -> Client {
        Client { session: None, ..self.clone() }
    }

    pub(crate) fn call(&self, request: &Request<'_>) -> Call {
        self.handle.shared.submit(request, self.session, None)
    }

    /// A request whose outcome nobody waits for; `act` is done about it.
    pub(crate) fn call_for(&self, request: &Request<'_>, act: impl FnOnce(Outcome) + Send + 'static) {
        self.handle.shared.submit_for(Told::Nobody(Box::new(act)), request, self.session, None);
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
