//! The faults of an ensemble's network.

use crate::lane::Lane;
use ostler_proto::id::ServerId;
use std::collections::{BTreeMap, BTreeSet};

/// Two members, the smaller id first.
type Pair = (ServerId, ServerId);

fn pair(a: ServerId, b: ServerId) -> Pair {
    (a.min(b), a.max(b))
}

/// The faults between each two members. By default there are none.
#[derive(Debug, Default)]
pub(crate) struct Links {
    /// Delay and silence from one member to another.
    lanes: BTreeMap<(ServerId, ServerId), Lane>,
    cut: BTreeSet<Pair>,
    /// How often each pair was cut.
    cuts: BTreeMap<Pair, u64>,
    /// Pairs of a member that has closed its connections, and the member that has not noticed it.
    deserted: BTreeSet<(ServerId, ServerId)>,
}

impl Links {
    pub(crate) fn lane(&self, from: ServerId, to: ServerId) -> Lane {
        self.lanes.get(&(from, to)).copied().unwrap_or_default()
    }

    pub(crate) fn lane_mut(&mut self, from: ServerId, to: ServerId) -> &mut Lane {
        self.lanes.entry((from, to)).or_default()
    }

    /// The number of cuts of a pair. Connections from before the last cut are closed.
    pub(crate) fn cuts(&self, a: ServerId, b: ServerId) -> u64 {
        self.cuts.get(&pair(a, b)).copied().unwrap_or(0)
    }

    pub(crate) fn is_cut(&self, a: ServerId, b: ServerId) -> bool {
        self.cut.contains(&pair(a, b))
    }

    /// Whether one direction is silent. Then no connection can be made, which needs both.
    pub(crate) fn is_silent(&self, a: ServerId, b: ServerId) -> bool {
        self.lane(a, b).silent || self.lane(b, a).silent
    }

    /// Closes all connections at the end of the first member. The second one does not notice, and no connection can be made.
    pub(crate) fn desert(&mut self, closer: ServerId, kept: ServerId) {
        self.cut(closer, kept);
        self.deserted.insert((closer, kept));
    }

    /// Whether the first member has deserted the second.
    pub(crate) fn is_deserted(&self, closer: ServerId, kept: ServerId) -> bool {
        self.deserted.contains(&(closer, kept))
    }

    /// Closes all connections, and each new one at once.
    pub(crate) fn cut(&mut self, a: ServerId, b: ServerId) {
        *self.cuts.entry(pair(a, b)).or_default() += 1;
        self.cut.insert(pair(a, b));
    }

    /// Removes all faults between two members.
    pub(crate) fn heal(&mut self, a: ServerId, b: ServerId) {
        self.cut.remove(&pair(a, b));
        self.deserted.remove(&(a, b));
        self.deserted.remove(&(b, a));
        self.lanes.remove(&(a, b));
        self.lanes.remove(&(b, a));
    }

    /// Removes all faults.
    pub(crate) fn heal_all(&mut self) {
        self.cut.clear();
        self.deserted.clear();
        self.lanes.clear();
    }
}
