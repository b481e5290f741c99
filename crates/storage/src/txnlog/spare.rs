//! The spare log: an old log file that is cleared and becomes the next one.
//!
//! Removing a log and reserving space for another costs a busy server tens of milliseconds each time: the file system
//! tells its device of each freed block, and all syncs wait for that. Clearing a file keeps its blocks.

use crate::{
    disk::{Disk, DiskFile, sync_names},
    error::{IoContext, Result},
};
use std::{
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError, TryLockError},
};

/// The name of the spare, which upstream does not take for a log.
const NAME: &str = "spare-log";

/// The place for one spare file. The purge puts a file there, and the writer of the log takes it.
///
/// Only a file that this process has cleared and synced is used. A spare of an earlier process may have records, and
/// the next spare replaces it.
#[derive(Debug)]
pub struct SpareLog {
    dir: PathBuf,
    /// Whether there is a spare. Locked while one is made, since two at a time would have the same name.
    ready: Mutex<bool>,
}

impl SpareLog {
    /// The place for a spare of the logs in `dir`. There is none yet.
    pub fn new(dir: PathBuf) -> SpareLog {
        SpareLog { dir, ready: Mutex::new(false) }
    }

    /// Makes an old log the spare, or removes it if it cannot be cleared or has another name. Returns false and leaves
    /// the file if there is a spare already.
    pub fn keep(&self, disk: &dyn Disk, old: &Path) -> Result<bool> {
        // A poisoned lock can be used: `ready` is set only when the spare is complete.
        let mut ready = self.ready.lock().unwrap_or_else(PoisonError::into_inner);
        if *ready {
            return Ok(false);
        }
        if !disk.is_only_here(old).during("look at", old)? {
            disk.remove(old).during("remove", old)?;
            return Ok(true);
        }
        // The old name must be gone durably before the records are cleared.
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

    /// Gives the spare the name of a new log, not durably. `None` if there is no spare, or if one is just being made:
    /// the log does not wait for it.
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
        // It may have got another hard link since.
        if !disk.is_only_here(&spare).during("look at", &spare)? {
            disk.remove(&spare).during("remove", &spare)?;
            return Ok(None);
        }
        disk.rename(&spare, log).during("rename", &spare)?;
        Ok(Some(disk.open_to_change(log).during("open", log)?))
    }
}
