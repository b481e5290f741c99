//! An old log file that becomes the next one.
//!
//! Removing a log and reserving space for another costs a busy server tens of milliseconds each time: the
//! file system tells the device of every block freed, and all syncs wait for that. Clearing a file keeps
//! its blocks.

use crate::{
    disk::{Disk, DiskFile, sync_names},
    error::{IoContext, Result},
};
use std::{
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError, TryLockError},
};

/// No name that upstream would take for a log's.
const NAME: &str = "spare-log";

/// The place of one spare file, shared by who removes logs and who writes them.
///
/// Only a file that this process has cleared and synced is ready. One that an earlier process left may hold
/// records, and is replaced by the next.
#[derive(Debug)]
pub struct SpareLog {
    dir: PathBuf,
    /// Whether there is a spare. Locked while one is made: two at once would take each other's name.
    ready: Mutex<bool>,
}

impl SpareLog {
    /// For the logs in `dir`.
    pub fn new(dir: PathBuf) -> SpareLog {
        SpareLog { dir, ready: Mutex::new(false) }
    }

    /// Keeps a log that nobody needs as the spare, or removes it where files cannot be cleared. `false` if it was
    /// left where it is, as there is a spare already.
    pub fn keep(&self, disk: &dyn Disk, old: &Path) -> Result<bool> {
        // Nothing in here panics half-way: an error leaves no spare.
        let mut ready = self.ready.lock().unwrap_or_else(PoisonError::into_inner);
        if *ready {
            return Ok(false);
        }
        if !disk.is_only_here(old).during("look at", old)? {
            disk.remove(old).during("remove", old)?;
            return Ok(true);
        }
        // Its old name must be gone for good before its records are.
        let spare = self.dir.join(NAME);
        disk.rename(old, &spare).during("rename", old)?;
        sync_names(disk, &self.dir)?;
        let file = disk.open_to_change(&spare).during("open", &spare)?;
        if !file.clear().during("clear", &spare)? {
            disk.remove(&spare).during("remove", &spare)?;
            return Ok(true);
        }
        file.sync_data().during("sync", &spare)?;
        *ready = true;
        Ok(true)
    }

    /// Gives the spare, if there is one, the name of a new log. The name is not durable yet. Nobody waits for a
    /// spare that is being made.
    pub(crate) fn take(&self, disk: &dyn Disk, log: &Path) -> Result<Option<Box<dyn DiskFile>>> {
        let mut ready = match self.ready.try_lock() {
            Ok(ready) => ready,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return Ok(None),
        };
        if !std::mem::take(&mut *ready) {
            return Ok(None);
        }
        let spare = self.dir.join(NAME);
        // It may have got another name since.
        if !disk.is_only_here(&spare).during("look at", &spare)? {
            disk.remove(&spare).during("remove", &spare)?;
            return Ok(None);
        }
        disk.rename(&spare, log).during("rename", &spare)?;
        Ok(Some(disk.open_to_change(log).during("open", log)?))
    }
}
