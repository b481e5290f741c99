//! A member's part in an ensemble: it looks for a leader, leads, or follows.
//!
//! The history stays in the same two places in every role: `tree` has the committed transactions, `outstanding` the
//! logged ones after them. The end of an epoch changes neither; only the pending changes are dropped.

mod config;
mod dial_target;
pub mod election_history;
mod following;
mod forwarding;
mod leading;
pub(crate) mod local_sessions;
mod observer_master;
mod pending_learners;
mod read_only;
mod reconfig;
mod same_ensemble;

use crate::{
    config::CoreConfig,
    context::Context,
    effect::{CloseReason, Effect},
    input::{ConnId, Mono, Now},
    server::{Outstanding, Server},
    session::Sessions,
};
use alloc::{
    boxed::Box,
    collections::{BTreeMap, BTreeSet, VecDeque},
    string::ToString,
    vec::Vec,
};
use ostler_proto::{
    election::{Candidate, Notification},
    id::{Epoch, ServerId, SessionId, Zxid},
    membership::Membership,
    quorum_packet::{LearnerInfo, PROTOCOL_VERSION, Packet},
    txn::TxnRecord,
};
use ostler_tree::{Overlay, Tree};
use ostler_zab::{
    Election, ElectionOutput, Electorate, History,
    leading::{DurableState, FromLearner, Leading, LinkId},
    learning::Learning,
};

pub use config::EnsembleConfig;
use dial_target::MasterRetry;
pub use dial_target::ObserverOptions;
use election_history::SearchReason;
pub(crate) use forwarding::ForwardedOp;
pub use local_sessions::LocalSessions;
use observer_master::ObserverMaster;
use read_only::ReadOnly;
pub(crate) use reconfig::is_reconfig;

/// An act that waits until everything before it is on disk.
#[derive(Debug)]
pub(crate) enum AfterPersist {
    /// At a leader: its own acknowledgement of a proposal.
    OwnAck { search_id: u64, zxid: Zxid, made_ms: i64 },
    /// Any other act, for the role that the server has in this search.
    Ensemble { search_id: u64, act: EnsembleAct },
}

/// An act of a leader or learner that waits for the disk.
#[derive(Debug)]
pub(crate) enum EnsembleAct {
    AcceptedSaved,
    CurrentSaved,
    /// Send a packet to the leader.
    Send(Packet<'static>),
    /// Acknowledge to the leader everything up to `zxid`. `made_ms` is the time at which the proposal was made, if it
    /// is one.
    Acknowledge {
        zxid: Zxid,
        made_ms: Option<i64>,
    },
}

/// The present role of a member.
#[derive(Debug)]
enum Role {
    /// It looks for a leader.
    Looking,
    /// It was elected. It leads once a quorum has its history.
    Leading(Box<Leading>),
    /// A leader is elected. Since this time this server tries to connect to it.
    Dialling(Mono),
    /// It is connected to its leader, or to an observer master.
    Learning(Box<Learner>),
}

#[derive(Debug)]
struct Learner {
    link: LinkId,
    learning: Learning,
    heard: Mono,
    /// When this server promised the epoch.
    promised: Mono,
    /// The next leader that the present one named with a reconfiguration, while its commit is taken.
    suggested: Option<ServerId>,
    /// A follower's observers, if it is an observer master and serves.
    master: Option<ObserverMaster>,
    /// The xids of forwarded writes of connections that are gone, in order, until their transactions come.
    abandoned: BTreeMap<SessionId, VecDeque<i32>>,
}

/// The leader's answer whether a session lives.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Revalidation {
    pub(crate) session: SessionId,
    /// The timeout that its client gets now.
    pub(crate) timeout_ms: i32,
    pub(crate) valid: bool,
}

/// The client or observer that waits for the leader's answer whether a session lives.
#[derive(Debug, Clone, Copy)]
enum RevalidationWaiter {
    Client(ConnId),
    Observer(LinkId),
}

/// The state of a member that a standalone server does not have.
#[derive(Debug)]
pub(crate) struct Ensemble {
    config: EnsembleConfig,
    /// The quorums that decide under `config`.
    electorate: Electorate,
    me: ServerId,
    tick_ms: u64,
    election: Election,
    accepted: Epoch,
    current: Epoch,
    /// The data on disk may be only a part of what this server once had.
    incomplete: bool,
    role: Role,
    leader_id: Option<ServerId>,
    /// The server that this one is connected to: the leader, or for an observer perhaps an observer master.
    master: Option<ServerId>,
    /// The number of the present search for a leader. Reports and acts of an earlier search are ignored.
    search_id: u64,
    next_tick: Mono,
    pending_learners: pending_learners::PendingLearners,
    history: History,
    /// From this zxid on the log on disk is complete.
    log_from: Zxid,
    /// Learners whose synchronization has to wait, mostly for the log on disk, and the packets that they get after it.
    delayed: BTreeMap<LinkId, Delayed>,
    /// The tree is being read again from disk.
    reloading: Option<Reload>,
    /// The last leader's TRUNC could not be carried out, so the next leader is asked for a whole tree. Only that one: a
    /// later leader may have this server's whole log, and may take the request for a newer history.
    wants_tree: bool,
    /// Sessions with a sign of life since the leader's last heartbeat, and their timeouts.
    touched: BTreeMap<SessionId, i32>,
    read_only: ReadOnly,
    ended: local_sessions::EndedSessions,
    /// Waiting clients and observers by session, with the session timeouts. The leader is asked in this order.
    revalidating: BTreeMap<SessionId, VecDeque<(RevalidationWaiter, i32)>>,
    master_retry: MasterRetry,
    /// The last leader had an epoch below one that this server has promised.
    promised_later_epoch: bool,
    /// Other servers that are known to have had data. Not kept over a restart.
    servers_with_data: BTreeSet<ServerId>,
    /// The newest configuration from a server that may not bring one, so that it is logged once.
    unbelieved_version: u64,
    election_history: election_history::ElectionHistory,
    /// When this election began.
    election_began: Mono,
    /// When this server stopped serving clients, if it does not serve.
    unserved_since: Option<Mono>,
    /// Learners in synchronization; true for those that get a whole tree.
    being_synced: BTreeMap<LinkId, bool>,
}

#[derive(Debug, Clone, Copy)]
struct Reload {
    /// The last transaction that the leader wants to be left.
    to: Zxid,
    /// The leader was lost meanwhile. This server looks for a leader when the tree is read: only then its last zxid is
    /// known.
    look: bool,
}

/// A learner whose synchronization has to wait, and the packets that it gets after it.
#[derive(Debug)]
struct Delayed {
    peer: Zxid,
    then: Vec<crate::effect::PeerMessage>,
    /// If the log on disk is being read for it: when it gets a whole tree instead.
    tree_at: Option<Mono>,
}

impl Ensemble {
    pub(crate) fn new(core: &CoreConfig, mut config: EnsembleConfig, tree: &Tree) -> Ensemble {
        config.pending.take_if(|pending| !reconfig::may_take_effect(pending, &config.membership, tree));
        let observer = !config.membership.votes(core.server);
        let text = config.membership.to_string();
        Ensemble {
            me: core.server,
            tick_ms: core.tick_time_ms.max(2),
            election: Election::new(core.server, observer, config.election, text),
            electorate: reconfig::electorate(&config),
            accepted: config.accepted,
            current: config.current,
            incomplete: config.incomplete && !config.may_start_empty,
            role: Role::Looking,
            leader_id: None,
            master: None,
            search_id: 0,
            next_tick: Mono(0),
            pending_learners: pending_learners::PendingLearners::default(),
            history: History::new(config.history, tree.last_processed()),
            log_from: config.log_from,
            delayed: BTreeMap::new(),
            reloading: None,
            wants_tree: false,
            touched: BTreeMap::new(),
            revalidating: BTreeMap::new(),
            read_only: ReadOnly::No,
            ended: local_sessions::EndedSessions::default(),
            servers_with_data: BTreeSet::new(),
            unbelieved_version: 0,
            master_retry: MasterRetry::new(core.server, core.seed),
            promised_later_epoch: false,
            election_history: election_history::ElectionHistory::default(),
            election_began: Mono(0),
            unserved_since: None,
            being_synced: BTreeMap::new(),
            config,
        }
    }

    pub(crate) fn next_deadline(&self) -> Mono {
        if self.search_id == 0 {
            // The first search has not begun.
            return Mono(0);
        }
        let others = [self.read_only.next_deadline(), self.master_retry.next_deadline()];
        let due = self.election.next_deadline().into_iter().chain(others.into_iter().flatten());
        due.fold(self.next_tick, Mono::min)
    }

    /// The connection to the leader, while clients are served.
    pub(crate) fn following(&self) -> Option<LinkId> {
        match &self.role {
            Role::Learning(learner) if learner.learning.is_following() => Some(learner.link),
            _ => None,
        }
    }

    /// What this server does for clients.
    pub(crate) fn mode(&self) -> MemberMode {
        match &self.role {
            Role::Leading(leading) if leading.is_established() => MemberMode::Leader,
            Role::Learning(learner) if learner.learning.is_following() => {
                if self.is_observer() {
                    MemberMode::Observer
                } else {
                    MemberMode::Follower
                }
            }
            _ if self.is_read_only() => MemberMode::ReadOnly,
            _ => MemberMode::Looking,
        }
    }

    /// The current epoch.
    pub(crate) fn current_epoch(&self) -> Epoch {
        self.current
    }

    fn votes(&self) -> bool {
        self.config.membership.votes(self.me)
    }

    /// Whether the configuration lists this server as an observer. A server that is not listed has no vote, but follows
    /// as a follower, as in upstream: a reconfiguration that adds voters needs them to be followers already, see
    /// `reconfigure` in reconfig.rs.
    fn is_observer(&self) -> bool {
        self.config.membership.servers.get(&self.me).is_some_and(|member| member.observer)
    }

    fn leading(&mut self) -> Option<&mut Leading> {
        match &mut self.role {
            Role::Leading(leading) => Some(leading),
            _ => None,
        }
    }

    /// The learners of this server: those of a leader, or the observers of an observer master.
    fn learners(&self) -> Option<&Leading> {
        match &self.role {
            Role::Leading(leading) => Some(leading),
            Role::Learning(learner) => learner.master.as_ref().map(|master| &master.observers),
            Role::Looking | Role::Dialling(_) => None,
        }
    }
}

/// What a member does for clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemberMode {
    /// It has no leader, and serves no clients.
    Looking,
    /// It has no leader, and serves read-only clients.
    ReadOnly,
    /// It leads, and serves clients.
    Leader,
    /// It follows as a follower, and serves clients.
    Follower,
    /// It follows as an observer, and serves clients.
    Observer,
}

impl Server {
    /// The number of the present or last search for a leader.
    pub(crate) fn search_id(&self) -> u64 {
        self.ensemble.as_ref().map_or(0, |ensemble| ensemble.search_id)
    }

    /// Whether the tree is being read again from disk. The leader's packets have to wait: they are about the new tree.
    pub fn is_reloading(&self) -> bool {
        self.ensemble.as_ref().is_some_and(|ensemble| ensemble.reloading.is_some())
    }

    /// What a member does for clients; `None` for a standalone server.
    pub fn mode(&self) -> Option<MemberMode> {
        self.ensemble.as_ref().map(|ensemble| ensemble.mode())
    }

    /// The durable state, once every persistent act so far is done.
    fn durable_state(&self) -> DurableState {
        let (accepted, current) = self
            .ensemble
            .as_ref()
            .map_or_else(Default::default, |ensemble| (ensemble.accepted, ensemble.current));
        DurableState { accepted, current, last: self.proposed() }
    }

    /// Does everything that is due: elections, waits, read-only mode, and the half ticks of leader and learner.
    pub(crate) fn run_ensemble_timers(&mut self, cx: &mut Context<'_>) {
        let Some(ensemble) = &mut self.ensemble else { return };
        if ensemble.search_id == 0 {
            return self.look(cx, SearchReason::Started);
        }
        if ensemble.election.next_deadline().is_some_and(|due| due <= cx.now.mono) {
            let mut out = Vec::new();
            ensemble.election.deadline(cx.now.mono, &ensemble.electorate, &mut out);
            self.elect(cx, out);
        }
        self.end_master_wait(cx);
        let Some(ensemble) = &mut self.ensemble else { return };
        if ensemble.read_only.is_due(cx.now.mono) {
            self.begin_read_only(cx.now);
        }
        let Some(ensemble) = &mut self.ensemble else { return };
        if ensemble.next_tick <= cx.now.mono {
            ensemble.next_tick = cx.now.mono.after(ensemble.tick_ms / 2);
            match &ensemble.role {
                Role::Leading(_) => self.tick_leading(cx),
                Role::Learning(_) => {
                    self.tick_learning(cx);
                    self.tick_observers(cx);
                }
                Role::Looking | Role::Dialling(_) => {}
            }
        }
    }

    /// Ends an epoch before its counter is full. The next begins at 0. If possible it ends while no proposal is
    /// outstanding; upstream ends it during a write.
    pub(crate) fn end_full_epoch(&mut self, cx: &mut Context<'_>) {
        let (Some(proposals), Some(ensemble)) = (&self.proposals, &self.ensemble) else { return };
        if proposals.is_over(ensemble.config.epoch) {
            let proposed = proposals.proposed();
            tracing::warn!(%proposed, "this epoch has counted nearly as far as it can: a new one is to begin");
            self.look(cx, SearchReason::CounterFull);
        }
    }

    /// Looks for a leader: closes the clients' connections, leaves the present role, and begins an election.
    pub(crate) fn look(&mut self, cx: &mut Context<'_>, why: SearchReason) {
        self.look_to(cx, why, None);
    }

    /// The same; `next` is the leader that the last one named, if it did.
    fn look_to(&mut self, cx: &mut Context<'_>, why: SearchReason, next: Option<ServerId>) {
        self.note_search(cx.now, why);
        self.leave_role(cx);
        self.proposals = None;
        self.end_service(cx);
        self.overlay = Overlay::new(&self.tree);
        let Some(ensemble) = &mut self.ensemble else { return };
        ensemble.search_id += 1;
        ensemble.unserved_since.get_or_insert(cx.now.mono);
        self.stats.elections.searches += 1;
        (ensemble.leader_id, ensemble.master) = (None, None);
        ensemble.next_tick = cx.now.mono.after(ensemble.tick_ms / 2);
        if let Some(reload) = &mut ensemble.reloading {
            reload.look = true;
            return;
        }
        match next.filter(|next| ensemble.config.membership.votes(*next)) {
            Some(next) => self.take_suggested(cx, next),
            None if ensemble.delay_election(cx.now) => {}
            None => self.begin_election(cx),
        }
    }

    fn take_suggested(&mut self, cx: &mut Context<'_>, leader: ServerId) {
        let durable = self.durable_state();
        let Some(ensemble) = &mut self.ensemble else { return };
        let candidate = Candidate { epoch: durable.current, zxid: durable.last, id: leader };
        let mut out = Vec::new();
        ensemble.election_history.votes_begin();
        ensemble.election.accept_suggested(cx.now.mono, candidate, &ensemble.electorate, &mut out);
        self.elect(cx, out);
    }

    fn begin_election(&mut self, cx: &mut Context<'_>) {
        let durable = self.durable_state();
        let Some(ensemble) = &mut self.ensemble else { return };
        ensemble.election.set_without_history(has_no_history(durable) && !ensemble.config.may_start_empty);
        let candidate = Candidate { epoch: durable.current, zxid: durable.last, id: ensemble.me };
        let own = (ensemble.votes() && !ensemble.incomplete).then_some(candidate);
        if ensemble.incomplete {
            tracing::warn!(
                last = %durable.last,
                "the data folder was empty, and this server was stopped before it had copied all of a leader's data: its \
                 vote does not count before it has. If the other servers have lost theirs for good, stop it, create an \
                 empty file named `initialize` in dataLogDir (dataDir, if that is not set), and start it again: then \
                 what it has copied counts"
            );
        }
        ensemble.election_began = cx.now.mono;
        tracing::info!(last = %durable.last, epoch = durable.current.0, "looking for a leader");
        ensemble.read_only.look(cx.now.mono, ensemble.config.read_only_after_ms);
        let mut out = Vec::new();
        ensemble.election_history.votes_begin();
        ensemble.election.look(cx.now.mono, own, &ensemble.electorate, &mut out);
        self.elect(cx, out);
    }

    fn leave_role(&mut self, cx: &mut Context<'_>) {
        let Some(ensemble) = &mut self.ensemble else { return };
        match core::mem::replace(&mut ensemble.role, Role::Looking) {
            Role::Leading(leading) => cx.effects.extend(leading.links().map(Effect::HangUp)),
            Role::Learning(learner) => {
                cx.effects.push(Effect::HangUp(learner.link));
                let master = learner.master.iter();
                cx.effects.extend(master.flat_map(ObserverMaster::links).map(Effect::HangUp));
            }
            Role::Looking | Role::Dialling(_) => {}
        }
        ensemble.delayed.clear();
        ensemble.being_synced.clear();
        ensemble.touched.clear();
        ensemble.revalidating.clear();
        ensemble.master_retry.stop_waiting();
    }

    /// Closes the clients' connections, and forgets all that only this server knew of their sessions.
    fn end_service(&mut self, cx: &mut Context<'_>) {
        self.close_clients(cx);
        self.sessions = Sessions::new(self.config.tick_time_ms.max(1));
        if let Some(ensemble) = &mut self.ensemble {
            ensemble.read_only = ReadOnly::No;
        }
    }

    fn close_clients(&mut self, cx: &mut Context<'_>) {
        let mut conns: Vec<ConnId> = self.conns.keys().copied().collect();
        conns.sort_unstable();
        for conn in conns {
            self.close(cx, conn, CloseReason::NotServing);
        }
        self.syncs.clear();
        for proposal in &mut self.outstanding {
            proposal.conn = None;
        }
    }

    /// All sessions begin with a full timeout and without an owner.
    fn restart_sessions(&mut self, now: Now) {
        self.sessions = Sessions::new(self.config.tick_time_ms.max(1));
        for (id, timeout_ms) in self.tree.sessions() {
            self.sessions.insert(now.mono, id, timeout_ms, None);
        }
    }

    pub(crate) fn voted(&mut self, cx: &mut Context<'_>, from: ServerId, vote: &Notification) {
        // Votes of older formats have no configuration. A text that does not parse is ignored.
        if let Ok(config) = Membership::parse(&vote.config)
            && (self.refuse_other_ensemble(cx, from, vote, &config) || self.adopt_newer(cx, from, config))
        {
            return;
        }
        let Some(ensemble) = &mut self.ensemble else { return };
        let mut out = Vec::new();
        let is_own = |own: Candidate| own.id == from && (own.epoch, own.zxid) > (Epoch(0), Zxid::ZERO);
        if vote.candidate.is_some_and(is_own) && ensemble.electorate.votes(from) {
            ensemble.servers_with_data.insert(from);
        }
        let had_voice = !ensemble.election.has_no_vote();
        ensemble.election.notified(cx.now.mono, from, vote, &ensemble.electorate, &mut out);
        // Their connections are closed, so that they look again at once. Java servers learn it in no other way.
        let in_vain = |early: &pending_learners::PendingLearner| {
            early.server().is_some_and(|id| ensemble.election.has_elected_me_before(id))
        };
        cx.effects.extend(ensemble.pending_learners.drop_early(in_vain).into_iter().map(Effect::HangUp));
        if had_voice && ensemble.election.has_no_vote() {
            tracing::warn!(
                server = from.0,
                "the data folder is empty, but another server of the ensemble has data: this server's vote does not \
                 count before it has copied them from a leader. If it is new here, stop it, create an empty file \
                 named `initialize` in dataLogDir (dataDir, if that is not set), and start it again"
            );
        }
        self.elect(cx, out);
    }

    pub(crate) fn election_link(&mut self, cx: &mut Context<'_>, peer: ServerId, up: bool) {
        let Some(ensemble) = &mut self.ensemble else { return };
        let mut out = Vec::new();
        ensemble.pending_learners.election_link(peer, up);
        ensemble.election.link_changed(cx.now.mono, peer, up, &ensemble.electorate, &mut out);
        self.elect(cx, out);
    }

    fn elect(&mut self, cx: &mut Context<'_>, outputs: Vec<ElectionOutput>) {
        for output in outputs {
            match output {
                ElectionOutput::Send { to, notification } => {
                    cx.effects.push(Effect::SendVote { to, notification });
                }
                ElectionOutput::Elected { leader } => self.elected(cx, leader),
                // Else this server looks for a leader already.
                ElectionOutput::LookAgain if self.has_elected() => {
                    self.look(cx, SearchReason::ElectionVoid);
                }
                ElectionOutput::LookAgain => {}
            }
        }
    }

    /// Notes that clients are served from now on. Returns for how many ms they were not.
    fn service_begins(&mut self, now: Now) -> u64 {
        let since = self.ensemble.as_mut().and_then(|ensemble| ensemble.unserved_since.take());
        let ms = since.map_or(0, |since| now.mono.0.saturating_sub(since.0));
        self.stats.elections.unavailable_ms.add(ms);
        ms
    }

    fn has_elected(&self) -> bool {
        self.ensemble.as_ref().is_some_and(|ensemble| !matches!(ensemble.role, Role::Looking))
    }

    fn elected(&mut self, cx: &mut Context<'_>, leader: ServerId) {
        let Some(ensemble) = &mut self.ensemble else { return };
        tracing::info!(leader = leader.0, round = ensemble.election.round(), "elected");
        ensemble.leader_id = Some(leader);
        if ensemble.votes() {
            self.stats.elections.election_ms.add(cx.now.mono.0.saturating_sub(ensemble.election_began.0));
        }
        ensemble.note_elected(cx.now.mono);
        self.end_service(cx);
        let Some(ensemble) = &mut self.ensemble else { return };
        if leader == ensemble.me {
            return self.begin_leading(cx);
        }
        // They took this server for the leader.
        cx.effects.extend(ensemble.pending_learners.drop_early(|_| true).into_iter().map(Effect::HangUp));
        self.dial(cx, leader);
    }

    /// Keeps a committed transaction in memory for learners that lack it.
    pub(crate) fn remember(&mut self, committed: Outstanding) {
        if let Some(ensemble) = &mut self.ensemble {
            ensemble.history.push(committed.zxid, committed.record);
        }
    }

    /// Applies logged transactions up to this zxid. No client of this server waits for them.
    fn apply_logged(&mut self, through: Zxid) {
        while let Some(proposal) = self.outstanding.front()
            && proposal.zxid <= through
        {
            let Some(proposal) = self.outstanding.pop_front() else { return };
            let record =
                TxnRecord::read(&proposal.record.0).expect("a record is checked before it is logged");
            let mut events = Vec::new();
            self.tree.apply(&record, &mut events);
            self.remember(proposal);
        }
    }

    pub(crate) fn peer(&mut self, cx: &mut Context<'_>, link: LinkId, packet: Packet<'_>) {
        let Some(ensemble) = &mut self.ensemble else { return };
        match &ensemble.role {
            Role::Leading(_) => self.learner_says(cx, link, packet),
            Role::Learning(learner) if learner.link == link => self.leader_says(cx, packet),
            Role::Learning(learner) if learner.master.as_ref().is_some_and(|master| master.has(link)) => {
                self.observer_says(cx, link, packet);
            }
            Role::Looking => self.learner_calls_early(cx, link, &packet),
            _ => {
                tracing::info!(link = link.0, "a learner was refused: this server does not lead");
                cx.effects.push(Effect::HangUp(link));
            }
        }
    }

    pub(crate) fn peer_gone(&mut self, cx: &mut Context<'_>, link: LinkId) {
        let Some(ensemble) = &mut self.ensemble else { return };
        ensemble.pending_learners.gone(link);
        ensemble.delayed.remove(&link);
        ensemble.being_synced.remove(&link);
        match &mut ensemble.role {
            Role::Leading(leading) => leading.disconnected(link),
            Role::Learning(learner) if learner.link == link => {
                tracing::warn!("the connection to the leader is gone");
                self.look(cx, SearchReason::LeaderGone);
            }
            Role::Learning(learner) => learner.master.iter_mut().for_each(|master| master.gone(link)),
            _ => {}
        }
    }
}

/// Whether the disk has nothing of any leader's history. The accepted epoch does not matter: a server that has lost its
/// disk accepts an epoch before it gets any data back.
fn has_no_history(durable: DurableState) -> bool {
    durable.current == Epoch(0) && durable.last == Zxid::ZERO
}

/// A learner's first packet, and the version of its configuration. `None` if it is another packet, or if that version
/// is newer than this server's.
fn learner_info(packet: &Packet<'_>, version: u64) -> Option<(FromLearner, u64)> {
    let (accepted, info, observer) = match packet {
        Packet::FollowerInfo { accepted, info } => (*accepted, info, false),
        Packet::ObserverInfo { accepted, info } => (*accepted, info, true),
        _ => return None,
    };
    if info.config_version > version {
        tracing::warn!(
            server = info.server.map(|server| server.0),
            theirs = info.config_version,
            ours = version,
            "a learner was refused: it has a newer configuration than this server"
        );
        return None;
    }
    Some((FromLearner::Info { id: info.server?, observer, accepted }, info.config_version))
}

/// A learner's packet, as [`Leading`] takes it. `None` if the learner has to be refused.
fn peer_says(packet: &Packet<'_>, version: u64) -> Option<FromLearner> {
    Some(match packet {
        Packet::FollowerInfo { .. } | Packet::ObserverInfo { .. } => learner_info(packet, version)?.0,
        Packet::AckEpoch { last, current } => FromLearner::AckEpoch { last: *last, current: *current },
        Packet::Ack(zxid) => FromLearner::Ack(*zxid),
        _ => FromLearner::SignOfLife,
    })
}

fn own_info(ensemble: &Ensemble, knows_secrets: bool) -> Packet<'static> {
    let info = LearnerInfo {
        server: Some(ensemble.me),
        protocol: PROTOCOL_VERSION,
        config_version: ensemble.config.membership.version,
        knows_secrets,
    };
    let accepted = ensemble.accepted;
    if ensemble.is_observer() {
        Packet::ObserverInfo { accepted, info }
    } else {
        Packet::FollowerInfo { accepted, info }
    }
}
