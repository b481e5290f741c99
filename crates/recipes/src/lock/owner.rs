//! Who a lock belongs to.
//!
//! In Java that is a thread. A task has no name, moves between threads and can be several futures at once, so here it
//! is a value: whoever has it is the owner.

use crate::fencing::Fence;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};
use uuid::Uuid;

/// An owner of locks. Clones are the same owner; two that are made by `new` are two owners.
///
/// Whoever holds a lock as an owner gets it again at once as the same owner. Keep it where code that must be able to
/// take a lock again can reach it: in the request's context, say.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Owner(Uuid);

impl Owner {
    /// Somebody new.
    #[allow(clippy::new_without_default)]
    pub fn new() -> Owner {
        Owner(Uuid::new_v4())
    }
}

/// What owners hold of one lock, so that they get it again at once.
#[derive(Debug)]
pub(crate) struct Holdings<H> {
    by_owner: Arc<Mutex<HashMap<Owner, Arc<Slot<H>>>>>,
}

#[derive(Debug)]
struct Slot<H> {
    /// Locked while the owner acquires, so that its other futures wait and then share.
    acquiring: tokio::sync::Mutex<()>,
    held: Mutex<Weak<H>>,
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
        Slot { acquiring: tokio::sync::Mutex::default(), held: Mutex::default() }
    }
}

impl<H> Slot<H> {
    fn lock(&self) -> MutexGuard<'_, Weak<H>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<H: AsRef<Fence>> Slot<H> {
    /// What went with its session is not held, even if its guards are still there.
    fn held(&self) -> Option<Arc<H>> {
        let holding = self.lock().upgrade();
        holding.filter(|holding| (**holding).as_ref().is_held())
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
        // What nobody acquires and nobody holds any more.
        slots.retain(|_, slot| Arc::strong_count(slot) > 1 || slot.lock().strong_count() > 0);
        slots.entry(owner.clone()).or_default().clone()
    }

    /// What the owner holds, or what it gets by `acquire`.
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
        *slot.lock() = Arc::downgrade(&holding);
        Ok(holding)
    }

    /// What the owner holds now.
    pub(crate) fn held(&self, owner: &Owner) -> Option<Arc<H>> {
        self.known(owner)?.held()
    }

    /// What the owner holds once it does not wait for it any more.
    pub(crate) async fn settled(&self, owner: &Owner) -> Option<Arc<H>> {
        let slot = self.known(owner)?;
        let _acquiring = slot.acquiring.lock().await;
        slot.held()
    }

    /// Whether the owner holds it or waits for it.
    pub(crate) fn is_wanted(&self, owner: &Owner) -> bool {
        self.known(owner).is_some_and(|slot| slot.acquiring.try_lock().is_err() || slot.held().is_some())
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
