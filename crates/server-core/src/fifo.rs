//! The order of one session: replies leave in the order in which the requests came.
//!
//! A write is proposed at once and waits for its commit. A read waits only behind writes of its own
//! session; with none outstanding it is served at once. What waits is kept as the bytes it came in.

use crate::{input::Mono, multi_read::ReadsLeft, watches::WatchesLeft};
use alloc::{boxed::Box, collections::VecDeque};
use ostler_proto::{
    error::ErrorCode,
    id::{Xid, Zxid},
    planted::{self, Bug},
    txn::TxnHeader,
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

/// Which transaction answers a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WriteTxn {
    /// That of this zxid.
    Proposed(Zxid),
    /// The leader numbers it. It is known by its session and xid when it commits, and comes after all that this server
    /// had heard of when it forwarded the request: a client that numbers its requests anew on each connection, as kazoo
    /// does, may have used the xid before.
    Forwarded { after: Zxid },
}

/// A request that is not answered yet.
#[derive(Debug)]
pub(crate) enum Waiting {
    /// Proposed; answered when it commits.
    Write {
        xid: Xid,
        txn: WriteTxn,
        /// Operation number, for the counts.
        code: i32,
        form: AnswerForm,
        arrived: Mono,
    },
    /// Not a request: what the session had under way when it came back on this connection. Nothing is read until that
    /// has committed, for the client would take it for not done. At a learner that is not known before the leader has
    /// answered a sync.
    UnderWay { until: Zxid },
    /// Answered once everything proposed before it has committed.
    Sync { xid: Xid, after: Zxid, path: Option<Box<str>>, arrived: Mono },
    /// Behind a write or a sync. Its answer will take about this number of bytes of the tree, see [`Server::answer_size`].
    ///
    /// [`Server::answer_size`]: crate::Server::answer_size
    Parked { payload: Box<[u8]>, arrived: Mono, reserved: usize },
    /// A multiRead of many operations, or the rest of it.
    Reading(Box<ReadsLeft>),
    /// The rest of a setWatches of many paths.
    Watching { xid: Xid, code: i32, arrived: Mono, payload: Box<[u8]>, left: WatchesLeft },
}

/// A connection's unanswered requests.
pub(crate) type Fifo = VecDeque<Waiting>;

impl Waiting {
    /// Its number, if this is a write that went to the leader.
    pub(crate) fn forwarded(&self) -> Option<i32> {
        match self {
            Waiting::Write { xid, txn: WriteTxn::Forwarded { .. }, .. } => Some(xid.0),
            _ => None,
        }
    }

    /// Whether this is a write that went to the leader and came back as this transaction.
    pub(crate) fn is_answered_by(&self, txn: &TxnHeader) -> bool {
        matches!(self, Waiting::Write { xid, txn: WriteTxn::Forwarded { after }, .. }
            if xid.0 == txn.cxid && (*after < txn.zxid || planted::is(Bug::AnswersMixedUp)))
    }
}
