//! [`SharedFiles`]: the operating system's files with a mode that lets other users read them.

use crate::{
    disk::{DiskFile, create_with_mode, make_folders_with_mode},
    disk_layer::DiskLayer,
};
use std::{io, path::Path};

/// The operating system's files. New ones get this mode, less the bits of the process's umask. Existing files keep
/// their mode.
#[derive(Debug, Clone, Copy)]
pub struct SharedFiles {
    /// The mode of new files. New folders can be opened by the users that the mode lets read.
    pub mode: u32,
}

impl DiskLayer for SharedFiles {
    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        create_with_mode(path, self.mode)
    }

    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        make_folders_with_mode(dir, self.mode)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::Disk;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_new_file_has_the_given_mode() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let disk: &dyn Disk = &SharedFiles { mode: 0o640 };
        assert!(!disk.exists(&path).unwrap());
        drop(disk.create(&path).unwrap());
        assert!(disk.exists(&path).unwrap());
        let mode = path.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o707, 0o600, "the group's part is the umask's");
    }
}
