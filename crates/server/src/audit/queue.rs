//! The queue between the core and the thread that writes the audit log.

use crate::log_throttle::LogThrottle;
use ostler_server_core::audit::AuditRecord;
use std::{
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

/// The most records that wait.
const RECORDS_MAX: usize = 200_000;
/// About the most bytes of records that wait: a path may be as long as a packet. The thread may have as many in hand.
const BYTES_MAX: usize = 64 << 20;

/// The time in which more records may come after the first one, before all of them are written. Without it the thread would
/// be woken for nearly every record of a busy server, and that costs the thread that wakes it more than the record.
const GATHER: Duration = Duration::from_millis(5);

/// An entry of the audit log.
#[derive(Debug, PartialEq)]
pub(crate) enum AuditEntry {
    Record(Box<AuditRecord>),
    /// There was no room for this number of records here.
    Lost(u64),
}

#[derive(Debug, Default)]
struct Waiting {
    entries: Vec<AuditEntry>,
    bytes: usize,
    /// Records since the last entry for which there was no room.
    lost: u64,
    throttle: LogThrottle,
    asleep: bool,
    stopped: bool,
}

/// Records that wait for the thread.
#[derive(Debug, Default)]
pub(crate) struct AuditQueue {
    waiting: Mutex<Waiting>,
    wake: Condvar,
}

impl AuditQueue {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        // A panic aborts the process, so a poisoned lock is never met.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a record, or counts it as lost. Never waits for the disk.
    pub(crate) fn push(&self, record: Box<AuditRecord>) {
        let mut waiting = self.lock();
        let size = record.size();
        if waiting.entries.len() >= RECORDS_MAX || waiting.bytes + size > BYTES_MAX {
            waiting.lost += 1;
            let is_logged = waiting.throttle.take_turn();
            drop(waiting);
            if is_logged {
                tracing::error!("records of the audit log are lost: its file is not written fast enough");
            }
            return;
        }
        waiting.note_lost();
        waiting.bytes += size;
        waiting.entries.push(AuditEntry::Record(record));
        let asleep = std::mem::take(&mut waiting.asleep);
        drop(waiting);
        if asleep {
            self.wake.notify_one();
        }
    }

    /// Lets the thread end after the records that wait.
    pub(crate) fn stop(&self) {
        self.lock().stopped = true;
        self.wake.notify_one();
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.lock().entries.is_empty()
    }

    /// Waits for entries and for those that follow them closely, and exchanges them for the empty list. Returns false if none will come any more.
    pub(super) fn take(&self, entries: &mut Vec<AuditEntry>) -> bool {
        let mut waiting = self.lock();
        while !waiting.stopped && waiting.entries.is_empty() {
            waiting.asleep = true;
            waiting = self.wake.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
        waiting.asleep = false;
        let gathering = self.wake.wait_timeout_while(waiting, GATHER, |waiting| !waiting.stopped);
        let (mut waiting, _) = gathering.unwrap_or_else(PoisonError::into_inner);
        waiting.note_lost();
        waiting.bytes = 0;
        std::mem::swap(entries, &mut waiting.entries);
        !entries.is_empty()
    }

    /// Waits, but not beyond the stop. Returns whether the queue is stopped.
    pub(super) fn pause(&self, time: Duration) -> bool {
        let waiting = self.lock();
        let (waiting, _) = self
            .wake
            .wait_timeout_while(waiting, time, |waiting| !waiting.stopped)
            .unwrap_or_else(PoisonError::into_inner);
        waiting.stopped
    }
}

impl Waiting {
    fn note_lost(&mut self) {
        let lost = std::mem::take(&mut self.lost);
        if lost > 0 {
            self.entries.push(AuditEntry::Lost(lost));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ostler_server_core::audit::{AuditOperation, AuditResult};

    fn record(znode: &str) -> Box<AuditRecord> {
        let record = AuditRecord::of_server(0, AuditOperation::ServerStart, AuditResult::Success);
        Box::new(AuditRecord { znode: Some(znode.into()), ..record })
    }

    #[test]
    fn lost_records_are_counted_at_their_place() {
        let queue = AuditQueue::default();
        let large = "x".repeat(BYTES_MAX / 2);
        queue.push(record(&large));
        queue.push(record(&large));
        queue.push(record(&large));
        queue.push(record("/small"));
        queue.push(record(&large));
        let mut entries = Vec::new();
        assert!(queue.take(&mut entries));
        let shape: Vec<String> = entries.iter().map(shape).collect();
        assert_eq!(shape, ["record", "lost 2", "record", "lost 1"]);
        queue.push(record("/again"));
        entries.clear();
        assert!(queue.take(&mut entries), "there is room again");
        assert_eq!(entries, [AuditEntry::Record(record("/again"))]);
    }

    fn shape(entry: &AuditEntry) -> String {
        match entry {
            AuditEntry::Record(_) => "record".into(),
            AuditEntry::Lost(count) => format!("lost {count}"),
        }
    }

    #[test]
    fn the_number_of_records_is_bounded() {
        let queue = AuditQueue::default();
        for _ in 0..RECORDS_MAX + 7 {
            queue.push(record("/a"));
        }
        let mut entries = Vec::new();
        assert!(queue.take(&mut entries));
        assert_eq!(entries.len(), RECORDS_MAX + 1);
        assert_eq!(entries.last(), Some(&AuditEntry::Lost(7)));
    }

    #[test]
    fn a_stopped_queue_gives_out_what_waits_and_then_ends() {
        let queue = AuditQueue::default();
        queue.push(record("/a"));
        queue.stop();
        let mut entries = Vec::new();
        assert!(queue.take(&mut entries));
        entries.clear();
        assert!(!queue.take(&mut entries));
    }
}
