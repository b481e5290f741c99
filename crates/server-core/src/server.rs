//! A server as a value: [`Server::step`] takes an input, passes it to the part that owns it, and returns the effects.

use crate::{
    audit::AuditTrail,
    config::CoreConfig,
    connections::{Connections, backlog::Backlog},
    context::Context,
    effect::{CloseReason, Effect},
    input::{Input, Mono, Now},
    pipeline::{Pipeline, reaper::Reaper},
    quorum::{
        Ensemble, EnsembleConfig,
        role::{Role, Standalone},
    },
    requests::read::SharedList,
    sessions::{
        Scope, Sessions,
        ends::{EndCause, SessionEnds},
        pause_detector::PauseDetector,
    },
    stats::{Stats, client_notes::ClientNotes, hot::HotPaths, slow_requests::SlowRequests, traced::Traces},
    work::Work,
};
use alloc::{boxed::Box, vec::Vec};
use core::cell::RefCell;
use hashbrown::HashMap;
use ostler_proto::id::{Epoch, SessionId};
use ostler_tree::{Tree, WatchTable};
use ostler_zab::{Electorate, EpochLength, Proposals, Quorum};
use rustc_hash::FxBuildHasher;

/// A server: a member of an ensemble, or a standalone one. `applied <= committed <= proposed`, and every connection's
/// queue lists its writes in the order of their zxids.
#[derive(Debug)]
pub struct Server {
    pub(crate) config: CoreConfig,
    /// The transactions that are committed and applied.
    pub(crate) tree: Tree,
    pub(crate) watches: WatchTable,
    pub(crate) sessions: Sessions,
    pub(crate) pause_detector: PauseDetector,
    pub(crate) connections: Connections,
    pub(crate) pipeline: Pipeline,
    pub(crate) reaper: Reaper,
    pub(crate) role: Role,
    pub(crate) stats: Stats,
    pub(crate) work: Work,
    pub(crate) backlog: Backlog,
    /// Empty if nothing is audited.
    pub(crate) audit_trail: AuditTrail,
    pub(crate) slow: SlowRequests,
    pub(crate) traces: Traces,
    pub(crate) hot: HotPaths,
    pub(crate) client_notes: ClientNotes,
    pub(crate) ends: SessionEnds,
    /// Why the ends of sessions are proposed that are not applied yet.
    pub(crate) ending: HashMap<SessionId, EndCause, FxBuildHasher>,
    /// When this server started, ms since 1970.
    pub(crate) started_ms: i64,
    /// When the last step was taken.
    pub(crate) last_step: Mono,
    /// A cache, so it is behind a cell.
    pub(crate) last_list: RefCell<Option<SharedList>>,
}

impl Server {
    /// A standalone server that starts with a recovered tree. `replayed` is the number of transactions that came from
    /// the log, after the snapshot. All sessions begin with a full timeout.
    pub fn new(config: CoreConfig, tree: Tree, replayed: u64, now: Now) -> Server {
        let electorate = Electorate::of(Quorum::majority([config.server]));
        let last = tree.last_processed();
        let proposals = Proposals::new(electorate, last);
        let epoch = EpochLength::default();
        let role = Role::Standalone(Standalone {
            proposals,
            accepted: last.epoch(),
            epoch,
            restores: 0,
            restored: 0,
        });
        Server::with_role(config, tree, replayed, now, role)
    }

    /// For a standalone server: the accepted epoch on disk, and the number of proposals after which an epoch ends. The
    /// defaults are the epoch of the last transaction, and [`EpochLength::default`].
    pub fn set_standalone_epochs(&mut self, accepted: Epoch, length: EpochLength) {
        if let Role::Standalone(standalone) = &mut self.role {
            (standalone.accepted, standalone.epoch) = (standalone.accepted.max(accepted), length);
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
        let role = Role::Member(Box::new(Ensemble::new(&config, ensemble, &tree)));
        Server::with_role(config, tree, replayed, now, role)
    }

    fn with_role(config: CoreConfig, tree: Tree, replayed: u64, now: Now, role: Role) -> Server {
        let mut sessions = Sessions::new(config.tick_time_ms.max(1));
        for (id, timeout_ms) in tree.sessions() {
            sessions.insert(now.mono, id, timeout_ms, None);
        }
        Server {
            watches: WatchTable::default(),
            sessions,
            pause_detector: PauseDetector::new(now.mono, config.tick_time_ms),
            connections: Connections::default(),
            pipeline: Pipeline::new(&config, &tree, replayed),
            reaper: Reaper::new(now.mono, config.reaper_interval_ms),
            role,
            stats: Stats::default(),
            work: Work::default(),
            backlog: Backlog::default(),
            audit_trail: AuditTrail::default(),
            slow: SlowRequests::new(config.slow_request_ms),
            traces: Traces::new(config.traced_one_in),
            hot: HotPaths::new(now.mono, config.seed),
            client_notes: ClientNotes::new(now.mono),
            ends: SessionEnds::default(),
            ending: HashMap::default(),
            started_ms: now.wall_ms,
            last_step: now.mono,
            last_list: RefCell::new(None),
            tree,
            config,
        }
    }

    /// Takes one input, and appends the effects to carry out to `effects`.
    pub fn step(&mut self, now: Now, input: Input<'_>, effects: &mut Vec<Effect>) {
        let cx = &mut Context { now, effects };
        self.work.begin();
        self.note_pauses(now);
        match input {
            Input::Accepted { conn, peer } => self.accepted(cx, conn, peer),
            Input::Identified { conn, ids } => self.identified(conn, ids),
            Input::SaslAnswered { conn, xid, answer } => self.sasl_answered(cx, conn, xid, answer),
            Input::Connect { conn, request, chance } => self.connect(cx, conn, &request, chance),
            Input::Request { conn, request } => {
                if let Some(state) = self.connections.get_mut(conn) {
                    state.answered = 0;
                }
                self.request(cx, conn, &request);
            }
            Input::Throttled { conn, request } => self.throttled(cx, conn, &request),
            Input::Alive { conn } => self.sign_of_life(cx, conn),
            Input::Disconnected { conn } => self.disconnected(cx, conn),
            Input::ConnectionLost { conn, cause, host } => self.connection_lost(cx.now, conn, cause, host),
            Input::Persisted(seq) => self.persisted(cx, seq),
            Input::SnapshotDone => self.pipeline.snapshots.done(),
            Input::TakeSnapshot => self.take_snapshot(cx),
            Input::Deadline => {
                self.resume_backlog(cx);
                let has_paused = self.pause_detector.beat(cx.now.mono);
                self.run_ensemble_timers(cx);
                self.expire_sessions(cx, has_paused);
                if self.leads() {
                    self.reap(cx);
                } else {
                    // Another server decides about sessions now.
                    self.ending.clear();
                }
            }
            Input::ExpireSession(session) => self.expire_session(cx, session, None),
            Input::EndSession { session, by } => self.end_session(cx, session, by),
            Input::CloseConnection(conn) => self.close(cx, conn, CloseReason::ClosedByOperator),
            Input::Vote { from, notification } => self.handle_vote(cx, from, &notification),
            Input::ElectionLink { peer, up } => self.election_link(cx, peer, up),
            Input::LeaderLink { search_id, link } => self.leader_link(cx, search_id, link),
            Input::ObserverCalls { link } => self.observer_connected(cx, link),
            Input::LeaderUnreachable { search_id } => self.leader_unreachable(cx, search_id),
            Input::LearnerFrom { link, place } => self.learner_from(link, place),
            Input::Peer { link, packet } => self.handle_packet(cx, link, packet),
            Input::SnapBegins { link } => self.tree_begins(cx.now, link),
            Input::StreamMoves { link } => self.stream_moves(cx.now, link),
            Input::Snap { link, tree } => self.install_tree(cx, link, *tree),
            Input::Reloaded { tree, .. } => self.tree_reloaded(cx, *tree),
            Input::Restore { tree } => self.restore_tree(cx, *tree),
            Input::LogRead { link, search_id, read } => self.log_read(cx, link, search_id, read),
            Input::PeerGone { link } => self.connection_gone(cx, link),
        }
        self.end_full_epoch(cx);
    }

    /// The time at which the member next needs [`Input::Deadline`].
    pub fn next_deadline(&self) -> Mono {
        if self.has_backlog() {
            return Mono(0);
        }
        let ensemble = self.role.ensemble().map(|ensemble| ensemble.next_deadline());
        let leads = self.leads();
        let reaper = leads.then(|| self.reaper.next_deadline());
        let global = self.sessions.next_deadline(Scope::Global).filter(|_| leads || self.follows());
        let expiry = global.into_iter().chain(self.sessions.next_deadline(Scope::Local)).min();
        let expiry = expiry.map(|expiry| expiry.min(self.pause_detector.next_deadline()));
        ensemble.into_iter().chain(reaper).chain(expiry).min().unwrap_or(Mono(u64::MAX))
    }

    /// Whether this server serves clients while another server leads.
    pub(crate) fn follows(&self) -> bool {
        self.role.ensemble().is_some_and(|ensemble| ensemble.following().is_some())
    }

    /// The tree as it is applied.
    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// Relations that hold between steps. Run after every step in tests and in the simulator.
    pub fn invariants(&self) {
        let applied = self.tree.last_processed();
        assert!(self.pipeline.outstanding.iter().map(|waiting| waiting.zxid).is_sorted());
        assert!(self.pipeline.outstanding.iter().all(|waiting| waiting.zxid > applied));
        if let Some(proposals) = self.role.proposals() {
            let (committed, proposed) = (proposals.committed(), proposals.proposed());
            assert!(applied <= proposed && committed <= proposed, "{applied} {committed} {proposed}");
            assert!(
                applied == committed || self.backlog.commits,
                "what is committed is applied, or will be at once"
            );
            assert_eq!(
                self.pipeline.outstanding.is_empty(),
                self.pipeline.overlay.is_empty() && applied == proposed
            );
        }
        for (_, local) in self.sessions.buckets(Scope::Local) {
            for id in local {
                assert!(!self.tree.has_session(*id), "{id} is a local session that all servers know");
                assert!(self.tree.ephemerals(*id).is_empty(), "{id} is local and has ephemerals");
            }
        }
        self.connections.invariants();
        self.audit_invariants();
    }
}
