//! The member itself: its state, and [`Server::step`], which takes an input and returns effects. Also the order in
//! which a connection's requests are taken.

use crate::{
    access, auth,
    backlog::Backlog,
    config::CoreConfig,
    context::Context,
    effect::{CloseReason, Effect, Record},
    ensemble::{AfterPersist, Ensemble, EnsembleConfig},
    fifo::{AnswerForm, Fifo, Waiting, WriteTxn},
    identities::Identities,
    input::{ClientRequest, ConnId, Input, Mono, Now, RequestHead},
    multi_read::ReadsLeft,
    pause_detector::PauseDetector,
    read::SharedList,
    reaper::Reaper,
    session::{Scope, Sessions},
    stats::{ConnStats, Stats},
    work::{self, Work},
};
use alloc::{boxed::Box, collections::VecDeque, string::ToString, vec::Vec};
use core::{cell::RefCell, net::SocketAddr};
use hashbrown::HashMap;
use ostler_planted::{self as planted, Bug};
use ostler_proto::{
    acl::Id,
    error::ErrorCode,
    id::{SessionId, Xid, Zxid},
    op::Op,
    reply::{Body, Reply},
    request::Request,
};
use ostler_tree::{Overlay, Tree, TreeEvent, WatchTable};
use ostler_zab::{DiskGate, Electorate, Proposals, Quorum, leading::LinkId};
use rustc_hash::FxBuildHasher;

/// The most identities that a connection may have, and about the most bytes of them. A client has a few; each is looked
/// up in each ACL that is checked for the first time.
const IDS_MAX: usize = 128;
const IDS_SIZE_MAX: usize = 512 << 10;

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
    pub(crate) fifo: Fifo,
    /// Bytes reserved for the answers of the requests that wait in the fifo.
    pub(crate) reserved: usize,
    /// Bytes of the tree in its answers since its last request came.
    pub(crate) answered: usize,
    /// Requests at the head of the fifo could be served and wait for their turn only, see [`crate::backlog`].
    pub(crate) behind: bool,
    /// Requests that came before the handshake was answered.
    pub(crate) held: Vec<Box<[u8]>>,
    pub(crate) stats: ConnStats,
}

impl Conn {
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
}

/// The zxid that a sync waits for while the leader has not answered it.
pub(crate) const UNANSWERED: Zxid = Zxid(u64::MAX);

/// A client or learner that waits until everything proposed before is applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SyncWaiter {
    /// A client of this server, for its sync.
    Client(ConnId),
    /// A client that has come back to this server, until the earlier writes of its session are decided.
    ComeBack(ConnId),
    /// A learner, for a client of its own.
    Learner(LinkId),
    /// A learner that asked whether a session lives. `valid` is the answer of that time; a session that was not valid
    /// then is not valid later.
    Session { learner: LinkId, session: SessionId, valid: bool },
}

/// What this server does with a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pipeline {
    /// Propose it: this server leads.
    Propose,
    /// Forward it to the leader.
    Forward,
    /// Refuse it: there is no leader, and this server serves reads only.
    ReadOnly,
}

/// A proposal that has not committed.
#[derive(Debug)]
pub(crate) struct Outstanding {
    pub(crate) zxid: Zxid,
    pub(crate) record: Record,
    /// When the proposal was made, by its leader's wall clock, in ms since 1970.
    pub(crate) made_ms: i64,
    /// The connection of this server that waits for it, if this server has proposed it.
    pub(crate) conn: Option<ConnId>,
}

/// One ensemble member. `applied <= committed <= proposed`, and every connection's fifo lists its writes in
/// the order of their zxids.
#[derive(Debug)]
pub struct Server {
    pub(crate) config: CoreConfig,
    pub(crate) tree: Tree,
    pub(crate) overlay: Overlay,
    pub(crate) watches: WatchTable,
    /// Numbers proposals and counts acknowledgements, while this server leads.
    pub(crate) proposals: Option<Proposals>,
    /// The member's part in an ensemble; `None` for a standalone server.
    pub(crate) ensemble: Option<Box<Ensemble>>,
    pub(crate) gate: DiskGate<AfterPersist>,
    /// Proposals that are logged, or being logged, and not committed.
    pub(crate) outstanding: VecDeque<Outstanding>,
    /// Boxed to keep the table small: it has up to twice the room that is used, and moves all entries as it grows.
    pub(crate) conns: HashMap<ConnId, Box<Conn>, FxBuildHasher>,
    /// The bytes reserved for all connections together.
    pub(crate) reserved_by_all: usize,
    pub(crate) syncs: VecDeque<(Zxid, SyncWaiter)>,
    pub(crate) sessions: Sessions,
    pub(crate) reaper: Reaper,
    pub(crate) pause_detector: PauseDetector,
    pub(crate) snapshots: crate::commit::SnapshotPlan,
    pub(crate) stats: Stats,
    /// Reused for encoding records.
    pub(crate) scratch: Vec<u8>,
    /// Reused for what a record changes.
    pub(crate) events: Vec<TreeEvent>,
    /// Empty identities, for a caller that has none.
    pub(crate) nobody: Identities,
    pub(crate) work: Work,
    pub(crate) backlog: Backlog,
    /// A cache, so it is behind a cell.
    pub(crate) last_list: RefCell<Option<SharedList>>,
}

impl Server {
    /// A standalone server that starts with a recovered tree. `replayed` is the number of transactions that came from
    /// the log, after the snapshot. All sessions begin with a full timeout.
    pub fn new(config: CoreConfig, tree: Tree, replayed: u64, now: Now) -> Server {
        let mut sessions = Sessions::new(config.tick_time_ms.max(1));
        for (id, timeout_ms) in tree.sessions() {
            sessions.insert(now.mono, id, timeout_ms, None);
        }
        Server {
            overlay: Overlay::new(&tree),
            watches: WatchTable::default(),
            proposals: Some(Proposals::new(
                Electorate::of(Quorum::majority([config.server])),
                tree.last_processed(),
            )),
            ensemble: None,
            gate: DiskGate::default(),
            outstanding: VecDeque::new(),
            conns: HashMap::default(),
            reserved_by_all: 0,
            syncs: VecDeque::new(),
            sessions,
            reaper: Reaper::new(now.mono, config.reaper_interval_ms),
            pause_detector: PauseDetector::new(now.mono, config.tick_time_ms),
            snapshots: crate::commit::SnapshotPlan::new(&config, replayed),
            stats: Stats::default(),
            scratch: Vec::new(),
            events: Vec::new(),
            nobody: Identities::default(),
            work: Work::default(),
            backlog: Backlog::default(),
            last_list: RefCell::new(None),
            tree,
            config,
        }
    }

    /// A member of an ensemble that starts with a recovered tree. It begins to look for a leader at its first
    /// [`Input::Deadline`].
    pub fn member(
        config: CoreConfig,
        ensemble: EnsembleConfig,
        tree: Tree,
        replayed: u64,
        now: Now,
    ) -> Server {
        let mut server = Server::new(config, tree, replayed, now);
        server.proposals = None;
        server.ensemble = Some(Box::new(Ensemble::new(&server.config, ensemble, &server.tree)));
        server
    }

    /// Takes one input, and appends the effects to carry out to `effects`.
    pub fn step(&mut self, now: Now, input: Input<'_>, effects: &mut Vec<Effect>) {
        let cx = &mut Context { now, effects };
        self.work.begin();
        match input {
            Input::Accepted { conn, peer } => self.accepted(cx.now, conn, peer),
            Input::Connect { conn, request, chance } => self.connect(cx, conn, &request, chance),
            Input::Request { conn, request } => {
                if let Some(state) = self.conns.get_mut(&conn) {
                    state.answered = 0;
                }
                self.request(cx, conn, &request);
            }
            Input::Alive { conn } => self.sign_of_life(cx.now, conn),
            Input::Disconnected { conn } => self.disconnected(conn),
            Input::Persisted(seq) => self.persisted(cx, seq),
            Input::SnapshotDone => self.snapshots.done(),
            Input::Deadline => {
                self.go_on(cx);
                let has_paused = self.pause_detector.beat(cx.now.mono);
                self.run_ensemble_timers(cx);
                self.expire_sessions(cx, has_paused);
                if self.proposals.is_some() {
                    self.reap(cx);
                }
            }
            Input::ExpireSession(session) => self.expire_session(cx, session),
            Input::CloseConnection(conn) => self.close(cx, conn, CloseReason::ClosedByOperator),
            Input::Vote { from, notification } => self.voted(cx, from, &notification),
            Input::ElectionLink { peer, up } => self.election_link(cx, peer, up),
            Input::LeaderLink { search_id, link } => self.leader_link(cx, search_id, link),
            Input::ObserverCalls { link } => self.observer_calls(cx, link),
            Input::LeaderUnreachable { search_id } => self.leader_unreachable(cx, search_id),
            Input::LearnerFrom { link, place } => self.learner_from(link, place),
            Input::Peer { link, packet } => self.peer(cx, link, packet),
            Input::SnapBegins { link } => self.snap_begins(cx.now, link),
            Input::StreamMoves { link } => self.stream_moves(cx.now, link),
            Input::Snap { link, tree } => self.snap(cx, link, *tree),
            Input::Reloaded { tree, .. } => self.reloaded(cx, *tree),
            Input::LogRead { link, search_id, read } => self.log_read(cx, link, search_id, read),
            Input::PeerGone { link } => self.peer_gone(cx, link),
        }
        self.end_full_epoch(cx);
    }

    /// The time at which the member next needs [`Input::Deadline`].
    pub fn next_deadline(&self) -> Mono {
        if self.has_backlog() {
            return Mono(0);
        }
        let ensemble = self.ensemble.as_ref().map(|ensemble| ensemble.next_deadline());
        let leads = self.proposals.is_some();
        let reaper = leads.then(|| self.reaper.next_deadline());
        let global = self.sessions.next_deadline(Scope::Global).filter(|_| leads || self.follows());
        let expiry = global.into_iter().chain(self.sessions.next_deadline(Scope::Local)).min();
        let expiry = expiry.map(|expiry| expiry.min(self.pause_detector.next_deadline()));
        ensemble.into_iter().chain(reaper).chain(expiry).min().unwrap_or(Mono(u64::MAX))
    }

    /// What this server does with writes; `None` while no client is served, as there is no leader.
    pub(crate) fn pipeline(&self) -> Option<Pipeline> {
        match (&self.proposals, &self.ensemble) {
            (Some(_), _) => Some(Pipeline::Propose),
            (None, Some(ensemble)) if ensemble.is_read_only() => Some(Pipeline::ReadOnly),
            (None, Some(ensemble)) => ensemble.following().map(|_| Pipeline::Forward),
            (None, None) => None,
        }
    }

    /// Whether this server serves clients while another server leads.
    pub(crate) fn follows(&self) -> bool {
        self.ensemble.as_ref().is_some_and(|ensemble| ensemble.following().is_some())
    }

    /// The last proposal that this server has made or logged.
    pub(crate) fn proposed(&self) -> Zxid {
        self.outstanding.back().map_or(self.tree.last_processed(), |proposal| proposal.zxid)
    }

    /// The zxid up to which this server's tree is complete. It has everything before its current epoch, even if nothing
    /// was written in that epoch yet. The last zxid of the tree shows that only at a leader.
    pub(crate) fn complete_through(&self) -> Zxid {
        let begun =
            self.ensemble.as_ref().map_or(Zxid::ZERO, |ensemble| Zxid::new(ensemble.current_epoch(), 0));
        self.tree.last_processed().max(begun)
    }

    /// The zxid of the next proposal.
    pub(crate) fn next_zxid(&self) -> Zxid {
        let proposals = self.proposals.as_ref().expect("only a server that leads prepares writes");
        proposals.next_zxid()
    }

    /// The tree as it is applied.
    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    fn accepted(&mut self, now: Now, conn: ConnId, peer: SocketAddr) {
        let ids = Identities::new([Id::new("ip", peer.ip().to_canonical().to_string())]);
        let stats = ConnStats { established_wall_ms: now.wall_ms, ..ConnStats::default() };
        let state = Conn {
            peer,
            ids,
            phase: Phase::Fresh,
            fifo: Fifo::new(),
            reserved: 0,
            answered: 0,
            behind: false,
            held: Vec::new(),
            stats,
        };
        let before = self.conns.insert(conn, Box::new(state));
        assert!(before.is_none(), "connection number {conn:?} was used twice");
    }

    fn disconnected(&mut self, conn: ConnId) {
        self.forget_watches(conn);
        self.abandon_writes(conn);
        let Some(state) = self.conns.remove(&conn) else { return };
        self.reserved_by_all -= state.reserved;
        if let Some(session) = state.session().and_then(|id| self.sessions.get_mut(id))
            && session.conn == Some(conn)
        {
            session.conn = None;
        }
    }

    fn sign_of_life(&mut self, now: Now, conn: ConnId) {
        if let Some(Phase::Open { session }) = self.conns.get(&conn).map(|state| state.phase)
            && self.sessions.touch(now.mono, session)
        {
            self.note_touch(session);
        }
    }

    /// Takes a request: auth is answered at once, a write is proposed or forwarded, and a read waits behind the
    /// connection's own writes, if there are any.
    pub(crate) fn request(&mut self, cx: &mut Context<'_>, conn: ConnId, request: &ClientRequest<'_>) {
        let Some(state) = self.conns.get_mut(&conn) else { return };
        let session = match state.phase {
            Phase::Open { session } => session,
            Phase::Opening { .. } => {
                state.held.push(request.payload.into());
                return;
            }
            // The shell passes the first frame as a handshake, so `Fresh` here would be the shell's bug.
            Phase::Fresh | Phase::Closing { .. } | Phase::Closed { .. } => return,
        };
        state.stats.received += 1;
        self.stats.packets_received += 1;
        self.work.add(work::REQUEST + request.payload.len() / work::BYTES);
        if let Request::Auth { scheme, auth } = &request.request {
            return self.authenticate(cx, conn, request.xid, scheme.as_deref(), *auth);
        }
        if matches!(request.request, Request::Malformed(Op::Auth | Op::Sasl)) {
            // Upstream reads these packets outside the pipeline, and gives the connection up.
            return self.close(cx, conn, CloseReason::Protocol);
        }
        if matches!(request.request, Request::Sasl(_)) {
            // No mechanism is configured: upstream answers with a null token, outside the order.
            return self.reply_at_once(cx, conn, request.xid, Ok(Body::Null));
        }
        if !self.has_enforced_auth(conn) {
            let refused = Err(ErrorCode::SessionClosedRequireSaslAuth);
            self.reply_at_once(cx, conn, request.xid, refused);
            return self.close(cx, conn, CloseReason::AuthFailed);
        }
        // A session that is unknown or ending gets no answer; its connection is closed with it.
        if !self.sessions.touch(cx.now.mono, session) {
            return;
        }
        self.note_touch(session);
        self.stats.writes.to_prepare += u64::from(self.proposals.is_some());
        self.enqueue(cx, conn, session, request);
    }

    fn enqueue(
        &mut self,
        cx: &mut Context<'_>,
        conn: ConnId,
        session: SessionId,
        request: &ClientRequest<'_>,
    ) {
        if self.pipeline() == Some(Pipeline::ReadOnly) && self.needs_quorum(session, request) {
            let head = request.head(cx.now.mono);
            self.catch_up_with(cx, conn);
            return self.reply(cx, conn, head, Err(ErrorCode::NotReadOnly));
        }
        let refused = self.upgrade_if_needed(cx, conn, session, &request.request);
        let form = match &request.request {
            _ if let Some(error) = refused => AnswerForm::Refused(error),
            Request::CloseSession if self.sessions.is_local(session) => {
                self.set_phase(conn, Phase::Closing { session });
                return self.enqueue_read(cx, conn, request);
            }
            Request::Create(create) if create.op == Op::Create => AnswerForm::Path,
            Request::Create(_) => AnswerForm::PathStat,
            Request::Delete(_) | Request::SetData(_) | Request::SetAcl { .. } | Request::Multi(_) => {
                AnswerForm::ByOutcome
            }
            Request::Reconfig(_) => AnswerForm::Reconfig,
            // Any other write that does not decode is answered in its place, but no transaction comes of it:
            // upstream logs an error with a zxid that is taken already.
            Request::Malformed(Op::Multi) => AnswerForm::ByOutcome,
            Request::CloseSession => AnswerForm::Close,
            _ => return self.enqueue_read(cx, conn, request),
        };
        let txn = match self.pipeline() {
            Some(Pipeline::Propose) => {
                let Some(zxid) = self.propose_request(cx, conn, session, request) else {
                    return self.enqueue_read(cx, conn, request);
                };
                WriteTxn::Proposed(zxid)
            }
            Some(Pipeline::Forward) => {
                self.forward(cx, conn, session, request);
                self.forwarded_txn()
            }
            Some(Pipeline::ReadOnly) | None => return,
        };
        if form == AnswerForm::Close {
            self.set_phase(conn, Phase::Closing { session });
        }
        self.wait(conn, Waiting::Write { head: request.head(cx.now.mono), txn, form });
    }

    fn enqueue_read(&mut self, cx: &mut Context<'_>, conn: ConnId, request: &ClientRequest<'_>) {
        let proposed = self.proposed();
        let overtakes = planted::is(Bug::ReadsOvertakeWrites);
        let idle = overtakes || self.conns.get(&conn).is_some_and(|state| state.fifo.is_empty());
        match &request.request {
            Request::Sync(_) if planted::is(Bug::SyncAtOnce) => self.serve(cx, conn, request, cx.now.mono),
            Request::Sync(path) if let Some(Pipeline::Forward) = self.pipeline() => {
                let path = path.as_deref().map(Box::from);
                let after = UNANSWERED;
                self.wait(conn, Waiting::Sync { head: request.head(cx.now.mono), after, path });
                self.syncs.push_back((after, SyncWaiter::Client(conn)));
                let session =
                    self.conns.get(&conn).and_then(|state| state.session()).unwrap_or(SessionId::NONE);
                self.forward(cx, conn, session, request);
            }
            Request::Sync(path) if !idle || proposed > self.tree.last_processed() => {
                let path = path.as_deref().map(Box::from);
                self.wait(conn, Waiting::Sync { head: request.head(cx.now.mono), after: proposed, path });
                self.syncs.push_back((proposed, SyncWaiter::Client(conn)));
            }
            _ if idle => self.serve(cx, conn, request, cx.now.mono),
            _ => {
                let reserved = self.answer_size(conn, &request.request);
                if let Some(state) = self.conns.get_mut(&conn) {
                    state.reserved += reserved;
                    self.reserved_by_all += reserved;
                }
                let waiting = match ReadsLeft::of(request, cx.now.mono, reserved) {
                    Some(reads) => Waiting::Reading(Box::new(reads)),
                    None => {
                        Waiting::Parked { payload: request.payload.into(), arrived: cx.now.mono, reserved }
                    }
                };
                self.wait(conn, waiting);
            }
        }
    }

    fn wait(&mut self, conn: ConnId, waiting: Waiting) {
        if let Some(state) = self.conns.get_mut(&conn) {
            state.fifo.push_back(waiting);
        }
    }

    /// Frees the bytes that were set aside for an answer.
    pub(crate) fn release_reserved(&mut self, conn: ConnId, reserved: usize) {
        if let Some(state) = self.conns.get_mut(&conn) {
            state.reserved -= reserved;
            self.reserved_by_all -= reserved;
        }
    }

    pub(crate) fn set_phase(&mut self, conn: ConnId, phase: Phase) {
        if let Some(state) = self.conns.get_mut(&conn) {
            state.phase = phase;
        }
    }

    /// Closes a connection after its answers so far are sent. Waiting requests are not answered: the watches are gone,
    /// so an answer could show a change before its event. The session lives on unless it was closed, too.
    pub(crate) fn close(&mut self, cx: &mut Context<'_>, conn: ConnId, reason: CloseReason) {
        self.forget_watches(conn);
        let Some(state) = self.conns.get_mut(&conn) else { return };
        if matches!(state.phase, Phase::Closed { .. }) {
            return;
        }
        self.abandon_writes(conn);
        let Some(state) = self.conns.get_mut(&conn) else { return };
        state.phase = Phase::Closed { session: state.session().unwrap_or(SessionId::NONE) };
        state.fifo.clear();
        self.reserved_by_all -= core::mem::take(&mut state.reserved);
        state.held.clear();
        cx.effects.push(Effect::Close { conn, reason });
    }

    fn forget_watches(&mut self, conn: ConnId) {
        self.work.add(work::REQUEST + self.watches.remove_watcher(conn.watcher()));
    }

    fn authenticate(
        &mut self,
        cx: &mut Context<'_>,
        conn: ConnId,
        xid: Xid,
        scheme: Option<&str>,
        auth: Option<&[u8]>,
    ) {
        let Some(state) = self.conns.get_mut(&conn) else { return };
        let Some(ids) = auth::authenticate(&self.config, state.peer.ip(), scheme, auth) else {
            self.stats.auth_failed += 1;
            self.reply_at_once(cx, conn, xid, Err(ErrorCode::AuthFailed));
            return self.close(cx, conn, CloseReason::AuthFailed);
        };
        for id in ids {
            state.ids.add(id);
        }
        // Identities go along with each forwarded request, and into each ACL that says `auth`.
        if state.ids.all().len() > IDS_MAX || state.ids.size() > IDS_SIZE_MAX {
            self.reply_at_once(cx, conn, xid, Err(ErrorCode::AuthFailed));
            return self.close(cx, conn, CloseReason::AuthFailed);
        }
        self.reply_at_once(cx, conn, xid, Ok(Body::None));
    }

    fn has_enforced_auth(&self, conn: ConnId) -> bool {
        let schemes = &self.config.enforced_auth_schemes;
        schemes.is_empty()
            || self
                .conns
                .get(&conn)
                .is_some_and(|state| state.ids.all().iter().any(|id| schemes.contains(&id.scheme)))
    }

    /// Answers outside the order of the session, with zxid 0, as upstream does for auth and sasl.
    fn reply_at_once(
        &mut self,
        cx: &mut Context<'_>,
        conn: ConnId,
        xid: Xid,
        result: Result<Body, ErrorCode>,
    ) {
        self.stats.packets_sent += 1;
        if let Some(state) = self.conns.get_mut(&conn) {
            state.stats.sent += 1;
        }
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
        let latency = head.age_ms(cx.now.mono);
        self.stats.packets_sent += 1;
        self.stats.latency_ms.add(latency);
        if let Some(state) = self.conns.get_mut(&conn) {
            state.stats.sent += 1;
            state.stats.answered(cx.now, &head, zxid);
        }
        cx.effects.push(Effect::Reply { conn, reply: Reply { xid: head.xid, zxid: Some(zxid), result } });
    }

    /// Checks whether a connection has one of these permissions; NOAUTH otherwise.
    pub(crate) fn check_access(
        &self,
        conn: ConnId,
        acl: &ostler_tree::AclRef,
        needed: ostler_proto::acl::Perms,
    ) -> Result<(), ErrorCode> {
        if acl.is_none() {
            return Ok(());
        }
        let ids = self.conns.get(&conn).map_or(&self.nobody, |state| &state.ids);
        access::check(&self.config, acl, needed, ids, &self.work)
    }

    /// Relations that hold between steps. Run after every step in tests and in the simulator.
    pub fn invariants(&self) {
        let applied = self.tree.last_processed();
        assert!(self.outstanding.iter().map(|waiting| waiting.zxid).is_sorted());
        assert!(self.outstanding.iter().all(|waiting| waiting.zxid > applied));
        if let Some(proposals) = &self.proposals {
            let (committed, proposed) = (proposals.committed(), proposals.proposed());
            assert!(applied <= proposed && committed <= proposed, "{applied} {committed} {proposed}");
            assert!(
                applied == committed || self.backlog.commits,
                "what is committed is applied, or will be at once"
            );
            assert_eq!(self.outstanding.is_empty(), self.overlay.is_empty() && applied == proposed);
        }
        for (_, local) in self.sessions.buckets(Scope::Local) {
            for id in local {
                assert!(!self.tree.has_session(*id), "{id} is a local session that all servers know");
                assert!(self.tree.ephemerals(*id).is_empty(), "{id} is local and has ephemerals");
            }
        }
        let reserved: usize = self.conns.values().map(|state| state.reserved).sum();
        assert_eq!(reserved, self.reserved_by_all);
        for (conn, state) in self.conns.iter() {
            let writes = state.fifo.iter().filter_map(|waiting| match waiting {
                Waiting::Write { txn: WriteTxn::Proposed(zxid), .. } => Some(*zxid),
                _ => None,
            });
            assert!(writes.is_sorted(), "writes of {conn:?} are out of order");
            let parked = matches!(
                state.fifo.front(),
                Some(Waiting::Parked { .. } | Waiting::Watching { .. } | Waiting::Reading(_))
            );
            assert!(!parked || state.behind, "a read of {conn:?} waits for nothing");
        }
    }
}
