//! How sessions end: by their clients, by their time, or by an operator.

use crate::{
    context::Context,
    effect::CloseReason,
    pipeline::propose::{Requester, WriteOrigin},
    server::Server,
    sessions::{
        Scope,
        ends::{ActingOperator, EndCause},
    },
    work,
};
use alloc::borrow::Cow;
use ostler_proto::{
    id::{SessionId, Zxid},
    txn::Txn,
};

/// The most bytes of paths that a closeSession transaction may list.
const CLOSED_PATHS_MAX: usize = 1 << 20;

impl Server {
    /// Ends sessions that have expired. After a pause of the process none expires for a tick: signs of life may wait in
    /// the sockets.
    pub(crate) fn expire_sessions(&mut self, cx: &mut Context<'_>, has_paused: bool) {
        self.backlog.sessions = false;
        if has_paused {
            self.sessions.spare(cx.now.mono);
        }
        if !self.sessions.end_sparing(cx.now.mono) {
            return;
        }
        self.expire_local_sessions(cx);
        self.end_global_sessions(cx);
        // The deadline stays due for the sessions that are left.
        self.backlog.sessions = self.work.is_spent();
    }

    fn end_global_sessions(&mut self, cx: &mut Context<'_>) {
        if self.follows() {
            // Only the leader ends global sessions. A learner is not told when a client moves to another server, so it
            // closes silent connections.
            while !self.work.is_spent()
                && let Some(conn) = self.sessions.next_silent(cx.now.mono)
            {
                self.close(cx, conn, CloseReason::Silent);
            }
        }
        if !self.leads() {
            return;
        }
        while !self.work.is_spent()
            && let Some(session) = self.sessions.expire_next(cx.now.mono, Scope::Global)
        {
            self.stats.stale_sessions_expired += 1;
            self.note_ending(session, self.expired_cause(cx.now, session));
            self.propose_close(cx, WriteOrigin::server(session));
        }
    }

    /// Ends a session as if it had expired, at its leader or, if it is local, at its server.
    pub(crate) fn expire_session(
        &mut self,
        cx: &mut Context<'_>,
        session: SessionId,
        by: Option<ActingOperator>,
    ) {
        let alive = self.sessions.get(session).is_some_and(|state| !state.closing);
        if self.sessions.is_local(session) {
            self.note_ending(session, EndCause::ByOperator { by });
            self.expire_local(cx, session);
        } else if self.leads() && alive {
            self.stats.stale_sessions_expired += 1;
            self.note_ending(session, EndCause::ByOperator { by });
            self.propose_close(cx, WriteOrigin::server(session));
        }
    }

    /// Whether a session lives, global or local.
    pub fn has_session(&self, session: SessionId) -> bool {
        self.tree.has_session(session) || self.sessions.is_local(session)
    }

    /// Whether this server can end this session, or can ask its leader to.
    pub fn can_end(&self, session: SessionId) -> bool {
        self.leads() || self.sessions.is_local(session) || self.leader_connection().is_some()
    }

    /// An operator ends a session, at any server that knows it. A learner asks its leader.
    pub(crate) fn end_session(&mut self, cx: &mut Context<'_>, session: SessionId, by: ActingOperator) {
        if self.leads() || self.sessions.is_local(session) {
            return self.expire_session(cx, session, Some(by));
        }
        if self.tree.has_session(session) {
            self.forward_end(cx, session, &by);
        }
    }

    /// Proposes the end of a session, by its client or by its expiry. Returns the zxid.
    pub(crate) fn propose_close(&mut self, cx: &mut Context<'_>, origin: WriteOrigin<'_>) -> Zxid {
        let session = origin.session;
        if let Some(state) = self.sessions.get_mut(session) {
            state.closing = true;
        }
        if !matches!(origin.requester, Requester::Server) {
            self.note_ending(session, EndCause::ClosedByClient);
        }
        let zxid = self.next_zxid();
        let paths = self.pipeline.overlay.ephemerals(&self.tree, session, self.config.types);
        self.work.add(work::WRITE);
        for path in &paths {
            self.preparer(zxid, cx.now, origin).note_deleted(path);
        }
        // Without the list every server deletes the ephemerals that it has of the session. A transaction too large for
        // a packet would close all connections to followers.
        let is_listed = self.config.close_session_paths
            && paths.iter().map(|path| path.len()).sum::<usize>() <= CLOSED_PATHS_MAX;
        let listed = paths.iter().map(|path| Cow::Borrowed(&**path)).collect();
        let txn = Txn::CloseSession(is_listed.then_some(listed));
        self.append(cx, origin, txn)
    }
}
