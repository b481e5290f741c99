//! [`SharedFiles`]: the operating system's files with a mode that lets other users read them.

use crate::disk::{Disk, DiskFile, OsDisk, create_with_mode, make_folders_with_mode};
use std::{
    io,
    path::{Path, PathBuf},
};

/// The operating system's files. New ones get this mode, less the bits of the process's umask. Existing files keep
/// their mode.
#[derive(Debug, Clone, Copy)]
pub struct SharedFiles {
    /// The mode of new files. New folders can be opened by the users that the mode lets read.
    pub mode: u32,
}

impl Disk for SharedFiles {
    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        create_with_mode(path, self.mode)
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        OsDisk.open(path)
    }

    fn open_to_change(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        OsDisk.open_to_change(path)
    }

    fn is_only_here(&self, path: &Path) -> io::Result<bool> {
        OsDisk.is_only_here(path)
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        OsDisk.exists(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        OsDisk.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        OsDisk.remove(path)
    }

    fn remove_while(&self, path: &Path, go_on: &dyn Fn() -> bool) -> io::Result<()> {
        OsDisk.remove_while(path, go_on)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        OsDisk.list(dir)
    }

    fn behind_links(&self, path: &Path) -> io::Result<PathBuf> {
        OsDisk.behind_links(path)
    }

    fn copy_access(&self, from: &Path, to: &Path) -> io::Result<()> {
        OsDisk.copy_access(from, to)
    }

    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        make_folders_with_mode(dir, self.mode)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        OsDisk.sync_dir(dir)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_new_file_has_the_given_mode() {
        let dir = tempfile::tempdir().unwrap();
        let (path, disk) = (dir.path().join("log"), SharedFiles { mode: 0o640 });
        assert!(!disk.exists(&path).unwrap());
        drop(disk.create(&path).unwrap());
        assert!(disk.exists(&path).unwrap());
        let mode = path.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o707, 0o600, "the group's part is the umask's");
    }
}
