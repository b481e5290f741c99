//! A member's part in an ensemble: it looks for a leader, leads, or follows.
//!
//! `role` has the roles with their state. Each role's acts are in a file of their own: `election` looks for a leader,
//! `leader` leads, `synchronization` brings learners level, `learner` follows, as a follower or an observer.

mod config;
mod election;
pub mod election_history;
mod epoch_move;
mod forwarding;
mod leader;
mod learner;
mod member_report;
mod observer;
mod observer_master;
mod pending_learners;
mod quorum_links;
mod read_only;
mod reconfig;
mod restore;
pub(crate) mod role;
mod same_ensemble;
mod synchronization;

use crate::{
    config::CoreConfig,
    context::Context,
    effect::Effect,
    input::{ConnId, Mono},
    pipeline::Outstanding,
    server::Server,
    sessions::local::EndedSessions,
};
use alloc::{collections::BTreeSet, string::ToString, vec::Vec};
use ostler_planted::{self as planted, Bug};
use ostler_proto::{
    id::{Epoch, ServerId, SessionId, Zxid},
    quorum_packet::{LearnerInfo, PROTOCOL_VERSION, Packet},
    txn::TxnRecord,
};
use ostler_tree::Tree;
use ostler_zab::{
    Election, Electorate, History,
    leading::{DurableState, FromLearner, LinkId},
};

pub use crate::sessions::local::LocalSessions;
pub use config::EnsembleConfig;
use election_history::SearchReason;
pub(crate) use forwarding::ForwardedOp;
pub use member_report::{MemberReport, ZabStage};
use observer::MasterRetry;
pub use observer::ObserverOptions;
pub use quorum_links::QuorumLink;
use read_only::ReadOnly;
pub(crate) use reconfig::is_reconfig;
use role::{Looking, MemberRole};

/// An act that waits until everything before it is on disk.
#[derive(Debug)]
pub(crate) enum AfterPersist {
    /// At a leader: its own acknowledgement of a proposal.
    OwnAck { search_id: u64, zxid: Zxid, made_ms: i64 },
    /// Any other act, for the role that the server has in this search.
    Ensemble { search_id: u64, act: EnsembleAct },
    /// At a standalone server: a restoration is done.
    Restored { search_id: u64 },
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
    pub(crate) config: EnsembleConfig,
    /// The quorums that decide under `config`.
    electorate: Electorate,
    me: ServerId,
    tick_ms: u64,
    election: Election,
    accepted: Epoch,
    current: Epoch,
    /// The current epoch; or the one before, while the leader moves on to the current one in place, and something
    /// before it may not be applied here yet.
    begun: Epoch,
    /// The data on disk may be only a part of what this server once had.
    incomplete: bool,
    role: MemberRole,
    /// The number of the present search for a leader. Reports and acts of an earlier search are ignored.
    search_id: u64,
    next_tick: Mono,
    pending_learners: pending_learners::PendingLearners,
    history: History,
    /// From this zxid on the log on disk is complete.
    log_from: Zxid,
    /// The tree is being read again from disk.
    reloading: Option<Reload>,
    /// The last leader's TRUNC could not be carried out, so the next leader is asked for a whole tree. Only that one: a
    /// later leader may have this server's whole log, and may take the request for a newer history.
    wants_tree: bool,
    pub(crate) ended: EndedSessions,
    master_retry: MasterRetry,
    /// The last leader had an epoch below one that this server has promised.
    promised_later_epoch: bool,
    /// Other servers that are known to have had data. Not kept over a restart.
    servers_with_data: BTreeSet<ServerId>,
    /// The newest configuration from a server that may not bring one, so that it is logged once.
    unbelieved_version: u64,
    election_history: election_history::ElectionHistory,
    /// When this server stopped serving clients, if it does not serve.
    unserved_since: Option<Mono>,
}

#[derive(Debug, Clone, Copy)]
struct Reload {
    /// The last transaction that the leader wants to be left.
    to: Zxid,
    /// The leader was lost meanwhile. This server looks for a leader when the tree is read: only then its last zxid is
    /// known.
    look: bool,
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
            begun: config.current,
            incomplete: config.incomplete && !config.may_start_empty,
            role: MemberRole::Looking(Looking { began: Mono(0), read_only: ReadOnly::No }),
            search_id: 0,
            next_tick: Mono(0),
            pending_learners: pending_learners::PendingLearners::default(),
            history: History::new(config.history, tree.last_processed()),
            log_from: config.log_from,
            reloading: None,
            wants_tree: false,
            ended: EndedSessions::default(),
            servers_with_data: BTreeSet::new(),
            unbelieved_version: 0,
            master_retry: MasterRetry::new(core.server, core.seed),
            promised_later_epoch: false,
            election_history: election_history::ElectionHistory::default(),
            unserved_since: None,
            config,
        }
    }

    pub(crate) fn next_deadline(&self) -> Mono {
        if self.search_id == 0 {
            // The first search has not begun.
            return Mono(0);
        }
        let read_only = match &self.role {
            MemberRole::Looking(looking) => looking.read_only.next_deadline(),
            _ => None,
        };
        let others = [read_only, self.master_retry.next_deadline()];
        let due = self.election.next_deadline().into_iter().chain(others.into_iter().flatten());
        due.fold(self.next_tick, Mono::min)
    }

    /// The connection to the leader, while clients are served.
    pub(crate) fn following(&self) -> Option<LinkId> {
        let learner = self.role.learner()?;
        learner.learning.is_following().then_some(learner.link)
    }

    /// The leader, once one is elected.
    fn leader(&self) -> Option<ServerId> {
        match &self.role {
            MemberRole::Looking(_) => None,
            MemberRole::Dialling(dialling) => Some(dialling.leader),
            MemberRole::Leading(_) => Some(self.me),
            MemberRole::Following(_) | MemberRole::Observing(_) => {
                self.role.learner().map(|learner| learner.leader)
            }
        }
    }

    /// The server that this one is connected to, or tries to connect to: the leader, or an observer master.
    fn connected_to(&self) -> Option<ServerId> {
        match &self.role {
            MemberRole::Dialling(dialling) => Some(dialling.to),
            role => role.learner().map(|learner| learner.connected_to),
        }
    }

    /// The server at the other end of a learner's connection.
    pub(crate) fn learner_of(&self, link: LinkId) -> Option<ServerId> {
        self.role.learners()?.leading.server_of(link)
    }

    /// Whether this server's learners are in an epoch that has begun.
    fn has_established_epoch(&self) -> bool {
        self.role.learners().is_some_and(|learners| learners.leading.is_established())
    }

    /// The service that this server gives to clients.
    pub(crate) fn mode(&self) -> MemberMode {
        match &self.role {
            MemberRole::Leading(_) if self.has_established_epoch() => MemberMode::Leader,
            _ if self.following().is_some() && self.is_observer() => MemberMode::Observer,
            _ if self.following().is_some() => MemberMode::Follower,
            _ if self.is_read_only() => MemberMode::ReadOnly,
            _ => MemberMode::Looking,
        }
    }

    /// The last epoch before which this server has applied everything.
    pub(crate) fn begun_epoch(&self) -> Epoch {
        if planted::is(Bug::BorderShownEarly) { self.current } else { self.begun }
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
}

/// The service that a member gives to clients.
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
    /// The number of the present or last search for a leader; at a standalone server that of the restorations, since
    /// after each of them acts of before do not count.
    pub(crate) fn search_id(&self) -> u64 {
        match &self.role {
            role::Role::Standalone(standalone) => standalone.restores,
            role::Role::Member(ensemble) => ensemble.search_id,
        }
    }

    /// Whether the tree is being read again from disk. The leader's packets have to wait: they are about the new tree.
    pub fn is_reloading(&self) -> bool {
        self.role.ensemble().is_some_and(|ensemble| ensemble.reloading.is_some())
    }

    /// The service that a member gives to clients; `None` for a standalone server.
    pub fn mode(&self) -> Option<MemberMode> {
        self.role.ensemble().map(|ensemble| ensemble.mode())
    }

    /// The durable state, once every persistent act so far is done.
    fn durable_state(&self) -> DurableState {
        let ensemble = self.role.ensemble();
        let (accepted, current) =
            ensemble.map_or_else(Default::default, |ensemble| (ensemble.accepted, ensemble.current));
        DurableState { accepted, current, last: self.proposed() }
    }

    /// Does everything that is due: elections, waits, read-only mode, and the half ticks of leader and learner.
    pub(crate) fn run_ensemble_timers(&mut self, cx: &mut Context<'_>) {
        let Some(ensemble) = self.role.ensemble_mut() else { return };
        if ensemble.search_id == 0 {
            return self.look(cx, SearchReason::Started);
        }
        if ensemble.election.next_deadline().is_some_and(|due| due <= cx.now.mono) {
            let mut out = Vec::new();
            ensemble.election.deadline(cx.now.mono, &ensemble.electorate, &mut out);
            self.elect(cx, out);
        }
        self.end_master_wait(cx);
        self.begin_read_only_if_due(cx.now);
        let Some(ensemble) = self.role.ensemble_mut() else { return };
        if ensemble.next_tick <= cx.now.mono {
            ensemble.next_tick = cx.now.mono.after(ensemble.tick_ms / 2);
            match &ensemble.role {
                MemberRole::Leading(_) => self.tick_leading(cx),
                MemberRole::Following(_) | MemberRole::Observing(_) => {
                    self.tick_learning(cx);
                    self.tick_observers(cx);
                }
                MemberRole::Looking(_) | MemberRole::Dialling(_) => {}
            }
        }
    }

    /// Keeps a committed transaction in memory for learners that lack it.
    pub(crate) fn remember(&mut self, committed: Outstanding) {
        if let Some(ensemble) = self.role.ensemble_mut() {
            ensemble.history.push(committed.zxid, committed.record);
        }
    }

    /// Applies logged transactions up to this zxid. No client of this server waits for them.
    fn apply_logged(&mut self, through: Zxid) {
        while let Some(proposal) = self.pipeline.outstanding.front()
            && proposal.zxid <= through
        {
            let Some(proposal) = self.pipeline.outstanding.pop_front() else { return };
            let record =
                TxnRecord::read(&proposal.record.0).expect("a record is checked before it is logged");
            let mut events = Vec::new();
            self.tree.apply(&record, &mut events);
            self.remember(proposal);
        }
    }

    pub(crate) fn handle_packet(&mut self, cx: &mut Context<'_>, link: LinkId, packet: Packet<'_>) {
        let Some(ensemble) = self.role.ensemble_mut() else { return };
        match &ensemble.role {
            MemberRole::Leading(_) => self.handle_learner_packet(cx, link, packet),
            role if role.learner().is_some_and(|learner| learner.link == link) => {
                self.handle_leader_packet(cx, packet)
            }
            role if role.observer_master().is_some_and(|master| master.has(link)) => {
                self.handle_observer_packet(cx, link, packet);
            }
            MemberRole::Looking(_) => self.handle_early_learner(cx, link, &packet),
            _ => {
                tracing::info!(link = link.0, "a learner was refused: this server does not lead");
                cx.effects.push(Effect::HangUp(link));
            }
        }
    }

    pub(crate) fn connection_gone(&mut self, cx: &mut Context<'_>, link: LinkId) {
        let Some(ensemble) = self.role.ensemble_mut() else { return };
        ensemble.pending_learners.gone(link);
        match &mut ensemble.role {
            MemberRole::Leading(leader) => leader.learners.gone(link),
            role if role.learner().is_some_and(|learner| learner.link == link) => {
                tracing::warn!("the connection to the leader is gone");
                self.look(cx, SearchReason::LeaderGone);
            }
            role => role.observer_master_mut().into_iter().for_each(|master| master.gone(link)),
        }
    }
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
    let moves = info.moves_in_place;
    Some((FromLearner::Info { id: info.server?, observer, accepted, moves }, info.config_version))
}

/// A learner's packet, as [`Leading`] takes it. `None` if the learner has to be refused.
fn learner_packet(packet: &Packet<'_>, version: u64) -> Option<FromLearner> {
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
        moves_in_place: ensemble.config.epoch.in_place.is_some(),
    };
    let accepted = ensemble.accepted;
    if ensemble.is_observer() {
        Packet::ObserverInfo { accepted, info }
    } else {
        Packet::FollowerInfo { accepted, info }
    }
}
