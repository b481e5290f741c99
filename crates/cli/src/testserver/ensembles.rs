//! All ensembles and standalone servers of this command.

use super::{error::ControlError, request::NewEnsemble, running::Running};
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tokio::{
    sync::{Mutex as AsyncMutex, OwnedMutexGuard, Semaphore},
    task::spawn_blocking,
};

/// An ensemble, or `None` once it is deleted. Its acts are done one after the other.
type Slot = Arc<AsyncMutex<Option<Running>>>;

#[derive(Debug)]
pub(super) struct Ensembles {
    /// Below it are the servers' folders.
    folder: PathBuf,
    max: usize,
    places: Arc<Semaphore>,
    all: Mutex<Slots>,
}

#[derive(Debug, Default)]
struct Slots {
    last: u32,
    by_id: BTreeMap<u32, Slot>,
    /// The command ends: no ensemble is added.
    ended: bool,
}

/// An ensemble that nobody else uses meanwhile.
pub(super) struct Held(OwnedMutexGuard<Option<Running>>, u32);

impl Held {
    pub(super) fn running(&self) -> Result<&Running, ControlError> {
        self.0.as_ref().ok_or(ControlError::NoEnsemble(self.1))
    }

    pub(super) fn running_mut(&mut self) -> Result<&mut Running, ControlError> {
        self.0.as_mut().ok_or(ControlError::NoEnsemble(self.1))
    }
}

impl Ensembles {
    pub(super) fn new(folder: &Path, max: usize) -> Ensembles {
        let places = Arc::new(Semaphore::new(max));
        Ensembles { folder: folder.into(), max, places, all: Mutex::default() }
    }

    fn slots(&self) -> MutexGuard<'_, Slots> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts an ensemble, and returns it.
    pub(super) async fn start(&self, wanted: &NewEnsemble) -> Result<Held, ControlError> {
        let place = self.places.clone().try_acquire_owned().map_err(|_| ControlError::Full(self.max))?;
        let id = self.next_id()?;
        let slot: Slot = Arc::new(AsyncMutex::new(None));
        let mut held = Held(slot.clone().lock_owned().await, id);
        held.0.replace(Running::start(id, wanted, &self.folder, place).await?);
        if self.add(id, slot) {
            return Ok(held);
        }
        end(held.0.take()).await;
        Err(ControlError::Ends)
    }

    fn next_id(&self) -> Result<u32, ControlError> {
        let mut slots = self.slots();
        if slots.ended {
            return Err(ControlError::Ends);
        }
        slots.last += 1;
        Ok(slots.last)
    }

    /// Adds an ensemble. If the command has ended meanwhile, it returns false.
    fn add(&self, id: u32, slot: Slot) -> bool {
        let mut slots = self.slots();
        if !slots.ended {
            slots.by_id.insert(id, slot);
        }
        !slots.ended
    }

    pub(super) fn ids(&self) -> Vec<u32> {
        self.slots().by_id.keys().copied().collect()
    }

    /// Waits until nobody else uses the ensemble.
    pub(super) async fn hold(&self, id: u32) -> Result<Held, ControlError> {
        let slot = self.slots().by_id.get(&id).cloned();
        let slot = slot.ok_or(ControlError::NoEnsemble(id))?;
        Ok(Held(slot.lock_owned().await, id))
    }

    /// Ends the servers of an ensemble, and removes their folders.
    pub(super) async fn delete(&self, id: u32) -> Result<(), ControlError> {
        let slot = self.slots().by_id.remove(&id);
        let slot = slot.ok_or(ControlError::NoEnsemble(id))?;
        let running = slot.lock_owned().await.take();
        end(running).await;
        Ok(())
    }

    /// Deletes all ensembles. Returns their ids.
    pub(super) async fn delete_all(&self) -> Vec<u32> {
        let mut deleted = Vec::new();
        for id in self.ids() {
            if self.delete(id).await.is_ok() {
                deleted.push(id);
            }
        }
        deleted
    }
    /// Ends all ensembles for good, also those that are being started or deleted. Afterwards no server writes to the
    /// folder.
    pub(super) async fn end(&self) {
        self.slots().ended = true;
        self.delete_all().await;
        // A start and a deletion hold the ensemble's place until its servers have ended.
        let all = u32::try_from(self.max).unwrap_or(u32::MAX);
        let _ = self.places.acquire_many(all).await;
    }
}

/// Ends the servers, and removes their folders. The end of a server is waited for, which blocks.
async fn end(running: Option<Running>) {
    let _ = spawn_blocking(move || drop(running)).await;
}
