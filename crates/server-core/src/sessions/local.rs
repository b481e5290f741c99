//! Local sessions, which only one server knows: they cost no transaction, cannot move, and have no ephemerals. Also
//! whether a session, local or global, may write through a learner.
//!
//! If upgrades are allowed, a local session becomes global before it creates an ephemeral: its createSession goes to
//! the leader before the request. The leader cannot tell a learner's local session from one that does not exist. So it
//! takes writes of unknown sessions, unless it has given out the id itself. Upstream also takes a late write of a
//! session that has ended; here it is refused.

use crate::{
    connections::{
        forwarded::WriteTarget,
        request_queue::{AnswerForm, Waiting},
    },
    context::Context,
    effect::CloseReason,
    input::{ClientRequest, ConnId, Mono, Now, RequestHead},
    pipeline::{
        WriteRoute,
        prepare::{Ephemerals, Mode},
        propose::WriteOrigin,
    },
    quorum::ForwardedOp,
    server::Server,
    sessions::{Owner, Scope, ends::EndedEphemerals},
};
use alloc::collections::VecDeque;
use hashbrown::HashSet;
use ostler_proto::{
    error::ErrorCode,
    id::{ServerId, SessionId},
    op::Op,
    reply::Body,
    request::{Create, MultiOp, Request},
    txn::Txn,
};
use ostler_zab::leading::LinkId;
use rustc_hash::FxBuildHasher;

/// Whether new sessions are local or global.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LocalSessions {
    /// All sessions are global.
    #[default]
    Off,
    /// All sessions are local, and none can have an ephemeral.
    Fixed,
    /// Sessions are local; one becomes global when it creates an ephemeral.
    Upgradeable,
}

/// At a leader: global sessions that ended a short time ago.
///
/// A learner learns of the end after the leader, and requests of its client may still come until then. They come within
/// the timeouts of leader and learner.
#[derive(Debug, Default)]
pub(crate) struct EndedSessions {
    ids: HashSet<SessionId, FxBuildHasher>,
    order: VecDeque<(Mono, SessionId)>,
}

impl EndedSessions {
    fn note(&mut self, now: Mono, session: SessionId, keep_ms: u64) {
        while self.order.front().is_some_and(|(until, _)| *until <= now) {
            if let Some((_, session)) = self.order.pop_front() {
                self.ids.remove(&session);
            }
        }
        if self.ids.insert(session) {
            self.order.push_back((now.after(keep_ms), session));
        }
    }
}

impl Server {
    fn local_sessions(&self) -> LocalSessions {
        self.role.ensemble().map_or(LocalSessions::Off, |ensemble| ensemble.config.local_sessions)
    }

    /// Whether local sessions are enabled.
    pub fn has_local_sessions(&self) -> bool {
        self.local_sessions() != LocalSessions::Off
    }

    /// Makes a local session global if this request needs it, before the request is proposed or forwarded. Returns the
    /// error if that is not allowed, at a learner.
    pub(crate) fn upgrade_if_needed(
        &mut self,
        cx: &mut Context<'_>,
        conn: ConnId,
        session: SessionId,
        request: &Request<'_>,
    ) -> Option<ErrorCode> {
        if !asks_for_ephemeral(request) || !self.sessions.is_local(session) {
            return None;
        }
        if self.local_sessions() == LocalSessions::Upgradeable {
            self.upgrade(cx, conn, session);
            return None;
        }
        // For a multi the leader answers each of its operations, as in upstream.
        let single = matches!(request, Request::Create(_)) && !self.leads();
        single.then_some(ErrorCode::EphemeralOnLocalSession)
    }

    fn upgrade(&mut self, cx: &mut Context<'_>, conn: ConnId, session: SessionId) {
        let Some(timeout_ms) = self.sessions.make_global(session) else { return };
        tracing::debug!(%session, "a local session becomes global");
        let Some(WriteRoute::Forward) = self.write_route() else {
            self.close_new_root(cx);
            self.append(cx, WriteOrigin::server(session), Txn::CreateSession { timeout_ms });
            return;
        };
        self.forward_op(cx, conn, &ForwardedOp::create_session(session, &timeout_ms.to_be_bytes()));
        self.report_touch(session);
        let head = RequestHead::of_handshake(cx.now.mono);
        let (txn, target) = (self.forwarded_txn(), WriteTarget::None);
        let waiting = Waiting::Write { head, txn, form: AnswerForm::Upgraded, target };
        if let Some(state) = self.connections.get_mut(conn) {
            state.queue.push_back(waiting);
        }
    }

    /// At a leader: whether a session may write through a learner. The first server to write for it after a change of
    /// leaders becomes its owner.
    pub(crate) fn check_writer(
        &mut self,
        now: Now,
        link: LinkId,
        session: SessionId,
    ) -> Result<Ephemerals, ErrorCode> {
        if self.sessions.is_local(session) {
            return Err(ErrorCode::SessionMoved);
        }
        let lives = self.sessions.touch(now.mono, session);
        let Some(state) = self.sessions.get_mut(session) else {
            return self.check_unknown_writer(session);
        };
        match state.owner {
            _ if !lives => Err(ErrorCode::SessionExpired),
            Owner::Nobody => {
                state.owner = Owner::Learner(link);
                Ok(Ephemerals::Allowed)
            }
            Owner::Learner(owner) if owner == link => Ok(Ephemerals::Allowed),
            _ => Err(ErrorCode::SessionMoved),
        }
    }

    /// The same for an unknown session: it may be a local one of the learner's.
    fn check_unknown_writer(&self, session: SessionId) -> Result<Ephemerals, ErrorCode> {
        let ended = self.role.ensemble().is_some_and(|ensemble| ensemble.ended.ids.contains(&session));
        let own = given_out_by(self.config.server, session);
        if ended || own || !self.has_local_sessions() {
            return Err(ErrorCode::SessionExpired);
        }
        Ok(Ephemerals::Refused(ErrorCode::SessionExpired))
    }

    /// Notes the end of a global session.
    pub(crate) fn note_ended(&mut self, now: Now, session: SessionId) {
        if self.leads()
            && let Some(ensemble) = self.role.ensemble_mut()
            && ensemble.config.local_sessions != LocalSessions::Off
        {
            let keep_ms = ensemble.config.timing.sync * 2;
            ensemble.ended.note(now.mono, session, keep_ms);
        }
    }

    /// A client closes its local session.
    pub(crate) fn close_local(
        &mut self,
        cx: &mut Context<'_>,
        conn: ConnId,
        request: &ClientRequest<'_>,
        arrived: Mono,
    ) {
        self.reply(cx, conn, request.head(arrived), Ok(Body::None));
        if let Some(session) = self.connections.session(conn) {
            let ending = self.ending_session(session);
            self.record_session_end(cx.now, &ending, true, EndedEphemerals::default());
            self.sessions.remove(session);
        }
        self.close(cx, conn, CloseReason::ClosedByClient);
    }

    pub(crate) fn expire_local_sessions(&mut self, cx: &mut Context<'_>) {
        while !self.work.is_spent()
            && let Some(session) = self.sessions.expire_next(cx.now.mono, Scope::Local)
        {
            self.note_ending(session, self.expired_cause(cx.now, session));
            self.expire_local(cx, session);
        }
    }

    pub(crate) fn expire_local(&mut self, cx: &mut Context<'_>, session: SessionId) {
        self.stats.stale_sessions_expired += 1;
        let ending = self.ending_session(session);
        self.record_session_end(cx.now, &ending, false, EndedEphemerals::default());
        if let Some(conn) = self.sessions.remove(session).and_then(|state| state.conn) {
            self.close(cx, conn, CloseReason::SessionExpired);
        }
    }
}

/// At a leader: whether a session of one of its own clients may have ephemerals.
pub(crate) fn may_have_ephemerals(scope: Scope, request: &Request<'_>) -> Ephemerals {
    match scope {
        Scope::Global => Ephemerals::Allowed,
        // It was not upgraded, so it may not be.
        Scope::Local if asks_for_ephemeral(request) => {
            Ephemerals::Refused(ErrorCode::EphemeralOnLocalSession)
        }
        Scope::Local => Ephemerals::Refused(ErrorCode::SessionExpired),
    }
}

/// Whether a request creates an ephemeral. As in upstream, only create and create2 count, also within a multi, up to
/// the first invalid flags.
fn asks_for_ephemeral(request: &Request<'_>) -> bool {
    let mode = |create: &Create<'_>| {
        matches!(create.op, Op::Create | Op::Create2).then(|| Mode::from_flags(create.flags))
    };
    match request {
        Request::Create(create) => mode(create).flatten().is_some_and(|mode| mode.ephemeral),
        Request::Multi(ops) => ops
            .iter()
            .filter_map(|op| if let MultiOp::Create(create) = op { mode(create) } else { None })
            .map_while(|mode| mode)
            .any(|mode| mode.ephemeral),
        _ => false,
    }
}

/// The first byte of a session's id is the id of the server that gave it out.
fn given_out_by(server: ServerId, session: SessionId) -> bool {
    session.0 >> 56 == i64::from(server.0 as i8)
}
