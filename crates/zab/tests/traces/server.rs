//! One server of a trace: its disk, its election and its role.

use ostler_proto::{
    election::Candidate,
    id::{Epoch, ServerId, Zxid},
};
use ostler_zab::{
    DiskGate, Election, ElectionTiming, Mono, Proposals, Record,
    leading::{DurableState, Leading, LinkId},
    learning::Learning,
};

pub(crate) type Log = Vec<(Zxid, Record)>;

/// The state that survives a crash.
#[derive(Clone, Default)]
pub(crate) struct Data {
    pub(crate) accepted: Epoch,
    pub(crate) current: Epoch,
    pub(crate) log: Log,
}

impl Data {
    pub(crate) fn last(&self) -> Zxid {
        self.log.last().map_or(Zxid::ZERO, |(zxid, _)| *zxid)
    }

    pub(crate) fn durable_state(&self) -> DurableState {
        DurableState { accepted: self.accepted, current: self.current, last: self.last() }
    }
}

/// An act that waits until everything before it is on disk.
pub(crate) enum Held {
    AcceptedSaved,
    CurrentSaved,
    /// The leader's own acknowledgement.
    OwnAck(Zxid),
    ToLeader(LinkId, ostler_zab::leading::FromLearner),
}

pub(crate) enum Role {
    Looking,
    /// A leader is elected. This server tries to connect until this time.
    Dialling(ServerId, Mono),
    Leading(Box<Leading>, Option<Proposals>),
    Learning(LinkId, Learning),
}

pub(crate) struct Server {
    pub(crate) up: bool,
    pub(crate) observer: bool,
    pub(crate) without_history: bool,
    /// As it will be on disk once all acts are done.
    pub(crate) data: Data,
    pub(crate) on_disk: Data,
    pub(crate) disk_waits: bool,
    pub(crate) gate: DiskGate<Held>,
    pub(crate) election: Election,
    pub(crate) role: Role,
}

impl Server {
    pub(crate) fn new(id: ServerId, observer: bool) -> Server {
        Server {
            up: false,
            observer,
            without_history: false,
            data: Data::default(),
            on_disk: Data::default(),
            disk_waits: false,
            gate: DiskGate::default(),
            election: Election::new(id, observer, ElectionTiming::default(), String::new()),
            role: Role::Looking,
        }
    }

    /// A process begins, with what is on disk.
    pub(crate) fn boot(&mut self, id: ServerId) {
        let (observer, on_disk) = (self.observer, self.on_disk.clone());
        let without_history = self.without_history;
        *self =
            Server { up: true, without_history, data: on_disk.clone(), on_disk, ..Server::new(id, observer) };
        self.election.set_without_history(without_history);
    }

    pub(crate) fn own_vote(&self, id: ServerId) -> Option<Candidate> {
        let candidate = Candidate { epoch: self.data.current, zxid: self.data.last(), id };
        (!self.observer).then_some(candidate)
    }

    pub(crate) fn save(&mut self, act: impl FnOnce(&mut Data)) {
        act(&mut self.data);
        self.gate.issue();
    }

    /// All acts are on disk.
    pub(crate) fn sync(&mut self) {
        self.on_disk = self.data.clone();
        // A number is the only way to learn the last one.
        let last = self.gate.issue();
        self.gate.reached(last);
    }

    /// The state of the server, for the command `state`.
    pub(crate) fn state(&self) -> String {
        let role = match &self.role {
            _ if !self.up => "down".to_owned(),
            Role::Looking => format!("LOOKING in round {}", self.election.round()),
            Role::Dialling(leader, _) => format!("connecting to {}", leader.0),
            Role::Leading(leading, None) => match leading.epoch() {
                Some(epoch) => format!("elected, proposes epoch {}", epoch.0),
                None => "elected".into(),
            },
            Role::Leading(_, Some(proposals)) => format!("LEADING, committed {}", proposals.committed()),
            Role::Learning(_, learning) if !learning.is_following() => "synchronizing".into(),
            Role::Learning(..) if self.observer => "OBSERVING".into(),
            Role::Learning(..) => "FOLLOWING".into(),
        };
        let data = &self.data;
        format!(
            "{role}; acceptedEpoch {}, currentEpoch {}, last {}",
            data.accepted.0,
            data.current.0,
            data.last()
        )
    }
}
