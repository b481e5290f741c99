//! Bugs that Curator has had, which can be switched on to check that the tests find them.
//!
//! Each is in the code behind `if planted::is(Bug::…)`. Without the feature `planted-bugs` this is `if false`, and the
//! bug is not compiled. Only `tests/holding/planted.rs` is built with the feature. Bugs that the simulator finds are
//! listed in `ostler_proto::planted`.

/// A bug that can be planted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
#[cfg_attr(
    not(feature = "planted-bugs"),
    allow(dead_code, unreachable_pub, reason = "used and public only with the feature planted-bugs")
)]
#[allow(missing_docs, reason = "the table says what each is")]
pub enum Bug {
    LatchKeepsOldZnode,
    MutexFindsOldZnode,
    LatchFindsOldZnode,
    ReconnectDeletesZnode,
    LeadsByAnEarlierLook,
    ReconnectMakesZnode,
    MissingPredecessorMakesZnode,
    PathMadeOnce,
    SelectorForgetsZnode,
    SelectorHidesError,
    ReleaseGivesUp,
    DowngradeToTheEnd,
    OtherZnodesAreContenders,
    DroppedPlaceStays,
}

#[cfg(feature = "planted-bugs")]
impl Bug {
    /// All bugs: the bug, the numbers of Curator's issues, and what goes wrong.
    pub const ALL: [(Bug, &'static str, &'static str); 14] = [
        (Bug::LatchKeepsOldZnode, "696", "in its next session a latch leads by the znode of the last one"),
        (Bug::MutexFindsOldZnode, "604", "a mutex that looks for its znode takes that of its last session"),
        (Bug::LatchFindsOldZnode, "498", "a latch that looks for its znode takes that of its last session"),
        (Bug::ReconnectDeletesZnode, "620", "a reconnect deletes the znode by which a latch leads again"),
        (
            Bug::LeadsByAnEarlierLook,
            "653",
            "after a reconnect a latch creates a new znode, but decides that it leads from a list of the queue with its \
             old one",
        ),
        (Bug::ReconnectMakesZnode, "644", "a reconnect makes a latch give its znode up and create another"),
        (
            Bug::MissingPredecessorMakesZnode,
            "645",
            "a contender that finds the znode before its own gone creates another one instead of looking again",
        ),
        (
            Bug::PathMadeOnce,
            "724",
            "a latch creates the parent of its znode only before its first leadership",
        ),
        (Bug::SelectorForgetsZnode, "188", "a selector that has led leaves its znode behind"),
        (Bug::SelectorHidesError, "15", "a selector that cannot contend does not say why"),
        (Bug::ReleaseGivesUp, "595, 678", "a release that meets a connection loss is not tried again"),
        (Bug::DowngradeToTheEnd, "621, 276", "a writer that becomes a reader goes to the end of the queue"),
        (
            Bug::OtherZnodesAreContenders,
            "43",
            "znodes below a lock that are no contenders come before all contenders",
        ),
        (Bug::DroppedPlaceStays, "335, 462", "a contender that stops waiting leaves its znodes behind"),
    ];

    /// The bug that was reported in the issue with this number.
    pub fn of_issue(number: &str) -> Option<Bug> {
        let mut all = Bug::ALL.into_iter();
        all.find(|(_, issues, _)| issues.split(", ").any(|issue| issue == number)).map(|(bug, ..)| bug)
    }
}

#[cfg(feature = "planted-bugs")]
mod planted_one {
    use super::Bug;
    use ostler_client::ProtectionId;
    use std::sync::{
        LazyLock,
        atomic::{AtomicBool, AtomicU8, Ordering},
    };

    const NONE: u8 = u8::MAX;
    /// The bug of this process. A global is fine here: the feature is for tests only.
    static PLANTED: AtomicU8 = AtomicU8::new(NONE);
    static KEPT: LazyLock<ProtectionId> = LazyLock::new(ProtectionId::new);
    static IS_USED: AtomicBool = AtomicBool::new(false);

    /// Plants a bug in this process.
    pub fn plant(bug: Bug) {
        PLANTED.store(bug as u8, Ordering::Relaxed);
    }

    /// Whether this bug is planted.
    pub fn is(bug: Bug) -> bool {
        PLANTED.load(Ordering::Relaxed) == bug as u8
    }

    /// With a bug that keeps a contender's id from session to session: the id, and whether it was used before, so that
    /// the contender looks for a znode with it.
    pub(crate) fn kept_id() -> Option<(ProtectionId, bool)> {
        let is_kept = is(Bug::MutexFindsOldZnode) || is(Bug::LatchFindsOldZnode);
        is_kept.then(|| (*KEPT, IS_USED.swap(true, Ordering::Relaxed)))
    }
}

#[cfg(feature = "planted-bugs")]
pub(crate) use planted_one::kept_id;
#[cfg(feature = "planted-bugs")]
pub use planted_one::{is, plant};

/// Whether this bug is planted.
#[cfg(not(feature = "planted-bugs"))]
pub(crate) const fn is(_: Bug) -> bool {
    false
}
