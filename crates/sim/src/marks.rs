//! Writes by their data, which is another for each: what happened is known also of clients that use numbers again.

use ostler_proto::{
    id::{SessionId, Zxid},
    txn::{Txn, TxnRecord},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::{self, Display},
};

/// Which client's write it is, and its how manyth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Mark {
    pub(crate) client: usize,
    pub(crate) count: u64,
}

/// As it is written.
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
            // Of one that failed nothing happens, and its record keeps what came before the failure.
            Txn::Multi(parts) if parts.iter().any(|part| matches!(part, Txn::Error(_))) => None,
            Txn::Multi(parts) => parts.iter().find_map(Mark::of),
            _ => None,
        }
    }
}

/// What became of them.
#[derive(Debug, Default)]
pub(crate) struct Marks {
    happened: BTreeMap<Mark, Zxid>,
    refused: BTreeSet<Mark>,
    last: BTreeMap<SessionId, u64>,
    /// Their sessions have been shown something since, on another connection, and they had not happened: up to where.
    passed: BTreeMap<Mark, Zxid>,
}

impl Marks {
    /// A transaction is committed: each write happens once, in the order of its session, and not after a refusal.
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

    /// A session is shown something, and has asked for this on a connection before. If that has not happened yet it
    /// never does.
    pub(crate) fn pass(&mut self, mark: Mark, zxid: Zxid) {
        if !self.happened.contains_key(&mark) {
            self.passed.insert(mark, zxid);
        }
    }

    /// A client was told that it did not happen.
    pub(crate) fn refuse(&mut self, mark: Mark) {
        self.refused.insert(mark);
    }
}
