//! Requests without a reply: those that wait for a connection, and those that are sent.

use crate::{
    input::{RequestId, WatchId},
    time::Mono,
    watch_table::{EntryKind, LASTING, Registration},
};
use alloc::{boxed::Box, vec::Vec};
use ostler_proto::id::{SessionId, Xid};

/// A request that waits for a connection. It is encoded, except for its xid.
#[derive(Debug)]
pub(crate) struct Queued {
    pub(crate) id: RequestId,
    /// The session that the request is bound to, if it is.
    pub(crate) bound: Option<SessionId>,
    pub(crate) since: Mono,
    pub(crate) frame: Vec<u8>,
    /// See [`Sent::writes`].
    pub(crate) writes: bool,
    pub(crate) watch_change: Option<Box<WatchChange>>,
}

/// A request that is sent and not answered. A server answers in the order of the requests.
#[derive(Debug)]
pub(crate) struct Sent {
    pub(crate) xid: Xid,
    pub(crate) at: Mono,
    /// Whether the request needs a quorum.
    pub(crate) writes: bool,
    pub(crate) purpose: Purpose,
}

/// Why a request was sent, which decides what its reply means.
#[derive(Debug)]
pub(crate) enum Purpose {
    /// A request of the application.
    Application { id: RequestId, watch_change: Option<Box<WatchChange>> },
    /// A removeWatches of the session itself.
    RemoveWatches { path: Box<str>, kind: i32 },
    /// A transaction that only checks. Its reply proves that the session lives.
    Proof,
    /// A persistent watch is set again. The reply has no effect.
    Renewal,
    /// The session is closed.
    Close,
}

/// The change of the client's watches that a request causes once it is answered.
#[derive(Debug)]
pub(crate) enum WatchChange {
    /// It sets a watch.
    Registering(Registering),
    /// It removes the server's entries of a path, even if watches of the client need them.
    Removing { path: Box<str>, kind: i32 },
}

impl WatchChange {
    /// The path, and the lasting entries there that the new watch replaces at servers before 3.9, which keep one kind of
    /// watch for each path. A recursive watch replaces a persistent one as well, but gets nearly all of its events.
    pub(crate) fn replaced_entries(&self) -> Option<(Box<str>, &'static [EntryKind])> {
        let WatchChange::Registering(Registering { registration, request }) = self else { return None };
        let taken: &[EntryKind] = match request {
            WatchRequest::GetData | WatchRequest::Exists | WatchRequest::GetChildren => &LASTING,
            WatchRequest::Persistent => &[EntryKind::Recursive],
            WatchRequest::Recursive => &[],
        };
        Some((registration.path.clone(), taken))
    }
}

/// A watch registration, and the kind of request that sets it.
#[derive(Debug)]
pub(crate) struct Registering {
    pub(crate) registration: Registration,
    pub(crate) request: WatchRequest,
}

/// The kind of request that sets a watch. It decides what the reply means for the watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WatchRequest {
    GetData,
    Exists,
    GetChildren,
    Persistent,
    Recursive,
}

/// A setWatches that is not answered yet.
#[derive(Debug)]
pub(crate) struct Rearming {
    pub(crate) at: Mono,
    pub(crate) gaps: Vec<WatchId>,
}
