//! A handle that is bound to one session.

use crate::{
    client::Client,
    error::{Error, Result},
    shared::Shared,
    version::Version,
};
use ostler_client_core::ConnectionState;
use ostler_proto::id::SessionId;
use std::{ops::Deref, sync::Arc, time::Duration};
use tokio::time::sleep;

/// The first pause between two tries to prove that a session lives. It doubles up to [`PROOF_PAUSE_MAX`].
const PROOF_PAUSE: Duration = Duration::from_millis(50);
const PROOF_PAUSE_MAX: Duration = Duration::from_secs(1);

/// A [`Client`] whose operations are done in one session or not at all.
///
/// A lock that is held by an ephemeral znode is held by a session. After the session has expired, a [`Client`] goes on
/// in a new one, where an operation of the former holder must not be done. Through this handle such an operation fails
/// with [`Error::SessionChanged`](crate::Error::SessionChanged).
///
/// It dereferences to a [`Client`] that is bound to the session. Its clones stay bound, and so do the handles of
/// [`using_namespace`](Client::using_namespace) and [`with_retry`](Client::with_retry).
///
/// Only operations are bound. Other methods of the [`Client`] speak of the whole client through this handle, too:
/// [`session_id`](Client::session_id), [`state`](Client::state), [`states`](Client::states) and
/// [`wait_connected`](Client::wait_connected) go on with the next session, and [`close`](Client::close) closes the client
/// with all of its clones. For this session ask [`id`](Session::id), [`is_alive`](Session::is_alive) and
/// [`ended`](Session::ended).
#[derive(Debug, Clone)]
pub struct Session {
    id: SessionId,
    client: Client,
}

impl Session {
    pub(crate) fn new(id: SessionId, client: Client) -> Session {
        Session { id, client }
    }

    /// The session's id.
    pub fn id(&self) -> SessionId {
        self.id
    }

    /// Whether the session lives, as far as this client can know: it is the client's present one, and by this machine's
    /// monotonic clock the ensemble cannot have expired it. Without a [`Hold`] there is one exception: a server that is cut off from its
    /// leader answers until it notices that (`syncLimit` ticks), and the session may expire meanwhile.
    pub fn is_alive(&self) -> bool {
        self.client.session_id() == Some(self.id)
    }

    /// Declares that the caller holds something in this session, such as a lock. Returns when a quorum has confirmed that
    /// the session lives. Until all of its holds are dropped, only replies that need a quorum count as signs of life, so
    /// the client reports the loss of the session before the ensemble can have expired it. If nothing else is written,
    /// the client sends transactions that only check. See
    /// [`ClientBuilder::prove_holding`](crate::ClientBuilder::prove_holding).
    ///
    /// # Errors
    /// [`Error::SessionChanged`] if the session is over; other errors of the client, such as [`Error::Closed`].
    pub async fn hold(&self) -> Result<Hold> {
        let shared = self.client.shared();
        shared.hold(self.id);
        let hold = Hold { session: self.id, shared: shared.clone() };
        let mut pause = PROOF_PAUSE;
        while !shared.is_proven(self.id) {
            match self.multi().check("/", Version::Any).await {
                // Either answer comes from a quorum.
                Ok(_) | Err(Error::Multi { .. }) if shared.is_proven(self.id) => break,
                // The answer took too long to prove that the session lives now.
                Ok(_) | Err(Error::Multi { .. }) => {}
                Err(error) if error.is_retryable() => {}
                Err(error) => return Err(error),
            }
            let ready = async {
                sleep(pause).await;
                self.client.wait_connected().await
            };
            tokio::select! {
                connected = ready => drop(connected?),
                // The next try returns the error.
                () = self.ended() => {}
            }
            pause = (pause * 2).min(PROOF_PAUSE_MAX);
        }
        Ok(hold)
    }

    /// Waits until the session is over: lost, or the client closed.
    pub async fn ended(&self) {
        self.until(|_| false).await;
    }

    /// Waits until the connection is suspended, or the session is over. From then on a holder should act as if it held
    /// nothing.
    pub async fn suspended(&self) {
        self.until(|state| state == ConnectionState::Suspended).await;
    }

    async fn until(&self, wanted: impl Fn(ConnectionState) -> bool) {
        let mut states = self.client.states();
        while self.is_alive() {
            match states.next().await {
                Some(next) if wanted(next.state) => return,
                Some(_) => {}
                None => return,
            }
        }
    }
}

/// Declares, until it is dropped, that something is held in a session ([`Session::hold`]).
#[derive(Debug)]
#[must_use = "a hold that is dropped ends at once"]
pub struct Hold {
    session: SessionId,
    shared: Arc<Shared>,
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.shared.release(self.session);
    }
}

/// The client that is bound to the session. Its operations are bound; its `session_id()`, `state()`, `states()`,
/// `wait_connected()` and `close()` are those of the whole client. See [`Session`].
impl Deref for Session {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}
