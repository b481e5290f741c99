//! The work budget: how much the member does before the shell lets others use it.
//!
//! Work is counted in units, each about one look-up in a table. A request costs a fixed number of units, and more for
//! everything whose size clients decide. When [`WORK_PER_HOLD`] is spent, the shell ends its batch of requests, and the
//! member stops work that can be done in parts. The rest follows after others have had their turn.
//!
//! Work that cannot be done in parts is counted, too, so that nothing else is done after it in the same hold:
//!
//! | Work in one piece | is bounded by |
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

/// The units after which a hold of the member ends. A unit takes a quarter of a microsecond or less.
pub const WORK_PER_HOLD: u64 = 4096;

/// The cost of any request.
pub(crate) const REQUEST: usize = 2;
/// The cost of preparing a write, or an operation of a multi.
pub(crate) const WRITE: usize = 6;
/// The cost of applying a transaction.
pub(crate) const COMMIT: usize = 8;
/// The cost of each change in a transaction.
pub(crate) const CHANGE: usize = 8;
/// The cost of a watched path.
pub(crate) const WATCH: usize = 3;
/// The number of names, or entries of a list, that cost a unit.
pub(crate) const NAMES: usize = 4;
/// The number of bytes, copied or hashed, that cost a unit.
pub(crate) const BYTES: usize = 1024;

/// Counts units. Behind a cell, as reads of the member count as well.
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

    /// Begins a new hold.
    pub(crate) fn begin(&self) {
        self.began.set(self.done.get());
    }

    /// Whether the budget is spent: work that can be done in parts has to stop.
    pub(crate) fn is_spent(&self) -> bool {
        self.done.get() - self.began.get() >= WORK_PER_HOLD
    }

    pub(crate) fn done(&self) -> u64 {
        self.done.get()
    }
}
