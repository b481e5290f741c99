//! The client's sessions in which people change znodes.
//!
//! A change goes the way of any client's request: the same checks, quotas, throttles, audit and forwarding. The connection
//! is one of the server to itself; the server knows the address and the certificate of the person behind it.

mod shared;

use crate::{
    error::{ApiError, Code},
    people::Proof,
    rights::Caller,
    state::Console,
};
use ostler_client::{Client, ConnectionState, Error};
use ostler_proto::acl::Id;
use ostler_server::admin::AdminConn;
use shared::{Key, Shared};
use std::{
    sync::{Arc, Weak},
    time::{Duration, Instant},
};

/// The timeout of the sessions.
const SESSION: Duration = Duration::from_secs(10);
/// The time for a session to open.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);
/// The time between two looks for sessions that nobody uses.
const LOOK: Duration = Duration::from_secs(10);

/// Why no session was opened.
#[derive(Debug, Clone)]
enum Failure {
    /// The server has refused the login.
    Login,
    /// It opens none now, for this reason.
    Closed(String),
}

/// The sessions that are open.
#[derive(Default)]
pub(crate) struct Clients {
    shared: Shared<Client, Failure>,
}

/// A client with the identities of the caller.
pub(crate) async fn client(console: &Arc<Console>, caller: &Caller) -> Result<Client, ApiError> {
    let certificate = caller.conn.certificate.as_ref().map(|id| (id.scheme.to_string(), id.id.to_string()));
    let key = Key { address: caller.conn.peer.ip(), certificate, proof: caller.proof.clone() };
    let (attempt, must_look_after) = console.clients.shared.attempt(&key, Instant::now(), is_over);
    if must_look_after {
        tokio::spawn(look_after(Arc::downgrade(console)));
    }
    let made = attempt.get_or_init(|| connect(console, &caller.conn, &caller.proof)).await;
    made.clone().map_err(ApiError::from)
}

/// The identities that a login by SASL proves: the server says them.
pub(crate) async fn prove(
    console: &Arc<Console>,
    conn: &AdminConn,
    proof: &Proof,
) -> Result<Vec<Id>, ApiError> {
    let client = connect(console, conn, proof).await?;
    let known = client.who_am_i().await;
    client.close().await;
    let known = known.map_err(|error| {
        ApiError::new(Code::Server, format!("The server did not say who you are: {error}."))
    })?;
    Ok(known.into_iter().filter(|id| id.scheme == "sasl").collect())
}

async fn connect(console: &Arc<Console>, conn: &AdminConn, proof: &Proof) -> Result<Client, Failure> {
    let (handle, peer, certificate) = (console.handle.clone(), conn.peer, conn.certificate.clone());
    let dial = move |_| {
        let (handle, certificate) = (handle.clone(), certificate.clone());
        async move { handle.connect(peer, certificate).await }
    };
    let mut builder = Client::builder("localhost:2181")
        .session_timeout(SESSION)
        .connection_timeout(CONNECT_WITHIN)
        .max_packet(console.handle.frame_max())
        .new_session_after_loss(false)
        .connector(dial);
    builder = match proof {
        Proof::None => builder,
        Proof::Digest(auth) => builder.auth("digest", auth.clone()),
        Proof::Sasl { user, password } => builder.sasl_digest_md5(user, password),
    };
    builder.connect().await.map_err(|error| match error {
        Error::AuthFailed => Failure::Login,
        error => Failure::Closed(error.to_string()),
    })
}

impl From<Failure> for ApiError {
    fn from(failure: Failure) -> ApiError {
        match failure {
            Failure::Login => ApiError::new(Code::SignIn, "The server has refused the login."),
            Failure::Closed(why) => ApiError::new(
                Code::Busy,
                format!("The server opens no session for changes now: {why}. Is there a quorum?"),
            ),
        }
    }
}

/// Whether a client's session has ended.
fn is_over(client: &Client) -> bool {
    matches!(client.state().state, ConnectionState::Lost | ConnectionState::Closed)
}

/// Closes sessions that nobody uses, until none is left.
async fn look_after(console: Weak<Console>) {
    loop {
        tokio::time::sleep(LOOK).await;
        let Some(console) = console.upgrade() else { return };
        if !console.clients.shared.forget_idle(Instant::now(), is_over) {
            return;
        }
    }
}
