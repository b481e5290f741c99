//! Quorums: which sets of voters decide, by a majority or by groups and weights, and under two configurations during a
//! change.

use alloc::{
    collections::{BTreeMap, BTreeSet},
    vec::Vec,
};
use ostler_planted::{self as planted, Bug};
use ostler_proto::{
    id::{ServerId, Zxid},
    membership::Membership,
};

/// The quorums of one configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Quorum {
    /// A quorum is more than half of the voters.
    Majority(BTreeSet<ServerId>),
    /// A quorum is more than half of the weight in more than half of the groups.
    Groups {
        /// Each voter's group.
        groups: BTreeMap<ServerId, u64>,
        /// The weights that are not 1.
        weights: BTreeMap<ServerId, u64>,
    },
}

impl Quorum {
    /// A majority of these voters. Panics if there are none.
    pub fn majority(voters: impl IntoIterator<Item = ServerId>) -> Self {
        let voters: BTreeSet<ServerId> = voters.into_iter().collect();
        assert!(!voters.is_empty(), "an ensemble has at least one voter");
        Quorum::Majority(voters)
    }

    /// The quorums of a configuration: by groups if it has some, else a majority.
    pub fn of(membership: &Membership) -> Self {
        if membership.groups.is_empty() {
            return Quorum::majority(membership.voters());
        }
        let groups = membership.groups.iter().filter(|(id, _)| membership.votes(**id));
        Quorum::Groups {
            groups: groups.map(|(id, group)| (*id, *group)).collect(),
            weights: membership.weights.clone(),
        }
    }

    /// The voters, in ascending order.
    pub fn voters(&self) -> impl Iterator<Item = ServerId> {
        let (voters, groups) = match self {
            Quorum::Majority(voters) => (Some(voters), None),
            Quorum::Groups { groups, .. } => (None, Some(groups)),
        };
        voters.into_iter().flatten().copied().chain(groups.into_iter().flat_map(BTreeMap::keys).copied())
    }

    /// Whether a server votes.
    pub fn votes(&self, server: ServerId) -> bool {
        match self {
            Quorum::Majority(voters) => voters.contains(&server),
            Quorum::Groups { groups, .. } => groups.contains_key(&server),
        }
    }

    /// The weight of a voter's vote. A voter with weight 0 never leads.
    pub fn weight(&self, server: ServerId) -> u64 {
        match self {
            Quorum::Groups { weights, .. } => weights.get(&server).copied().unwrap_or(1),
            Quorum::Majority(_) => 1,
        }
    }

    /// Whether the servers that `of` accepts are a quorum.
    pub fn is_quorum(&self, of: impl Fn(ServerId) -> bool) -> bool {
        match self {
            Quorum::Majority(voters) => voters.iter().filter(|voter| of(**voter)).count() > voters.len() / 2,
            Quorum::Groups { groups, .. } => {
                let mut tallies: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
                for (voter, group) in groups {
                    let (won, all) = tallies.entry(*group).or_default();
                    *all += self.weight(*voter);
                    *won += if of(*voter) { self.weight(*voter) } else { 0 };
                }
                // A group without weight does not count.
                let counted = || tallies.values().filter(|(_, all)| *all > 0);
                counted().filter(|(won, all)| *won > all / 2).count() > counted().count() / 2
            }
        }
    }

    /// The highest zxid that a quorum has reached. `of` gives the last zxid of each server.
    pub fn reached(&self, of: impl Fn(ServerId) -> Zxid) -> Zxid {
        let mut marks: Vec<Zxid> = self.voters().map(&of).collect();
        marks.sort_unstable_by(|a, b| b.cmp(a));
        if let Quorum::Majority(voters) = self {
            return marks[voters.len() / 2];
        }
        let reached = marks.into_iter().find(|mark| self.is_quorum(|server| of(server) >= *mark));
        reached.unwrap_or_default()
    }
}

/// The quorums that have to agree: of the configuration in force, and of the next one while it is proposed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Electorate {
    /// Of the configuration in force.
    pub current: Quorum,
    /// Of the configuration that is proposed and not in force yet.
    pub next: Option<Quorum>,
}

impl Electorate {
    /// Of a single configuration.
    pub fn of(current: Quorum) -> Self {
        Electorate { current, next: None }
    }

    fn all(&self) -> impl Iterator<Item = &Quorum> {
        core::iter::once(&self.current).chain(&self.next)
    }

    /// The voters of both configurations, in ascending order.
    pub fn voters(&self) -> BTreeSet<ServerId> {
        self.all().flat_map(Quorum::voters).collect()
    }

    /// Whether a server votes in one of them.
    pub fn votes(&self, server: ServerId) -> bool {
        self.all().any(|quorum| quorum.votes(server))
    }

    /// Whether the servers that `of` accepts are a quorum in each of them.
    pub fn is_quorum(&self, of: impl Fn(ServerId) -> bool) -> bool {
        if planted::is(Bug::JointQuorumSkipped) {
            return self.next.as_ref().unwrap_or(&self.current).is_quorum(of);
        }
        self.all().all(|quorum| quorum.is_quorum(&of))
    }

    /// The highest zxid that a quorum of each of them has reached.
    pub fn reached(&self, of: impl Fn(ServerId) -> Zxid) -> Zxid {
        if planted::is(Bug::JointQuorumSkipped) {
            return self.next.as_ref().unwrap_or(&self.current).reached(of);
        }
        self.all().map(|quorum| quorum.reached(&of)).min().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(ids: &[i64]) -> impl Iterator<Item = ServerId> {
        ids.iter().copied().map(ServerId)
    }

    #[test]
    fn e7_a_majority_is_more_than_half() {
        for (voters, size) in [(1, 1), (2, 2), (3, 2), (4, 3), (5, 3)] {
            let quorum = Quorum::majority((0..voters).map(ServerId));
            assert!(quorum.is_quorum(|server| server.0 < size));
            assert!(!quorum.is_quorum(|server| server.0 < size - 1));
        }
    }

    #[test]
    fn a_quorum_has_reached_what_enough_of_it_have() {
        let marks = |server: ServerId| Zxid([9, 4, 7, 1, 2, 3][server.0 as usize - 1]);
        assert_eq!(Quorum::majority(ids(&[1, 2, 3])).reached(marks), Zxid(7));
        let groups =
            [(1, 1), (2, 1), (3, 2), (4, 2), (5, 3), (6, 3)].map(|(id, group)| (ServerId(id), group));
        let weights = [(ServerId(2), 0), (ServerId(4), 0)].into();
        let quorum = Quorum::Groups { groups: groups.into(), weights };
        // 1 and 3 win two of three groups.
        assert_eq!(quorum.reached(marks), Zxid(7));
        assert!(quorum.is_quorum(|server| [1, 3].contains(&server.0)));
        assert!(
            !quorum.is_quorum(|server| [1, 2, 4, 5].contains(&server.0)),
            "5 alone does not win its group"
        );
        assert_eq!((quorum.weight(ServerId(4)), quorum.weight(ServerId(5))), (0, 1));
    }

    #[test]
    fn a_group_without_weight_has_no_say() {
        let groups = [(ServerId(1), 1), (ServerId(2), 2), (ServerId(3), 2)];
        let weights = [(ServerId(2), 0), (ServerId(3), 0)].into();
        let quorum = Quorum::Groups { groups: groups.into(), weights };
        assert!(quorum.is_quorum(|server| server == ServerId(1)));
        assert!(!quorum.is_quorum(|server| server != ServerId(1)));
        assert!(quorum.votes(ServerId(3)) && !quorum.votes(ServerId(4)));
        assert!(quorum.voters().eq(ids(&[1, 2, 3])));
    }

    #[test]
    fn an_observer_is_in_no_group() {
        let lines = "server.1=a:1:2\nserver.2=b:1:2\nserver.3=c:1:2:observer\nserver.4=d:1:2";
        let quorum = Quorum::of(&Membership::parse(lines).unwrap());
        assert_eq!(quorum, Quorum::majority(ids(&[1, 2, 4])));
        assert!(quorum.votes(ServerId(1)) && !quorum.votes(ServerId(3)));
        let groups = "\ngroup.1=1:2:3\ngroup.2=4\nweight.2=3";
        let quorum = Quorum::of(&Membership::parse(&alloc::format!("{lines}{groups}")).unwrap());
        assert!(quorum.voters().eq(ids(&[1, 2, 4])));
        assert_eq!(quorum.weight(ServerId(2)), 3);
    }

    #[test]
    fn while_it_changes_both_configurations_must_agree() {
        let electorate = Electorate {
            current: Quorum::majority(ids(&[1, 2, 3])),
            next: Some(Quorum::majority(ids(&[3, 4, 5]))),
        };
        assert!(!electorate.is_quorum(|server| server.0 <= 3));
        assert!(electorate.is_quorum(|server| server.0 >= 2 && server.0 <= 4));
        assert_eq!(electorate.reached(|server| Zxid(server.0 as u64)), Zxid(2));
        assert!(electorate.voters().into_iter().eq(ids(&[1, 2, 3, 4, 5])));
    }
}
