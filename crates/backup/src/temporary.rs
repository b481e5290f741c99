//! An object in memory as a file, so that the readers of the storage layer take it.

use bytes::Bytes;
use ostler_storage::disk::{DiskFile, FileIdentity};
use std::io;

/// A file in memory that is only read.
#[derive(Debug)]
pub(crate) struct MemoryFile(pub(crate) Bytes);

fn read_only<T>() -> io::Result<T> {
    Err(io::ErrorKind::ReadOnlyFilesystem.into())
}

impl DiskFile for MemoryFile {
    fn identity(&self) -> io::Result<FileIdentity> {
        Ok(FileIdentity { inode: 0, born: 0 })
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.0.len() as u64)
    }

    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(self.0.len());
        let size = into.len().min(self.0.len() - start);
        into[..size].copy_from_slice(&self.0[start..start + size]);
        Ok(size)
    }

    fn write_all_at(&self, _: &[u8], _: u64) -> io::Result<()> {
        read_only()
    }

    fn allocate(&self, _: u64) -> io::Result<()> {
        read_only()
    }

    fn clear(&self) -> io::Result<bool> {
        read_only()
    }

    fn truncate(&self, _: u64) -> io::Result<()> {
        read_only()
    }

    fn write_back(&self, _: u64, _: u64) -> io::Result<()> {
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }
}
