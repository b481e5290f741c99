//! An old log file that becomes the next one.
//!
//! Removing a log and reserving space for another costs a busy server tens of milliseconds each time: the
//! file system tells the device of every block freed, and all syncs wait for that. Clearing a file keeps
//! its blocks.

use crate::{
    disk::{Disk, DiskFile},
    error::{IoContext, Result},
};
use std::{
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
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
    ready: AtomicBool,
}

impl SpareLog {
    /// For the logs in `dir`.
    pub fn new(dir: PathBuf) -> SpareLog {
        SpareLog { dir, ready: AtomicBool::new(false) }
    }

    /// Keeps a log that nobody needs as the spare. `false` if it was left where it is: there is a spare, or
    /// files here cannot be cleared.
    pub fn keep(&self, disk: &dyn Disk, old: &Path) -> Result<bool> {
        if self.ready.load(Ordering::Acquire) {
            return Ok(false);
        }
        // Its old name must be gone for good before its records are.
        let spare = self.dir.join(NAME);
        disk.rename(old, &spare).during("rename", old)?;
        disk.sync_dir(&self.dir).during("sync", &self.dir)?;
        let file = disk.open_to_change(&spare).during("open", &spare)?;
        if !file.clear().during("clear", &spare)? {
            disk.remove(&spare).during("remove", &spare)?;
            return Ok(true);
        }
        file.sync_data().during("sync", &spare)?;
        self.ready.store(true, Ordering::Release);
        Ok(true)
    }

    /// Gives the spare, if there is one, the name of a new log. The name is not durable yet.
    pub(crate) fn take(&self, disk: &dyn Disk, log: &Path) -> Result<Option<Box<dyn DiskFile>>> {
        if !self.ready.swap(false, Ordering::AcqRel) {
            return Ok(None);
        }
        let spare = self.dir.join(NAME);
        disk.rename(&spare, log).during("rename", &spare)?;
        Ok(Some(disk.open_to_change(log).during("open", log)?))
    }
}
