//! Requests of learners' clients: how a learner forwards them, and what the leader does with them. Also revalidation of
//! sessions.

use super::{RevalidationWaiter, role::Learner};
use crate::{
    connections::{
        identities::Identities,
        request_queue::{Waiting, WriteTxn},
    },
    context::Context,
    effect::{CloseReason, Effect, PeerMessage},
    input::{ClientRequest, ConnId, Now},
    pipeline::{
        prepare::Ephemerals,
        propose::{Requester, WriteOrigin},
        syncs::SyncWaiter,
    },
    server::Server,
    sessions::{Owner, Scope, ends::ActingOperator},
};
use alloc::{borrow::Cow, vec::Vec};
use ostler_planted::{self as planted, Bug};
use ostler_proto::{
    error::ErrorCode,
    id::SessionId,
    op::Op,
    quorum_packet::Packet,
    request::{Request, RequestHeader},
    txn::{Txn, TxnRecord},
};
use ostler_zab::leading::LinkId;

/// An operation of a learner's client, on its way to the leader.
pub(crate) struct ForwardedOp<'a> {
    pub(crate) session: SessionId,
    pub(crate) cxid: i32,
    /// The operation number.
    pub(crate) code: i32,
    pub(crate) body: &'a [u8],
}

impl<'a> ForwardedOp<'a> {
    /// The body is the timeout.
    pub(crate) fn create_session(session: SessionId, body: &'a [u8; 4]) -> ForwardedOp<'a> {
        ForwardedOp { session, cxid: 0, code: Op::CreateSession.code(), body }
    }
}

/// A forwarded request of a learner's client, at the leader.
struct Forwarded<'a> {
    link: LinkId,
    session: SessionId,
    cxid: i32,
    ids: &'a Identities,
}

impl<'a> Forwarded<'a> {
    fn origin(&self) -> WriteOrigin<'a> {
        WriteOrigin { session: self.session, cxid: self.cxid, requester: Requester::Ids(self.ids) }
    }
}

impl Server {
    /// Sends a client's request on to the leader.
    pub(crate) fn forward(
        &mut self,
        cx: &mut Context<'_>,
        conn: ConnId,
        session: SessionId,
        request: &ClientRequest<'_>,
    ) {
        let Ok((header, body)) = RequestHeader::read(request.payload) else { return };
        let op = ForwardedOp { session, cxid: header.xid.0, code: header.code, body };
        self.forward_op(cx, conn, &op);
    }

    pub(crate) fn forward_op(&mut self, cx: &mut Context<'_>, conn: ConnId, op: &ForwardedOp<'_>) {
        let Some(leader_link) = self.leader_connection() else { return };
        let ForwardedOp { session, cxid, code, body } = *op;
        let mut ids = match self.connections.get(conn) {
            Some(state) if code != Op::CreateSession.code() => state.ids.all().to_vec(),
            _ => Vec::new(),
        };
        if planted::is(Bug::CertificateForgotten) {
            ids.retain(|id| id.scheme != "x509");
        }
        let packet = Packet::Request { session, cxid, code, body: Cow::Owned(body.into()), ids };
        cx.effects.push(Effect::ToPeer { link: leader_link, message: PeerMessage::Packet(packet) });
    }

    /// Asks the leader to end a session that an operator wants to end.
    pub(crate) fn forward_end(&mut self, cx: &mut Context<'_>, session: SessionId, by: &ActingOperator) {
        let Some(link) = self.leader_connection() else { return };
        let (code, body) = (Op::CloseSession.code(), Cow::Owned(by.to_body()));
        let packet = Packet::Request { session, cxid: 0, code, body, ids: Vec::new() };
        cx.effects.push(Effect::ToPeer { link, message: PeerMessage::Packet(packet) });
    }

    fn learner(&self) -> Option<&Learner> {
        self.role.ensemble()?.role.learner()
    }

    pub(super) fn learner_mut(&mut self) -> Option<&mut Learner> {
        self.role.ensemble_mut()?.role.learner_mut()
    }

    pub(crate) fn leader_connection(&self) -> Option<LinkId> {
        self.role.ensemble()?.following()
    }

    /// How the transaction of a write is recognised that is forwarded now.
    pub(crate) fn forwarded_txn(&self) -> WriteTxn {
        WriteTxn::Forwarded { after: self.proposed() }
    }

    /// At a learner: the connection of this server that waits for this transaction, if there is one.
    pub(crate) fn conn_of_forwarded(&mut self, now: Now, record: &TxnRecord<'_>) -> Option<ConnId> {
        self.role.ensemble()?.following()?;
        let session = record.header.session;
        let conn = self.sessions.get(session).and_then(|session| session.conn);
        if let Txn::CreateSession { timeout_ms } = record.txn
            && self.sessions.get(session).is_none()
        {
            self.sessions.insert(now.mono, session, timeout_ms, conn);
        }
        if self.take_abandoned(record) {
            return None;
        }
        let front = self.connections.get(conn?)?.queue.front()?;
        front.is_answered_by(record).then_some(conn?)
    }

    /// A connection ends: notes its forwarded writes, so that they are not taken for writes of the session's next
    /// connection, which may use the same xids.
    pub(crate) fn abandon_writes(&mut self, conn: ConnId) {
        let Some(state) = self.connections.get(conn) else { return };
        let Some(session) = state.session() else { return };
        let Some(ensemble) = self.role.ensemble_mut() else { return };
        let Some(learner) = ensemble.role.learner_mut() else { return };
        let mut forwarded = state.queue.iter().filter_map(Waiting::forwarded).peekable();
        if forwarded.peek().is_some() && !planted::is(Bug::AnswersMixedUp) {
            learner.abandoned.entry(session).or_default().extend(forwarded);
        }
    }

    /// Whether forwarded writes of a session's earlier connections are not decided yet.
    pub(crate) fn has_undecided_writes(&self, session: SessionId) -> bool {
        self.learner().is_some_and(|learner| learner.abandoned.contains_key(&session))
    }

    /// The last forwarded write of a session's earlier connections was stopped on its way, so no transaction comes of
    /// it.
    pub(super) fn forget_stopped_write(&mut self, session: SessionId) {
        let Some(learner) = self.learner_mut() else { return };
        if let Some(writes) = learner.abandoned.get_mut(&session) {
            writes.pop_back();
            if writes.is_empty() {
                learner.abandoned.remove(&session);
            }
        }
    }

    /// Removes a decided write of an earlier connection, and those before it. Returns true if the transaction is of
    /// such a write. The leader makes a transaction of each forwarded write, in order, even of a refused one.
    fn take_abandoned(&mut self, record: &TxnRecord<'_>) -> bool {
        let session = record.header.session;
        let Some(learner) = self.learner_mut() else { return false };
        let Some(writes) = learner.abandoned.get_mut(&session) else { return false };
        let place = writes.iter().position(|write| write.fits(record));
        if let Some(place) = place {
            writes.drain(..=place);
        }
        if writes.is_empty() || matches!(record.txn, Txn::CloseSession(_)) {
            learner.abandoned.remove(&session);
        }
        place.is_some()
    }

    /// Asks the leader whether the session lives with which a client has come back.
    pub(crate) fn ask_for_revalidation(
        &mut self,
        cx: &mut Context<'_>,
        conn: ConnId,
        session: SessionId,
        timeout_ms: i32,
    ) {
        let Some(leader_link) = self.leader_connection() else { return };
        let Some(learner) = self.learner_mut() else { return };
        let waiters = learner.revalidating.entry(session).or_default();
        waiters.push_back((RevalidationWaiter::Client(conn), timeout_ms));
        if let Some(state) = self.sessions.get_mut(session) {
            // Requests of the session by way of an observer are late from now on.
            state.owner = Owner::Here;
        }
        let packet = Packet::Revalidate { session, timeout_ms };
        cx.effects.push(Effect::ToPeer { link: leader_link, message: PeerMessage::Packet(packet) });
    }

    /// At a learner: notes a session's sign of life for the leader's next heartbeat.
    pub(crate) fn report_touch(&mut self, session: SessionId) {
        if let Some(learner) = self.role.ensemble_mut().and_then(|ensemble| ensemble.role.learner_mut())
            && learner.learning.is_following()
            && let Some(state) = self.sessions.get(session)
            && state.scope == Scope::Global
        {
            learner.touched.insert(session, state.timeout_ms);
        }
    }

    pub(super) fn handle_learner_request(&mut self, cx: &mut Context<'_>, link: LinkId, packet: Packet<'_>) {
        // Nothing is answered before the epoch has begun, nor to a caller without the history, which may not be a
        // learner at all.
        if !self.leads() || !self.has_joined(link) {
            return;
        }
        match packet {
            Packet::Ping { touched: Some(touched), .. } => {
                self.note_pong(cx.now, link);
                self.touch_sessions(cx.now, &touched);
            }
            Packet::Revalidate { session, timeout_ms } => {
                self.revalidate(cx, link, session, timeout_ms);
            }
            Packet::Request { session, cxid, code, body, ids } => {
                let ids = Identities::new(ids);
                let from = Forwarded { link, session, cxid, ids: &ids };
                self.forwarded(cx, &from, code, &body);
            }
            _ => {}
        }
    }

    fn revalidate(&mut self, cx: &mut Context<'_>, link: LinkId, session: SessionId, timeout_ms: i32) {
        self.stats.syncs.revalidations += 1;
        // A local session of this server lives at no other server.
        let is_here = self.sessions.is_local(session);
        // Before the touch, so that the session lives for the timeout that its client gets now.
        if !is_here && let Some(state) = self.sessions.get_mut(session).filter(|state| !state.closing) {
            state.timeout_ms = timeout_ms;
        }
        let valid = if planted::is(Bug::RevalidatedUntouched) {
            !is_here && self.sessions.get(session).is_some_and(|state| !state.closing)
        } else {
            !is_here && self.sessions.touch(cx.now.mono, session)
        };
        let mut here = None;
        if valid && let Some(state) = self.sessions.get_mut(session) {
            state.owner = Owner::Learner(link);
            here = state.conn.take();
        }
        if let Some(conn) = here {
            self.close(cx, conn, CloseReason::SessionMoved);
        }
        self.answer_revalidation(cx, link, session, valid);
    }

    /// Answers a learner whether a session lives, after the session's outstanding writes have committed. A client that
    /// has come back to another server may number its requests from 1 again, as kazoo does, and that server recognises
    /// commits by these numbers. Answers keep the order of the questions: Java's observer masters drop an answer that
    /// is out of order.
    fn answer_revalidation(
        &mut self,
        cx: &mut Context<'_>,
        learner: LinkId,
        session: SessionId,
        valid: bool,
    ) {
        // No search: many sessions come back at once, while many writes are outstanding.
        let applied = self.tree.last_processed();
        let has_writes = self.sessions.get(session).is_some_and(|state| state.last_proposal > applied);
        let asked_before = self.pipeline.last_revalidations.get(&learner).is_some_and(|last| *last > applied);
        let waits = has_writes || asked_before;
        match self.pipeline.outstanding.back() {
            Some(last) if waits && !planted::is(Bug::AnswersMixedUp) => {
                let last = last.zxid;
                self.pipeline.last_revalidations.insert(learner, last);
                self.pipeline.syncs.push_back((last, SyncWaiter::Session { learner, session, valid }));
            }
            _ => {
                let message = PeerMessage::Packet(Packet::Revalidated { session, valid });
                cx.effects.push(Effect::ToPeer { link: learner, message });
            }
        }
    }

    fn forwarded(&mut self, cx: &mut Context<'_>, from: &Forwarded<'_>, code: i32, body: &[u8]) {
        let session = from.session;
        self.stats.writes.to_prepare += 1;
        // Each connection of a client has an identity, that of its address at least. So no client passes for an operator.
        if code == Op::CloseSession.code()
            && from.ids.all().is_empty()
            && let Some(by) = ActingOperator::of_body(body)
        {
            return self.expire_session(cx, session, Some(by));
        }
        match Request::read(code, body) {
            _ if code == Op::CreateSession.code() => {
                let Ok(bytes) = <[u8; 4]>::try_from(body) else { return };
                let timeout_ms = i32::from_be_bytes(bytes);
                self.sessions.insert(cx.now.mono, session, timeout_ms, None);
                if let Some(state) = self.sessions.get_mut(session) {
                    state.owner = Owner::Learner(from.link);
                }
                self.close_new_root(cx);
                self.append(cx, from.origin(), Txn::CreateSession { timeout_ms });
            }
            Request::Sync(_) => {
                self.sessions.touch(cx.now.mono, session);
                self.sync_for_learner(cx, from.link);
            }
            request => {
                let ephemerals = self.check_writer(cx.now, from.link, from.session);
                self.propose_forwarded(cx, from, &request, ephemerals);
            }
        }
    }

    /// Answers a sync once everything that was proposed before it has been sent.
    fn sync_for_learner(&mut self, cx: &mut Context<'_>, link: LinkId) {
        match self.pipeline.outstanding.back() {
            Some(last) => self.pipeline.syncs.push_back((last.zxid, SyncWaiter::Learner(link))),
            None => cx.effects.push(Effect::ToPeer { link, message: PeerMessage::Packet(Packet::Sync) }),
        }
    }

    fn propose_forwarded(
        &mut self,
        cx: &mut Context<'_>,
        from: &Forwarded<'_>,
        request: &Request<'_>,
        ephemerals: Result<Ephemerals, ErrorCode>,
    ) {
        self.close_new_root(cx);
        match (request, ephemerals) {
            (Request::CloseSession, Ok(Ephemerals::Allowed)) => {
                self.propose_close(cx, from.origin());
                return;
            }
            (Request::Reconfig(change), Ok(_)) => {
                self.propose_reconfig(cx, from.origin(), change);
                return;
            }
            _ => {}
        }
        let zxid = self.next_zxid();
        let prepared = match (request, ephemerals) {
            // The session is not a global one, so there is nothing to close.
            (Request::CloseSession, Ok(_)) => Err(ErrorCode::SessionExpired),
            (_, Err(error)) if !is_forgiven_by_planted_bug(error) => Err(error),
            (_, ephemerals) => {
                let mut preparer = self.preparer(zxid, cx.now, from.origin());
                preparer.ephemerals = ephemerals.unwrap_or(Ephemerals::Allowed);
                preparer.prepare(request)
            }
        };
        let txn = prepared.unwrap_or_else(|error| Txn::Error(error.code()));
        self.append(cx, from.origin(), txn);
    }
}

/// Whether a planted bug lets a session's write pass in spite of this error.
fn is_forgiven_by_planted_bug(error: ErrorCode) -> bool {
    match error {
        ErrorCode::SessionMoved => planted::is(Bug::MovedSessionWrites),
        ErrorCode::SessionExpired => planted::is(Bug::EphemeralsOfTheDead),
        _ => false,
    }
}
