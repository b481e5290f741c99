//! Limits of what all clients together may begin: new connections, requests, and the bytes of large requests. All but that of new
//! sessions under way are off by default. They decide by the times and the chance that they are given.

pub(crate) mod connections;
pub(crate) mod large_requests;
mod line;
pub(crate) mod new_sessions;
pub(crate) mod requests;

use crate::config::ThrottleSettings;
use connections::{ConnectionKind, ConnectionThrottle};
use large_requests::LargeRequests;
use ostler_proto::{connect::ConnectRequest, id::SessionId};
use ostler_server_core::{input::Mono, stats::Summary};
use parking_lot::Mutex;
use std::{io, sync::Arc};

/// The limits that are not kept under the lock of the core.
#[derive(Debug)]
pub(crate) struct Throttles {
    connections: Option<Mutex<CountedConnections>>,
    pub(crate) large_requests: Option<Arc<LargeRequests>>,
    /// Milliseconds after which a request that waits looks again; `None` if requests are not limited.
    pub(crate) stall_ms: Option<u32>,
    /// New sessions are local.
    local_sessions: bool,
}

#[derive(Debug)]
struct CountedConnections {
    throttle: ConnectionThrottle,
    /// The missing tokens, after each connection that was let in.
    deficits: Summary,
}

/// The figures of the limit of new connections.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ConnectionFigures {
    pub(crate) deficits: Summary,
    pub(crate) drop_probability: f64,
}

impl Throttles {
    pub(crate) fn new(settings: &ThrottleSettings, local_sessions: bool, now: Mono) -> Throttles {
        let connections = settings.connections.map(|of| CountedConnections {
            throttle: ConnectionThrottle::new(of, now),
            deficits: Summary::default(),
        });
        Throttles {
            connections: connections.map(Mutex::new),
            large_requests: settings.large_requests.map(|of| Arc::new(LargeRequests::new(of))),
            stall_ms: settings.requests.map(|of| of.stall_ms),
            local_sessions,
        }
    }

    /// Whether a client's handshake is carried out.
    pub(crate) fn admits(&self, now: Mono, request: &ConnectRequest<'_>) -> io::Result<bool> {
        let Some(connections) = &self.connections else { return Ok(true) };
        let kind = match request.session {
            SessionId::NONE if self.local_sessions => ConnectionKind::Local,
            SessionId::NONE => ConnectionKind::Global,
            _ => ConnectionKind::Renewed,
        };
        let chance = getrandom::u64()?;
        let CountedConnections { throttle, deficits } = &mut *connections.lock();
        let is_admitted = throttle.admits(now, kind, chance);
        if is_admitted {
            deficits.add(throttle.deficit());
        }
        Ok(is_admitted)
    }

    /// `None` if new connections are not limited.
    pub(crate) fn connection_figures(&self) -> Option<ConnectionFigures> {
        let connections = self.connections.as_ref()?.lock();
        Some(ConnectionFigures {
            deficits: connections.deficits,
            drop_probability: connections.throttle.drop_probability(),
        })
    }

    /// Forgets the counts (`srst`).
    pub(crate) fn reset(&self) {
        if let Some(connections) = &self.connections {
            connections.lock().deficits = Summary::default();
        }
        if let Some(large_requests) = &self.large_requests {
            large_requests.reset();
        }
    }
}
