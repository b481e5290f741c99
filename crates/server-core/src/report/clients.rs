//! The clients' libraries, and the requests that are refused, for a census in parts.

use super::live_sessions::shown_id;
pub use crate::{
    connections::habits::Habits,
    stats::client_notes::{ClientNotesReport, CutTimeout, Refused},
};
use crate::{input::ConnId, server::Server};
use alloc::{string::String, vec::Vec};
use core::net::SocketAddr;

/// A client, for the census.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CountedClient {
    /// Its connection.
    pub conn: ConnId,
    /// Its address.
    pub peer: SocketAddr,
    /// The habits of its library.
    pub habits: Habits,
    /// The user of its digest, if it has proven no identity by a certificate or by SASL.
    pub digest_only: Option<String>,
}

impl Server {
    /// The clients with a session, those after this connection, in the order of their connections; looks at `max` of them.
    /// Returns the connection after which the census goes on; `None` at the end.
    pub fn clients_after(&self, after: Option<ConnId>, max: usize) -> (Vec<CountedClient>, Option<ConnId>) {
        let numbers = self.connection_numbers_after(after, max);
        let client = |conn: &ConnId| {
            let state = self.connections.get(*conn).filter(|state| state.session().is_some())?;
            let ids = state.ids.all();
            let is_stronger = ids.iter().any(|id| matches!(&*id.scheme, "x509" | "sasl"));
            let digest = ids.iter().find(|id| id.scheme == "digest").filter(|_| !is_stronger);
            let (peer, habits) = (state.peer, state.habits);
            Some(CountedClient { conn: *conn, peer, habits, digest_only: digest.map(shown_id) })
        };
        let next = numbers.last().copied().filter(|_| numbers.len() == max);
        (numbers.iter().filter_map(client).collect(), next)
    }

    /// The notes of refused requests, large ones, and timeouts, with at most `limit` kinds of refusals.
    pub fn client_notes(&self, limit: usize) -> ClientNotesReport {
        self.client_notes.report(limit)
    }
}
