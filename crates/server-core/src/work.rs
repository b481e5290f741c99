//! How much work is done while nobody else gets at the member.
//!
//! Work is counted in steps: a look-up in a table, or so. Every request pays for itself and for whatever in it grows with
//! what clients have made. The shell ends a batch of requests, and the member ends what it can do in parts, once
//! [`WORK_PER_HOLD`] is spent; the rest goes on when others have had their turn.
//!
//! What cannot be done in parts pays as well, so that nothing comes after it in the same hold:
//!
//! | One step of | is bounded by |
//! |---|---|
//! | getChildren, getChildren2, getEphemerals | the parts of one list: a million names are some thousand parts |
//! | getACL | one list, and so a frame |
//! | multi | the operations in a frame: it is done as a whole |
//! | multiRead at a learner | the operations in a frame, if a commit comes while it is under way |
//! | create and setACL | the entries of a list in a frame, each of which is checked |
//! | closeSession | the session's ephemerals, which end with it in one transaction |
//! | a change of a znode | its watchers: all of them hear of it before anybody sees it |
//!
//! A frame has `jute.maxbuffer` bytes, a million if nothing else is set.

use core::cell::Cell;

/// Steps after which a hold of the member ends. A step takes a quarter of a microsecond or less.
pub const WORK_PER_HOLD: u64 = 4096;

/// What each request costs, whatever it is.
pub(crate) const REQUEST: usize = 2;
/// A write that is prepared, and each operation of a multi.
pub(crate) const WRITE: usize = 6;
/// A transaction that is applied.
pub(crate) const COMMIT: usize = 8;
/// One change in it: its znode, the lists and the counts above, its record.
pub(crate) const CHANGE: usize = 8;
/// A path that is watched.
pub(crate) const WATCH: usize = 3;
/// The number of names, or entries of a list, that make a step.
pub(crate) const NAMES: usize = 4;
/// The number of bytes, copied or hashed, that make a step.
pub(crate) const BYTES: usize = 1024;

/// Counts steps. Behind a cell, since looking something up pays as well.
#[derive(Debug, Default)]
pub(crate) struct Work {
    done: Cell<u64>,
    /// When the present hold began.
    began: Cell<u64>,
}

impl Work {
    pub(crate) fn add(&self, steps: usize) {
        self.done.set(self.done.get() + steps as u64);
    }

    /// A new hold begins, for all that can be done in parts.
    pub(crate) fn begin(&self) {
        self.began.set(self.done.get());
    }

    /// Whether what can be done in parts has to stop.
    pub(crate) fn is_spent(&self) -> bool {
        self.done.get() - self.began.get() >= WORK_PER_HOLD
    }

    pub(crate) fn done(&self) -> u64 {
        self.done.get()
    }
}
