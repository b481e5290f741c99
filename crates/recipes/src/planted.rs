//! The id that a planted bug keeps from session to session.

#[cfg(feature = "planted-bugs")]
mod kept {
    use ostler_client::ProtectionId;
    use ostler_planted::{self as planted, Bug};
    use std::sync::{
        LazyLock,
        atomic::{AtomicBool, Ordering},
    };

    static KEPT: LazyLock<ProtectionId> = LazyLock::new(ProtectionId::new);
    static IS_USED: AtomicBool = AtomicBool::new(false);

    /// With a bug that keeps a contender's id from session to session: the id, and whether it was used before, so that
    /// the contender looks for a znode with it.
    pub(crate) fn kept_id() -> Option<(ProtectionId, bool)> {
        let is_kept = planted::is(Bug::MutexFindsOldZnode) || planted::is(Bug::LatchFindsOldZnode);
        is_kept.then(|| (*KEPT, IS_USED.swap(true, Ordering::Relaxed)))
    }
}

#[cfg(feature = "planted-bugs")]
pub(crate) use kept::kept_id;
