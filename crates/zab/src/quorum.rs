//! Quorums.

use alloc::{collections::BTreeSet, vec::Vec};
use ostler_proto::id::{ServerId, Zxid};

/// More than half of the voters decide.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Majority {
    voters: BTreeSet<ServerId>,
}

impl Majority {
    /// Of these voters.
    pub fn new(voters: impl IntoIterator<Item = ServerId>) -> Self {
        let voters: BTreeSet<ServerId> = voters.into_iter().collect();
        assert!(!voters.is_empty(), "an ensemble has at least one voter");
        Majority { voters }
    }

    /// How many make a quorum: floor(n/2) + 1.
    pub fn size(&self) -> usize {
        self.voters.len() / 2 + 1
    }

    /// Whether a server votes.
    pub fn votes(&self, server: ServerId) -> bool {
        self.voters.contains(&server)
    }

    /// The highest zxid that a quorum has reached, given how far each server has.
    pub fn reached(&self, of: impl Fn(ServerId) -> Zxid) -> Zxid {
        let mut marks: Vec<Zxid> = self.voters.iter().map(|voter| of(*voter)).collect();
        marks.sort_unstable_by(|a, b| b.cmp(a));
        marks[self.size() - 1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_majority_is_more_than_half() {
        for (voters, size) in [(1, 1), (2, 2), (3, 2), (4, 3), (5, 3)] {
            assert_eq!(Majority::new((0..voters).map(ServerId)).size(), size);
        }
        let three = Majority::new([1, 2, 3].map(ServerId));
        let marks = |server: ServerId| Zxid([9, 4, 7][server.0 as usize - 1]);
        assert_eq!(three.reached(marks), Zxid(7));
    }
}
