//! The handshake of a client: opens a new session, or takes one that comes back.

use crate::{
    connections::{
        Phase,
        forwarded::WriteTarget,
        request_queue::{AnswerForm, Waiting, WriteTxn},
    },
    context::Context,
    effect::{CloseReason, Effect},
    input::{ConnId, Now, RequestHead},
    pipeline::{
        WriteRoute,
        propose::WriteOrigin,
        syncs::{SyncWaiter, UNANSWERED},
    },
    quorum::{ForwardedOp, Revalidation},
    server::Server,
    sessions::{Owner, ends::EndCause, passwords::Verdict},
    stats::client_notes::CutTimeout,
};
use ostler_planted::{self as planted, Bug};
use ostler_proto::{
    connect::{ConnectRequest, ConnectResponse},
    id::{SessionId, Zxid},
    op::Op,
    txn::Txn,
};

/// The body of a sync: the path `/`.
const ROOT: &[u8] = &[0, 0, 0, 1, b'/'];

/// The session that a client opens, or comes back to.
#[derive(Debug, Clone, Copy)]
struct Handshake {
    session: SessionId,
    /// The timeout that is granted.
    timeout_ms: i32,
    /// Whether the client's version knows read-only servers, and expects to be told.
    answer_read_only: bool,
}

impl Handshake {
    fn new(session: SessionId, timeout_ms: i32, request: &ConnectRequest<'_>) -> Handshake {
        Handshake { session, timeout_ms, answer_read_only: request.read_only.is_some() }
    }
}

impl Server {
    pub(crate) fn connect(
        &mut self,
        cx: &mut Context<'_>,
        conn: ConnId,
        request: &ConnectRequest<'_>,
        chance: u64,
    ) {
        self.stats.packets_received += 1;
        if let Some(state) = self.connections.get_mut(conn) {
            state.stats.received += 1;
            state.habits.shake_hands(request);
        }
        self.stats.connection_requests += 1;
        let Some(pipeline) = self.write_route() else {
            self.note_refused_return(cx.now, conn, request.session, EndCause::LeaderLost);
            return self.close(cx, conn, CloseReason::NotServing);
        };
        let read_only = pipeline == WriteRoute::ReadOnly;
        if read_only && request.read_only != Some(true) {
            return self.close(cx, conn, CloseReason::ReadOnly);
        }
        if self.is_behind(Zxid::from_wire(request.last_zxid_seen)) && !planted::is(Bug::OlderTreeServed) {
            // No answer: the client tries another server, which may have the zxid that it has seen.
            self.note_refused_return(cx.now, conn, request.session, EndCause::ClientAhead);
            return self.close(cx, conn, CloseReason::ClientAhead);
        }
        let (min, max) = (self.config.session_timeout_min_ms, self.config.session_timeout_max_ms);
        let timeout_ms = request.timeout_ms.min(max).max(min);
        if timeout_ms < request.timeout_ms {
            self.note_cut_timeout(conn, request.timeout_ms, timeout_ms);
        }
        if read_only && self.tree.has_session(request.session) {
            // The global session lives on in the ensemble.
            return self.close(cx, conn, CloseReason::ReadOnly);
        }
        if request.session == SessionId::NONE {
            let session = self.unused_session(chance);
            self.open_session(cx, conn, Handshake::new(session, timeout_ms, request));
        } else {
            let handshake = Handshake::new(request.session, timeout_ms, request);
            self.reopen_session(cx, conn, handshake, request.password);
        }
    }

    fn note_cut_timeout(&mut self, conn: ConnId, asked_ms: i32, got_ms: i32) {
        if let Some(state) = self.connections.get(conn) {
            let address = state.peer.ip().to_canonical();
            self.client_notes.cut(CutTimeout { address, asked_ms, got_ms });
        }
    }

    /// Whether a client has seen a later zxid than this server has. The first zxid of an epoch is no transaction: a
    /// server that serves in the epoch has everything before it.
    fn is_behind(&self, seen: Zxid) -> bool {
        let last = if seen.counter() == 0 { self.complete_through() } else { self.tree.last_processed() };
        seen.to_wire() > last.to_wire()
    }

    fn open_session(&mut self, cx: &mut Context<'_>, conn: ConnId, handshake: Handshake) {
        let Handshake { session, timeout_ms, answer_read_only } = handshake;
        if self.has_local_sessions() {
            self.sessions.insert_local(cx.now.mono, session, timeout_ms, conn);
            self.stats.read_latency_ms.add(0);
            self.count_session(cx.now, conn, RequestHead::of_handshake(cx.now.mono));
            return self.connected(cx, conn, session, answer_read_only);
        }
        if self.is_read_only() {
            return self.refuse_session(cx, conn);
        }
        self.sessions.insert(cx.now.mono, session, timeout_ms, Some(conn));
        self.connections.set_phase(conn, Phase::Opening { session, answer_read_only });
        let txn = match self.write_route() {
            Some(WriteRoute::Forward) => {
                let body = timeout_ms.to_be_bytes();
                self.forward_op(cx, conn, &ForwardedOp::create_session(session, &body));
                self.forwarded_txn()
            }
            _ => {
                self.close_new_root(cx);
                let txn = Txn::CreateSession { timeout_ms };
                WriteTxn::Proposed(self.append(cx, WriteOrigin::client(session, 0, conn), txn))
            }
        };
        let head = RequestHead::of_handshake(cx.now.mono);
        if let Some(state) = self.connections.get_mut(conn) {
            state.queue.push_back(Waiting::Write {
                head,
                txn,
                form: AnswerForm::Connected,
                target: WriteTarget::None,
            });
        }
    }

    /// A session id that is not in use.
    fn unused_session(&self, mut chance: u64) -> SessionId {
        loop {
            let session = self.config.passwords.draw(self.config.server, chance);
            if self.sessions.get(session).is_none() && !self.tree.has_session(session) {
                return session;
            }
            chance = chance.wrapping_add(1);
        }
    }

    /// Takes a session that comes back. Its other connection is closed at once, as clients come back while their old
    /// connection hangs. The password is checked before that, unlike in upstream, where a caller that only knows a
    /// session's id can keep its owner out.
    fn reopen_session(
        &mut self,
        cx: &mut Context<'_>,
        conn: ConnId,
        handshake: Handshake,
        password: Option<&[u8]>,
    ) {
        let Handshake { session, timeout_ms, answer_read_only } = handshake;
        let verdict = self.config.passwords.judge(session, password);
        if verdict != Verdict::Right && !planted::is(Bug::PasswordSeenLate) {
            return self.refuse_password(cx, conn, handshake, verdict);
        }
        if let Some(other) = self.sessions.get(session).and_then(|session| session.conn)
            && other != conn
        {
            self.close(cx, other, CloseReason::SessionMoved);
            if let Some(state) = self.sessions.get_mut(session) {
                state.conn = None;
            }
        }
        if verdict != Verdict::Right {
            return self.expired(cx, conn, session, answer_read_only);
        }
        let known = self.sessions.get(session).is_some_and(|state| !state.closing);
        let lives = match self.write_route() {
            Some(WriteRoute::Forward) if !self.sessions.is_local(session) => {
                self.connections.set_phase(conn, Phase::Opening { session, answer_read_only });
                return self.ask_for_revalidation(cx, conn, session, timeout_ms);
            }
            // Without local sessions this server cannot tell, and believes the password, as upstream does.
            Some(WriteRoute::ReadOnly) => known || !self.has_local_sessions(),
            _ => known,
        };
        if lives {
            self.reopened(cx, conn, handshake);
        } else {
            self.expired(cx, conn, session, answer_read_only);
        }
    }

    /// Refuses a client whose password did not open the session. If another server may accept the password, the
    /// connection is closed without an answer, and the client tries the others. The answer "expired" would end its
    /// session.
    fn refuse_password(
        &mut self,
        cx: &mut Context<'_>,
        conn: ConnId,
        handshake: Handshake,
        verdict: Verdict,
    ) {
        let is_gone = self.leads() && self.sessions.get(handshake.session).is_none();
        if verdict == Verdict::Unknown && !is_gone {
            self.note_refused_return(cx.now, conn, handshake.session, EndCause::PasswordUnknown);
            return self.close(cx, conn, CloseReason::PasswordUnknown);
        }
        self.expired(cx, conn, handshake.session, handshake.answer_read_only);
    }

    fn expired(&mut self, cx: &mut Context<'_>, conn: ConnId, session: SessionId, answer_read_only: bool) {
        self.note_refused_return(cx.now, conn, session, EndCause::SessionGone);
        self.count_handshake_answer(conn);
        let read_only = answer_read_only.then_some(self.is_read_only());
        cx.effects.push(Effect::Connected { conn, response: ConnectResponse::expired(read_only) });
        self.close(cx, conn, CloseReason::SessionExpired);
    }

    /// Counts the answer to a new session like that to a request.
    pub(crate) fn count_session(&mut self, now: Now, conn: ConnId, head: RequestHead) {
        let zxid = self.complete_through();
        self.stats.latency_ms.add(head.age_ms(now.mono));
        if let Some(state) = self.connections.get_mut(conn) {
            state.stats.answered(now, &head, zxid);
        }
    }

    fn count_handshake_answer(&mut self, conn: ConnId) {
        self.stats.packets_sent += 1;
        if let Some(state) = self.connections.get_mut(conn) {
            state.stats.sent += 1;
        }
    }

    fn reopened(&mut self, cx: &mut Context<'_>, conn: ConnId, handshake: Handshake) {
        let Handshake { session, timeout_ms, answer_read_only } = handshake;
        self.stats.connection_revalidations += 1;
        if self.sessions.get(session).is_none() {
            // The leader knows the session; its createSession is still on its way here.
            self.sessions.insert(cx.now.mono, session, timeout_ms, Some(conn));
        }
        // Another connection of the session may have come while the leader was asked.
        if let Some(other) =
            self.sessions.get(session).and_then(|state| state.conn).filter(|other| *other != conn)
        {
            self.close(cx, other, CloseReason::SessionMoved);
        }
        if let Some(state) = self.sessions.get_mut(session) {
            state.conn = Some(conn);
            state.timeout_ms = timeout_ms;
            state.owner = Owner::Here;
        }
        self.sessions.touch(cx.now.mono, session);
        self.note_taken_up(cx.now, conn, session);
        self.wait_for_earlier_writes(cx, conn, session);
        self.connected(cx, conn, session, answer_read_only);
    }

    /// Holds the first read of a session that came back until its earlier writes are decided: the client may look for
    /// their results, as Curator does for a protected znode. In upstream, too, reads wait for all writes of their
    /// session, on whatever connection.
    ///
    /// At a learner, a sync follows the session's earlier writes to the leader; when it is answered, they are decided.
    /// Writes by way of another server are decided already, as the leader has answered for the session after them.
    fn wait_for_earlier_writes(&mut self, cx: &mut Context<'_>, conn: ConnId, session: SessionId) {
        let until = match self.write_route() {
            Some(WriteRoute::Propose) if self.proposed() > self.tree.last_processed() => self.proposed(),
            Some(WriteRoute::Forward) if self.has_undecided_writes(session) => {
                let sync = ForwardedOp { session, cxid: 0, code: Op::Sync.code(), body: ROOT };
                self.forward_op(cx, conn, &sync);
                UNANSWERED
            }
            _ => return,
        };
        let Some(state) = self.connections.get_mut(conn) else { return };
        state.queue.push_back(Waiting::UnderWay { until });
        self.pipeline.syncs.push_back((until, SyncWaiter::ComeBack(conn)));
    }

    /// The leader has answered whether the session lives with which a client came back.
    pub(crate) fn revalidated(&mut self, cx: &mut Context<'_>, conn: ConnId, answer: Revalidation) {
        let Revalidation { session, timeout_ms, valid } = answer;
        let Some(Phase::Opening { answer_read_only, .. }) =
            self.connections.get(conn).map(|state| state.phase)
        else {
            return;
        };
        if valid {
            self.reopened(cx, conn, Handshake { session, timeout_ms, answer_read_only });
        } else {
            self.expired(cx, conn, session, answer_read_only);
        }
    }

    /// Answers the handshake, and takes the requests that came before the answer.
    pub(crate) fn connected(
        &mut self,
        cx: &mut Context<'_>,
        conn: ConnId,
        session: SessionId,
        answer_read_only: bool,
    ) {
        let timeout_ms = self.sessions.get(session).map_or(0, |state| state.timeout_ms);
        let Some(state) = self.connections.get_mut(conn) else { return };
        state.phase = Phase::Open { session };
        let held = core::mem::take(&mut state.held);
        let response = ConnectResponse {
            timeout_ms,
            session,
            password: self.config.passwords.password_of(session),
            read_only: answer_read_only.then_some(self.is_read_only()),
        };
        self.count_handshake_answer(conn);
        cx.effects.push(Effect::Connected { conn, response });
        for payload in held {
            if let Ok(request) = crate::input::ClientRequest::decode(&payload) {
                self.request(cx, conn, &request);
            }
        }
    }
}
