//! The lock that allows one process per folder: an advisory lock on a file. The system releases it when the process
//! ends in any way.

use crate::{
    disk::{NOT_THROUGH_LINKS, PRIVATE, is_lacking},
    error::{IoContext, Result, StorageError},
    folders::DataFolders,
};
use std::{
    collections::BTreeSet,
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Read, Write},
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::Path,
};

/// The name of the lock file. Java ignores it.
const LOCK_FILE: &str = "ostler.lock";

/// The locks of a server's folders, held until this is dropped.
#[derive(Debug)]
pub struct FolderLock {
    _files: Vec<File>,
}

impl FolderLock {
    /// Whether an Ostler server has left its lock file here. It says nothing about whether the folder is locked now.
    pub fn has_file(folders: &DataFolders) -> bool {
        folders.data_dir.join(LOCK_FILE).exists()
    }

    /// Locks `dataDir`, and `dataLogDir` if that is another folder. If another process has the lock, its files stay
    /// unchanged.
    pub fn take(folders: &DataFolders) -> Result<FolderLock> {
        [&folders.data_dir, &folders.data_log_dir, &folders.snapshots, &folders.logs]
            .into_iter()
            .collect::<BTreeSet<_>>()
            .into_iter()
            .for_each(|folder| warn_of_other_writers(folder));
        let mut files = vec![lock(&folders.data_dir)?];
        if folders.data_log_dir != folders.data_dir {
            files.push(lock(&folders.data_log_dir)?);
        }
        Ok(FolderLock { _files: files })
    }
}

/// Warns of a folder that other users can write to: they could replace its files.
fn warn_of_other_writers(folder: &Path) {
    const OTHERS_WRITE: u32 = 0o002;
    let Ok(found) = fs::metadata(folder) else { return };
    let (owner, own) = (found.uid(), rustix::process::geteuid().as_raw());
    if found.mode() & OTHERS_WRITE != 0 {
        tracing::warn!(
            folder = %folder.display(),
            "every user of this machine may change the files in this folder, including the data of this server; remove \
             this permission with chmod o-w"
        );
    } else if owner != own && owner != 0 && own != 0 {
        tracing::warn!(folder = %folder.display(), owner, own, "this folder belongs to another user, who may change the data");
    }
}

fn lock(folder: &Path) -> Result<File> {
    let path = folder.join(LOCK_FILE);
    // Not emptied here: until this process has the lock, the content belongs to the one that has it.
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(PRIVATE)
        .custom_flags(NOT_THROUGH_LINKS)
        .open(&path)
        .during("open", &path)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut content = String::new();
            let pid = file.read_to_string(&mut content).ok().and_then(|_| content.trim().parse().ok());
            return Err(StorageError::Locked { folder: folder.to_path_buf(), pid });
        }
        // Only a warning, since upstream takes no lock at all.
        Err(TryLockError::Error(error)) if has_no_locks(&error) => tracing::warn!(
            folder = %folder.display(), %error,
            "this file system has no locks: see to it that no second server is started with this folder"
        ),
        Err(TryLockError::Error(error)) => return Err(StorageError::io("lock", &path, error)),
    }
    file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id())).during("write", &path)?;
    Ok(file)
}

/// Whether the error says that there are no locks: NFS without its lock service, and file systems without locks.
fn has_no_locks(error: &io::Error) -> bool {
    let none = error.raw_os_error() == Some(rustix::io::Errno::NOLCK.raw_os_error());
    none || is_lacking(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_of_a_file_system_without_locks_differs_from_other_errors() {
        let error = |errno: rustix::io::Errno| io::Error::from_raw_os_error(errno.raw_os_error());
        assert!(has_no_locks(&error(rustix::io::Errno::NOLCK)));
        assert!(has_no_locks(&error(rustix::io::Errno::OPNOTSUPP)));
        assert!(!has_no_locks(&error(rustix::io::Errno::ACCESS)));
    }

    #[test]
    fn a_locked_folder_is_refused_with_the_process_id_of_the_holder() {
        let dir = tempfile::tempdir().unwrap();
        let folders = DataFolders::at(dir.path(), None);
        let held = FolderLock::take(&folders).unwrap();
        let error = FolderLock::take(&folders).unwrap_err();
        let StorageError::Locked { pid, .. } = &error else { panic!("{error}") };
        assert_eq!(*pid, Some(std::process::id()));
        assert!(error.to_string().contains(dir.path().to_str().unwrap()));
        drop(held);
        FolderLock::take(&folders).unwrap();
    }
}
