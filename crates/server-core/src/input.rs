//! What happens in the world.

use core::net::SocketAddr;
use ostler_proto::{
    connect::ConnectRequest,
    id::Xid,
    jute::Result,
    request::{Request, RequestHeader},
};
use ostler_tree::WatcherId;
pub use ostler_zab::Mono;
use ostler_zab::PersistSeq;

/// The time, passed in with every step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Now {
    /// For all waiting.
    pub mono: Mono,
    /// Milliseconds since 1970, for the times in Stats only.
    pub wall_ms: i64,
}

/// A client's connection; the shell never uses a number twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnId(pub u64);

impl ConnId {
    pub(crate) fn watcher(self) -> WatcherId {
        WatcherId(self.0)
    }
}

impl From<WatcherId> for ConnId {
    fn from(watcher: WatcherId) -> ConnId {
        ConnId(watcher.0)
    }
}

/// A request, decoded outside the lock and still borrowed from its frame.
#[derive(Debug, Clone)]
pub struct ClientRequest<'a> {
    /// The client's number.
    pub xid: Xid,
    /// The decoded body.
    pub request: Request<'a>,
    /// The whole payload: a request that has to wait is kept in this form.
    pub payload: &'a [u8],
}

impl<'a> ClientRequest<'a> {
    /// Decodes a frame's payload. Fails only where the header is not whole; a bad body is a request too.
    pub fn decode(payload: &'a [u8]) -> Result<Self> {
        let (header, body) = RequestHeader::read(payload)?;
        Ok(ClientRequest { xid: header.xid, request: Request::read(header.code, body), payload })
    }

    /// The operation number as sent.
    pub fn code(&self) -> i32 {
        RequestHeader::read(self.payload).map_or(0, |(header, _)| header.code)
    }
}

/// Everything that a member reacts to.
#[derive(Debug)]
pub enum Input<'a> {
    /// A client has connected.
    Accepted {
        /// Its connection.
        conn: ConnId,
        /// Where it comes from.
        peer: SocketAddr,
    },
    /// The first frame of a connection.
    Connect {
        /// Its connection.
        conn: ConnId,
        /// The handshake.
        request: ConnectRequest<'a>,
    },
    /// Any later frame.
    Request {
        /// Its connection.
        conn: ConnId,
        /// The request.
        request: ClientRequest<'a>,
    },
    /// The connection is gone.
    Disconnected {
        /// Its connection.
        conn: ConnId,
    },
    /// All persistent acts up to this one are on disk.
    Persisted(PersistSeq),
    /// The snapshot that was asked for is on disk, or was given up.
    SnapshotDone,
    /// The time that [`crate::Server::next_deadline`] named has come.
    Deadline,
}
