//! Checks the writes of lock holders in the servers' history: no write comes after a write of a later holder.

use ostler_proto::{
    id::Zxid,
    txn::{Txn, TxnRecord},
};
use std::collections::BTreeMap;

/// Znodes below this path are written by holders only; the data is the holder's token.
pub(crate) const GUARDED: &str = "/guarded/";

/// The last token that was written to each guarded znode, and the zxid of that write.
#[derive(Debug, Default)]
pub(crate) struct GuardedZnodes {
    last: BTreeMap<String, (u64, Zxid)>,
}

impl GuardedZnodes {
    /// Checks a committed transaction.
    pub(crate) fn commit(&mut self, record: &TxnRecord<'_>) {
        self.take(record.header.zxid, &record.txn);
    }

    fn take(&mut self, zxid: Zxid, txn: &Txn<'_>) {
        match txn {
            // A failed multi changes nothing.
            Txn::Multi(parts) if parts.iter().any(|part| matches!(part, Txn::Error(_))) => {}
            Txn::Multi(parts) => parts.iter().for_each(|part| self.take(zxid, part)),
            Txn::SetData { path, data, .. } if path.starts_with(GUARDED) => {
                let text = data.and_then(|data| std::str::from_utf8(data).ok());
                let token = text.and_then(|text| text.parse().ok());
                let token: u64 = token.unwrap_or_else(|| panic!("{path} has {text:?}, which is no token"));
                let before = self.last.insert(path.to_string(), (token, zxid));
                assert!(
                    before.is_none_or(|(last, _)| last <= token),
                    "[one holder] {path} is written with {token:#x} at {zxid}, and was with {before:x?}"
                );
            }
            _ => {}
        }
    }

    /// Whether the write of a holder with this token, or of a later one, has happened.
    pub(crate) fn has(&self, path: &str, token: u64) -> bool {
        self.last.get(path).is_some_and(|(last, _)| *last >= token)
    }
}
