//! What happens in the world.

use crate::config::AuthInfo;
use ostler_proto::{id::SessionId, request::Request};

/// A request of the application; the shell counts them and never uses a number twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// Somebody who wants to hear of a path's changes; the shell never uses a number twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WatchId(pub u64);

/// An attempt to connect, and the connection that it leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct AttemptId(pub u64);

/// Everything that a session reacts to.
#[derive(Debug)]
pub enum Input<'a> {
    /// The application asks for something. It is answered by exactly one `Reply` or `Failed`.
    Request {
        /// Its number.
        id: RequestId,
        /// The session that it is bound to; it fails rather than reach another.
        session: Option<SessionId>,
        /// What to ask, with absolute paths. Pings, auth, setWatches and closeSession are the session's own.
        request: &'a Request<'a>,
        /// Who hears of the change that the request leaves a watch for. Its watch flag must be set.
        watch: Option<WatchId>,
    },
    /// Nobody listens to a watch any more.
    Unwatch(WatchId),
    /// Something is held by the session from now on, by an ephemeral znode. Until as many have been released, only
    /// what takes a quorum shows that the session lives, and a transaction that only checks is asked for now and then.
    /// Whoever finds [`is_proven`](crate::Session::is_proven) false then asks for the first one.
    Hold(SessionId),
    /// It is held no more.
    Release(SessionId),
    /// Another identity, for this connection and all that follow.
    AddAuth {
        /// Answered like a request.
        id: RequestId,
        /// The identity.
        auth: AuthInfo,
    },
    /// End the session; answered like a request.
    Close(RequestId),
    /// The connection asked for stands, TLS included.
    Connected(AttemptId),
    /// The payload of one frame.
    Frame {
        /// Its connection.
        attempt: AttemptId,
        /// Bytes after the length.
        payload: &'a [u8],
    },
    /// An attempt failed, or a connection is lost.
    Disconnected(AttemptId),
    /// A server that can write was found while connected to one that cannot.
    FoundReadWrite {
        /// Its number.
        host: usize,
    },
    /// [`Session::next_deadline`](crate::Session::next_deadline) has come.
    Deadline,
}
