//! The times of a request's stages, in microseconds.

use alloc::collections::VecDeque;
use ostler_proto::id::Zxid;

/// The most batches whose moments are kept.
const MARKS_MAX: usize = 4096;

/// How long each stage of a request took, in microseconds. `None` if it was not measured, or if the request had no such
/// stage. `own_disk` and `quorum` go on at the same time; the others follow each other.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Stages {
    /// Splitting and decoding the bytes that were read. If it is `None`, `queue_us` has that time, too.
    pub parse_us: Option<u64>,
    /// From then until the request's turn: other connections' requests, and for reads and syncs the earlier writes of
    /// its own connection.
    pub queue_us: Option<u64>,
    /// Until the proposal was made: at a follower, the way to the leader and back.
    pub propose_us: Option<u64>,
    /// From the proposal until it was on this server's disk.
    pub own_disk_us: Option<u64>,
    /// From the proposal until a quorum had it on disk, as this server learned.
    pub quorum_us: Option<u64>,
    /// From then until it was applied here, and the answer made.
    pub apply_us: Option<u64>,
    /// From the answer until its bytes were with the system.
    pub write_us: Option<u64>,
}

/// When proposals were on disk and committed, by batches: one entry each time that the disk or a quorum came further.
#[derive(Debug, Default)]
pub(crate) struct WriteMarks {
    own_disk: Marks,
    quorum: Marks,
}

#[derive(Debug, Default)]
struct Marks(VecDeque<(Zxid, u64)>);

impl Marks {
    fn reached(&mut self, zxid: Zxid, us: u64) {
        if self.0.back().is_some_and(|(last, _)| *last >= zxid) {
            return;
        }
        if self.0.len() == MARKS_MAX {
            self.0.pop_front();
        }
        self.0.push_back((zxid, us));
    }

    /// When a transaction was reached; `None` if that was long ago, or has not happened.
    fn of(&self, zxid: Zxid) -> Option<u64> {
        let at = self.0.partition_point(|(reached, _)| *reached < zxid);
        // The first one may stand for transactions whose own mark is forgotten.
        (at > 0 || self.0.len() < MARKS_MAX).then(|| self.0.get(at).map(|(_, us)| *us))?
    }
}

impl WriteMarks {
    /// This server's disk has everything up to `zxid`.
    pub(crate) fn on_own_disk(&mut self, zxid: Zxid, us: u64) {
        self.own_disk.reached(zxid, us);
    }

    /// The last transaction that is known to be on this server's disk.
    pub(crate) fn last_on_own_disk(&self) -> Zxid {
        self.own_disk.0.back().map_or(Zxid::ZERO, |(zxid, _)| *zxid)
    }

    /// A quorum has everything up to `zxid`.
    pub(crate) fn on_quorum(&mut self, zxid: Zxid, us: u64) {
        self.quorum.reached(zxid, us);
    }

    /// The stages of a write from its proposal on. It was proposed at `proposed_us` and is applied now.
    pub(crate) fn stages(&self, zxid: Zxid, proposed_us: u64, now_us: u64) -> Stages {
        // A follower learns of the quorum by the commit, which it applies at once.
        let quorum = self.quorum.of(zxid).unwrap_or(now_us);
        Stages {
            own_disk_us: self.own_disk.of(zxid).map(|us| us.saturating_sub(proposed_us)),
            quorum_us: Some(quorum.saturating_sub(proposed_us)),
            apply_us: Some(now_us.saturating_sub(quorum)),
            ..Stages::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_has_one_mark_for_all_its_transactions() {
        let mut marks = WriteMarks::default();
        marks.on_own_disk(Zxid(3), 100);
        marks.on_own_disk(Zxid(5), 200);
        marks.on_own_disk(Zxid(4), 300);
        marks.on_quorum(Zxid(4), 250);
        let stages = |zxid| {
            let of = marks.stages(Zxid(zxid), 50, 260);
            (of.own_disk_us, of.quorum_us, of.apply_us)
        };
        assert_eq!(stages(2), (Some(50), Some(200), Some(10)));
        assert_eq!(stages(4), (Some(150), Some(200), Some(10)));
        assert_eq!(stages(5), (Some(150), Some(210), Some(0)), "the quorum is learned of now");
        assert_eq!(stages(6), (None, Some(210), Some(0)));
    }

    #[test]
    fn what_was_long_ago_is_not_known() {
        let mut marks = Marks::default();
        (1..=2 * MARKS_MAX as u64).for_each(|at| marks.reached(Zxid(at), at));
        assert_eq!(marks.0.len(), MARKS_MAX);
        assert_eq!(marks.of(Zxid(7)), None);
        assert_eq!(marks.of(Zxid(MARKS_MAX as u64 + 2)), Some(MARKS_MAX as u64 + 2));
    }
}
