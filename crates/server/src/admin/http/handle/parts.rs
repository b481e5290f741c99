//! Sessions, watches and clients in parts, for the console. The core is locked for one part at a time, so the caller lets
//! others use it in between.

use super::AdminHandle;
use ostler_proto::{acl::Id, id::SessionId};
use ostler_server_core::{
    ConnId, Server,
    report::{clients::CountedClient, live_sessions::LiveSession, sight::PathReader},
    sessions::ends::EndsReport,
    stats::hot::{HotReport, MeasuredReport},
};

/// The most paths, and about the most bytes of them, that are looked at in one part.
const PATHS_MAX: usize = 50;
const PATH_BYTES_MAX: usize = 128 << 10;

/// A session that lives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownSession {
    /// The session.
    pub session: LiveSession,
    /// Whether its connection to this server has TLS.
    pub has_tls: bool,
}

/// A part of the list of sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownPart {
    /// The sessions, in the order of their ids.
    pub sessions: Vec<ShownSession>,
    /// The session after which the list goes on; `None` at its end.
    pub next: Option<SessionId>,
}

/// A part of the census of clients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CensusPart {
    /// The clients, each with whether its connection has TLS.
    pub clients: Vec<(CountedClient, bool)>,
    /// The connection after which the census goes on; `None` at the end.
    pub next: Option<ConnId>,
}

impl AdminHandle {
    /// The sessions that this server knows, those after this one. Looks at `max` of them.
    pub fn live_sessions_after(&self, after: Option<SessionId>, max: usize) -> ShownPart {
        let driver = &self.state.driver;
        let now = driver.now();
        driver.inspect_with_outboxes(|server, outboxes| {
            let has_tls = |conn: ConnId| outboxes.get(&conn).is_some_and(|outbox| outbox.has_tls());
            let part = server.live_sessions_after(now, after, max);
            let shown = |session: LiveSession| ShownSession {
                has_tls: session.conn.as_ref().is_some_and(|of| has_tls(of.conn)),
                session,
            };
            ShownPart { sessions: part.sessions.into_iter().map(shown).collect(), next: part.next }
        })
    }

    /// One session, if it lives.
    pub fn live_session(&self, session: SessionId) -> Option<ShownSession> {
        let driver = &self.state.driver;
        let now = driver.now();
        driver.inspect_with_outboxes(|server, outboxes| {
            let session = server.live_session(now, session)?;
            let conn = session.conn.as_ref().map(|of| of.conn);
            let outbox = conn.and_then(|conn| outboxes.get(&conn));
            Some(ShownSession { has_tls: outbox.is_some_and(|outbox| outbox.has_tls()), session })
        })
    }

    /// The clients of this server, those after this connection. Looks at `max` of them.
    pub fn clients_after(&self, after: Option<ConnId>, max: usize) -> CensusPart {
        self.state.driver.inspect_with_outboxes(|server, outboxes| {
            let (clients, next) = server.clients_after(after, max);
            let has_tls = |conn: ConnId| outboxes.get(&conn).is_some_and(|outbox| outbox.has_tls());
            CensusPart {
                clients: clients
                    .into_iter()
                    .map(|of| {
                        let tls = has_tls(of.conn);
                        (of, tls)
                    })
                    .collect(),
                next,
            }
        })
    }

    /// The records of ended connections and sessions with these numbers.
    pub fn ends_numbered(&self, numbers: &[u64]) -> EndsReport {
        let driver = &self.state.driver;
        let now = driver.now();
        driver.inspect(|server| server.ends_numbered(now, numbers))
    }

    /// The hottest paths and clients of a sample, and those of the last measurement, at most `limit` of each kind.
    pub fn hot_paths(&self, limit: usize) -> (HotReport, Option<MeasuredReport>) {
        let driver = &self.state.driver;
        let now = driver.now();
        driver.inspect(|server| (server.hot_paths(now, limit), server.measured_hot_paths(now, limit)))
    }

    /// Paths as somebody with these identities may see them: where the name of a znode may not be read, the path ends
    /// with `/...` at the nearest ancestor that may be seen. Takes several looks at the core; call it where a thread may wait.
    pub fn seen_paths(&self, ids: &[Id], paths: &[&str], pause: impl Fn()) -> Vec<String> {
        let reader = PathReader::new(ids);
        let mut seen = Vec::with_capacity(paths.len());
        while seen.len() < paths.len() {
            if !seen.is_empty() {
                pause();
            }
            self.inspect(|server: &Server| {
                let mut bytes = 0;
                for path in paths.iter().skip(seen.len()).take(PATHS_MAX) {
                    seen.push(server.seen_path(&reader, path).into_owned());
                    bytes += path.len();
                    if bytes > PATH_BYTES_MAX {
                        break;
                    }
                }
            });
        }
        seen
    }
}
