//! The last committed transactions, kept in memory for learners that lack only these.

use alloc::{collections::VecDeque, sync::Arc};
use ostler_proto::id::Zxid;

/// An encoded transaction. The log and all learners share its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record(pub Arc<[u8]>);

/// How much is kept in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HistoryLimits {
    /// The most transactions (`commitLogCount`).
    pub records: usize,
    /// The most bytes of transactions.
    pub bytes: usize,
}

/// Committed transactions without a gap, the oldest first.
#[derive(Debug)]
pub struct History {
    records: VecDeque<(Zxid, Record)>,
    bytes: usize,
    limits: HistoryLimits,
    /// The last committed transaction, also while none is kept.
    last: Zxid,
}

impl History {
    /// An empty history; `last` is the last committed transaction.
    pub fn new(limits: HistoryLimits, last: Zxid) -> Self {
        History { records: VecDeque::new(), bytes: 0, limits, last }
    }

    /// Adds a committed transaction, and drops the oldest ones beyond the limits.
    pub fn push(&mut self, zxid: Zxid, record: Record) {
        assert!(zxid > self.last, "{zxid} is committed after {}", self.last);
        self.last = zxid;
        self.bytes += record.0.len();
        self.records.push_back((zxid, record));
        while self.records.len() > self.limits.records || self.bytes > self.limits.bytes {
            let Some((_, oldest)) = self.records.pop_front() else { break };
            self.bytes -= oldest.0.len();
        }
    }

    /// The last committed transaction.
    pub fn last(&self) -> Zxid {
        self.last
    }

    /// The oldest transaction that is kept; the last committed one if none is kept.
    pub fn first(&self) -> Zxid {
        self.records.front().map_or(self.last, |(zxid, _)| *zxid)
    }

    /// The newest kept transaction at or below `zxid`, and all that are kept after `zxid`.
    pub fn around(&self, zxid: Zxid) -> (Option<Zxid>, impl Iterator<Item = &(Zxid, Record)>) {
        let after = self.records.partition_point(|(kept, _)| *kept <= zxid);
        let before = after.checked_sub(1).map(|at| self.records[at].0);
        (before, self.records.range(after..))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(size: usize) -> Record {
        Record(Arc::from(&[0; 100][..size]))
    }

    #[test]
    fn the_newest_are_kept_within_both_limits() {
        let mut history = History::new(HistoryLimits { records: 3, bytes: 100 }, Zxid(4));
        assert_eq!((history.first(), history.last()), (Zxid(4), Zxid(4)));
        for zxid in 5..=9 {
            history.push(Zxid(zxid), record(20));
        }
        assert_eq!((history.first(), history.last()), (Zxid(7), Zxid(9)));
        history.push(Zxid(10), record(80));
        assert_eq!(history.first(), Zxid(9), "two of them are 100 bytes");
        let (before, after) = history.around(Zxid(9));
        assert_eq!((before, after.map(|(zxid, _)| *zxid).collect()), (Some(Zxid(9)), alloc::vec![Zxid(10)]));
        assert_eq!(history.around(Zxid(8)).0, None);
    }

    #[test]
    #[should_panic(expected = "is committed after")]
    fn commits_go_forward() {
        History::new(HistoryLimits { records: 3, bytes: 100 }, Zxid(4)).push(Zxid(4), record(1));
    }
}
