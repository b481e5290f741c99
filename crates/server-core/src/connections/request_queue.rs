//! A connection's unanswered requests. Replies leave in the order in which the requests came.
//!
//! A write is proposed at once and waits for its commit. A read waits only behind writes of its own connection; if none
//! is outstanding it is served at once. `Server::enqueue` in requests.rs puts requests in, `Server::drain` takes them out.

use crate::{
    connections::forwarded::{ForwardedWrite, WriteTarget, is_made_of},
    context::Context,
    input::{ClientRequest, ConnId, Mono, RequestHead},
    requests::{multi_read::ReadsLeft, watches::WatchesLeft},
    server::Server,
    work,
};
use alloc::boxed::Box;
use ostler_planted::{self as planted, Bug};
use ostler_proto::{error::ErrorCode, id::Zxid, txn::TxnRecord};

/// How a committed write is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AnswerForm {
    /// create: the path.
    Path,
    /// create2, createContainer, createTTL: path and Stat.
    PathStat,
    /// The body follows from the outcome.
    ByOutcome,
    /// reconfig: the new configuration and the Stat of its znode.
    Reconfig,
    /// createSession: the handshake's answer.
    Connected,
    /// createSession for a local session that becomes global: no answer.
    Upgraded,
    /// A write that its local session may not do: this error. The leader cannot tell why it fails.
    Refused(ErrorCode),
    /// closeSession: answer, then close.
    Close,
}

/// The transaction whose commit answers a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WriteTxn {
    /// This server has proposed the write, with this zxid.
    Proposed(Zxid),
    /// This server has forwarded the write to the leader, which numbers it. The transaction is recognised by its
    /// session and xid, operation and path. Its zxid is greater than `after`, the last that this server knew when it forwarded the write: a
    /// client such as kazoo numbers its requests from 1 on each connection, so an earlier transaction may have the same
    /// xid.
    Forwarded { after: Zxid },
}

impl WriteTxn {
    /// The zxid of the transaction, or the last one before it that this server knew.
    pub(crate) fn order(self) -> Zxid {
        match self {
            WriteTxn::Proposed(zxid) | WriteTxn::Forwarded { after: zxid } => zxid,
        }
    }
}

/// A request that is not answered yet.
#[derive(Debug)]
pub(crate) enum Waiting {
    /// A write that is proposed or forwarded. It is answered when it commits.
    ///
    /// The target is that of a forwarded write; a proposed one is recognised by its zxid.
    Write { head: RequestHead, txn: WriteTxn, form: AnswerForm, target: WriteTarget },
    /// Not a request: the session has come back on this connection with writes of an earlier one under way. No read is
    /// served before they are decided, or the client would take them for not done. A learner knows that when the leader
    /// has answered a sync.
    UnderWay { until: Zxid },
    /// A sync. It is answered once everything proposed before it has committed.
    Sync { head: RequestHead, after: Zxid, path: Option<Box<str>> },
    /// Behind others, and refused because it had waited too long before it came.
    Throttled { head: RequestHead },
    /// Behind a write or a sync. Its answer will take about this number of bytes of the tree, see [`Server::answer_size`].
    ///
    /// [`Server::answer_size`]: crate::Server::answer_size
    Parked { payload: Box<[u8]>, arrived: Mono, reserved: usize },
    /// A multiRead of many operations, or what is left of it.
    Reading(Box<ReadsLeft>),
    /// The rest of a setWatches of many paths.
    Watching { head: RequestHead, payload: Box<[u8]>, left: WatchesLeft },
}

impl Waiting {
    /// The zxid of a write that this server has proposed.
    pub(crate) fn proposed(&self) -> Option<Zxid> {
        match self {
            Waiting::Write { txn: WriteTxn::Proposed(zxid), .. } => Some(*zxid),
            _ => None,
        }
    }

    /// Whether nothing but its turn has to come for this request at the head of a queue.
    pub(crate) fn is_read(&self) -> bool {
        matches!(
            self,
            Waiting::Parked { .. }
                | Waiting::Watching { .. }
                | Waiting::Reading(_)
                | Waiting::Throttled { .. }
        )
    }

    /// A write that was forwarded to the leader.
    pub(crate) fn forwarded(&self) -> Option<ForwardedWrite> {
        match self {
            Waiting::Write { head, txn: WriteTxn::Forwarded { .. }, target, .. } => {
                Some(ForwardedWrite { xid: head.xid.0, code: head.code, target: target.clone() })
            }
            _ => None,
        }
    }

    /// Whether this is a forwarded write that the leader has made this transaction of.
    pub(crate) fn is_answered_by(&self, record: &TxnRecord<'_>) -> bool {
        let Waiting::Write { head, txn: WriteTxn::Forwarded { after }, target, .. } = self else {
            return false;
        };
        let is_later = *after < record.header.zxid;
        let fits = || is_later && is_made_of(record, (head.xid.0, head.code), target);
        let has_xid = head.xid.0 == record.header.cxid;
        fits() || (has_xid && planted::is(Bug::AnswersMixedUp))
    }
}

impl Server {
    /// Serves the requests at the head of a queue up to the next outstanding write, until the work budget is spent.
    pub(crate) fn drain(&mut self, cx: &mut Context<'_>, conn: ConnId) {
        loop {
            let applied = self.tree.last_processed();
            let Some(state) = self.connections.get_mut(conn) else { return };
            if state.behind {
                // The connection has its turn later.
                return;
            }
            match state.queue.front() {
                Some(Waiting::Parked { .. } | Waiting::Watching { .. } | Waiting::Reading(_))
                    if self.work.is_spent() =>
                {
                    return self.defer_requests(conn);
                }
                Some(Waiting::Reading(_)) => {
                    let Some(Waiting::Reading(left)) = state.queue.pop_front() else { return };
                    self.read_many(cx, conn, left);
                }
                Some(Waiting::Watching { .. }) => {
                    let Some(Waiting::Watching { head, payload, left }) = state.queue.pop_front() else {
                        return;
                    };
                    let rest = (payload.into_vec().into(), left);
                    self.set_watches(cx, conn, head, rest);
                }
                Some(Waiting::Parked { .. }) => {
                    let Some(Waiting::Parked { payload, arrived, reserved }) = state.queue.pop_front() else {
                        return;
                    };
                    self.work.add(work::REQUEST + payload.len() / work::BYTES);
                    self.connections.release(conn, reserved);
                    let request =
                        ClientRequest::decode(&payload).expect("a parked request was decoded before");
                    self.serve(cx, conn, &request, arrived);
                }
                Some(Waiting::Throttled { .. }) => {
                    let Some(Waiting::Throttled { head }) = state.queue.pop_front() else { return };
                    self.reply(cx, conn, head, Err(ErrorCode::ThrottledOp));
                }
                Some(Waiting::UnderWay { until }) if *until <= applied => drop(state.queue.pop_front()),
                Some(Waiting::Sync { after, .. }) if *after <= applied => {
                    let Some(Waiting::Sync { head, path, .. }) = state.queue.pop_front() else {
                        return;
                    };
                    self.note_slow_sync(cx, conn, &head, path.as_deref());
                    self.reply(cx, conn, head, Ok(crate::requests::read::sync_body(path.as_deref())));
                }
                _ => return,
            }
        }
    }
}
