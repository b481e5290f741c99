//! A disk in memory that never fails.

use ostler_storage::disk::{Disk, DiskFile, FileIdentity};
use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard},
};

type Bytes = Arc<Mutex<Vec<u8>>>;

/// The files by their paths. Clones share them.
#[derive(Clone, Default)]
pub struct RamDisk(Arc<Mutex<BTreeMap<PathBuf, Bytes>>>);

struct RamFile(Bytes);

impl RamDisk {
    /// Writes a file.
    pub fn put(&self, path: &Path, bytes: Vec<u8>) {
        self.names().insert(path.to_path_buf(), Arc::new(Mutex::new(bytes)));
    }

    fn names(&self) -> MutexGuard<'_, BTreeMap<PathBuf, Bytes>> {
        self.0.lock().expect("a panic ends the run")
    }

    fn file(&self, path: &Path) -> io::Result<Bytes> {
        self.names().get(path).cloned().ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

impl Disk for RamDisk {
    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        let bytes = Bytes::default();
        self.names().insert(path.to_path_buf(), bytes.clone());
        Ok(Box::new(RamFile(bytes)))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        Ok(Box::new(RamFile(self.file(path)?)))
    }

    fn open_to_change(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        self.open(path)
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        Ok(self.names().keys().any(|name| name.starts_with(path)))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let bytes = self.file(from)?;
        let mut names = self.names();
        names.remove(from);
        names.insert(to.to_path_buf(), bytes);
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.names().remove(path).map(drop).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let names = self.names();
        let here = names.keys().filter(|path| path.parent() == Some(dir));
        Ok(here.filter_map(|path| Some(path.file_name()?.to_str()?.to_owned())).collect())
    }

    fn create_dir_all(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn sync_dir(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }
}

impl RamFile {
    fn bytes(&self) -> MutexGuard<'_, Vec<u8>> {
        self.0.lock().expect("a panic ends the run")
    }
}

impl DiskFile for RamFile {
    fn identity(&self) -> io::Result<FileIdentity> {
        Ok(FileIdentity { inode: Arc::as_ptr(&self.0).addr() as u64, born: 0 })
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.bytes().len() as u64)
    }

    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        let bytes = self.bytes();
        let rest = bytes.get(offset as usize..).unwrap_or_default();
        let size = rest.len().min(into.len());
        into[..size].copy_from_slice(&rest[..size]);
        Ok(size)
    }

    fn write_all_at(&self, new: &[u8], offset: u64) -> io::Result<()> {
        let mut bytes = self.bytes();
        let (start, end) = (offset as usize, offset as usize + new.len());
        let size = bytes.len().max(end);
        bytes.resize(size, 0);
        bytes[start..end].copy_from_slice(new);
        Ok(())
    }

    fn allocate(&self, size: u64) -> io::Result<()> {
        let mut bytes = self.bytes();
        let size = bytes.len().max(size as usize);
        bytes.resize(size, 0);
        Ok(())
    }

    fn clear(&self) -> io::Result<bool> {
        self.bytes().fill(0);
        Ok(true)
    }

    fn truncate(&self, size: u64) -> io::Result<()> {
        self.bytes().truncate(size as usize);
        Ok(())
    }

    fn write_back(&self, _: u64, _: u64) -> io::Result<()> {
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }
}
