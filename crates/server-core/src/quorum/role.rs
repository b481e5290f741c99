//! The role of a server, with the state that only this role needs.
//!
//! The history stays in the same two places in every role: `tree` has the committed transactions, `outstanding` the
//! logged ones after them. The end of an epoch changes neither; only the pending changes are dropped.

use super::{
    Ensemble, RevalidationWaiter, observer_master::ObserverMaster, quorum_links::Pings, read_only::ReadOnly,
};
use crate::{
    connections::forwarded::ForwardedWrite,
    context::Context,
    effect::{Effect, PeerMessage},
    input::Mono,
};
use alloc::{
    boxed::Box,
    collections::{BTreeMap, VecDeque},
    vec::Vec,
};
use ostler_proto::{
    id::{Epoch, ServerId, SessionId, Zxid},
    quorum_packet::Packet,
};
use ostler_zab::{
    EpochLength, Proposals,
    leading::{Leading, LinkId},
    learning::Learning,
};

/// The role of a server.
#[derive(Debug)]
pub(crate) enum Role {
    /// It is in no ensemble: a quorum of one, which leads from its start to its end.
    Standalone(Standalone),
    /// It is a member of an ensemble.
    Member(Box<Ensemble>),
}

/// A standalone server.
#[derive(Debug)]
pub(crate) struct Standalone {
    pub(crate) proposals: Proposals,
    /// The accepted epoch on disk, if there is one.
    pub(crate) accepted: Epoch,
    pub(crate) epoch: EpochLength,
    /// The number of restorations by `restore`.
    pub(crate) restores: u64,
    /// Those that are on disk.
    pub(crate) restored: u64,
}

impl Role {
    pub(crate) fn is_standalone(&self) -> bool {
        matches!(self, Role::Standalone(_))
    }

    /// The state of a member; `None` for a standalone server.
    pub(crate) fn ensemble(&self) -> Option<&Ensemble> {
        match self {
            Role::Standalone(_) => None,
            Role::Member(ensemble) => Some(ensemble),
        }
    }

    pub(crate) fn ensemble_mut(&mut self) -> Option<&mut Ensemble> {
        match self {
            Role::Standalone(_) => None,
            Role::Member(ensemble) => Some(ensemble),
        }
    }

    /// Numbers proposals and counts acknowledgements, while this server leads.
    pub(crate) fn proposals(&self) -> Option<&Proposals> {
        match self {
            Role::Standalone(standalone) => Some(&standalone.proposals),
            Role::Member(ensemble) => ensemble.role.leader()?.proposals.as_ref(),
        }
    }

    pub(crate) fn proposals_mut(&mut self) -> Option<&mut Proposals> {
        match self {
            Role::Standalone(standalone) => Some(&mut standalone.proposals),
            Role::Member(ensemble) => ensemble.role.leader_mut()?.proposals.as_mut(),
        }
    }
}

/// The role of a member in its ensemble.
#[derive(Debug)]
pub(super) enum MemberRole {
    /// It looks for a leader.
    Looking(Looking),
    /// A leader is elected, and this server tries to connect to it.
    Dialling(Dialling),
    /// It was elected. It leads once a quorum has its history.
    Leading(Box<Leader>),
    /// It is connected to its leader, as a follower.
    Following(Box<Follower>),
    /// It is connected to its leader or to an observer master, as an observer.
    Observing(Box<Learner>),
}

#[derive(Debug)]
pub(super) struct Looking {
    /// When this election began.
    pub(super) began: Mono,
    pub(super) read_only: ReadOnly,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Dialling {
    pub(super) leader: ServerId,
    /// The server that it connects to: the leader, or for an observer perhaps an observer master.
    pub(super) to: ServerId,
    pub(super) since: Mono,
}

#[derive(Debug)]
pub(super) struct Leader {
    pub(super) learners: Learners,
    /// Numbers proposals and counts acknowledgements, once the epoch has begun.
    pub(super) proposals: Option<Proposals>,
}

/// The learners of a leader, or the observers of an observer master.
#[derive(Debug)]
pub(super) struct Learners {
    pub(super) leading: Leading,
    /// Learners whose synchronization has to wait, mostly for the log on disk.
    pub(super) delayed: BTreeMap<LinkId, Delayed>,
    /// Learners in synchronization; true for those that get a whole tree.
    pub(super) being_synced: BTreeMap<LinkId, bool>,
    pub(super) pings: Pings,
}

impl Learners {
    pub(super) fn new(leading: Leading) -> Learners {
        let pings = Pings::default();
        Learners { leading, delayed: BTreeMap::new(), being_synced: BTreeMap::new(), pings }
    }

    /// The packet goes out when the learner's synchronization has begun. Returns it if it can go out now.
    pub(super) fn delay(&mut self, link: LinkId, message: PeerMessage) -> Option<PeerMessage> {
        let Some(delayed) = self.delayed.get_mut(&link) else { return Some(message) };
        delayed.then.push(message);
        None
    }

    pub(super) fn gone(&mut self, link: LinkId) {
        self.delayed.remove(&link);
        self.being_synced.remove(&link);
        self.pings.gone(link);
        self.leading.disconnected(link);
    }
}

/// A learner whose synchronization has to wait, and the packets that it gets after it.
#[derive(Debug)]
pub(super) struct Delayed {
    pub(super) peer: Zxid,
    pub(super) then: Vec<PeerMessage>,
    /// If the log on disk is being read for it: when it gets a whole tree instead.
    pub(super) tree_at: Option<Mono>,
}

#[derive(Debug)]
pub(super) struct Follower {
    pub(super) learner: Learner,
    /// Its observers, if it is an observer master and serves.
    pub(super) observers: Option<ObserverMaster>,
}

/// The side of a follower or an observer towards its leader.
#[derive(Debug)]
pub(super) struct Learner {
    pub(super) leader: ServerId,
    /// The server that it is connected to: the leader, or for an observer perhaps an observer master.
    pub(super) connected_to: ServerId,
    pub(super) link: LinkId,
    pub(super) learning: Learning,
    /// When a packet came last.
    pub(super) heard: Mono,
    /// When this server promised the epoch.
    pub(super) promised: Mono,
    /// The next leader that the present one named with a reconfiguration, while its commit is taken.
    pub(super) suggested: Option<ServerId>,
    /// Forwarded writes of connections that are gone, in order, until their transactions come.
    pub(super) abandoned: BTreeMap<SessionId, VecDeque<ForwardedWrite>>,
    /// Sessions with a sign of life since the leader's last heartbeat, and their timeouts.
    pub(super) touched: BTreeMap<SessionId, i32>,
    /// Waiting clients and observers by session, with the session timeouts. The leader is asked in this order.
    pub(super) revalidating: BTreeMap<SessionId, VecDeque<(RevalidationWaiter, i32)>>,
}

impl Learner {
    /// Sends a packet to the server that this one is connected to.
    pub(super) fn send(&self, cx: &mut Context<'_>, packet: Packet<'static>) {
        cx.effects.push(Effect::ToPeer { link: self.link, message: PeerMessage::Packet(packet) });
    }
}

impl MemberRole {
    pub(super) fn leader(&self) -> Option<&Leader> {
        match self {
            MemberRole::Leading(leader) => Some(leader),
            _ => None,
        }
    }

    pub(super) fn leader_mut(&mut self) -> Option<&mut Leader> {
        match self {
            MemberRole::Leading(leader) => Some(leader),
            _ => None,
        }
    }

    pub(super) fn learner(&self) -> Option<&Learner> {
        match self {
            MemberRole::Following(follower) => Some(&follower.learner),
            MemberRole::Observing(learner) => Some(learner),
            _ => None,
        }
    }

    pub(super) fn learner_mut(&mut self) -> Option<&mut Learner> {
        match self {
            MemberRole::Following(follower) => Some(&mut follower.learner),
            MemberRole::Observing(learner) => Some(learner),
            _ => None,
        }
    }

    pub(super) fn observer_master(&self) -> Option<&ObserverMaster> {
        match self {
            MemberRole::Following(follower) => follower.observers.as_ref(),
            _ => None,
        }
    }

    pub(super) fn observer_master_mut(&mut self) -> Option<&mut ObserverMaster> {
        match self {
            MemberRole::Following(follower) => follower.observers.as_mut(),
            _ => None,
        }
    }

    /// The learners of this server: those of a leader, or the observers of an observer master.
    pub(super) fn learners(&self) -> Option<&Learners> {
        match self {
            MemberRole::Leading(leader) => Some(&leader.learners),
            _ => self.observer_master().map(|master| &master.observers),
        }
    }

    pub(super) fn learners_mut(&mut self) -> Option<&mut Learners> {
        match self {
            MemberRole::Leading(leader) => Some(&mut leader.learners),
            MemberRole::Following(follower) => {
                follower.observers.as_mut().map(|master| &mut master.observers)
            }
            _ => None,
        }
    }
}
