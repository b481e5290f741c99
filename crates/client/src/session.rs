//! A handle that is bound to one session.

use crate::client::Client;
use ostler_client_core::ConnectionState;
use ostler_proto::id::SessionId;
use std::ops::Deref;

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
    /// server can have expired it; but for a server that is cut off from its leader, and answers until it notices
    /// (`syncLimit` ticks).
    pub fn is_alive(&self) -> bool {
        self.client.session_id() == Some(self.id)
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

impl Deref for Session {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}
