//! Owners of reentrant locks.
//!
//! In Java a thread owns a lock. A task has no name, moves between threads and can be several futures at once. So an
//! owner is a value here, which the program passes to `acquire_as`.

use crate::fencing::Fence;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};
use uuid::Uuid;

/// An owner of locks. Clones are the same owner; two calls of `new` make two owners.
///
/// An owner that holds a lock can acquire it again at once. Keep the owner where all code that acquires the lock again
/// can reach it, for example in a request's context.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Owner(Uuid);

impl Owner {
    /// A new owner, which holds nothing.
    #[allow(clippy::new_without_default)]
    pub fn new() -> Owner {
        Owner(Uuid::new_v4())
    }
}

/// For one lock: the acquisition that each owner holds, so that the owner can acquire the lock again.
#[derive(Debug)]
pub(crate) struct Holdings<H> {
    by_owner: Arc<Mutex<HashMap<Owner, Arc<Slot<H>>>>>,
}

#[derive(Debug)]
struct Slot<H> {
    /// Locked while the owner acquires. Other futures of the owner wait for this lock and then share the acquisition.
    acquiring: tokio::sync::Mutex<()>,
    held: Mutex<Held<H>>,
}

/// The acquisition that an owner holds, or has held.
#[derive(Debug)]
struct Held<H> {
    holding: Weak<H>,
    fence: Option<Fence>,
}

impl<H> Clone for Holdings<H> {
    fn clone(&self) -> Self {
        Holdings { by_owner: self.by_owner.clone() }
    }
}

impl<H> Default for Holdings<H> {
    fn default() -> Self {
        Holdings { by_owner: Arc::default() }
    }
}

impl<H> Default for Slot<H> {
    fn default() -> Self {
        Slot {
            acquiring: tokio::sync::Mutex::default(),
            held: Mutex::new(Held { holding: Weak::new(), fence: None }),
        }
    }
}

impl<H> Slot<H> {
    fn lock(&self) -> MutexGuard<'_, Held<H>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether there is an acquisition, and its session lives. After the session's end the lock is not held, even if there
    /// are guards. It takes no share of the acquisition, not even for a moment: a guard that is released meanwhile would
    /// not be the last one, and the release would return before the znode is deleted.
    fn is_held(&self) -> bool {
        let held = self.lock();
        held.holding.strong_count() > 0 && held.fence.as_ref().is_some_and(Fence::is_held)
    }
}

impl<H: AsRef<Fence>> Slot<H> {
    /// A share of the acquisition, if it [is held](Slot::is_held).
    fn held(&self) -> Option<Arc<H>> {
        self.is_held().then(|| self.lock().holding.upgrade()).flatten()
    }
}

impl<H: AsRef<Fence>> Holdings<H> {
    fn slots(&self) -> MutexGuard<'_, HashMap<Owner, Arc<Slot<H>>>> {
        self.by_owner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn known(&self, owner: &Owner) -> Option<Arc<Slot<H>>> {
        self.slots().get(owner).cloned()
    }

    fn slot(&self, owner: &Owner) -> Arc<Slot<H>> {
        let mut slots = self.slots();
        // Removes the slots of owners that neither hold nor wait.
        slots.retain(|_, slot| Arc::strong_count(slot) > 1 || slot.lock().holding.strong_count() > 0);
        slots.entry(owner.clone()).or_default().clone()
    }

    /// The owner's acquisition: the one that it holds, or a new one by `acquire`.
    pub(crate) async fn share<E>(
        &self,
        owner: &Owner,
        acquire: impl Future<Output = Result<H, E>>,
    ) -> Result<Arc<H>, E> {
        let slot = self.slot(owner);
        let _acquiring = slot.acquiring.lock().await;
        if let Some(holding) = slot.held() {
            return Ok(holding);
        }
        let holding = Arc::new(acquire.await?);
        let fence = Some((*holding).as_ref().clone());
        *slot.lock() = Held { holding: Arc::downgrade(&holding), fence };
        Ok(holding)
    }

    /// Whether the owner holds the lock.
    pub(crate) fn is_held(&self, owner: &Owner) -> bool {
        self.known(owner).is_some_and(|slot| slot.is_held())
    }

    /// The acquisition that the owner holds. If the owner waits for the lock now, this waits for the end of that wait.
    pub(crate) async fn settled(&self, owner: &Owner) -> Option<Arc<H>> {
        let slot = self.known(owner)?;
        let _acquiring = slot.acquiring.lock().await;
        slot.held()
    }

    /// Whether the owner holds the lock or waits for it.
    pub(crate) fn is_wanted(&self, owner: &Owner) -> bool {
        self.known(owner).is_some_and(|slot| slot.acquiring.try_lock().is_err() || slot.is_held())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clones_are_the_same_owner() {
        let owner = Owner::new();
        assert_eq!(owner, owner.clone());
        assert_ne!(owner, Owner::new());
    }
}
