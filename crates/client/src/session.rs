//! A handle that is bound to one session.

use crate::{
    client::Client,
    error::{Error, Result},
    shared::Shared,
};
use ostler_client_core::ConnectionState;
use ostler_proto::id::SessionId;
use std::{ops::Deref, sync::Arc, time::Duration};
use tokio::time::sleep;

/// Between two tries of what did not show that a session lives, the first time and at most.
const PROOF_PAUSE: Duration = Duration::from_millis(50);
const PROOF_PAUSE_MAX: Duration = Duration::from_secs(1);

/// A [`Client`] whose operations are done in one session or not at all.
///
/// What is held by an ephemeral znode is held by a session. After that has expired, a client goes on in a new
/// one, and an operation that was meant for the holder must not be done there: through this handle it fails with
/// [`Error::SessionChanged`](crate::Error::SessionChanged).
#[derive(Debug, Clone)]
pub struct Session {
    id: SessionId,
    client: Client,
}

impl Session {
    pub(crate) fn new(id: SessionId, client: Client) -> Session {
        Session { id, client }
    }

    /// Its id.
    pub fn id(&self) -> SessionId {
        self.id
    }

    /// Whether it can be taken to live: it is the client's present one, and by this machine's monotonic clock no
    /// server can have expired it. Without a [`Hold`] that is not said of a server that is cut off from its leader, and
    /// answers until it notices (`syncLimit` ticks).
    pub fn is_alive(&self) -> bool {
        self.client.session_id() == Some(self.id)
    }

    /// Something is held by the session, by a znode of its own: returns as soon as it is certain that the session
    /// lives. From then on until all of its holds are dropped it is taken for lost in time, whatever its server
    /// believes: only what takes a quorum counts as a sign of life. For that the client asks for a transaction that
    /// only checks, where nothing else is written. See
    /// [`ClientBuilder::prove_holding`](crate::ClientBuilder::prove_holding).
    ///
    /// # Errors
    /// The session is over, or the client's others.
    pub async fn hold(&self) -> Result<Hold> {
        let shared = self.client.shared();
        shared.hold(self.id);
        let hold = Hold { session: self.id, shared: shared.clone() };
        let mut pause = PROOF_PAUSE;
        while !shared.is_proven(self.id) {
            match self.multi().check("/", -1).commit().await {
                // Whatever was found, a quorum has said it.
                Ok(_) | Err(Error::Multi { .. }) if shared.is_proven(self.id) => break,
                // It took too long to show anything.
                Ok(_) | Err(Error::Multi { .. }) => {}
                Err(error) if error.may_pass() => {}
                Err(error) => return Err(error),
            }
            let ready = async {
                sleep(pause).await;
                self.client.wait_connected().await
            };
            tokio::select! {
                connected = ready => drop(connected?),
                // The next try says so.
                () = self.ended() => {}
            }
            pause = (pause * 2).min(PROOF_PAUSE_MAX);
        }
        Ok(hold)
    }

    /// Waits until it is over: lost, or the client closed.
    pub async fn ended(&self) {
        self.until(|_| false).await;
    }

    /// Waits until the connection is suspended, or the session is over. Whoever holds something by the session
    /// should act from then on as if it did not.
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

/// Says that something is held by a session ([`Session::hold`]), until it is dropped.
#[derive(Debug)]
pub struct Hold {
    session: SessionId,
    shared: Arc<Shared>,
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.shared.release(self.session);
    }
}

impl Deref for Session {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}
