//! A member's disk: acts are queued and done in order; a crash loses some of those that were not reported done.

use ostler_proto::id::{Epoch, Zxid};
use std::collections::VecDeque;

/// The number that is different for each record.
pub(crate) type Value = u64;
pub(crate) type Log = Vec<(Zxid, Value)>;

/// A persistent act.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    SaveAccepted(Epoch),
    SaveCurrent(Epoch),
    Append(Zxid, Value),
    Truncate(Zxid),
    Install(Log),
}

/// The data that survives a crash.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stored {
    pub(crate) accepted: Epoch,
    pub(crate) current: Epoch,
    pub(crate) log: Log,
}

impl Stored {
    pub(crate) fn last(&self) -> Zxid {
        self.log.last().map_or(Zxid::ZERO, |(zxid, _)| *zxid)
    }

    pub(crate) fn carry_out(&mut self, act: Act) {
        match act {
            Act::SaveAccepted(epoch) => self.accepted = epoch,
            Act::SaveCurrent(epoch) => self.current = epoch,
            Act::Append(zxid, value) => self.log.push((zxid, value)),
            Act::Truncate(to) => self.log.retain(|(zxid, _)| *zxid <= to),
            Act::Install(log) => self.log = log,
        }
    }
}

/// The disk and its queue.
#[derive(Debug, Default)]
pub(crate) struct Disk {
    pub(crate) stored: Stored,
    queue: VecDeque<Act>,
    /// Acts ever queued, and ever done.
    pub(crate) issued: u64,
    pub(crate) durable: u64,
}

impl Disk {
    pub(crate) fn push(&mut self, act: Act) {
        self.issued += 1;
        self.queue.push_back(act);
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.queue.is_empty()
    }

    /// A sync ends: the first `count` acts are done.
    pub(crate) fn sync(&mut self, count: usize) {
        for act in self.queue.drain(..count.min(self.queue.len())) {
            self.stored.carry_out(act);
            self.durable += 1;
        }
    }

    /// Power off: of what waits, the first `count` acts happen to be done.
    pub(crate) fn crash(&mut self, count: usize) {
        self.sync(count);
        self.queue.clear();
        self.issued = self.durable;
    }

    pub(crate) fn waiting(&self) -> usize {
        self.queue.len()
    }
}
