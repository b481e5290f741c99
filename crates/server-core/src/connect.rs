//! The handshake: new sessions, and old ones that come back.

use crate::{
    effect::{CloseReason, Effect},
    fifo::{AnswerForm, Waiting},
    input::{ConnId, Now},
    server::{Phase, Server},
};
use ostler_proto::{
    connect::{ConnectRequest, ConnectResponse},
    id::{SessionId, Xid},
    op::Op,
    password,
    txn::Txn,
};

impl Server {
    pub(crate) fn connect(
        &mut self,
        now: Now,
        conn: ConnId,
        request: &ConnectRequest<'_>,
        effects: &mut alloc::vec::Vec<Effect>,
    ) {
        self.stats.packets_received += 1;
        self.stats.connection_requests += 1;
        if request.last_zxid_seen > self.tree.last_processed().to_wire() {
            // No answer: the client tries another server, which may have what it has seen.
            return self.close(conn, CloseReason::ClientAhead, effects);
        }
        let (min, max) = (self.config.session_timeout_min_ms, self.config.session_timeout_max_ms);
        let timeout_ms = request.timeout_ms.min(max).max(min);
        if request.session == SessionId::NONE {
            self.open_session(now, conn, timeout_ms, request.read_only.is_some(), effects);
        } else {
            self.reopen_session(now, conn, timeout_ms, request, effects);
        }
    }

    fn open_session(
        &mut self,
        now: Now,
        conn: ConnId,
        timeout_ms: i32,
        answer_read_only: bool,
        effects: &mut alloc::vec::Vec<Effect>,
    ) {
        let session = self.unused_session();
        self.sessions.insert(now.mono, session, timeout_ms, Some(conn));
        self.set_phase(conn, Phase::Opening { session, answer_read_only });
        let zxid = self.append(now, session, 0, Txn::CreateSession { timeout_ms }, Some(conn), effects);
        let (code, form, arrived) = (Op::CreateSession.code(), AnswerForm::Connected, now.mono);
        if let Some(state) = self.conns.get_mut(&conn) {
            state.fifo.push_back(Waiting::Write { xid: Xid(0), zxid, code, form, arrived });
        }
    }

    fn unused_session(&mut self) -> SessionId {
        loop {
            let session = self.next_session;
            self.next_session = session.next();
            if session != SessionId::NONE && self.sessions.get(session).is_none() {
                return session;
            }
        }
    }

    /// Upstream closes the session's other connection before it looks at the password; clients that
    /// reconnect while their old connection hangs depend on the first half of that.
    fn reopen_session(
        &mut self,
        now: Now,
        conn: ConnId,
        timeout_ms: i32,
        request: &ConnectRequest<'_>,
        effects: &mut alloc::vec::Vec<Effect>,
    ) {
        let session = request.session;
        if let Some(other) = self.sessions.get(session).and_then(|session| session.conn)
            && other != conn
        {
            self.close(other, CloseReason::SessionMoved, effects);
            if let Some(state) = self.sessions.get_mut(session) {
                state.conn = None;
            }
        }
        let read_only = request.read_only.map(|_| false);
        let known = self.sessions.get(session).is_some_and(|state| !state.closing);
        if !known || !password::opens(session, request.password) {
            self.stats.packets_sent += 1;
            effects.push(Effect::Connected { conn, response: ConnectResponse::expired(read_only) });
            return self.close(conn, CloseReason::SessionExpired, effects);
        }
        self.stats.connection_revalidations += 1;
        if let Some(state) = self.sessions.get_mut(session) {
            state.conn = Some(conn);
            state.timeout_ms = timeout_ms;
        }
        self.sessions.touch(now.mono, session);
        self.connected(now, conn, session, read_only.is_some(), effects);
    }

    /// Answers the handshake and takes the requests that came with it.
    pub(crate) fn connected(
        &mut self,
        now: Now,
        conn: ConnId,
        session: SessionId,
        answer_read_only: bool,
        effects: &mut alloc::vec::Vec<Effect>,
    ) {
        let timeout_ms = self.sessions.get(session).map_or(0, |state| state.timeout_ms);
        let Some(state) = self.conns.get_mut(&conn) else { return };
        state.phase = Phase::Open { session };
        let held = core::mem::take(&mut state.held);
        let response = ConnectResponse {
            timeout_ms,
            session,
            password: password::password_of(session),
            read_only: answer_read_only.then_some(false),
        };
        self.stats.packets_sent += 1;
        effects.push(Effect::Connected { conn, response });
        for payload in held {
            if let Ok(request) = crate::input::ClientRequest::decode(&payload) {
                self.request(now, conn, &request, effects);
            }
        }
    }
}
