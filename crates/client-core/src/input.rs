//! The inputs of a session.

use crate::{config::AuthInfo, hosts::RankedHost};
use alloc::vec::Vec;
use ostler_proto::{id::SessionId, request::Request};

/// The number of a request of the application. The caller uses no number twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// The number of a watch of the application. The caller uses no number twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WatchId(pub u64);

/// The number of an attempt to connect, and of the resulting connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct AttemptId(pub u64);

/// The answer of the caller's mechanism to a token of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SaslStep {
    /// Send this token.
    Send(Vec<u8>),
    /// The login is complete.
    Complete,
    /// The server is not who it should be, or does not know the mechanism. The client ends.
    Refused,
    /// There is no ticket now. The next attempt may have one.
    Unavailable,
}

/// The fate of an established connection when the servers change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnChange {
    /// It stays, even if its server is not in the new list. The list counts from the next attempt on.
    Stay,
    /// As with ZooKeeper's `updateServerList`: the session moves off a server that is not in the new list, and, if the
    /// list has grown, with the probability at which all servers get equally many clients.
    Rebalance,
}

/// An event for [`Session::step`](crate::Session::step).
#[derive(Debug)]
pub enum Input<'a> {
    /// A request of the application. Exactly one `Reply` or `Failed` answers it.
    Request {
        /// The request's number.
        id: RequestId,
        /// The session that the request is bound to, if it is. The request is not sent in another session.
        session: Option<SessionId>,
        /// The request, with absolute paths. Pings, auth, setWatches and closeSession are not allowed: the session
        /// sends them itself.
        request: &'a Request<'a>,
        /// The watch that the request sets, if it does. The request's watch flag must be set then.
        watch: Option<WatchId>,
    },
    /// The application has dropped a watch.
    Unwatch(WatchId),
    /// The application holds something by an ephemeral znode of this session. Until there have been as many releases as
    /// holds, only writes prove that the session lives. At intervals the session sends a write of its own: a transaction
    /// that only checks. If [`is_proven`](crate::Session::is_proven) is false after this, the caller sends the first one.
    Hold(SessionId),
    /// The application has released something that it held in this session.
    Release(SessionId),
    /// Adds an identity to this connection and all later ones.
    AddAuth {
        /// The request's number. Exactly one `Reply` or `Failed` answers it.
        id: RequestId,
        /// The identity.
        auth: AuthInfo,
    },
    /// Ends the session. It is answered like a request.
    Close(RequestId),
    /// The connection is established, including TLS.
    Connected(AttemptId),
    /// The payload of one frame.
    Frame {
        /// The frame's connection.
        attempt: AttemptId,
        /// The bytes of the frame after its length.
        payload: &'a [u8],
    },
    /// The answer to [`Effect::SaslToken`](crate::Effect::SaslToken).
    SaslStep {
        /// The token's connection.
        attempt: AttemptId,
        /// The mechanism's answer.
        step: SaslStep,
    },
    /// An attempt failed, or a connection is lost.
    Disconnected(AttemptId),
    /// A server that can write was found while the session is connected to one that cannot.
    FoundReadWrite {
        /// The server's index.
        host: usize,
    },
    /// The servers have changed. An empty list has no effect.
    Servers {
        /// All servers of the new list, each once.
        servers: &'a [RankedHost],
        /// Whether an established connection stays.
        on_change: OnChange,
    },
    /// The application wants another server. The session waits for the answers to what it has sent, at most for a quarter
    /// of its timeout, and connects to another server then. Without a connection or another server it has no effect.
    MoveOff,
    /// The time of [`Session::next_deadline`](crate::Session::next_deadline) has come.
    Deadline,
}
