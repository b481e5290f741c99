//! Who a lock belongs to.
//!
//! In Java that is a thread. A task has no name, moves between threads and can be several futures at once, so here it
//! is a value: whoever has it is the owner.

use crate::fencing::Fence;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError, Weak},
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
    by_owner: Arc<Mutex<HashMap<Owner, Slot<H>>>>,
}

/// Locked while an owner acquires, so that its other futures wait and then share.
type Slot<H> = Arc<tokio::sync::Mutex<Weak<H>>>;

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

impl<H: AsRef<Fence>> Holdings<H> {
    fn slot(&self, owner: &Owner) -> Slot<H> {
        let mut by_owner = self.by_owner.lock().unwrap_or_else(PoisonError::into_inner);
        // What nobody acquires and nobody holds any more.
        by_owner.retain(|_, slot| {
            Arc::strong_count(slot) > 1 || slot.try_lock().is_ok_and(|held| held.strong_count() > 0)
        });
        by_owner.entry(owner.clone()).or_default().clone()
    }

    /// What the owner holds, or what it gets by `acquire`.
    pub(crate) async fn share<E>(
        &self,
        owner: &Owner,
        acquire: impl Future<Output = Result<H, E>>,
    ) -> Result<Arc<H>, E> {
        let slot = self.slot(owner);
        let mut held = slot.lock().await;
        // What went with its session is not held, even if its guards are still there.
        if let Some(holding) = held.upgrade().filter(|holding| (**holding).as_ref().is_held()) {
            return Ok(holding);
        }
        let holding = Arc::new(acquire.await?);
        *held = Arc::downgrade(&holding);
        Ok(holding)
    }

    /// What the owner holds.
    pub(crate) async fn held(&self, owner: &Owner) -> Option<Arc<H>> {
        let slot = self.slot(owner);
        let held = slot.lock().await;
        held.upgrade().filter(|holding| (**holding).as_ref().is_held())
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
