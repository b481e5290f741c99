//! The rules of an ensemble's network.

use crate::lane::Lane;
use ostler_proto::id::ServerId;
use std::collections::{BTreeMap, BTreeSet};

/// Two members, the smaller number first.
type Pair = (ServerId, ServerId);

fn pair(a: ServerId, b: ServerId) -> Pair {
    (a.min(b), a.max(b))
}

/// What lies between each two members. By default all is well.
#[derive(Debug, Default)]
pub(crate) struct Links {
    /// From one to another.
    lanes: BTreeMap<(ServerId, ServerId), Lane>,
    cut: BTreeSet<Pair>,
    /// How often each was cut.
    cuts: BTreeMap<Pair, u64>,
    /// Who has left whom, who does not know.
    deserted: BTreeSet<(ServerId, ServerId)>,
}

impl Links {
    pub(crate) fn lane(&self, from: ServerId, to: ServerId) -> Lane {
        self.lanes.get(&(from, to)).copied().unwrap_or_default()
    }

    pub(crate) fn lane_mut(&mut self, from: ServerId, to: ServerId) -> &mut Lane {
        self.lanes.entry((from, to)).or_default()
    }

    /// Connections of an earlier number are over.
    pub(crate) fn cuts(&self, a: ServerId, b: ServerId) -> u64 {
        self.cuts.get(&pair(a, b)).copied().unwrap_or(0)
    }

    pub(crate) fn is_cut(&self, a: ServerId, b: ServerId) -> bool {
        self.cut.contains(&pair(a, b))
    }

    /// Whether a connection can be made: that takes words of both sides.
    pub(crate) fn is_silent(&self, a: ServerId, b: ServerId) -> bool {
        self.lane(a, b).silent || self.lane(b, a).silent
    }

    /// Ends all connections for the first of the two. The second is not told, and no more can be made.
    pub(crate) fn desert(&mut self, leaves: ServerId, left: ServerId) {
        self.cut(leaves, left);
        self.deserted.insert((leaves, left));
    }

    /// Whether the first has left the second.
    pub(crate) fn is_deserted(&self, leaves: ServerId, left: ServerId) -> bool {
        self.deserted.contains(&(leaves, left))
    }

    /// Ends all connections, and lets no more be made.
    pub(crate) fn cut(&mut self, a: ServerId, b: ServerId) {
        *self.cuts.entry(pair(a, b)).or_default() += 1;
        self.cut.insert(pair(a, b));
    }

    /// Everything is well again between two.
    pub(crate) fn heal(&mut self, a: ServerId, b: ServerId) {
        self.cut.remove(&pair(a, b));
        self.deserted.remove(&(a, b));
        self.deserted.remove(&(b, a));
        self.lanes.remove(&(a, b));
        self.lanes.remove(&(b, a));
    }

    /// Everything is well again.
    pub(crate) fn heal_all(&mut self) {
        self.cut.clear();
        self.deserted.clear();
        self.lanes.clear();
    }
}
