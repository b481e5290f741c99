//! The gaps between the last signs of life of a connection.

use crate::input::Mono;
use alloc::vec::Vec;

/// The number of gaps that are kept.
const KEPT: usize = 8;

/// When a connection was last heard of, and the last gaps between its requests. It takes no memory beside itself.
#[derive(Debug, Clone)]
pub(crate) struct Gaps {
    last: Mono,
    /// A ring; `noted` counts on.
    gaps: [u32; KEPT],
    noted: u32,
    longest_ms: u32,
}

impl Gaps {
    /// Nothing but the connection itself has come.
    pub(crate) fn new(now: Mono) -> Gaps {
        Gaps { last: now, gaps: [0; KEPT], noted: 0, longest_ms: 0 }
    }

    /// Notes that something came. Requests within one millisecond count as one.
    pub(crate) fn note(&mut self, now: Mono) {
        let gap = now.0.saturating_sub(self.last.0);
        if gap == 0 {
            return;
        }
        self.last = now;
        let gap = u32::try_from(gap).unwrap_or(u32::MAX);
        self.gaps[self.noted as usize % KEPT] = gap;
        self.noted = self.noted.wrapping_add(1);
        self.longest_ms = self.longest_ms.max(gap);
    }

    /// The time since the last sign of life, ms.
    pub(crate) fn silent_ms(&self, now: Mono) -> u64 {
        now.0.saturating_sub(self.last.0)
    }

    /// The longest gap of the connection, ms.
    pub(crate) fn longest_ms(&self) -> u32 {
        self.longest_ms
    }

    /// The last gaps in ms, the oldest first.
    pub(crate) fn last_ms(&self) -> Vec<u32> {
        let noted = self.noted as usize;
        (noted.saturating_sub(KEPT)..noted).map(|at| self.gaps[at % KEPT]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_eight_gaps_are_kept_in_order() {
        let mut gaps = Gaps::new(Mono(0));
        assert_eq!((gaps.last_ms(), gaps.silent_ms(Mono(7))), (Vec::new(), 7));
        let mut at = 0;
        for gap in 1..=10 {
            at += gap;
            gaps.note(Mono(at));
            gaps.note(Mono(at));
        }
        assert_eq!(gaps.last_ms(), [3, 4, 5, 6, 7, 8, 9, 10]);
        assert_eq!((gaps.longest_ms(), gaps.silent_ms(Mono(at + 5))), (10, 5));
    }

    #[test]
    fn a_clock_that_stands_still_or_goes_back_leaves_no_gap() {
        let mut gaps = Gaps::new(Mono(100));
        gaps.note(Mono(100));
        gaps.note(Mono(50));
        assert!(gaps.last_ms().is_empty());
    }
}
