//! A follower's side towards observers that follow it in place of the leader (`ObserverMaster`).
//!
//! To them it is a leader whose epoch has begun: they are brought to what is committed here, and told of each commit
//! as it comes. What their clients ask goes on to the leader, as if it were asked here.

use super::{Delayed, Ensemble, RevalidationWaiter, Role, peer_says};
use crate::{
    effect::{CloseReason, Effect, PeerMessage},
    input::{Mono, Now},
    server::{Server, SyncWaiter},
    session::{Owner, Scope, Session},
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

/// The observers of a follower.
#[derive(Debug)]
pub(super) struct ObserverMaster {
    pub(super) observers: Leading,
    /// Connections that came in at the port for observers.
    links: BTreeSet<LinkId>,
    /// Observers that have more than is committed here yet, and up to where.
    ahead: BTreeMap<LinkId, Zxid>,
}

impl ObserverMaster {
    /// For a follower that has begun to serve clients.
    pub(super) fn new(ensemble: &Ensemble) -> ObserverMaster {
        let observers = Leading::relaying(ensemble.me, ensemble.current, ensemble.config.timing);
        ObserverMaster { observers, links: BTreeSet::new(), ahead: BTreeMap::new() }
    }

    pub(super) fn has(&self, link: LinkId) -> bool {
        self.links.contains(&link)
    }

    pub(super) fn lives(&mut self, now: Mono, link: LinkId) {
        self.observers.lives(now, link);
    }

    pub(super) fn links(&self) -> impl Iterator<Item = LinkId> {
        self.links.iter().copied()
    }

    pub(super) fn gone(&mut self, link: LinkId) {
        self.links.remove(&link);
        self.ahead.remove(&link);
        self.observers.disconnected(link);
    }
}

/// What an observer asks for a client of its own.
struct Forwarded<'a> {
    session: SessionId,
    code: i32,
    body: &'a [u8],
}

impl Server {
    /// An observer has connected. Only a follower that serves has something for it.
    pub(crate) fn observer_calls(&mut self, link: LinkId, effects: &mut Vec<Effect>) {
        match self.ensemble.as_mut().and_then(|ensemble| ensemble.observer_master()) {
            Some(master) => drop(master.links.insert(link)),
            None => effects.push(Effect::HangUp(link)),
        }
    }

    pub(super) fn observer_says(
        &mut self,
        now: Now,
        link: LinkId,
        packet: Packet<'_>,
        effects: &mut Vec<Effect>,
    ) {
        let version = self.ensemble.as_ref().map_or(0, |ensemble| ensemble.config.membership.version);
        let said = peer_says(&packet, version).filter(|_| !matches!(packet, Packet::FollowerInfo { .. }));
        let Some(said) = said else {
            tracing::warn!(link = link.0, "a learner was sent away: only observers can follow a follower");
            return effects.push(Effect::HangUp(link));
        };
        if let Packet::ObserverInfo { info, .. } = &packet
            && !self.judges_passwords(info)
        {
            return effects.push(Effect::HangUp(link));
        }
        let mut out = Vec::new();
        let origin =
            self.ensemble.as_ref().map_or_else(Default::default, |ensemble| ensemble.origin(link, said));
        if let Some(master) = self.ensemble.as_mut().and_then(|ensemble| ensemble.observer_master()) {
            master.observers.heard_from(now.mono, link, origin, said, &mut out);
        }
        self.lead(now, out, effects);
        if !self.has_joined(link) {
            return;
        }
        self.asked_by_observer(now, link, packet, effects);
    }

    fn asked_by_observer(&mut self, now: Now, link: LinkId, packet: Packet<'_>, effects: &mut Vec<Effect>) {
        let Some(leader_link) = self.ensemble.as_ref().and_then(|ensemble| ensemble.following()) else {
            return;
        };
        let to_leader = match packet {
            Packet::Ping { touched: Some(touched), .. } => {
                if let Some(ensemble) = &mut self.ensemble {
                    ensemble.touched.extend(touched);
                }
                return;
            }
            Packet::Revalidate { session, timeout_ms } => {
                self.stats.syncs.revalidations += 1;
                self.owned_by_observer(link, session, effects);
                if let Some(ensemble) = &mut self.ensemble {
                    let asking = RevalidationWaiter::Observer(link);
                    ensemble.revalidating.entry(session).or_default().push_back((asking, timeout_ms));
                }
                Packet::Revalidate { session, timeout_ms }
            }
            Packet::Request { session, cxid, code, body, ids } => {
                if !self.admit_forwarded(now, link, &Forwarded { session, code, body: &body }) {
                    let moved = Packet::SessionMoved(session);
                    return effects.push(Effect::ToPeer { link, message: PeerMessage::Packet(moved) });
                }
                Packet::Request { session, cxid, code, body: Cow::Owned(body.into_owned()), ids }
            }
            _ => return,
        };
        effects.push(Effect::ToPeer { link: leader_link, message: PeerMessage::Packet(to_leader) });
    }

    /// Whether a request goes on to the leader, to which all that comes through here is of one learner: a late one, of
    /// a client that has moved on to another server behind this one, is stopped here.
    fn admit_forwarded(&mut self, now: Now, link: LinkId, asked: &Forwarded<'_>) -> bool {
        if asked.code == Op::CreateSession.code() {
            let Ok(bytes) = <[u8; 4]>::try_from(asked.body) else { return false };
            self.sessions.insert(now.mono, asked.session, i32::from_be_bytes(bytes), None);
        }
        if let Some(state) = self.sessions.get_mut(asked.session) {
            match state.owner {
                Owner::Nobody => state.owner = Owner::Learner(link),
                Owner::Learner(owner) if owner == link => {}
                // One that comes late does no harm, and its observer counts on an answer to each.
                Owner::Learner(_) | Owner::Here => {
                    if asked.code != Op::Sync.code() {
                        return false;
                    }
                }
            }
        }
        if asked.code == Op::Sync.code() {
            self.syncs.push_back((crate::server::UNANSWERED, SyncWaiter::Learner(link)));
        }
        true
    }

    /// A client has come to an observer with this session: whatever it sends by another way is late from now on.
    fn owned_by_observer(&mut self, link: LinkId, session: SessionId, effects: &mut Vec<Effect>) {
        let global = |state: &&mut Session| state.scope == Scope::Global;
        // A local session of this server is valid nowhere else.
        let Some(state) = self.sessions.get_mut(session).filter(global) else { return };
        state.owner = Owner::Learner(link);
        if let Some(conn) = state.conn.take() {
            self.close(conn, CloseReason::SessionMoved, effects);
        }
    }

    /// The leader has said whether a session lives that a client came back with at an observer.
    pub(super) fn revalidated_at_observer(
        &mut self,
        now: Now,
        link: LinkId,
        (session, timeout_ms): (SessionId, i32),
        valid: bool,
        effects: &mut Vec<Effect>,
    ) {
        if valid && self.sessions.get(session).is_none() {
            // Its transaction is on the way here.
            self.sessions.insert(now.mono, session, timeout_ms, None);
            self.owned_by_observer(link, session, effects);
        }
        let message = PeerMessage::Packet(Packet::Revalidated { session, valid });
        effects.push(Effect::ToPeer { link, message });
    }

    /// At an observer: what a client here asked for was stopped on its way, since its session is elsewhere by now.
    pub(super) fn moved_away(&mut self, session: SessionId, effects: &mut Vec<Effect>) {
        let conn = self.sessions.get_mut(session).and_then(|state| state.conn.take());
        if let Some(conn) = conn {
            self.close(conn, CloseReason::SessionMoved, effects);
        }
        // Each one that is stopped is told of, and all that come after it are, until its observer has the session again.
        self.forget_stopped_write(session);
    }

    /// An observer that comes from another follower may have commits that are on the way here still. It waits for them:
    /// a leader's epoch that this server goes along with never takes them back. True if it does. The beginning of the
    /// epoch is no commit: whoever serves in it has that.
    pub(super) fn delay_for_commits(&mut self, link: LinkId, has: Zxid) -> bool {
        let applied = self.complete_through();
        let Some(ensemble) = &mut self.ensemble else { return false };
        let epoch = ensemble.current;
        let Some(master) = ensemble.observer_master() else { return false };
        if has <= applied || has.epoch() != epoch {
            return false;
        }
        master.ahead.insert(link, has);
        ensemble.delayed.insert(link, Delayed { peer: has, then: Vec::new(), tree_at: None });
        true
    }

    /// One more is committed here: whoever waited for it is brought to it, and to what was committed meanwhile.
    pub(super) fn catch_up_with_observers(&mut self, now: Now, effects: &mut Vec<Effect>) {
        let applied = self.tree.last_processed();
        let Some(ensemble) = &mut self.ensemble else { return };
        let Some(master) = ensemble.observer_master().filter(|master| !master.ahead.is_empty()) else {
            return;
        };
        let reached: Vec<(LinkId, Zxid)> = master.ahead.extract_if(.., |_, has| *has <= applied).collect();
        for (link, has) in reached {
            if let Some(ensemble) = &mut self.ensemble {
                ensemble.delayed.remove(&link);
            }
            self.synchronise(now, link, has, effects);
        }
    }

    pub(super) fn tick_observers(&mut self, now: Now, effects: &mut Vec<Effect>) {
        let mut out = Vec::new();
        if let Some(master) = self.ensemble.as_mut().and_then(|ensemble| ensemble.observer_master()) {
            master.observers.tick(now.mono, &mut out);
            self.send_trees_for_logs(now, effects);
            self.ping_learners(effects);
            self.lead(now, out, effects);
        }
    }
}

impl Ensemble {
    fn observer_master(&mut self) -> Option<&mut ObserverMaster> {
        match &mut self.role {
            Role::Learning(learner) => learner.master.as_mut(),
            _ => None,
        }
    }

    /// Whom the leader has named to lead from the commit on that is being taken.
    pub(super) fn suggested_leader(&self) -> Option<ServerId> {
        match &self.role {
            Role::Learning(learner) => learner.suggested,
            _ => None,
        }
    }
}
