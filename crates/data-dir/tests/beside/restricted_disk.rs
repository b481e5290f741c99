//! The system's disk with restrictions: changes that are forbidden, and files that are hidden.

use ostler_storage::{
    disk::{Disk, DiskFile, OsDisk},
    disk_layer::DiskLayer,
};
use std::{io, path::Path};

pub(crate) struct RestrictedDisk<Change, Show> {
    /// Whether a file at this path may be created, renamed or removed.
    pub(crate) may_change: Change,
    /// Whether an existing file is visible.
    pub(crate) shows: Show,
}

impl<Change, Show> DiskLayer for RestrictedDisk<Change, Show>
where
    Change: Fn(&Path) -> io::Result<()> + Send + Sync,
    Show: Fn(&Path) -> bool + Send + Sync,
{
    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        (self.may_change)(path).and_then(|()| OsDisk.create(path))
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        Ok((self.shows)(path) && OsDisk.exists(path)?)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        (self.may_change)(to).and_then(|()| OsDisk.rename(from, to))
    }
}
