//! Requests on their way: waiting for a connection, or sent and waiting for their replies.

use crate::{
    input::{RequestId, WatchId},
    time::Mono,
    watch_table::Registration,
};
use alloc::{boxed::Box, vec::Vec};
use ostler_proto::id::{SessionId, Xid};

/// Waiting for a connection, encoded already but for its xid.
#[derive(Debug)]
pub(crate) struct Queued {
    pub(crate) id: RequestId,
    /// The session that was current when it was made; it goes nowhere else.
    pub(crate) session: Option<SessionId>,
    pub(crate) since: Mono,
    pub(crate) frame: Vec<u8>,
    pub(crate) registration: Option<Box<Registering>>,
}

/// Sent and not answered. A server answers in the order of the requests.
#[derive(Debug)]
pub(crate) struct Sent {
    pub(crate) xid: Xid,
    pub(crate) at: Mono,
    pub(crate) what: What,
}

#[derive(Debug)]
pub(crate) enum What {
    /// A request of the application.
    Asked { id: RequestId, registration: Option<Box<Registering>> },
    /// The session's own removeWatches.
    RemoveWatches { path: Box<str>, kind: i32 },
    /// The end of the session.
    Close,
}

/// A registration and the request that asks for it.
#[derive(Debug)]
pub(crate) struct Registering {
    pub(crate) registration: Registration,
    pub(crate) by: By,
}

/// How the watch is set, which says what a reply means for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum By {
    GetData,
    Exists,
    GetChildren,
    Persistent,
    Recursive,
}

/// setWatches that is not answered yet.
#[derive(Debug)]
pub(crate) struct Rearming {
    pub(crate) at: Mono,
    pub(crate) gaps: Vec<WatchId>,
}
