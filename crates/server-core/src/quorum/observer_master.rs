//! The observer master: a follower that serves observers in the leader's place (`ObserverMaster`, `LearnerMaster`).
//!
//! To its observers it is a leader whose epoch has begun: they get the history that is committed here, then each
//! commit. Requests of their clients go on to the leader like those of this server's own clients.

use super::{
    Ensemble, Revalidation, RevalidationWaiter,
    forwarding::ForwardedOp,
    learner_packet,
    role::{Delayed, Learners},
};
use crate::{
    context::Context,
    effect::{CloseReason, Effect, PeerMessage},
    input::{Mono, Now},
    pipeline::syncs::SyncWaiter,
    server::Server,
    sessions::{Owner, Scope, Session},
};
use alloc::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    vec::Vec,
};
use ostler_proto::{
    id::{ServerId, SessionId, Zxid},
    op::Op,
    quorum_packet::Packet,
};
use ostler_zab::leading::{Leading, LinkId};

/// An observer master's observers.
#[derive(Debug)]
pub(super) struct ObserverMaster {
    pub(super) observers: Learners,
    /// Connections that came in at the port for observers.
    links: BTreeSet<LinkId>,
    /// Observers with later transactions than are committed here, and their last zxids.
    ahead: BTreeMap<LinkId, Zxid>,
}

impl ObserverMaster {
    /// For a follower that has begun to serve clients.
    pub(super) fn new(ensemble: &Ensemble) -> ObserverMaster {
        let observers = Leading::relaying(ensemble.me, ensemble.current, ensemble.config.timing);
        ObserverMaster { observers: Learners::new(observers), links: BTreeSet::new(), ahead: BTreeMap::new() }
    }

    pub(super) fn has(&self, link: LinkId) -> bool {
        self.links.contains(&link)
    }

    pub(super) fn lives(&mut self, now: Mono, link: LinkId) {
        self.observers.leading.lives(now, link);
    }

    pub(super) fn links(&self) -> impl Iterator<Item = LinkId> {
        self.links.iter().copied()
    }

    pub(super) fn gone(&mut self, link: LinkId) {
        self.links.remove(&link);
        self.ahead.remove(&link);
        self.observers.gone(link);
    }
}

impl Server {
    /// An observer has connected. Its connection is closed if this server is not a serving observer master.
    pub(crate) fn observer_connected(&mut self, cx: &mut Context<'_>, link: LinkId) {
        match self.role.ensemble_mut().and_then(|ensemble| ensemble.role.observer_master_mut()) {
            Some(master) => drop(master.links.insert(link)),
            None => cx.effects.push(Effect::HangUp(link)),
        }
    }

    pub(super) fn handle_observer_packet(&mut self, cx: &mut Context<'_>, link: LinkId, packet: Packet<'_>) {
        let version = self.role.ensemble().map_or(0, |ensemble| ensemble.config.membership.version);
        let said =
            learner_packet(&packet, version).filter(|_| !matches!(packet, Packet::FollowerInfo { .. }));
        let Some(said) = said else {
            tracing::warn!(link = link.0, "a learner was refused: only observers can follow a follower");
            return cx.effects.push(Effect::HangUp(link));
        };
        if let Packet::ObserverInfo { info, .. } = &packet
            && !self.can_judge_passwords(info)
        {
            return cx.effects.push(Effect::HangUp(link));
        }
        let mut out = Vec::new();
        let origin =
            self.role.ensemble().map_or_else(Default::default, |ensemble| ensemble.origin(link, said));
        if let Some(master) =
            self.role.ensemble_mut().and_then(|ensemble| ensemble.role.observer_master_mut())
        {
            master.observers.leading.heard_from(cx.now.mono, link, origin, said, &mut out);
        }
        self.carry_out_leading(cx, out);
        if !self.has_joined(link) {
            return;
        }
        self.handle_observer_request(cx, link, packet);
    }

    fn handle_observer_request(&mut self, cx: &mut Context<'_>, link: LinkId, packet: Packet<'_>) {
        let Some(leader_link) = self.leader_connection() else {
            return;
        };
        let to_leader = match packet {
            Packet::Ping { touched: Some(touched), .. } => {
                if let Some(learner) = self.learner_mut() {
                    learner.touched.extend(touched);
                }
                return;
            }
            Packet::Revalidate { session, timeout_ms } => {
                self.stats.syncs.revalidations += 1;
                self.move_session_to_observer(cx, link, session);
                if let Some(learner) = self.learner_mut() {
                    let asking = RevalidationWaiter::Observer(link);
                    learner.revalidating.entry(session).or_default().push_back((asking, timeout_ms));
                }
                Packet::Revalidate { session, timeout_ms }
            }
            Packet::Request { session, cxid, code, body, ids } => {
                if !self.admit_forwarded(cx.now, link, &ForwardedOp { session, cxid, code, body: &body }) {
                    let moved = Packet::SessionMoved(session);
                    return cx.effects.push(Effect::ToPeer { link, message: PeerMessage::Packet(moved) });
                }
                Packet::Request { session, cxid, code, body: Cow::Owned(body.into_owned()), ids }
            }
            _ => return,
        };
        cx.effects.push(Effect::ToPeer { link: leader_link, message: PeerMessage::Packet(to_leader) });
    }

    /// Whether a request may go on to the leader. The leader takes everything from here for one learner's. So a late
    /// request of a client that has moved to another server behind this one has to be stopped here. Notes the owner of
    /// the session.
    fn admit_forwarded(&mut self, now: Now, link: LinkId, op: &ForwardedOp<'_>) -> bool {
        if op.code == Op::CreateSession.code() {
            let Ok(bytes) = <[u8; 4]>::try_from(op.body) else { return false };
            self.sessions.insert(now.mono, op.session, i32::from_be_bytes(bytes), None);
        }
        if let Some(state) = self.sessions.get_mut(op.session) {
            match state.owner {
                Owner::Nobody => state.owner = Owner::Learner(link),
                Owner::Learner(owner) if owner == link => {}
                // A late sync does no harm, and the observer needs an answer to each.
                Owner::Learner(_) | Owner::Here => {
                    if op.code != Op::Sync.code() {
                        return false;
                    }
                }
            }
        }
        if op.code == Op::Sync.code() {
            self.pipeline.syncs.push_back((crate::pipeline::syncs::UNANSWERED, SyncWaiter::Learner(link)));
        }
        true
    }

    /// A client has come to an observer with this session. From now on its requests from elsewhere are late.
    fn move_session_to_observer(&mut self, cx: &mut Context<'_>, link: LinkId, session: SessionId) {
        let global = |state: &&mut Session| state.scope == Scope::Global;
        // A local session of this server is valid at no other server.
        let Some(state) = self.sessions.get_mut(session).filter(global) else { return };
        state.owner = Owner::Learner(link);
        if let Some(conn) = state.conn.take() {
            self.close(cx, conn, CloseReason::SessionMoved);
        }
    }

    /// The leader has answered whether a session lives, for a client that came back at an observer.
    pub(super) fn revalidated_at_observer(
        &mut self,
        cx: &mut Context<'_>,
        link: LinkId,
        answer: Revalidation,
    ) {
        let Revalidation { session, timeout_ms, valid } = answer;
        if valid && self.sessions.get(session).is_none() {
            // Its createSession is still on its way here.
            self.sessions.insert(cx.now.mono, session, timeout_ms, None);
            self.move_session_to_observer(cx, link, session);
        }
        let message = PeerMessage::Packet(Packet::Revalidated { session, valid });
        cx.effects.push(Effect::ToPeer { link, message });
    }

    /// At an observer: a client's request was stopped at the observer master, as its session has moved to another
    /// server.
    pub(super) fn session_moved_away(&mut self, cx: &mut Context<'_>, session: SessionId) {
        let conn = self.sessions.get_mut(session).and_then(|state| state.conn.take());
        if let Some(conn) = conn {
            self.close(cx, conn, CloseReason::SessionMoved);
        }
        // The observer master reports each stopped request, and stops all later ones, until the session comes back to
        // this observer.
        self.forget_stopped_write(session);
        self.audit_trail.forget_stopped(session);
    }

    /// Lets an observer wait if it has later commits than this server, from another observer master. They will come
    /// here, too, as both follow the same epoch. Returns true if it has to wait. The first zxid of the epoch is not a
    /// commit: every server that serves in the epoch has it.
    pub(super) fn delay_for_commits(&mut self, link: LinkId, has: Zxid) -> bool {
        let applied = self.complete_through();
        let Some(ensemble) = self.role.ensemble_mut() else { return false };
        let Some(master) = ensemble.role.observer_master_mut() else { return false };
        // The epoch of the observers: while the leader moves on in place, this server's current epoch may be later.
        if has <= applied || Some(has.epoch()) != master.observers.leading.epoch() {
            return false;
        }
        master.ahead.insert(link, has);
        master.observers.delayed.insert(link, Delayed { peer: has, then: Vec::new(), tree_at: None });
        true
    }

    /// A commit has come: synchronizes the observers that waited for it.
    pub(super) fn catch_up_with_observers(&mut self, cx: &mut Context<'_>) {
        let applied = self.tree.last_processed();
        let Some(ensemble) = self.role.ensemble_mut() else { return };
        let Some(master) = ensemble.role.observer_master_mut().filter(|master| !master.ahead.is_empty())
        else {
            return;
        };
        let reached: Vec<(LinkId, Zxid)> = master.ahead.extract_if(.., |_, has| *has <= applied).collect();
        for (link, _) in &reached {
            master.observers.delayed.remove(link);
        }
        for (link, has) in reached {
            self.synchronise(cx, link, has);
        }
    }

    pub(super) fn tick_observers(&mut self, cx: &mut Context<'_>) {
        let mut out = Vec::new();
        if let Some(master) =
            self.role.ensemble_mut().and_then(|ensemble| ensemble.role.observer_master_mut())
        {
            master.observers.leading.tick(cx.now.mono, &mut out);
            self.send_trees_for_logs(cx);
            self.ping_learners(cx);
            self.carry_out_leading(cx, out);
        }
    }
}

impl Ensemble {
    /// The next leader that the present one named with the commit that is being taken.
    pub(super) fn suggested_leader(&self) -> Option<ServerId> {
        self.role.learner()?.suggested
    }
}
