//! Requests on their way: waiting for a connection, or sent and waiting for their replies.

use crate::{
    input::{RequestId, WatchId},
    time::Mono,
    watch_table::{EntryKind, LASTING, Registration},
};
use alloc::{boxed::Box, vec::Vec};
use ostler_proto::id::{SessionId, Xid};

/// Waiting for a connection, encoded already but for its xid.
#[derive(Debug)]
pub(crate) struct Queued {
    pub(crate) id: RequestId,
    /// The only session that it may go to.
    pub(crate) bound: Option<SessionId>,
    pub(crate) since: Mono,
    pub(crate) frame: Vec<u8>,
    /// See [`Sent::writes`].
    pub(crate) writes: bool,
    pub(crate) side: Option<Box<Side>>,
}

/// Sent and not answered. A server answers in the order of the requests.
#[derive(Debug)]
pub(crate) struct Sent {
    pub(crate) xid: Xid,
    pub(crate) at: Mono,
    /// Whether it takes a quorum to do it.
    pub(crate) writes: bool,
    pub(crate) what: What,
}

#[derive(Debug)]
pub(crate) enum What {
    /// A request of the application.
    Asked { id: RequestId, side: Option<Box<Side>> },
    /// The session's own removeWatches.
    RemoveWatches { path: Box<str>, kind: i32 },
    /// A transaction that only checks: that it is answered is all that is wanted.
    Proof,
    /// A persistent watch set again, whose answer says nothing new.
    Renewal,
    /// The end of the session.
    Close,
}

/// What a request does to this side's watches, once it is answered.
#[derive(Debug)]
pub(crate) enum Side {
    /// It asks for one.
    Registering(Registering),
    /// It removes the server's entries of a path, whoever needs them.
    Removing { path: Box<str>, kind: i32 },
}

impl Side {
    /// The lasting watches whose place the one that is asked for takes, at servers before 3.9: they keep one kind for
    /// each path. A recursive one takes a persistent one's place, too, but hears of nearly all that is for that.
    pub(crate) fn takes_place(&self) -> Option<(Box<str>, &'static [EntryKind])> {
        let Side::Registering(Registering { registration, by }) = self else { return None };
        let taken: &[EntryKind] = match by {
            By::GetData | By::Exists | By::GetChildren => &LASTING,
            By::Persistent => &[EntryKind::Recursive],
            By::Recursive => &[],
        };
        Some((registration.path.clone(), taken))
    }
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
