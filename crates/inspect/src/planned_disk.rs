//! A disk on which changes are only planned: it reads the real files, as if some were gone and some were shorter, and
//! keeps no write. So a start can be tried before anything is changed.

use ostler_storage::{
    disk::{Disk, DiskFile, FileIdentity, OsDisk},
    disk_layer::DiskLayer,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    path::{Path, PathBuf},
};

/// The real disk with planned changes. Every operation that writes succeeds and does nothing.
#[derive(Debug, Clone, Default)]
pub struct PlannedDisk {
    /// Files that are taken for gone.
    pub gone: BTreeSet<PathBuf>,
    /// Files that are taken for shorter, with their size in bytes.
    pub cut: BTreeMap<PathBuf, u64>,
}

impl PlannedDisk {
    fn read(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        if self.gone.contains(path) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let limit = self.cut.get(path).copied();
        Ok(Box::new(ReadOnlyFile { file: Some(Disk::open(&OsDisk, path)?), limit }))
    }
}

impl DiskLayer for PlannedDisk {
    fn create(&self, _path: &Path) -> io::Result<Box<dyn DiskFile>> {
        Ok(Box::new(ReadOnlyFile { file: None, limit: None }))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        self.read(path)
    }

    fn open_to_change(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        self.read(path)
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        if self.gone.contains(path) { Ok(false) } else { Disk::exists(&OsDisk, path) }
    }

    fn rename(&self, _from: &Path, _to: &Path) -> io::Result<()> {
        Ok(())
    }

    fn remove(&self, _path: &Path) -> io::Result<()> {
        Ok(())
    }

    fn remove_while(&self, _path: &Path, _go_on: &dyn Fn() -> bool) -> io::Result<()> {
        Ok(())
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let mut names = Disk::list(&OsDisk, dir)?;
        names.retain(|name| !self.gone.contains(&dir.join(name)));
        Ok(names)
    }

    fn copy_access(&self, _from: &Path, _to: &Path) -> io::Result<()> {
        Ok(())
    }

    fn create_dir_all(&self, _dir: &Path) -> io::Result<()> {
        Ok(())
    }

    fn sync_dir(&self, _dir: &Path) -> io::Result<()> {
        Ok(())
    }
}

/// A file that keeps no write; `None` for one that was only created in the plan.
struct ReadOnlyFile {
    file: Option<Box<dyn DiskFile>>,
    limit: Option<u64>,
}

impl DiskFile for ReadOnlyFile {
    fn identity(&self) -> io::Result<FileIdentity> {
        self.file.as_ref().map_or(Ok(FileIdentity { inode: 0, born: 0 }), |file| file.identity())
    }

    fn size(&self) -> io::Result<u64> {
        let size = self.file.as_ref().map_or(Ok(0), |file| file.size())?;
        Ok(self.limit.map_or(size, |limit| size.min(limit)))
    }

    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        let Some(file) = &self.file else { return Ok(0) };
        let left = self.size()?.saturating_sub(offset);
        let room = into.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        file.read_at(&mut into[..room], offset)
    }

    fn write_all_at(&self, _bytes: &[u8], _offset: u64) -> io::Result<()> {
        Ok(())
    }

    fn allocate(&self, _size: u64) -> io::Result<()> {
        Ok(())
    }

    fn clear(&self) -> io::Result<bool> {
        Ok(true)
    }

    fn truncate(&self, _size: u64) -> io::Result<()> {
        Ok(())
    }

    fn write_back(&self, _offset: u64, _length: u64) -> io::Result<()> {
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_hides_and_cuts_files_and_keeps_no_write() {
        let dir = tempfile::tempdir().unwrap();
        let (a, b) = (dir.path().join("a"), dir.path().join("b"));
        std::fs::write(&a, b"abcdef").unwrap();
        std::fs::write(&b, b"x").unwrap();
        let plan = PlannedDisk { gone: [b.clone()].into(), cut: [(a.clone(), 4)].into() };
        let disk: &dyn Disk = &plan;
        assert_eq!(disk.list(dir.path()).unwrap(), ["a"]);
        assert!(!disk.exists(&b).unwrap() && disk.open(&b).is_err());
        let file = disk.open_to_change(&a).unwrap();
        let mut bytes = [0; 9];
        assert_eq!((file.size().unwrap(), file.read_at(&mut bytes, 1).unwrap()), (4, 3));
        file.write_all_at(b"zz", 0).unwrap();
        file.truncate(0).unwrap();
        disk.remove(&a).unwrap();
        disk.create(&a).unwrap().write_all_at(b"q", 0).unwrap();
        assert_eq!(std::fs::read(&a).unwrap(), b"abcdef");
    }
}
