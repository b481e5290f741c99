//! Read-only mode: a server without a leader serves clients that accept reads only.
//!
//! Only clients that accept a read-only server in their handshakes are served. They see this server's tree: the
//! transactions that it knows to be committed, and after a restart or a failed election also the logged ones that may
//! never commit. So the tree may be old, or ahead of the ensemble. Writes and `sync` are refused. Sessions are local to
//! this server and end with the mode. A global session is not taken; it goes on when there is a leader again.

use super::{Ensemble, role::MemberRole};
use crate::{
    context::Context,
    effect::{CloseReason, Effect},
    input::{ClientRequest, ConnId, Mono, Now},
    server::Server,
};
use ostler_proto::{
    error::ErrorCode,
    id::{SessionId, Xid},
    op::Op,
    reply::Reply,
    request::Request,
};

/// The read-only state of a server that looks for a leader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReadOnly {
    /// Off: it does not look for a leader, or read-only mode is not enabled.
    No,
    /// It begins to serve at this time.
    From(Mono),
    /// It serves read-only clients.
    Serving,
}

impl ReadOnly {
    /// For a search for a leader that begins now.
    pub(super) fn after(now: Mono, after_ms: Option<u64>) -> ReadOnly {
        after_ms.map_or(ReadOnly::No, |ms| ReadOnly::From(now.after(ms)))
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
        matches!(&self.role, MemberRole::Looking(looking) if looking.read_only == ReadOnly::Serving)
    }
}

impl Server {
    pub(crate) fn is_read_only(&self) -> bool {
        self.role.ensemble().is_some_and(|ensemble| ensemble.is_read_only())
    }

    pub(super) fn begin_read_only_if_due(&mut self, now: Now) {
        let Some(Ensemble { role: MemberRole::Looking(looking), .. }) = self.role.ensemble_mut() else {
            return;
        };
        if !looking.read_only.is_due(now.mono) {
            return;
        }
        looking.read_only = ReadOnly::Serving;
        self.restart_sessions(now);
        tracing::warn!(
            zxid = %self.tree.last_processed(),
            "no leader was found: this server serves read-only clients now"
        );
    }

    /// Refuses a new session. As in upstream, the answer is a reply header in the place of a handshake's answer.
    pub(crate) fn refuse_session(&mut self, cx: &mut Context<'_>, conn: ConnId) {
        self.stats.packets_sent += 1;
        let zxid = Some(self.tree.last_processed());
        let reply = Reply { xid: Xid(0), zxid, result: Err(ErrorCode::NotReadOnly) };
        cx.effects.push(Effect::Reply { conn, reply });
        self.close(cx, conn, CloseReason::ReadOnly);
    }

    /// Whether a request needs a leader, so that a read-only server refuses it.
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
