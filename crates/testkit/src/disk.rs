//! A disk without fsync: files survive the end of a server process, but not a crash of the machine.

use ostler_storage::{
    disk::{Disk, DiskFile, FileIdentity, OsDisk},
    disk_layer::DiskLayer,
};
use std::{io, path::Path};

/// [`OsDisk`] without its syncs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct UnsyncedDisk;

struct UnsyncedFile(Box<dyn DiskFile>);

fn unsynced(file: io::Result<Box<dyn DiskFile>>) -> io::Result<Box<dyn DiskFile>> {
    Ok(Box::new(UnsyncedFile(file?)))
}

impl DiskLayer for UnsyncedDisk {
    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        unsynced(OsDisk.create(path))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        unsynced(OsDisk.open(path))
    }

    fn open_to_change(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        unsynced(OsDisk.open_to_change(path))
    }

    fn sync_dir(&self, _dir: &Path) -> io::Result<()> {
        Ok(())
    }
}

impl DiskFile for UnsyncedFile {
    fn identity(&self) -> io::Result<FileIdentity> {
        self.0.identity()
    }

    fn size(&self) -> io::Result<u64> {
        self.0.size()
    }

    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        self.0.read_at(into, offset)
    }

    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.0.write_all_at(bytes, offset)
    }

    fn allocate(&self, size: u64) -> io::Result<()> {
        self.0.allocate(size)
    }

    fn clear(&self) -> io::Result<bool> {
        self.0.clear()
    }

    fn truncate(&self, size: u64) -> io::Result<()> {
        self.0.truncate(size)
    }

    fn write_back(&self, _offset: u64, _length: u64) -> io::Result<()> {
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }
}
