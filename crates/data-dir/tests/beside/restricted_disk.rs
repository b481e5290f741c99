//! The system's disk with restrictions: changes that are forbidden, and files that are hidden.

use ostler_storage::disk::{Disk, DiskFile, OsDisk};
use std::{io, path::Path};

pub(crate) struct RestrictedDisk<Change, Show> {
    /// Whether a file at this path may be created, renamed or removed.
    pub(crate) may_change: Change,
    /// Whether an existing file is visible.
    pub(crate) shows: Show,
}

impl<Change, Show> Disk for RestrictedDisk<Change, Show>
where
    Change: Fn(&Path) -> io::Result<()> + Send + Sync,
    Show: Fn(&Path) -> bool + Send + Sync,
{
    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        (self.may_change)(path).and_then(|()| OsDisk.create(path))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        OsDisk.open(path)
    }

    fn open_to_change(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        OsDisk.open_to_change(path)
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        Ok((self.shows)(path) && OsDisk.exists(path)?)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        (self.may_change)(to).and_then(|()| OsDisk.rename(from, to))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        OsDisk.remove(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        OsDisk.list(dir)
    }

    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        OsDisk.create_dir_all(dir)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        OsDisk.sync_dir(dir)
    }
}
