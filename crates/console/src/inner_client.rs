//! The client's sessions in which people change znodes.
//!
//! A change goes the way of any client's request: the same checks, quotas, throttles, audit and forwarding. The connection
//! is one of the server to itself; the server knows the address and the certificate of the person behind it.

use crate::{
    error::{ApiError, Code},
    people::Proof,
    rights::Caller,
    state::Console,
};
use ostler_client::{Client, ConnectionState, Error};
use ostler_proto::acl::Id;
use ostler_server::admin::AdminConn;
use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{Arc, Weak},
    time::{Duration, Instant},
};
use tokio::sync::Mutex;

/// The timeout of the sessions.
const SESSION: Duration = Duration::from_secs(10);
/// The time for a session to open.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);
/// A session that nobody has used for this time is closed.
const IDLE: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_secs(10);
/// Sessions at once.
const CLIENTS_MAX: usize = 64;

/// Whoever has the same address, certificate and proof has the same rights, so these share a session.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Key {
    address: IpAddr,
    certificate: Option<(String, String)>,
    proof: Proof,
}

struct Kept {
    client: Client,
    used: Instant,
}

/// The sessions that are open.
#[derive(Default)]
pub(crate) struct Clients {
    open: Mutex<HashMap<Key, Kept>>,
}

/// A client with the identities of the caller.
pub(crate) async fn client(console: &Arc<Console>, caller: &Caller) -> Result<Client, ApiError> {
    let certificate = caller.conn.certificate.as_ref().map(|id| (id.scheme.to_string(), id.id.to_string()));
    let key = Key { address: caller.conn.peer.ip(), certificate, proof: caller.proof.clone() };
    let mut open = console.clients.open.lock().await;
    if let Some(kept) = open.get_mut(&key).filter(|kept| !is_over(&kept.client)) {
        kept.used = Instant::now();
        return Ok(kept.client.clone());
    }
    open.remove(&key);
    if open.len() >= CLIENTS_MAX {
        return Err(ApiError::new(
            Code::Busy,
            "Too many people change znodes at once. Try again in a minute.",
        ));
    }
    let client = connect(console, &caller.conn, &caller.proof).await?;
    if open.is_empty() {
        tokio::spawn(close_idle(Arc::downgrade(console)));
    }
    open.insert(key, Kept { client: client.clone(), used: Instant::now() });
    Ok(client)
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
    Ok(known
        .into_iter()
        .filter(|(scheme, _)| scheme == "sasl")
        .map(|(scheme, id)| Id::new(&scheme, id))
        .collect())
}

async fn connect(console: &Arc<Console>, conn: &AdminConn, proof: &Proof) -> Result<Client, ApiError> {
    let (handle, peer, certificate) = (console.handle.clone(), conn.peer, conn.certificate.clone());
    let dial = move |_host, _port| {
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
        Error::AuthFailed => ApiError::new(Code::SignIn, "The server has refused the login."),
        error => ApiError::new(
            Code::Busy,
            format!("The server opens no session for changes now: {error}. Is there a quorum?"),
        ),
    })
}

/// Whether a client's session has ended.
fn is_over(client: &Client) -> bool {
    matches!(client.state().state, ConnectionState::Lost | ConnectionState::Closed)
}

/// Closes sessions that nobody uses, until none is left.
async fn close_idle(console: Weak<Console>) {
    loop {
        tokio::time::sleep(LOOK).await;
        let Some(console) = console.upgrade() else { return };
        let mut open = console.clients.open.lock().await;
        let now = Instant::now();
        let idle: Vec<Key> = open
            .iter()
            .filter(|(_, kept)| now.saturating_duration_since(kept.used) >= IDLE || is_over(&kept.client))
            .map(|(key, _)| key.clone())
            .collect();
        for key in idle {
            if let Some(kept) = open.remove(&key) {
                tokio::spawn(async move { kept.client.close().await });
            }
        }
        if open.is_empty() {
            return;
        }
    }
}
