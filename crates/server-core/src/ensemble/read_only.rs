//! Serving those who only read while there is no leader.
//!
//! Who is let in says in its handshake that reading is enough. What it is shown is this server's tree: all that this
//! server knew to be committed, and after a restart, or an election that came to nothing, what was logged after that
//! as well. So it may be old, and its end may never come to be. Whatever would change something is refused, a `sync`
//! too. Sessions here are this server's own and end with this mode; one that all servers know is not taken, but goes
//! on when there is a leader again.

use super::Ensemble;
use crate::{
    effect::{CloseReason, Effect},
    input::{ClientRequest, ConnId, Mono, Now},
    server::Server,
};
use alloc::vec::Vec;
use ostler_proto::{
    error::ErrorCode,
    id::{SessionId, Xid},
    op::Op,
    reply::Reply,
    request::Request,
};

/// How far a server is that looks for a leader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReadOnly {
    /// It does not look for one, or does not serve meanwhile.
    No,
    /// It will serve from then on.
    From(Mono),
    /// It serves.
    Serving,
}

impl ReadOnly {
    /// A search for a leader begins.
    pub(super) fn look(&mut self, now: Mono, after_ms: Option<u64>) {
        *self = after_ms.map_or(ReadOnly::No, |ms| ReadOnly::From(now.after(ms)));
    }

    pub(super) fn next_deadline(self) -> Option<Mono> {
        match self {
            ReadOnly::From(due) => Some(due),
            ReadOnly::No | ReadOnly::Serving => None,
        }
    }

    pub(super) fn is_due(self, now: Mono) -> bool {
        self.next_deadline().is_some_and(|due| due <= now)
    }
}

impl Ensemble {
    pub(crate) fn is_read_only(&self) -> bool {
        self.read_only == ReadOnly::Serving
    }
}

impl Server {
    pub(crate) fn is_read_only(&self) -> bool {
        self.ensemble.as_ref().is_some_and(|ensemble| ensemble.is_read_only())
    }

    pub(super) fn begin_read_only(&mut self, now: Now) {
        let Some(ensemble) = &mut self.ensemble else { return };
        ensemble.read_only = ReadOnly::Serving;
        self.restart_sessions(now);
        tracing::warn!(
            zxid = %self.tree.last_processed(),
            "no leader was found: clients that are content to read are served"
        );
    }

    /// Upstream answers the handshake as it would a write: with a header in the place of the session.
    pub(crate) fn refuse_session(&mut self, conn: ConnId, effects: &mut Vec<Effect>) {
        self.stats.packets_sent += 1;
        let zxid = Some(self.tree.last_processed());
        let reply = Reply { xid: Xid(0), zxid, result: Err(ErrorCode::NotReadOnly) };
        effects.push(Effect::Reply { conn, reply });
        self.close(conn, CloseReason::ReadOnly, effects);
    }

    /// Whether a request is none that a server without a leader can answer.
    pub(crate) fn needs_quorum(&self, session: SessionId, request: &ClientRequest<'_>) -> bool {
        match &request.request {
            write if write.takes_quorum() => true,
            Request::Sync(_) => true,
            Request::CloseSession => !self.sessions.is_local(session),
            Request::Malformed(op) => matches!(
                op,
                Op::Create
                    | Op::Create2
                    | Op::CreateContainer
                    | Op::CreateTtl
                    | Op::Delete
                    | Op::SetData
                    | Op::SetAcl
                    | Op::Multi
                    | Op::Reconfig
                    | Op::Sync
            ),
            _ => false,
        }
    }
}
