//! What the world shall do.

use crate::{
    input::{AttemptId, RequestId, WatchId},
    state::SessionState,
    time::Mono,
    watch_table::EventKind,
};
use alloc::{string::String, vec::Vec};
use ostler_proto::id::{SessionId, Zxid};

/// Why a request has no reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// Sent, and the connection was lost before the reply: it may have been done or not.
    #[error("the connection was lost before the reply; it may have been done or not")]
    ConnectionLoss,
    /// No connection for as long as a request may wait. It was not sent.
    #[error("no connection to a server within the connection timeout; it was not sent")]
    NotConnected,
    /// The session that it was made in ended before it was sent.
    #[error("the session has expired; it was not sent")]
    SessionExpired,
    /// It is bound to a session that is over. It was not sent.
    #[error("the session that it is bound to is not the current one; it was not sent")]
    SessionChanged,
    /// The server refuses an identity.
    #[error("the server refuses the identity")]
    AuthFailed,
    /// The client is closed.
    #[error("the client is closed")]
    Closed,
    /// Larger than a frame may be. It was not sent.
    #[error("the request takes {size} bytes, and {limit} is the limit; it was not sent")]
    TooLarge {
        /// Bytes that it takes.
        size: usize,
        /// Bytes that it may take.
        limit: usize,
    },
}

/// What the world shall do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Connect to a server; bytes not yet sent are void.
    Connect {
        /// The attempt to name in what comes of it.
        attempt: AttemptId,
        /// Number of the server.
        host: usize,
    },
    /// Close the connection, or give up the attempt; bytes not yet sent are void.
    Hangup(AttemptId),
    /// A request's reply. Its body is what follows the header in the frame of this step.
    Reply {
        /// The request.
        id: RequestId,
        /// When it was handed to the session.
        asked: Mono,
        /// The server's zxid, where the header has one.
        zxid: Option<Zxid>,
        /// The error code, 0 for none.
        error: i32,
    },
    /// A request that has no reply.
    Failed {
        /// The request.
        id: RequestId,
        /// The reason.
        failure: Failure,
    },
    /// A change that is watched.
    Event {
        /// Who hears of it, in the order of their registration.
        watchers: Vec<WatchId>,
        /// What happened.
        kind: EventKind,
        /// The znode, absolute; empty for a gap.
        path: String,
        /// The transaction, from servers that say it.
        zxid: Option<Zxid>,
    },
    /// Watches that ended with their session, unfired.
    WatchesEnded(Vec<WatchId>),
    /// Watches that the application has removed at the server, whoever needed them.
    WatchesRemoved(Vec<WatchId>),
    /// The connection's state has changed.
    State(SessionState),
    /// Ask this server with `isro` whether it can write, and say so with `FoundReadWrite`.
    ProbeReadWrite {
        /// Number of the server.
        host: usize,
    },
    /// The client is closed: nothing follows.
    Ended {
        /// The session that it ended with.
        session: Option<SessionId>,
    },
}

/// What a step asks for: bytes for the current connection, and the rest in order.
#[derive(Debug, Default)]
pub struct Effects {
    /// Bytes to send on the current connection, behind those of earlier steps.
    pub bytes: Vec<u8>,
    /// Everything else.
    pub list: Vec<Effect>,
}

impl Effects {
    pub(crate) fn push(&mut self, effect: Effect) {
        self.list.push(effect);
    }
}
