//! The state of an ensemble, as answers have it.

use super::{
    error::ControlError,
    running::{LiveSession, Running},
};
use ostler_testkit::TestServer;
use serde::Serialize;

/// A standalone server or an ensemble.
#[derive(Debug, Serialize)]
pub(super) struct EnsembleState {
    id: u32,
    /// For clients. The faults of the network between clients and servers apply to connections to these addresses.
    connect: String,
    leader: Option<i64>,
    servers: Vec<ServerState>,
}

#[derive(Debug, Serialize)]
struct ServerState {
    id: i64,
    /// `down`, `paused`, or what it is to its clients.
    state: String,
    address: String,
    /// The address at which no fault of the network applies.
    direct: String,
    data_dir: String,
}

/// A session.
#[derive(Debug, Serialize)]
pub(super) struct SessionState {
    /// In hexadecimal, because numbers of this size are not exact in JavaScript.
    id: String,
    /// The server that its client is connected to.
    server: Option<i64>,
}

impl EnsembleState {
    pub(super) fn of(running: &Running) -> Result<EnsembleState, ControlError> {
        let mut servers = Vec::new();
        for id in running.ids() {
            let server = running.server(id)?;
            servers.push(ServerState {
                id: id.0,
                state: state(server)?,
                address: server.address().to_string(),
                direct: server.direct_address().to_string(),
                data_dir: server.data_dir().display().to_string(),
            });
        }
        Ok(EnsembleState {
            id: running.id,
            connect: running.connect_string(),
            leader: running.leader().map(|id| id.0),
            servers,
        })
    }
}

fn state(server: &TestServer) -> Result<String, ControlError> {
    Ok(match (server.is_up(), server.is_paused()) {
        (false, _) => "down".into(),
        (true, true) => "paused".into(),
        (true, false) => server.mode()?.to_string(),
    })
}

impl SessionState {
    pub(super) fn of(live: &LiveSession) -> SessionState {
        SessionState { id: live.id.to_string(), server: live.server.map(|id| id.0) }
    }
}
