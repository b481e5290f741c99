//! The connections of clients: the stage of each, its identities, and the queue of its requests.

pub(crate) mod backlog;
pub(crate) mod counted_queue;
pub(crate) mod forwarded;
pub(crate) mod habits;
pub(crate) mod handshake;
pub(crate) mod identities;
pub(crate) mod request_queue;

use crate::{
    context::Context,
    effect::{CloseReason, Effect},
    input::{ConnId, Now, RequestHead},
    server::Server,
    sessions::{
        ends::{EndCause, HostState},
        gaps::Gaps,
    },
    stats::ConnStats,
    work,
};
use alloc::{boxed::Box, collections::BTreeSet, string::ToString, vec::Vec};
use core::{
    net::SocketAddr,
    ops::Bound::{Excluded, Unbounded},
};
use counted_queue::{RequestQueue, WaitingCount};
use habits::Habits;
use hashbrown::HashMap;
use identities::Identities;
use ostler_proto::{
    acl::Id,
    error::ErrorCode,
    id::{SessionId, Xid, Zxid},
    reply::{Body, Reply},
};
use request_queue::Waiting;
use rustc_hash::FxBuildHasher;

/// The stage of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// No handshake yet.
    Fresh,
    /// Its new session waits for its commit.
    Opening { session: SessionId, answer_read_only: bool },
    /// Requests are taken.
    Open { session: SessionId },
    /// The client has closed its session: nothing more is taken; answers still go out.
    Closing { session: SessionId },
    /// Nothing is taken and nothing goes out any more.
    Closed { session: SessionId },
}

/// A client's connection.
#[derive(Debug)]
pub(crate) struct Conn {
    pub(crate) peer: SocketAddr,
    pub(crate) ids: Identities,
    pub(crate) phase: Phase,
    pub(crate) queue: RequestQueue,
    /// Bytes reserved for the answers of the requests in the queue.
    reserved: usize,
    /// Bytes of the tree in its answers since its last request came.
    pub(crate) answered: usize,
    /// The shell works at a SASL token of this client.
    pub(crate) sasl_under_way: bool,
    /// Requests at the head of the queue could be served and wait for their turn only, see [`backlog`].
    pub(crate) behind: bool,
    /// Requests that came before the handshake was answered.
    pub(crate) held: Vec<Box<[u8]>>,
    pub(crate) stats: ConnStats,
    /// When it was heard of.
    pub(crate) gaps: Gaps,
    pub(crate) habits: Habits,
    /// The number of the record of its end, if there is one.
    pub(crate) end: Option<u64>,
}

impl Conn {
    fn new(peer: SocketAddr, now: Now) -> Conn {
        Conn {
            peer,
            ids: Identities::new([Id::new("ip", peer.ip().to_canonical().to_string())]),
            phase: Phase::Fresh,
            queue: RequestQueue::default(),
            reserved: 0,
            answered: 0,
            sasl_under_way: false,
            behind: false,
            held: Vec::new(),
            stats: ConnStats { established_wall_ms: now.wall_ms, ..ConnStats::default() },
            gaps: Gaps::new(now.mono),
            habits: Habits::default(),
            end: None,
        }
    }

    /// Nothing is taken and nothing goes out any more; its socket may take a moment to end.
    pub(crate) fn is_closed(&self) -> bool {
        matches!(self.phase, Phase::Closed { .. })
    }

    pub(crate) fn session(&self) -> Option<SessionId> {
        match self.phase {
            Phase::Fresh => None,
            Phase::Opening { session, .. }
            | Phase::Open { session }
            | Phase::Closing { session }
            | Phase::Closed { session } => (session != SessionId::NONE).then_some(session),
        }
    }

    /// Bytes reserved for answers, with the identities that go along with each forwarded request.
    pub(crate) fn reserved_bytes(&self) -> usize {
        self.reserved + self.queue.len() * self.ids.size()
    }
}

/// All connections of clients.
#[derive(Debug, Default)]
pub(crate) struct Connections {
    /// Boxed to keep the table small: it has up to twice the room that is used, and moves all entries as it grows.
    by_id: HashMap<ConnId, Box<Conn>, FxBuildHasher>,
    /// Those that are not closed, in order.
    open: BTreeSet<ConnId>,
    waiting: WaitingCount,
    /// The bytes reserved for all connections together.
    reserved: usize,
    /// The identities of a connection that is gone.
    nobody: Identities,
}

impl Connections {
    fn accept(&mut self, id: ConnId, mut conn: Conn) {
        conn.queue = RequestQueue::counted_in(&self.waiting);
        self.open.insert(id);
        let before = self.by_id.insert(id, Box::new(conn));
        assert!(before.is_none(), "connection number {id:?} was used twice");
    }

    fn remove(&mut self, id: ConnId) -> Option<Box<Conn>> {
        let conn = self.by_id.remove(&id)?;
        self.open.remove(&id);
        self.reserved -= conn.reserved;
        Some(conn)
    }

    pub(crate) fn get(&self, id: ConnId) -> Option<&Conn> {
        self.by_id.get(&id).map(|conn| &**conn)
    }

    pub(crate) fn get_mut(&mut self, id: ConnId) -> Option<&mut Conn> {
        self.by_id.get_mut(&id).map(|conn| &mut **conn)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (ConnId, &Conn)> {
        self.by_id.iter().map(|(id, conn)| (*id, &**conn))
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Conn> {
        self.by_id.values_mut().map(|conn| &mut **conn)
    }

    /// The number of those that are not closed.
    pub(crate) fn open_count(&self) -> usize {
        self.open.len()
    }

    /// The unanswered requests of all connections.
    pub(crate) fn waiting_count(&self) -> usize {
        self.waiting.get()
    }

    /// The numbers of those that are not closed, after this one, in order.
    pub(crate) fn open_after(&self, after: Option<ConnId>) -> impl Iterator<Item = ConnId> + '_ {
        self.open.range((after.map_or(Unbounded, Excluded), Unbounded)).copied()
    }

    /// The numbers of all connections, in order.
    pub(crate) fn numbers(&self) -> Vec<ConnId> {
        let mut all: Vec<ConnId> = self.by_id.keys().copied().collect();
        all.sort_unstable();
        all
    }

    /// The identities of a connection; none if it is gone.
    pub(crate) fn identities(&self, id: ConnId) -> &Identities {
        self.by_id.get(&id).map_or(&self.nobody, |conn| &conn.ids)
    }

    /// No identities, for a write that no client has asked for.
    pub(crate) fn nobody(&self) -> &Identities {
        &self.nobody
    }

    pub(crate) fn session(&self, id: ConnId) -> Option<SessionId> {
        self.by_id.get(&id)?.session()
    }

    /// Whether a connection exists and is not closed.
    pub(crate) fn is_connected(&self, id: ConnId) -> bool {
        self.by_id.get(&id).is_some_and(|conn| !conn.is_closed())
    }

    pub(crate) fn set_phase(&mut self, id: ConnId, phase: Phase) {
        if let Some(conn) = self.by_id.get_mut(&id) {
            conn.phase = phase;
            if conn.is_closed() {
                self.open.remove(&id);
            }
        }
    }

    /// Puts a request at the end of a connection's queue.
    pub(crate) fn enqueue(&mut self, id: ConnId, request: Waiting) {
        if let Some(conn) = self.by_id.get_mut(&id) {
            conn.queue.push_back(request);
        }
    }

    /// The bytes reserved for all connections together.
    pub(crate) fn reserved(&self) -> usize {
        self.reserved
    }

    /// Reserves bytes for an answer.
    pub(crate) fn reserve(&mut self, id: ConnId, bytes: usize) {
        if let Some(conn) = self.by_id.get_mut(&id) {
            conn.reserved += bytes;
            self.reserved += bytes;
        }
    }

    /// Frees the bytes that were reserved for an answer.
    pub(crate) fn release(&mut self, id: ConnId, bytes: usize) {
        if let Some(conn) = self.by_id.get_mut(&id) {
            conn.reserved -= bytes;
            self.reserved -= bytes;
        }
    }

    /// Closes a connection, and forgets its requests.
    fn close(&mut self, id: ConnId) {
        let Some(conn) = self.by_id.get_mut(&id) else { return };
        conn.phase = Phase::Closed { session: conn.session().unwrap_or(SessionId::NONE) };
        conn.queue.clear();
        self.open.remove(&id);
        self.reserved -= core::mem::take(&mut conn.reserved);
        conn.held.clear();
    }

    /// Counts an answer that goes out on a connection.
    fn count_sent(&mut self, id: ConnId) {
        if let Some(conn) = self.by_id.get_mut(&id) {
            conn.stats.sent += 1;
        }
    }

    /// Relations that hold between steps.
    pub(crate) fn invariants(&self) {
        let reserved: usize = self.by_id.values().map(|conn| conn.reserved).sum();
        assert_eq!(reserved, self.reserved);
        for (id, conn) in &self.by_id {
            let writes = conn.queue.iter().filter_map(Waiting::proposed);
            assert!(writes.is_sorted(), "writes of {id:?} are out of order");
            let parked = conn.queue.front().is_some_and(Waiting::is_read);
            assert!(!parked || conn.behind, "a read of {id:?} waits for nothing");
        }
    }
}

impl Server {
    pub(crate) fn accepted(&mut self, cx: &Context<'_>, conn: ConnId, peer: SocketAddr) {
        self.connections.accept(conn, Conn::new(peer, cx.now));
    }

    /// The timeout of a connection's session, in ms; the longest one that sessions may have if there is none.
    pub fn session_timeout_ms(&self, conn: ConnId) -> u64 {
        let session = self.connections.session(conn).and_then(|id| self.sessions.get(id));
        let timeout_ms = session.map_or(self.config.session_timeout_max_ms, |session| session.timeout_ms);
        u64::try_from(timeout_ms).unwrap_or(0)
    }

    /// A client has proven identities.
    pub(crate) fn identified(&mut self, conn: ConnId, ids: Vec<Id>) {
        let super_user = self.config.x509_super_user.as_deref();
        let Some(state) = self.connections.get_mut(conn) else { return };
        for id in ids {
            if id.scheme == "x509" && super_user == Some(&*id.id) {
                state.ids.add(Id::new("super", id.id.clone()));
            }
            state.ids.add(id);
        }
    }

    pub(crate) fn disconnected(&mut self, cx: &Context<'_>, conn: ConnId) {
        if self.connections.is_connected(conn) {
            self.connection_lost(cx.now, conn, EndCause::Lost, HostState::Unknown);
        }
        self.forget_watches(conn);
        self.abandon_writes(conn);
        let Some(state) = self.connections.remove(conn) else { return };
        if let Some(session) = state.session().and_then(|id| self.sessions.get_mut(id))
            && session.conn == Some(conn)
        {
            session.conn = None;
        }
    }

    pub(crate) fn sign_of_life(&mut self, cx: &Context<'_>, conn: ConnId) {
        if let Some(Phase::Open { session }) = self.connections.get(conn).map(|state| state.phase)
            && self.sessions.touch(cx.now.mono, session)
        {
            if let Some(state) = self.connections.get_mut(conn) {
                state.gaps.note(cx.now.mono);
            }
            self.report_touch(session);
        }
    }

    /// Closes a connection after its answers so far are sent. Waiting requests are not answered: the watches are gone,
    /// so an answer could show a change before its event. The session lives on unless it was closed, too.
    pub(crate) fn close(&mut self, cx: &mut Context<'_>, conn: ConnId, reason: CloseReason) {
        self.forget_watches(conn);
        if !self.connections.is_connected(conn) {
            return;
        }
        self.note_close(cx.now, conn, reason);
        self.abandon_writes(conn);
        self.connections.close(conn);
        cx.effects.push(Effect::Close { conn, reason });
    }

    fn forget_watches(&mut self, conn: ConnId) {
        self.work.add(work::REQUEST + self.watches.remove_watcher(conn.watcher()));
    }

    /// Answers outside the order of the session, with zxid 0, as upstream does for auth and sasl.
    pub(crate) fn reply_at_once(
        &mut self,
        cx: &mut Context<'_>,
        conn: ConnId,
        xid: Xid,
        result: Result<Body, ErrorCode>,
    ) {
        self.stats.packets_sent += 1;
        self.connections.count_sent(conn);
        cx.effects.push(Effect::Reply { conn, reply: Reply { xid, zxid: Some(Zxid::ZERO), result } });
    }

    /// Answers in the order of the session.
    pub(crate) fn reply(
        &mut self,
        cx: &mut Context<'_>,
        conn: ConnId,
        head: RequestHead,
        result: Result<Body, ErrorCode>,
    ) {
        // Not the last zxid of the tree: after a leader whose new epoch has no transactions a client would see the zxid
        // go back.
        let zxid = self.complete_through();
        self.stats.packets_sent += 1;
        self.stats.latency_ms.add(head.age_ms(cx.now.mono));
        if let Some(state) = self.connections.get_mut(conn) {
            state.stats.sent += 1;
            state.stats.answered(cx.now, &head, zxid);
            if let Err(error) = &result {
                let address = state.peer.ip().to_canonical();
                self.client_notes.refused(cx.now.mono, *error, head.code, address);
            }
        }
        cx.effects.push(Effect::Reply { conn, reply: Reply { xid: head.xid, zxid: Some(zxid), result } });
    }
}
