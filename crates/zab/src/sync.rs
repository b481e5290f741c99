//! Decides how a learner gets the leader's history: by DIFF, TRUNC or SNAP (`LearnerHandler.syncFollower`). Pure
//! functions without state.

use ostler_proto::id::Zxid;

/// How a learner is brought to the leader's history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SyncPlan {
    /// DIFF: the learner's log is the beginning of the leader's history. It gets the transactions after `after`, up to
    /// `through`.
    Diff {
        /// The last transaction that the learner has.
        after: Zxid,
        /// The zxid of the DIFF packet.
        through: Zxid,
    },
    /// TRUNC: the learner has transactions that the leader never committed. It removes everything after `to`, then gets
    /// the transactions after it.
    Trunc {
        /// The last transaction that the learner keeps.
        to: Zxid,
    },
    /// SNAP: the learner gets the whole tree.
    Snap,
    /// The transactions in memory begin after the learner's last one. Read the log on disk, then call
    /// [`plan_from_log`].
    AskLog,
}

/// The part of the leader's committed history that is in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reach {
    /// The oldest transaction in memory.
    pub first: Zxid,
    /// The newest transaction in memory.
    pub last: Zxid,
    /// The last transaction that is applied.
    pub applied: Zxid,
}

/// Decides by the transactions in memory. `peer` is the learner's last transaction, `before` the newest in memory at or
/// below it, `next` the first after it.
///
/// If the counter of `peer` is 0, the learner had begun a new epoch without a transaction in it. There is nothing to
/// cut, and everything it has from before is committed.
pub fn plan(peer: Zxid, reach: Reach, before: Option<Zxid>, next: Option<Zxid>) -> SyncPlan {
    let new_epoch = peer.counter() == 0;
    // In a new epoch without transactions the last transaction is older than the epoch, and may not be in memory.
    if peer == reach.applied || peer == reach.last {
        return SyncPlan::Diff { after: peer, through: peer };
    }
    if peer > reach.last && !new_epoch {
        return SyncPlan::Trunc { to: reach.last };
    }
    if reach.first <= peer && peer <= reach.last {
        return walk(peer, reach.last, before, next);
    }
    if peer < reach.first { SyncPlan::AskLog } else { SyncPlan::Snap }
}

/// Decides by the log on disk, which begins at or before `peer` and reaches the transactions in memory. `before` is the
/// newest in the log at or below `peer`, `next` the first after it.
pub fn plan_from_log(peer: Zxid, reach: Reach, before: Option<Zxid>, next: Option<Zxid>) -> SyncPlan {
    walk(peer, reach.last, before, next)
}

fn walk(peer: Zxid, last: Zxid, before: Option<Zxid>, next: Option<Zxid>) -> SyncPlan {
    if before == Some(peer) || peer.counter() == 0 {
        return SyncPlan::Diff { after: peer, through: last };
    }
    match (before, next) {
        // A truncation never crosses an epoch: the logs of two epochs are not comparable by position.
        (Some(to), Some(next)) if next.epoch() == peer.epoch() => SyncPlan::Trunc { to },
        _ => SyncPlan::Snap,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ostler_proto::id::Epoch;

    fn at(epoch: u32, counter: u32) -> Zxid {
        Zxid::new(Epoch(epoch), counter)
    }

    /// The leader has 2.4 to 2.9 in memory, then 3.1 to 3.5.
    const KEPT: [(u32, u32); 11] =
        [(2, 4), (2, 5), (2, 6), (2, 7), (2, 8), (2, 9), (3, 1), (3, 2), (3, 3), (3, 4), (3, 5)];

    fn planned(peer: Zxid) -> SyncPlan {
        let kept = KEPT.map(|(epoch, counter)| at(epoch, counter));
        let reach = Reach { first: kept[0], last: kept[10], applied: kept[10] };
        let before = kept.iter().copied().filter(|zxid| *zxid <= peer).max();
        let next = kept.iter().copied().find(|zxid| *zxid > peer);
        plan(peer, reach, before, next)
    }

    #[test]
    fn every_case_of_the_table() {
        let (last, diff) = (at(3, 5), |after| SyncPlan::Diff { after, through: at(3, 5) });
        for (peer, expected, why) in [
            (last, diff(last), "it has all"),
            (at(3, 4), diff(at(3, 4)), "it lacks the last"),
            (at(2, 9), diff(at(2, 9)), "it ended with the epoch before"),
            (at(2, 4), diff(at(2, 4)), "it has the oldest that is kept"),
            (at(3, 0), diff(at(3, 0)), "it had begun the epoch, with nothing in it"),
            (at(4, 0), SyncPlan::Snap, "it had begun an epoch that never was"),
            (at(3, 9), SyncPlan::Trunc { to: last }, "it has more than was committed"),
            (at(4, 2), SyncPlan::Trunc { to: last }, "it has an epoch that nobody knows"),
            (at(2, 12), SyncPlan::Snap, "it has more of an earlier epoch: 3.1 comes next"),
            (at(2, 3), SyncPlan::AskLog, "older than what is kept"),
            (at(1, 0), SyncPlan::AskLog, "much older"),
        ] {
            assert_eq!(planned(peer), expected, "{peer}: {why}");
        }
    }

    /// After a restart of all, nothing has been committed yet: what a learner has may be all there is.
    #[test]
    fn a_learner_level_with_an_idle_leader_gets_an_empty_diff() {
        let reach = Reach { first: at(3, 5), last: at(3, 5), applied: at(4, 0) };
        assert_eq!(plan(at(3, 5), reach, None, None), SyncPlan::Diff { after: at(3, 5), through: at(3, 5) });
        assert_eq!(plan(at(3, 4), reach, None, None), SyncPlan::AskLog);
        assert_eq!(plan(at(3, 6), reach, None, None), SyncPlan::Trunc { to: at(3, 5) });
    }

    #[test]
    fn the_log_decides_for_those_who_are_older() {
        let reach = Reach { first: at(2, 4), last: at(3, 5), applied: at(3, 5) };
        let plan = |peer, before, next| plan_from_log(peer, reach, before, next);
        let diff = |after| SyncPlan::Diff { after, through: at(3, 5) };
        assert_eq!(plan(at(2, 2), Some(at(2, 2)), Some(at(2, 3))), diff(at(2, 2)));
        assert_eq!(plan(at(2, 0), Some(at(1, 9)), Some(at(2, 1))), diff(at(2, 0)));
        let cut = plan(at(1, 7), Some(at(1, 5)), Some(at(1, 9)));
        assert_eq!(cut, SyncPlan::Trunc { to: at(1, 5) }, "1.6 to 1.8 are not in the log");
        let unknown = plan(at(1, 7), Some(at(1, 5)), Some(at(2, 1)));
        assert_eq!(unknown, SyncPlan::Snap, "what it has beyond 1.5 was never committed, and 1 is over");
    }
}
