//! The end of this client's session on demand, for tests.

use crate::{
    client::Client,
    dial::Conn,
    error::{Error, Result},
    session::Session,
    tracing,
};
use ostler_client_core::Credentials;
use ostler_proto::{connect::ConnectRequest, id::Xid, request::Request};
use std::time::Duration;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    time::timeout,
};

/// How long one try may take until this client sees the loss. Another client of the session may have been first.
const TRY_WITHIN: Duration = Duration::from_secs(2);
/// A session timeout for the second connection. The server answers with one that it allows.
const TIMEOUT_MS: i32 = 10_000;

impl Client {
    /// Lets the ensemble end this client's session now, as if it had expired, and waits until the client has noticed
    /// it. For tests of what a program does after that: its ephemeral znodes are gone, its locks are lost, and
    /// [`states`](Client::states) has `Suspended` and [`Lost`](crate::ConnectionState::Lost). By default the client then
    /// opens a new session. It works with every server. Curator's `KillSession` and `injectSessionExpiration`.
    ///
    /// A second connection takes over the session by its id and password, and closes it.
    ///
    /// ```
    /// # mod server { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/client/server.rs")); }
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> ostler_client::Result<()> {
    /// # let server = server::TestServer::start();
    /// # let client = server.client().await;
    /// client.create("/worker", b"").ephemeral().await?;
    /// let session = client.session().await?;
    /// client.inject_session_expiration().await?;
    /// assert!(!session.is_alive());
    /// assert_eq!(client.exists("/worker").await?, None); // in the next session
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::Closed`]; [`Error::NotConnected`] if the session could not be ended within the connection timeout.
    pub async fn inject_session_expiration(&self) -> Result<()> {
        let session = self.unbound().session().await?;
        let not_connected = Error::NotConnected { operation: "injectSessionExpiration", path: "".into() };
        let limit = self.handle.connection_timeout;
        timeout(limit, self.end(&session)).await.map_err(|_| not_connected)
    }

    async fn end(&self, session: &Session) {
        let dialer = &self.handle.dialer;
        for try_number in 0.. {
            let servers = dialer.hosts.numbers();
            let Some(host) = servers.get(try_number as usize % servers.len().max(1)).copied() else {
                return session.ended().await;
            };
            let credentials = self.shared().credentials().filter(|known| known.session == session.id());
            let Some(credentials) = credentials else { return session.ended().await };
            let attempt = async {
                match dialer.clone().dial(host, try_number).await {
                    Ok(conn) => close(conn, &credentials).await,
                    Err(error) => tracing::debug!(%error, "trying the next server"),
                }
                session.ended().await;
            };
            if timeout(TRY_WITHIN, attempt).await.is_ok() {
                return;
            }
        }
    }
}

/// Takes over the session and closes it. Both requests are one write, so that the owner cannot take it back in between.
async fn close(mut conn: Conn, credentials: &Credentials) {
    let mut out = Vec::new();
    ConnectRequest {
        protocol_version: 0,
        last_zxid_seen: 0,
        timeout_ms: TIMEOUT_MS,
        session: credentials.session,
        password: Some(&credentials.password),
        read_only: Some(false),
    }
    .write_frame(&mut out);
    Request::CloseSession.write_frame(Xid(1), &mut out);
    if conn.write_all(&out).await.is_ok() && conn.flush().await.is_ok() {
        // The server closes the connection after its replies. The session's end shows that it was done.
        let _ = conn.read_to_end(&mut Vec::new()).await;
    }
}
