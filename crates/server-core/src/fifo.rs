//! The order of one session: replies leave in the order in which the requests came.
//!
//! A write is proposed at once and waits for its commit. A read waits only behind writes of its own
//! session; with none outstanding it is served at once. What waits is kept as the bytes it came in.

use crate::input::Mono;
use alloc::{boxed::Box, collections::VecDeque};
use ostler_proto::{
    error::ErrorCode,
    id::{Xid, Zxid},
};

/// How a committed write is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AnswerForm {
    /// create: the path.
    Path,
    /// create2, createContainer, createTTL: path and Stat.
    PathStat,
    /// The outcome tells.
    ByOutcome,
    /// reconfig: the new configuration and the Stat of its znode.
    Reconfig,
    /// createSession: the handshake's answer.
    Connected,
    /// createSession for a session that was a local one: nothing.
    Upgraded,
    /// A write that its local session may not do; the leader cannot tell why it fails.
    Refused(ErrorCode),
    /// closeSession: answer, then close.
    Close,
}

/// A request that is not answered yet.
#[derive(Debug)]
pub(crate) enum Waiting {
    /// Proposed; answered when it commits.
    Write {
        xid: Xid,
        /// `None` where the leader numbers it: it is known by its session and xid when it commits.
        zxid: Option<Zxid>,
        /// Operation number, for the counts.
        code: i32,
        form: AnswerForm,
        arrived: Mono,
    },
    /// Answered once everything proposed before it has committed.
    Sync { xid: Xid, after: Zxid, path: Option<Box<str>>, arrived: Mono },
    /// Behind a write or a sync.
    Parked { payload: Box<[u8]>, arrived: Mono },
}

/// A connection's unanswered requests.
pub(crate) type Fifo = VecDeque<Waiting>;

impl Waiting {
    /// Whether this is a write that went to the leader under this number.
    pub(crate) fn is_forwarded(&self, cxid: i32) -> bool {
        matches!(self, Waiting::Write { xid, zxid: None, .. } if xid.0 == cxid)
    }
}
