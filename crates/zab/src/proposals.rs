//! The leader's proposals: numbers them, counts their acknowledgements, and finds the commit point, up to which a
//! quorum has them on disk.
//!
//! `committed <= proposed`. An acknowledgement of something that was not proposed is a bug, and panics.

use crate::quorum::Electorate;
use alloc::collections::BTreeMap;
use ostler_planted::{self as planted, Bug};
use ostler_proto::id::{Epoch, ServerId, Zxid};

/// The number of proposals after which an epoch ends. A zxid can count 4,294,967,295 of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EpochLength {
    /// After this number of proposals the leader moves on to the next epoch in place, without an election, as soon as
    /// all its learners can: see [`crate::leading::moving`]. `None` turns this off, and then this server does not tell
    /// its leader that it can.
    pub in_place: Option<u32>,
    /// After this number of proposals the epoch ends as soon as nothing is under way.
    pub enough: u32,
    /// After this number it ends in any case.
    pub most: u32,
}

impl Default for EpochLength {
    /// The distances leave room for everything that one step may propose, such as the end of every session. Six million
    /// proposals are minutes of work, and a move takes milliseconds.
    fn default() -> Self {
        EpochLength {
            in_place: Some(u32::MAX - 8_000_000),
            enough: u32::MAX - 2_000_000,
            most: u32::MAX - 1_000_000,
        }
    }
}

/// The proposals of one epoch, at its leader.
#[derive(Debug)]
pub struct Proposals {
    electorate: Electorate,
    acknowledged: BTreeMap<ServerId, Zxid>,
    proposed: Zxid,
    /// The zxid that the next proposal will get.
    next: Zxid,
    committed: Zxid,
}

impl Proposals {
    /// For an epoch that begins with a history up to `last`, all of it committed.
    pub fn new(electorate: Electorate, last: Zxid) -> Self {
        Proposals {
            electorate,
            acknowledged: BTreeMap::new(),
            proposed: last,
            next: last.next(),
            committed: last,
        }
    }

    /// From now on this electorate decides. Earlier acknowledgements may be enough for it: call [`Proposals::count`].
    pub fn set_electorate(&mut self, electorate: Electorate) {
        self.electorate = electorate;
    }

    /// The last proposal that a server has acknowledged; zero if there is none.
    pub fn acknowledged_by(&self, server: ServerId) -> Zxid {
        self.acknowledged.get(&server).copied().unwrap_or_default()
    }

    /// The zxid that the next proposal will get.
    pub fn next_zxid(&self) -> Zxid {
        self.next
    }

    /// From now on proposals are numbered in this later epoch, from 1. All earlier ones commit before them.
    pub fn move_to(&mut self, epoch: Epoch) {
        assert!(epoch > self.proposed.epoch(), "{epoch:?} comes after {}", self.proposed);
        self.next = Zxid::new(epoch, 1);
    }

    /// Counts one more proposal, and returns its zxid, which is [`Proposals::next_zxid`].
    pub fn propose(&mut self) -> Zxid {
        self.proposed = self.next;
        self.next = self.proposed.next();
        self.proposed
    }

    /// Whether the epoch has to end because its counter is nearly full. The next epoch counts from 0 again.
    pub fn is_over(&self, length: EpochLength) -> bool {
        let count = self.counted();
        count >= length.most || (count >= length.enough && self.committed == self.proposed)
    }

    /// Whether it is time to move on to the next epoch in place.
    pub fn may_move(&self, length: EpochLength) -> bool {
        length.in_place.is_some_and(|count| self.counted() >= count)
    }

    /// The number of proposals of the epoch in which the next one will be.
    fn counted(&self) -> u32 {
        self.next.previous().counter()
    }

    /// The last proposal.
    pub fn proposed(&self) -> Zxid {
        self.proposed
    }

    /// The last commit.
    pub fn committed(&self) -> Zxid {
        self.committed
    }

    /// Notes that a server has everything up to `zxid` on disk. Returns the commit point, which may be new.
    pub fn acknowledge(&mut self, from: ServerId, zxid: Zxid) -> Zxid {
        assert!(zxid <= self.proposed, "{from:?} acknowledges {zxid}, but {} is the last", self.proposed);
        let mark = self.acknowledged.entry(from).or_default();
        *mark = (*mark).max(zxid);
        if planted::is(Bug::MinorityCommits) {
            self.committed = self.committed.max(zxid);
        }
        self.count()
    }

    /// A server that has come back keeps only its proposals up to `to`; it removes the later ones or gets them again.
    /// So its acknowledgements after `to` do not count until it repeats them. Upstream goes on counting them: a
    /// proposal that commits by such an acknowledgement is not on the disks of a quorum, and is lost if the leader is
    /// lost.
    pub fn cut_back(&mut self, server: ServerId, to: Zxid) {
        if planted::is(Bug::CutStillCounts) {
            return;
        }
        if let Some(mark) = self.acknowledged.get_mut(&server) {
            *mark = (*mark).min(to);
        }
    }

    /// Counts the acknowledgements again, after the electorate has changed. Returns the commit point, which may be new.
    pub fn count(&mut self) -> Zxid {
        let reached = self.electorate.reached(|server| self.acknowledged_by(server));
        self.committed = self.committed.max(reached);
        self.committed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quorum::Quorum;

    #[test]
    fn a_quorum_of_disks_commits() {
        let [one, two, three] = [1, 2, 3].map(ServerId);
        let mut proposals = Proposals::new(Electorate::of(Quorum::majority([one, two, three])), Zxid(10));
        assert_eq!(proposals.next_zxid(), Zxid(11));
        assert_eq!((proposals.propose(), proposals.propose()), (Zxid(11), Zxid(12)));
        assert_eq!(proposals.acknowledge(one, Zxid(12)), Zxid(10));
        assert_eq!(proposals.acknowledge(two, Zxid(11)), Zxid(11));
        assert_eq!(proposals.acknowledge(ServerId(9), Zxid(12)), Zxid(11), "no vote, no commit");
        assert_eq!(proposals.acknowledge(three, Zxid(12)), Zxid(12));
    }

    #[test]
    fn a_server_that_removes_acknowledged_proposals_does_not_count_for_them() {
        let [one, two, three] = [1, 2, 3].map(ServerId);
        let mut proposals = Proposals::new(Electorate::of(Quorum::majority([one, two, three])), Zxid(10));
        let (first, second) = (proposals.propose(), proposals.propose());
        assert_eq!(proposals.acknowledge(two, second), Zxid(10));
        proposals.cut_back(two, Zxid(10));
        assert_eq!(proposals.acknowledge(one, second), Zxid(10));
        assert_eq!(proposals.acknowledge(two, first), first, "it was sent it again");
        proposals.cut_back(two, Zxid(10));
        assert_eq!(proposals.count(), first, "what is committed stays so");
        proposals.cut_back(three, first);
        assert_eq!(proposals.acknowledged_by(three), Zxid::ZERO, "nobody gets a word that it has not said");
    }

    /// The last acknowledgement that the old configuration needs may come from a server that the new one removes. After
    /// it none of the others has anything left to acknowledge.
    #[test]
    fn proposals_that_the_new_voters_have_acknowledged_commit_with_the_change() {
        let [one, two, three] = [1, 2, 3].map(ServerId);
        let old = || Quorum::majority([one, two, three, ServerId(4), ServerId(5)]);
        let new = || Quorum::majority([one, two, three]);
        let mut proposals = Proposals::new(Electorate::of(old()), Zxid(10));
        proposals.set_electorate(Electorate { current: old(), next: Some(new()) });
        let (change, after) = (proposals.propose(), proposals.propose());
        assert_eq!([one, two].map(|server| proposals.acknowledge(server, after)), [Zxid(10); 2]);
        assert_eq!(proposals.acknowledge(ServerId(4), change), change);
        proposals.set_electorate(Electorate::of(new()));
        assert_eq!(proposals.count(), after);
    }

    #[test]
    fn a_lone_server_is_a_quorum_of_one() {
        let me = ServerId(1);
        let mut proposals = Proposals::new(Electorate::of(Quorum::majority([me])), Zxid::ZERO);
        proposals.propose();
        assert_eq!(proposals.committed(), Zxid::ZERO, "not before its disk has it");
        assert_eq!(proposals.acknowledge(me, Zxid(1)), Zxid(1));
    }

    #[test]
    fn an_epoch_ends_in_a_quiet_moment_or_before_it_cannot_count_on() {
        let me = ServerId(1);
        let length = EpochLength { in_place: None, enough: 3, most: 5 };
        let mut proposals = Proposals::new(Electorate::of(Quorum::majority([me])), Zxid::new(Epoch(7), 0));
        let mut over = |act: fn(&mut Proposals)| {
            act(&mut proposals);
            proposals.is_over(length)
        };
        let propose: fn(&mut Proposals) = |proposals| {
            proposals.propose();
        };
        assert_eq!([propose; 4].map(&mut over), [false; 4], "the third and fourth are under way");
        let commit: fn(&mut Proposals) = |proposals| {
            proposals.acknowledge(ServerId(1), proposals.proposed());
        };
        assert!(over(commit));
        assert!(over(propose), "five are the most");
    }

    #[test]
    fn an_idle_epoch_ends_at_exactly_enough_proposals() {
        let me = ServerId(1);
        let last = |counter| Zxid::new(Epoch(7), counter);
        for (counter, over) in [(2, false), (3, true), (4, true)] {
            let proposals = Proposals::new(Electorate::of(Quorum::majority([me])), last(counter));
            assert_eq!(
                proposals.is_over(EpochLength { in_place: None, enough: 3, most: 5 }),
                over,
                "{counter}"
            );
        }
    }

    #[test]
    fn an_epoch_that_has_moved_on_counts_from_one_and_commits_in_order() {
        let [one, two, three] = [1, 2, 3].map(ServerId);
        let at = |epoch, counter| Zxid::new(Epoch(epoch), counter);
        let length = EpochLength { in_place: Some(3), enough: 4, most: 5 };
        let mut proposals = Proposals::new(Electorate::of(Quorum::majority([one, two, three])), at(7, 2));
        assert!(!proposals.may_move(length));
        assert_eq!(proposals.propose(), at(7, 3));
        assert!(proposals.may_move(length));
        proposals.move_to(Epoch(8));
        assert!(
            !proposals.may_move(length) && !proposals.is_over(length),
            "the new epoch has counted nothing"
        );
        assert_eq!((proposals.proposed(), proposals.next_zxid()), (at(7, 3), at(8, 1)));
        assert_eq!(proposals.propose(), at(8, 1));
        assert_eq!(proposals.acknowledge(one, at(8, 1)), at(7, 2));
        assert_eq!(proposals.acknowledge(two, at(7, 3)), at(7, 3), "one server has nothing of the new epoch");
        assert_eq!(proposals.acknowledge(two, at(8, 1)), at(8, 1));
    }

    /// The counter of a standalone server goes on into the next epoch by itself, if it is not moved on before.
    #[test]
    fn a_counter_at_its_very_end_can_still_move_on() {
        let last = Zxid::new(Epoch(7), u32::MAX);
        let mut proposals = Proposals::new(Electorate::of(Quorum::majority([ServerId(1)])), last);
        assert!(proposals.may_move(EpochLength::default()));
        proposals.move_to(Epoch(8));
        assert_eq!(proposals.propose(), Zxid::new(Epoch(8), 1));
    }

    #[test]
    fn a_lone_zxid_of_zero_counts_nothing() {
        let proposals = Proposals::new(Electorate::of(Quorum::majority([ServerId(1)])), Zxid::ZERO);
        assert!(!proposals.may_move(EpochLength::default()) && !proposals.is_over(EpochLength::default()));
    }

    #[test]
    fn the_longest_epoch_leaves_room_in_its_counter() {
        let length = EpochLength::default();
        let last = Zxid::new(Epoch(7), length.most);
        let proposals = Proposals::new(Electorate::of(Quorum::majority([ServerId(1)])), last);
        assert!(proposals.is_over(length) && length.enough < length.most);
        assert!(length.in_place.is_some_and(|count| count < length.enough - 1_000_000));
        assert_eq!(Zxid(last.0 + 1_000_000).epoch(), Epoch(7));
    }

    #[test]
    #[should_panic(expected = "acknowledges")]
    fn an_acknowledgement_of_an_unproposed_zxid_panics() {
        let me = ServerId(1);
        Proposals::new(Electorate::of(Quorum::majority([me])), Zxid::ZERO).acknowledge(me, Zxid(1));
    }
}
