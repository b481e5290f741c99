//! The properties that must hold in every run.

use crate::disk::Log;
use ostler_proto::id::{Epoch, Zxid};
use std::collections::BTreeMap;

/// The one history, as established leaders have committed it.
#[derive(Debug, Default)]
pub(crate) struct Truth {
    committed: Log,
    epochs: BTreeMap<Epoch, i64>,
    /// The leaders that have numbered proposals in an epoch, or may.
    users: BTreeMap<Epoch, i64>,
}

impl Truth {
    /// An epoch begins: nobody else has had its epoch, and nothing that was committed is missing from its history.
    pub(crate) fn established(&mut self, leader: i64, epoch: Epoch, history: &Log) {
        self.uses(leader, epoch);
        self.epochs.insert(epoch, leader);
        assert!(
            history.starts_with(&self.committed),
            "{leader} leads {epoch:?} without what was committed:\nhas  {history:?}\nlost {:?}",
            self.committed
        );
        self.committed = history.clone();
    }

    /// A leader begins to number proposals in an epoch: no other has, nor has itself in an earlier life.
    pub(crate) fn uses(&mut self, leader: i64, epoch: Epoch) {
        let before = self.users.insert(epoch, leader);
        assert_eq!(before, None, "{epoch:?} has two leaders: {leader} and another");
    }

    /// A leader has committed one more. One whose epoch is over may still learn that a quorum had it: then its
    /// successor has it too.
    pub(crate) fn committed(&mut self, leader: i64, epoch: Epoch, entry: (Zxid, u64)) {
        assert_eq!(self.users.get(&epoch), Some(&leader), "{leader} commits in the epoch of another");
        self.epochs.insert(epoch, leader);
        if self.epochs.keys().next_back() == Some(&epoch) {
            self.committed.push(entry);
        } else {
            assert!(
                self.committed.contains(&entry),
                "{leader} commits {entry:?}, which its successor has not"
            );
        }
    }

    /// Somebody has applied up to `zxid`: the log that it did so from is the history.
    pub(crate) fn applied(&self, who: i64, log: &Log, zxid: Zxid) {
        if self.committed.last().is_none_or(|(last, _)| *last < zxid) {
            // A history that is taken over from a leader whose epoch has not begun.
            return;
        }
        let upto = |log: &Log| log.iter().take_while(|(z, _)| *z <= zxid).copied().collect::<Log>();
        assert_eq!(upto(log), upto(&self.committed), "{who} has applied another history up to {zxid}");
    }

    pub(crate) fn history(&self) -> &Log {
        &self.committed
    }

    pub(crate) fn epochs(&self) -> usize {
        self.epochs.len()
    }
}
