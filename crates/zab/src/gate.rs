//! The disk gate: holds back acts until everything that was to be saved before them is on disk.
//!
//! All persistent acts of a member are numbered, and one disk queue does them in this order. So "the disk has reached
//! n" releases everything that waits for n or less.

use alloc::collections::VecDeque;

/// The number of a persistent act. The disk queue does them in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct PersistSeq(pub u64);

/// The acts that wait for the disk, in order.
#[derive(Debug)]
pub struct DiskGate<T> {
    issued: PersistSeq,
    durable: PersistSeq,
    waiting: VecDeque<(PersistSeq, T)>,
}

impl<T> Default for DiskGate<T> {
    fn default() -> Self {
        DiskGate { issued: PersistSeq(0), durable: PersistSeq(0), waiting: VecDeque::new() }
    }
}

impl<T> DiskGate<T> {
    /// Numbers the next persistent act.
    pub fn issue(&mut self) -> PersistSeq {
        self.issued.0 += 1;
        self.issued
    }

    /// Holds `what` back until all acts issued so far are durable.
    pub fn hold(&mut self, what: T) {
        self.waiting.push_back((self.issued, what));
    }

    /// The disk has done everything up to `seq`. Panics if it goes back, or ahead of the acts that were issued.
    pub fn reached(&mut self, seq: PersistSeq) {
        assert!(self.durable <= seq && seq <= self.issued, "the disk reports {seq:?} of {:?}", self.issued);
        self.durable = seq;
    }

    /// Takes the oldest act whose wait is over.
    pub fn pop(&mut self) -> Option<T> {
        let (seq, _) = self.waiting.front()?;
        if *seq > self.durable {
            return None;
        }
        self.waiting.pop_front().map(|(_, what)| what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_passes_before_the_disk() {
        let mut gate = DiskGate::default();
        let first = gate.issue();
        gate.hold("a");
        let second = gate.issue();
        gate.hold("b");
        assert_eq!(gate.pop(), None);
        gate.reached(first);
        assert_eq!((gate.pop(), gate.pop()), (Some("a"), None));
        gate.reached(second);
        assert_eq!((gate.pop(), gate.pop()), (Some("b"), None));
    }

    #[test]
    fn an_act_without_earlier_saves_goes_at_once_and_a_report_may_come_twice() {
        let mut gate = DiskGate::default();
        gate.hold("a");
        assert_eq!(gate.pop(), Some("a"));
        let first = gate.issue();
        gate.reached(first);
        gate.reached(first);
    }

    #[test]
    #[should_panic(expected = "the disk reports")]
    fn a_disk_that_goes_back_is_a_bug() {
        let mut gate = DiskGate::<()>::default();
        let (first, second) = (gate.issue(), gate.issue());
        gate.reached(second);
        gate.reached(first);
    }

    #[test]
    #[should_panic(expected = "the disk reports")]
    fn a_disk_that_reports_what_it_was_not_asked_is_a_bug() {
        DiskGate::<()>::default().reached(PersistSeq(1));
    }
}
