//! Follows writes by their unique data (marks). So the outcome of each write is known, even of clients that reuse
//! xids.

use ostler_proto::{
    id::{SessionId, Zxid},
    txn::{Txn, TxnRecord},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::{self, Display},
};

/// Names one write: the client, and a number that counts the client's writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Mark {
    pub(crate) client: usize,
    pub(crate) count: u64,
}

/// As it stands in a znode's data.
impl Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.client, self.count)
    }
}

impl Mark {
    fn read(data: &[u8]) -> Option<Mark> {
        let (client, count) = std::str::from_utf8(data).ok()?.split_once(' ')?;
        Some(Mark { client: client.parse().ok()?, count: count.trim_end().parse().ok()? })
    }

    fn of(txn: &Txn<'_>) -> Option<Mark> {
        match txn {
            Txn::Create(create) => Mark::read(create.data?),
            Txn::SetData { data, .. } => Mark::read((*data)?),
            // A failed multi changes nothing, though its record has the operations before the failure.
            Txn::Multi(parts) if parts.iter().any(|part| matches!(part, Txn::Error(_))) => None,
            Txn::Multi(parts) => parts.iter().find_map(Mark::of),
            _ => None,
        }
    }
}

/// The outcome of each marked write.
#[derive(Debug, Default)]
pub(crate) struct Marks {
    happened: BTreeMap<Mark, Zxid>,
    refused: BTreeSet<Mark>,
    last: BTreeMap<SessionId, u64>,
    /// Writes that had not happened when their session, on a later connection, was shown this zxid. They must never
    /// happen.
    passed: BTreeMap<Mark, Zxid>,
}

impl Marks {
    /// Checks a committed transaction: each write happens once, in the order of its session, and not after a refusal.
    pub(crate) fn commit(&mut self, record: &TxnRecord<'_>) {
        let (session, zxid) = (record.header.session, record.header.zxid);
        let Some(mark) = Mark::of(&record.txn) else { return };
        let before = self.happened.insert(mark, zxid);
        assert_eq!(before, None, "[session order] {mark} happens at {zxid} again");
        assert!(!self.refused.contains(&mark), "[linearizable] {mark} happens at {zxid} and was refused");
        let passed = self.passed.get(&mark);
        assert!(
            passed.is_none(),
            "[own writes] {mark} happens at {zxid}, and its session was shown {passed:?} after it"
        );
        let last = self.last.insert(session, mark.count);
        assert!(last.is_none_or(|last| last < mark.count), "[session order] {mark} happened after {last:?}");
    }

    pub(crate) fn happened(&self, mark: Mark) -> Option<Zxid> {
        self.happened.get(&mark).copied()
    }

    /// Notes that a session is shown a zxid after it has sent this write on an earlier connection. If the write has not
    /// happened yet, it must never happen.
    pub(crate) fn pass(&mut self, mark: Mark, zxid: Zxid) {
        if !self.happened.contains_key(&mark) {
            self.passed.insert(mark, zxid);
        }
    }

    /// Notes that a client got an error for a write.
    pub(crate) fn refuse(&mut self, mark: Mark) {
        self.refused.insert(mark);
    }
}
