//! The effects of a step, which the caller carries out.

use crate::{
    input::{AttemptId, RequestId, WatchId},
    state::SessionState,
    time::Mono,
    watch_table::EventKind,
};
use alloc::{string::String, vec::Vec};
use ostler_proto::id::{SessionId, Zxid};

/// Why a request gets no reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The connection was lost between request and reply. The request may have been done or not.
    #[error("the connection was lost before the reply; it may have been done or not")]
    ConnectionLoss,
    /// There was no connection within the connection timeout. The request was not sent.
    #[error("no connection to a server within the connection timeout; it was not sent")]
    NotConnected,
    /// The request's session has expired before the request was sent.
    #[error("the session has expired; it was not sent")]
    SessionExpired,
    /// The request is bound to a session that is over. It was not sent.
    #[error("the session that it is bound to is not the current one; it was not sent")]
    SessionChanged,
    /// The server refuses an identity.
    #[error("the server refuses the identity")]
    AuthFailed,
    /// The client is closed.
    #[error("the client is closed")]
    Closed,
    /// The request is larger than the largest frame. It was not sent.
    #[error("the request has {size} bytes, the limit is {limit}; it was not sent")]
    TooLarge {
        /// The size of the request's frame, in bytes.
        size: usize,
        /// The limit, in bytes.
        limit: usize,
    },
}

/// An action for the caller of [`Session::step`](crate::Session::step).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Connect to a server. Drop bytes that are not sent yet.
    Connect {
        /// The number of the attempt. Inputs about its outcome repeat it.
        attempt: AttemptId,
        /// The server's index.
        host: usize,
    },
    /// Close the connection, or give up the attempt. Drop bytes that are not sent yet.
    Hangup(AttemptId),
    /// Ask the mechanism of [`SaslLogin::OfCaller`](crate::SaslLogin) what to say, and step with
    /// [`Input::SaslStep`](crate::Input::SaslStep).
    SaslToken {
        /// The connection.
        attempt: AttemptId,
        /// The server's token; `None` at the beginning, and if the server's answer has none.
        token: Option<Vec<u8>>,
    },
    /// A request's reply. Its body is the rest of this step's frame after the header.
    Reply {
        /// The request.
        id: RequestId,
        /// When the request was handed to the session.
        asked: Mono,
        /// The server's zxid, if the header has one.
        zxid: Option<Zxid>,
        /// The error code, 0 for none.
        error: i32,
    },
    /// A request that has no reply.
    Failed {
        /// The request.
        id: RequestId,
        /// Why there is no reply.
        failure: Failure,
    },
    /// An event for watches.
    Event {
        /// The watches that get the event, in the order of their registration.
        watchers: Vec<WatchId>,
        /// The kind of the change.
        kind: EventKind,
        /// The znode's absolute path; empty for a gap.
        path: String,
        /// The zxid of the change, from servers since 3.9. If there is one, each watch that was set before has reported
        /// the changes of all earlier transactions, but for those of znodes that this client may not read. So there is
        /// none while watches are being set again on a new connection.
        zxid: Option<Zxid>,
    },
    /// Watches that have ended with their session, without an event.
    WatchesEnded(Vec<WatchId>),
    /// Watches that the application has removed at the server.
    WatchesRemoved(Vec<WatchId>),
    /// The connection's state has changed.
    State(SessionState),
    /// Ask this server with `isro` whether it can write. If it can, step with `FoundReadWrite`.
    ProbeReadWrite {
        /// The server's index.
        host: usize,
    },
    /// Each server has failed since the last connection that held. The addresses may be out of date:
    /// if there are newer ones, step with [`Input::Servers`](crate::Input::Servers).
    EachServerFailed,
    /// The client is closed. No effect follows.
    Ended {
        /// The last session.
        session: Option<SessionId>,
    },
}

/// The results of a step: bytes for the current connection, and the effects in order.
#[derive(Debug, Default)]
pub struct Effects {
    /// Bytes to send on the current connection, after those of earlier steps.
    pub bytes: Vec<u8>,
    /// The effects, in order.
    pub list: Vec<Effect>,
}

impl Effects {
    pub(crate) fn push(&mut self, effect: Effect) {
        self.list.push(effect);
    }
}
