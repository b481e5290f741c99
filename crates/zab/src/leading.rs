//! The leader's side of an epoch: discovery, synchronization, and the supervision of learners (Zab's phases 1 and 2).
//! Proposals and commits are in [`crate::proposals`].
//!
//! The new epoch is one above the highest that a quorum has accepted, so no two leaders have one epoch. A leader whose
//! history is not the newest of that quorum steps down. The epoch begins when a quorum has the leader's history on
//! disk. The caller reports each save, as nothing may be promised before it is on disk.

mod discovery;
mod duplicate_ids;
pub mod moving;
mod origin;
mod refusal;
mod synchronization;

pub use origin::{AddressMatch, LearnerOrigin};
pub use refusal::Refusal;

use discovery::Greeting;
use moving::Move;

use crate::{
    quorum::{Electorate, Quorum},
    time::Mono,
};
use alloc::{
    collections::{BTreeMap, BTreeSet},
    vec::Vec,
};
use ostler_proto::id::{Epoch, ServerId, Zxid};

/// The most epochs that two servers of one ensemble can be apart. A learner beyond it has another ensemble's data, or a
/// damaged file.
const EPOCHS_AHEAD_MAX: u32 = 1 << 20;

/// A learner's connection; the shell never uses a number twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub u64);

/// The state that a server has on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DurableState {
    /// The highest epoch that it has accepted.
    pub accepted: Epoch,
    /// The epoch of the last leader whose history it has.
    pub current: Epoch,
    /// The last transaction in its log.
    pub last: Zxid,
}

/// How long a leader waits, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeadingTiming {
    /// For each step until the epoch begins (`initLimit`).
    pub init: u64,
    /// For the next packet of a learner, and for a quorum to connect (`syncLimit`).
    pub sync: u64,
}

/// A learner's packet, as far as the leader's state needs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FromLearner {
    /// FOLLOWERINFO or OBSERVERINFO.
    Info {
        /// The learner's server id.
        id: ServerId,
        /// It does not vote.
        observer: bool,
        /// The highest epoch that it has accepted.
        accepted: Epoch,
        /// It can move on to a later epoch on the same connection: see [`moving`].
        moves: bool,
    },
    /// ACKEPOCH: the learner has the epoch as its accepted epoch on disk.
    AckEpoch {
        /// The last transaction in its log.
        last: Zxid,
        /// The learner's current epoch. `None` if it had accepted the epoch before: then its promise does not count.
        current: Option<Epoch>,
    },
    /// ACK: the learner has everything up to this zxid on disk.
    Ack(Zxid),
    /// Any other packet: the learner is alive.
    SignOfLife,
}

/// An act that the server has to carry out as a leader, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeadingOutput {
    /// Save this as the accepted epoch, and call [`Leading::accepted_saved`] once it is on disk.
    SaveAccepted(Epoch),
    /// Save this as the current epoch, and call [`Leading::current_saved`] once it is on disk.
    SaveCurrent(Epoch),
    /// Send LEADERINFO with the new epoch to a learner. It answers ACKEPOCH.
    LeaderInfo {
        /// The learner's connection.
        link: LinkId,
        /// The new epoch.
        epoch: Epoch,
    },
    /// Send a learner the history that it lacks, then NEWLEADER. It answers ACK once all of it is on disk.
    Synchronise {
        /// The learner's connection.
        link: LinkId,
        /// The last transaction in its log.
        last: Zxid,
    },
    /// A quorum has the history: the epoch has begun, and clients may be served.
    Established(Epoch),
    /// A quorum has promised the next epoch. Save it as the current epoch, send NEWLEADER to all
    /// [`Leading::active_followers`], and number the next proposal in it, in one step.
    MoveOn(Epoch),
    /// A quorum has the border of the new epoch on disk. Call [`Leading::border_committed`] once everything before it is
    /// committed.
    BorderOnDisk(Epoch),
    /// Everything before the new epoch is committed. Send LEADERINFO, NEWLEADER and UPTODATE to an observer.
    MoveObserver {
        /// The observer's connection.
        link: LinkId,
        /// The new epoch.
        epoch: Epoch,
    },
    /// Send UPTODATE to a learner: it may serve clients.
    UpToDate(LinkId),
    /// A learner has acknowledged proposals of an established epoch.
    Acknowledged {
        /// The learner's server id.
        from: ServerId,
        /// The last proposal that it has on disk.
        zxid: Zxid,
    },
    /// A server that had data has come back without. It does not count before the epoch has begun.
    DataLost(ServerId),
    /// Close a learner's connection.
    Refuse {
        /// The connection.
        link: LinkId,
        /// The learner's server id, once it has sent it.
        server: Option<ServerId>,
        /// The reason, for the log.
        why: Refusal,
    },
    /// The leadership is over, or will not begin: look for a leader.
    StepDown(StepDown),
}

/// Why a leader gives up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(tag = "is", rename_all = "snake_case")
)]
pub enum StepDown {
    /// No quorum of followers has connected.
    NoFollowers,
    /// No quorum has promised the epoch.
    EpochNotAccepted,
    /// No quorum has taken over the history.
    NotSynchronised,
    /// The followers are no quorum any more.
    QuorumLost,
    /// The last possible epoch has been accepted, so no later one is left.
    NoEpochLeft,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LearnerStage {
    /// It has sent FOLLOWERINFO or OBSERVERINFO, and waits for the epoch.
    Greeted,
    /// LEADERINFO is sent.
    EpochSent,
    /// It has accepted the epoch; this is the last transaction in its log.
    EpochAcked(Zxid),
    /// The history is being sent to it.
    Syncing,
    /// It has acknowledged NEWLEADER: it has the history on disk.
    Synced,
    /// UPTODATE is sent: it serves clients.
    Active,
}

#[derive(Debug)]
struct Learner {
    id: ServerId,
    observer: bool,
    origin: LearnerOrigin,
    /// It can move on to a later epoch on the same connection.
    moves: bool,
    stage: LearnerStage,
    heard: Mono,
    /// When it last made progress towards the history. Packets alone are not progress.
    progressed_at: Mono,
    /// It had data, and has come without.
    lost_data: bool,
    /// The last proposal that it has acknowledged before NEWLEADER. Java 3.8 and 3.9.0 may do that, and do not repeat
    /// it (ZOOKEEPER-4685).
    acked_before_history: Zxid,
    awaited_acks: AwaitedAcks,
}

/// Two proposals that a follower has not acknowledged, and when they were sent. They show how long its disk takes.
#[derive(Debug, Clone, Copy, Default)]
struct AwaitedAcks {
    first: Option<(Zxid, Mono)>,
    last: Option<(Zxid, Mono)>,
}

impl AwaitedAcks {
    fn proposed(&mut self, now: Mono, zxid: Zxid) {
        *(if self.first.is_none() { &mut self.first } else { &mut self.last }) = Some((zxid, now));
    }

    fn acknowledged(&mut self, through: Zxid) {
        if self.first.is_some_and(|(zxid, _)| zxid <= through) {
            self.first = self.last.take().filter(|(zxid, _)| *zxid > through);
        }
    }
}

#[derive(Debug)]
enum Stage {
    /// Waits for a quorum of followers. `highest` is the highest accepted epoch of all that have come.
    Discovery { highest: Epoch },
    /// Waits for a quorum to promise the epoch.
    Epoch { saved: bool, acks: BTreeSet<ServerId> },
    /// Waits for a quorum to have the history.
    Sync { saved: bool, acks: BTreeSet<ServerId> },
    /// The epoch has begun: proposals are sent.
    Broadcast,
}

/// The numbers of learners.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LearnerCounts {
    /// All learners that have sent their ids.
    pub all: usize,
    /// Followers that have the history.
    pub followers: usize,
    /// Observers that have the history.
    pub observers: usize,
}

/// A leader, from its election to the end of its leadership.
#[derive(Debug)]
pub struct Leading {
    me: ServerId,
    own: DurableState,
    epoch: Epoch,
    electorate: Electorate,
    timing: LeadingTiming,
    stage: Stage,
    /// The move to the next epoch, while it is under way. The stage is `Broadcast` then.
    moving: Option<Move>,
    /// When the leader steps down if the stage is not over.
    deadline: Mono,
    learners: BTreeMap<LinkId, Learner>,
    /// Servers that are known to have had data.
    servers_with_data: BTreeSet<ServerId>,
    /// Voters that cannot promise this epoch: they have a newer history than this server, or have promised the epoch
    /// before.
    unwilling: BTreeSet<ServerId>,
}

impl Leading {
    /// For a server that has just been elected.
    pub fn new(
        now: Mono,
        me: ServerId,
        own: DurableState,
        electorate: Electorate,
        timing: LeadingTiming,
        out: &mut Vec<LeadingOutput>,
    ) -> Leading {
        let mut leading = Leading {
            me,
            own,
            epoch: own.accepted,
            electorate,
            timing,
            stage: Stage::Discovery { highest: own.accepted },
            moving: None,
            // Upstream waits for `init` here as well. But connecting takes no time, and a server that does not connect
            // may have another leader.
            deadline: now.after(timing.init.min(timing.sync)),
            learners: BTreeMap::new(),
            servers_with_data: BTreeSet::new(),
            unwilling: BTreeSet::new(),
        };
        leading.consider_epoch(now, out);
        leading
    }

    /// The observer master's side of a follower. To its observers it is a leader whose epoch has begun, and which needs
    /// no quorum.
    pub fn relaying(me: ServerId, epoch: Epoch, timing: LeadingTiming) -> Leading {
        Leading {
            me,
            own: DurableState { accepted: epoch, current: epoch, last: Zxid::new(epoch, 0) },
            epoch,
            electorate: Electorate::of(Quorum::majority([me])),
            timing,
            stage: Stage::Broadcast,
            moving: None,
            deadline: Mono(0),
            learners: BTreeMap::new(),
            servers_with_data: BTreeSet::new(),
            unwilling: BTreeSet::new(),
        }
    }

    /// Sets the servers that are known to have had data. If one of them comes without data, it may have lost
    /// transactions that it had acknowledged. So it does not count before the epoch has begun, which takes a quorum of
    /// others.
    pub fn set_servers_with_data(&mut self, servers: BTreeSet<ServerId>) {
        self.servers_with_data = servers;
    }

    /// From now on this electorate decides.
    pub fn set_electorate(&mut self, electorate: Electorate) {
        self.electorate = electorate;
    }

    /// The learners that have the history, with or without a vote.
    pub fn synced(&self) -> impl Iterator<Item = ServerId> {
        self.with_history().map(|of| of.id)
    }

    /// The followers among them, with or without a vote. They acknowledge proposals; observers do not.
    pub fn synced_followers(&self) -> impl Iterator<Item = ServerId> {
        self.with_history().filter(|of| !of.observer).map(|of| of.id)
    }

    /// Whether a learner has the history. Before that its requests are ignored.
    pub fn has_history(&self, link: LinkId) -> bool {
        use LearnerStage::{Active, Synced};
        self.learners.get(&link).is_some_and(|of| matches!(of.stage, Synced | Active))
    }

    fn with_history(&self) -> impl Iterator<Item = &Learner> {
        use LearnerStage::{Active, Synced};
        self.learners.values().filter(|of| matches!(of.stage, Synced | Active))
    }

    /// The numbers of learners.
    pub fn counts(&self) -> LearnerCounts {
        use LearnerStage::{Active, Synced};
        let mut counts = LearnerCounts { all: self.learners.len(), followers: 0, observers: 0 };
        for of in self.learners.values().filter(|of| matches!(of.stage, Synced | Active)) {
            *(if of.observer { &mut counts.observers } else { &mut counts.followers }) += 1;
        }
        counts
    }

    /// The epoch, once it is decided.
    pub fn epoch(&self) -> Option<Epoch> {
        (!matches!(self.stage, Stage::Discovery { .. })).then_some(self.epoch)
    }

    /// The server id of a learner, once it has sent it.
    pub fn server_of(&self, link: LinkId) -> Option<ServerId> {
        self.learners.get(&link).map(|learner| learner.id)
    }

    /// Whether the epoch has begun.
    pub fn is_established(&self) -> bool {
        matches!(self.stage, Stage::Broadcast)
    }

    /// The learners that get proposals and commits, from the beginning of their synchronization, and whether they are
    /// observers.
    pub fn forwarding(&self) -> impl Iterator<Item = (LinkId, bool)> {
        use LearnerStage::{Active, Synced, Syncing};
        let live = self.learners.iter().filter(|(_, of)| matches!(of.stage, Syncing | Synced | Active));
        live.map(|(link, of)| (*link, of.observer))
    }

    /// All connections of learners.
    pub fn links(&self) -> impl Iterator<Item = LinkId> {
        self.learners.keys().copied()
    }

    /// Takes a packet from a learner of unknown origin.
    pub fn heard(&mut self, now: Mono, link: LinkId, what: FromLearner, out: &mut Vec<LeadingOutput>) {
        self.heard_from(now, link, LearnerOrigin::default(), what, out);
    }

    /// Takes a packet from a learner. Its origin matters with the first packet.
    pub fn heard_from(
        &mut self,
        now: Mono,
        link: LinkId,
        origin: LearnerOrigin,
        what: FromLearner,
        out: &mut Vec<LeadingOutput>,
    ) {
        if let FromLearner::Info { id, observer, accepted, moves } = what {
            let greeting = Greeting { id, origin, observer, accepted, moves };
            return self.greeted(now, link, greeting, out);
        }
        let Some(learner) = self.learners.get_mut(&link) else {
            return out.push(LeadingOutput::Refuse { link, server: None, why: Refusal::OutOfTurn });
        };
        learner.heard = now;
        match what {
            FromLearner::AckEpoch { last, current } => self.epoch_acked(now, link, last, current, out),
            FromLearner::Ack(zxid) => self.acked(now, link, zxid, out),
            FromLearner::Info { .. } | FromLearner::SignOfLife => {}
        }
    }

    /// Bytes of a long packet move to or from a learner, so it is alive. As long as a voter is being synchronized, the
    /// epoch may still begin.
    pub fn lives(&mut self, now: Mono, link: LinkId) {
        let Some(learner) = self.learners.get_mut(&link) else { return };
        (learner.heard, learner.progressed_at) = (now, now);
        if learner.stage == LearnerStage::Syncing
            && !learner.observer
            && matches!(self.stage, Stage::Sync { .. })
        {
            self.deadline = self.deadline.max(now.after(self.timing.init));
        }
    }

    /// A learner's connection is gone.
    pub fn disconnected(&mut self, link: LinkId) {
        self.learners.remove(&link);
    }

    /// Refuses learners that have taken too long, and steps down without a quorum. To be called every half tick.
    pub fn tick(&mut self, now: Mono, out: &mut Vec<LeadingOutput>) {
        let given_up: Vec<(LinkId, ServerId, Refusal)> = self
            .learners
            .iter()
            .filter_map(|(link, of)| Some((*link, of.id, self.reason_to_give_up(now, of)?)))
            .collect();
        for (link, server, why) in given_up {
            self.learners.remove(&link);
            out.push(LeadingOutput::Refuse { link, server: Some(server), why });
        }
        let overdue = self.deadline <= now;
        // A follower that has left before the epoch has begun looks for a leader again, and does not come back to this
        // epoch. Servers that are not connected by now, or as observers only, are not waited for.
        let alone = !self.electorate.is_quorum(|server| self.is_here(server) && self.may_promise(server));
        let lost = match self.stage {
            Stage::Broadcast => {
                let there = |server| server == self.me || self.follows(server);
                (!self.electorate.is_quorum(there)).then_some(StepDown::QuorumLost)
            }
            Stage::Discovery { .. } => overdue.then_some(StepDown::NoFollowers),
            Stage::Epoch { .. } => (overdue || alone).then_some(StepDown::EpochNotAccepted),
            Stage::Sync { .. } => (overdue || alone).then_some(StepDown::NotSynchronised),
        };
        out.extend(lost.map(LeadingOutput::StepDown));
    }

    /// The reason to refuse a learner that has taken too long.
    fn reason_to_give_up(&self, now: Mono, of: &Learner) -> Option<Refusal> {
        // Until it is synchronized, a learner may be busy for as long as a step may take.
        let is_active = of.stage == LearnerStage::Active;
        let patience = if is_active { self.timing.sync } else { self.timing.init + self.timing.sync };
        let overdue = of.awaited_acks.first.filter(|(_, since)| since.after(self.timing.sync) <= now);
        if of.heard.after(patience) <= now {
            return Some(Refusal::Silent);
        }
        // It may answer heartbeats while it writes a large tree to a slow disk.
        let time = match of.stage {
            LearnerStage::EpochSent => Some(patience),
            LearnerStage::Syncing => Some(patience * 4),
            _ => None,
        };
        if time.is_some_and(|time| of.progressed_at.after(time) <= now) {
            return Some(Refusal::NoProgress);
        }
        overdue.map(|(zxid, _)| Refusal::DiskStalled(zxid))
    }

    /// Notes a proposal that is sent to all followers. A live follower with a stalled disk holds up its clients, and
    /// all writes if the quorum needs it. So it is refused after `syncLimit`, and its clients find another server.
    pub fn proposed(&mut self, now: Mono, zxid: Zxid) {
        let followers = self.learners.values_mut().filter(|of| !of.observer);
        for of in followers.filter(|of| of.stage == LearnerStage::Active) {
            of.awaited_acks.proposed(now, zxid);
        }
    }

    fn is_here(&self, server: ServerId) -> bool {
        server == self.me || self.learners.values().any(|of| of.id == server && !of.observer)
    }

    fn follows(&self, server: ServerId) -> bool {
        use LearnerStage::{Active, Synced};
        let mut learners = self.learners.values();
        learners.any(|of| of.id == server && !of.observer && matches!(of.stage, Synced | Active))
    }
}
