//! What clients of learners ask: on its way to the leader, and at the leader.

use super::{RevalidationWaiter, Role};
use crate::{
    effect::{CloseReason, Effect, PeerMessage},
    fifo::{Waiting, WriteTxn},
    identities::Identities,
    input::{ClientRequest, ConnId, Now},
    prepare::Ephemerals,
    propose::Requester,
    server::{Outstanding, Server, SyncWaiter},
    session::{Owner, Scope},
};
use alloc::{borrow::Cow, vec::Vec};
use ostler_proto::{
    error::ErrorCode,
    id::{SessionId, Zxid},
    jute::Reader,
    op::Op,
    planted::{self, Bug},
    quorum_packet::Packet,
    request::{Request, RequestHeader},
    txn::{Txn, TxnHeader, TxnRecord},
};
use ostler_zab::leading::LinkId;

/// A request of a learner's client.
struct Forwarded<'a> {
    link: LinkId,
    session: SessionId,
    cxid: i32,
    ids: &'a Identities,
}

impl Server {
    /// Sends a client's request on to the leader.
    pub(crate) fn forward(
        &mut self,
        leader_link: LinkId,
        conn: ConnId,
        session: SessionId,
        request: &ClientRequest<'_>,
        effects: &mut Vec<Effect>,
    ) {
        let Ok((header, body)) = RequestHeader::read(request.payload) else { return };
        self.forward_op(leader_link, conn, (session, header.xid.0, header.code), body, effects);
    }

    pub(crate) fn forward_op(
        &mut self,
        leader_link: LinkId,
        conn: ConnId,
        (session, cxid, code): (SessionId, i32, i32),
        body: &[u8],
        effects: &mut Vec<Effect>,
    ) {
        let ids = match self.conns.get(&conn) {
            Some(state) if code != Op::CreateSession.code() => state.ids.all().to_vec(),
            _ => Vec::new(),
        };
        let packet = Packet::Request { session, cxid, code, body: Cow::Owned(body.into()), ids };
        effects.push(Effect::ToPeer { link: leader_link, message: PeerMessage::Packet(packet) });
    }

    /// How a write is known that is forwarded now.
    pub(crate) fn forwarded_txn(&self) -> WriteTxn {
        WriteTxn::Forwarded { after: self.proposed() }
    }

    /// The connection here that waits for a write which the leader has txn, if it is one of this server's.
    pub(crate) fn conn_of_forwarded(&mut self, now: Now, record: &TxnRecord<'_>) -> Option<ConnId> {
        self.ensemble.as_ref()?.following()?;
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
        let front = self.conns.get(&conn?)?.fifo.front()?;
        front.is_answered_by(&record.header).then_some(conn?)
    }

    /// A connection ends: what becomes of its writes is not told to its session's next one, which may use the same
    /// numbers.
    pub(crate) fn abandon_writes(&mut self, conn: ConnId) {
        let Some(state) = self.conns.get(&conn) else { return };
        let Some(session) = state.session() else { return };
        let Some(ensemble) = &mut self.ensemble else { return };
        let Role::Learning(learner) = &mut ensemble.role else { return };
        let mut forwarded = state.fifo.iter().filter_map(Waiting::forwarded).peekable();
        if forwarded.peek().is_some() && !planted::is(Bug::AnswersMixedUp) {
            learner.abandoned.entry(session).or_default().extend(forwarded);
        }
    }

    /// Whether writes of a session went to the leader on connections that are gone, and did not come back yet.
    pub(crate) fn has_undecided_writes(&self, session: SessionId) -> bool {
        match self.ensemble.as_ref().map(|ensemble| &ensemble.role) {
            Some(Role::Learning(learner)) => learner.abandoned.contains_key(&session),
            _ => false,
        }
    }

    /// The last write that went to the leader for connections that are gone did not get there.
    pub(super) fn forget_stopped_write(&mut self, session: SessionId) {
        let Some(Role::Learning(learner)) = self.ensemble.as_mut().map(|ensemble| &mut ensemble.role) else {
            return;
        };
        if let Some(writes) = learner.abandoned.get_mut(&session) {
            writes.pop_back();
            if writes.is_empty() {
                learner.abandoned.remove(&session);
            }
        }
    }

    /// Removes a write of a connection that is gone, and those before it. Returns true if it was one. The leader makes a
    /// transaction of each forwarded write, in order, even of a refused one.
    fn take_abandoned(&mut self, record: &TxnRecord<'_>) -> bool {
        let session = record.header.session;
        let Some(Role::Learning(learner)) = self.ensemble.as_mut().map(|ensemble| &mut ensemble.role) else {
            return false;
        };
        let Some(writes) = learner.abandoned.get_mut(&session) else { return false };
        let place = writes.iter().position(|cxid| *cxid == record.header.cxid);
        if let Some(place) = place {
            writes.drain(..=place);
        }
        if writes.is_empty() || matches!(record.txn, Txn::CloseSession(_)) {
            learner.abandoned.remove(&session);
        }
        place.is_some()
    }

    /// Asks the leader whether a session lives that a client has come back with.
    pub(crate) fn ask_leader(
        &mut self,
        leader_link: LinkId,
        conn: ConnId,
        session: SessionId,
        timeout_ms: i32,
        effects: &mut Vec<Effect>,
    ) {
        let Some(ensemble) = &mut self.ensemble else { return };
        ensemble
            .revalidating
            .entry(session)
            .or_default()
            .push_back((RevalidationWaiter::Client(conn), timeout_ms));
        if let Some(state) = self.sessions.get_mut(session) {
            // What it sends by way of an observer is late from now on.
            state.owner = Owner::Here;
        }
        let packet = Packet::Revalidate { session, timeout_ms };
        effects.push(Effect::ToPeer { link: leader_link, message: PeerMessage::Packet(packet) });
    }

    /// At a learner: the leader hears of this session with the next heartbeat.
    pub(crate) fn note_touch(&mut self, session: SessionId) {
        if let Some(ensemble) = &mut self.ensemble
            && ensemble.following().is_some()
            && let Some(state) = self.sessions.get(session)
            && state.scope == Scope::Global
        {
            ensemble.touched.insert(session, state.timeout_ms);
        }
    }

    pub(super) fn asked_by_learner(
        &mut self,
        now: Now,
        link: LinkId,
        packet: Packet<'_>,
        effects: &mut Vec<Effect>,
    ) {
        // An epoch that has not begun, or has just ended, answers nothing.
        // Nor does it do what somebody asks who has not taken over the history, and may be no learner.
        if self.proposals.is_none() || !self.has_joined(link) {
            return;
        }
        match packet {
            Packet::Ping { touched: Some(touched), .. } => self.touched_at_learner(now, &touched),
            Packet::Revalidate { session, timeout_ms } => {
                self.revalidate(now, link, session, timeout_ms, effects);
            }
            Packet::Request { session, cxid, code, body, ids } => {
                let ids = Identities::new(ids);
                let from = Forwarded { link, session, cxid, ids: &ids };
                self.forwarded(now, &from, code, &body, effects);
            }
            _ => {}
        }
    }

    fn revalidate(
        &mut self,
        now: Now,
        link: LinkId,
        session: SessionId,
        timeout_ms: i32,
        effects: &mut Vec<Effect>,
    ) {
        self.stats.syncs.revalidations += 1;
        // A local session of this server lives nowhere else.
        let is_here = self.sessions.is_local(session);
        // Before it is touched: it lives for as long as its client was told now, not for as long as before.
        if !is_here && let Some(state) = self.sessions.get_mut(session).filter(|state| !state.closing) {
            state.timeout_ms = timeout_ms;
        }
        let valid = if planted::is(Bug::RevalidatedUntouched) {
            !is_here && self.sessions.get(session).is_some_and(|state| !state.closing)
        } else {
            !is_here && self.sessions.touch(now.mono, session)
        };
        let mut here = None;
        if valid && let Some(state) = self.sessions.get_mut(session) {
            state.owner = Owner::Learner(link);
            here = state.conn.take();
        }
        if let Some(conn) = here {
            self.close(conn, CloseReason::SessionMoved, effects);
        }
        self.answer_in_time(link, session, valid, effects);
    }

    /// A client that has come back to another server may number its requests anew, as kazoo does, and that server knows
    /// them by their numbers when they commit. So it hears of the session after what the session has under way. A learner
    /// is answered in the order in which it asked: Java's observer masters drop what comes out of turn.
    fn answer_in_time(
        &mut self,
        learner: LinkId,
        session: SessionId,
        valid: bool,
        effects: &mut Vec<Effect>,
    ) {
        let mine = |waiting: &Outstanding| {
            TxnHeader::read(&mut Reader::new(&waiting.record.0)).is_ok_and(|header| header.session == session)
        };
        let asked_before = |(_, waiting): &(Zxid, SyncWaiter)| matches!(waiting, SyncWaiter::Session { learner: of, .. } if *of == learner);
        let waits = self.outstanding.iter().any(mine) || self.syncs.iter().any(asked_before);
        match self.outstanding.back() {
            Some(last) if waits && !planted::is(Bug::AnswersMixedUp) => {
                self.syncs.push_back((last.zxid, SyncWaiter::Session { learner, session, valid }));
            }
            _ => {
                let message = PeerMessage::Packet(Packet::Revalidated { session, valid });
                effects.push(Effect::ToPeer { link: learner, message });
            }
        }
    }

    fn forwarded(
        &mut self,
        now: Now,
        from: &Forwarded<'_>,
        code: i32,
        body: &[u8],
        effects: &mut Vec<Effect>,
    ) {
        let session = from.session;
        self.stats.writes.to_prepare += 1;
        match Request::read(code, body) {
            _ if code == Op::CreateSession.code() => {
                let Ok(bytes) = <[u8; 4]>::try_from(body) else { return };
                let timeout_ms = i32::from_be_bytes(bytes);
                self.sessions.insert(now.mono, session, timeout_ms, None);
                if let Some(state) = self.sessions.get_mut(session) {
                    state.owner = Owner::Learner(from.link);
                }
                self.append(now, session, from.cxid, Txn::CreateSession { timeout_ms }, None, effects);
            }
            Request::Sync(_) => {
                self.sessions.touch(now.mono, session);
                self.sync_for_learner(from.link, effects);
            }
            request => {
                let ephemerals = self.check_writer(now, from.link, from.session);
                self.propose_forwarded(now, from, &request, ephemerals, effects);
            }
        }
    }

    /// Answered once all that was proposed before has been sent.
    fn sync_for_learner(&mut self, link: LinkId, effects: &mut Vec<Effect>) {
        match self.outstanding.back() {
            Some(last) => self.syncs.push_back((last.zxid, SyncWaiter::Learner(link))),
            None => effects.push(Effect::ToPeer { link, message: PeerMessage::Packet(Packet::Sync) }),
        }
    }

    fn propose_forwarded(
        &mut self,
        now: Now,
        from: &Forwarded<'_>,
        request: &Request<'_>,
        ephemerals: Result<Ephemerals, ErrorCode>,
        effects: &mut Vec<Effect>,
    ) {
        let (session, cxid) = (from.session, from.cxid);
        match (request, ephemerals) {
            (Request::CloseSession, Ok(Ephemerals::Allowed)) => {
                self.propose_close(now, session, cxid, None, effects);
                return;
            }
            (Request::Reconfig(change), Ok(_)) => {
                self.propose_reconfig(now, (session, cxid), change, Requester::Ids(from.ids), effects);
                return;
            }
            _ => {}
        }
        let zxid = self.next_zxid();
        let prepared = match (request, ephemerals) {
            // Nobody here knows of a session that could be closed.
            (Request::CloseSession, Ok(_)) => Err(ErrorCode::SessionExpired),
            (_, Err(error)) if !forgiven(error) => Err(error),
            (_, ephemerals) => {
                let mut preparer = self.preparer(zxid, now, session, Requester::Ids(from.ids));
                preparer.ephemerals = ephemerals.unwrap_or(Ephemerals::Allowed);
                preparer.prepare(request)
            }
        };
        let txn = prepared.unwrap_or_else(|error| Txn::Error(error.code()));
        self.append(now, session, cxid, txn, None, effects);
    }
}

/// Whether a bug is planted that lets a session's write pass in spite of this.
fn forgiven(error: ErrorCode) -> bool {
    match error {
        ErrorCode::SessionMoved => planted::is(Bug::MovedSessionWrites),
        ErrorCode::SessionExpired => planted::is(Bug::EphemeralsOfTheDead),
        _ => false,
    }
}
