//! One server: its disk, its log in memory, its election and its role.

use crate::{
    disk::{Act, Disk, Log},
    world::TIMING,
};
use ostler_proto::{
    election::Candidate,
    id::{ServerId, Zxid},
};
use ostler_zab::{
    Election, ElectionTiming, Electorate, Proposals,
    leading::{DurableState, Leading, LinkId},
    learning::Learning,
};
use std::collections::VecDeque;

pub(crate) enum Role {
    Looking,
    Leading {
        leading: Box<Leading>,
        /// Numbers proposals and counts acknowledgements, once the epoch has begun.
        broadcast: Option<Proposals>,
    },
    /// On the way to a leader, or with it.
    Learning {
        leader: i64,
        /// The connection, once there is one, and the machine behind it.
        link: Option<(LinkId, Learning)>,
        tries: u32,
        heard: u64,
    },
}

/// A packet or an act that waits for the disk.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Held {
    AckEpoch {
        link: LinkId,
        last: Zxid,
        counts: Option<ostler_proto::id::Epoch>,
    },
    Ack {
        link: LinkId,
        zxid: Zxid,
    },
    AcceptedSaved,
    CurrentSaved,
    /// The leader's own part in a proposal.
    Own(Zxid),
}

pub(crate) struct Member {
    pub(crate) id: i64,
    pub(crate) up: bool,
    /// A process's number: what was meant for an earlier one is lost.
    pub(crate) life: u64,
    pub(crate) disk: Disk,
    /// As it will be on disk once all acts are done.
    pub(crate) log: Log,
    pub(crate) standing: DurableState,
    /// Applied up to here.
    pub(crate) applied: Zxid,
    pub(crate) election: Election,
    pub(crate) role: Role,
    pub(crate) held: VecDeque<(u64, Held)>,
}

fn nothing() -> DurableState {
    DurableState { accepted: Default::default(), current: Default::default(), last: Zxid::ZERO }
}

impl Member {
    pub(crate) fn new(id: i64) -> Member {
        Member {
            id,
            up: false,
            life: 0,
            disk: Disk::default(),
            log: Log::new(),
            standing: nothing(),
            applied: Zxid::ZERO,
            election: new_election(id),
            role: Role::Looking,
            held: VecDeque::new(),
        }
    }

    /// A process starts on what the disk has.
    pub(crate) fn boot(&mut self) {
        let stored = &self.disk.stored;
        self.up = true;
        self.life += 1;
        self.log = stored.log.clone();
        self.standing =
            DurableState { accepted: stored.accepted, current: stored.current, last: stored.last() };
        self.applied = Zxid::ZERO;
        self.election = new_election(self.id);
        self.role = Role::Looking;
        self.held.clear();
    }

    pub(crate) fn die(&mut self, of_the_queue: usize) {
        self.up = false;
        self.disk.crash(of_the_queue);
        self.role = Role::Looking;
        self.held.clear();
    }

    pub(crate) fn save(&mut self, act: Act) {
        match &act {
            Act::SaveAccepted(epoch) => self.standing.accepted = *epoch,
            Act::SaveCurrent(epoch) => self.standing.current = *epoch,
            Act::Append(zxid, value) => self.log.push((*zxid, *value)),
            Act::Truncate(to) => self.log.retain(|(zxid, _)| zxid <= to),
            Act::Install(log) => self.log = log.clone(),
        }
        self.standing.last = self.log.last().map_or(Zxid::ZERO, |(zxid, _)| *zxid);
        self.disk.push(act);
    }

    /// Waits for all acts so far.
    pub(crate) fn hold(&mut self, what: Held) {
        self.held.push_back((self.disk.issued, what));
    }

    pub(crate) fn released(&mut self) -> Option<Held> {
        let (until, _) = self.held.front()?;
        if *until > self.disk.durable {
            return None;
        }
        self.held.pop_front().map(|(_, what)| what)
    }

    /// The vote for oneself.
    pub(crate) fn own_vote(&self) -> Candidate {
        Candidate { epoch: self.standing.current, zxid: self.standing.last, id: ServerId(self.id) }
    }

    pub(crate) fn leading(&mut self) -> Option<&mut Leading> {
        match &mut self.role {
            Role::Leading { leading, .. } => Some(leading),
            _ => None,
        }
    }
}

fn new_election(id: i64) -> Election {
    Election::new(ServerId(id), false, ElectionTiming::default(), String::new())
}

pub(crate) fn start_epoch(
    now: u64,
    member: &Member,
    electorate: &Electorate,
    out: &mut Vec<ostler_zab::leading::LeadingOutput>,
) -> Leading {
    let now = ostler_zab::Mono(now);
    Leading::new(now, ServerId(member.id), member.standing, electorate.clone(), TIMING, out)
}
