//! A folder in dataDir for a snapshot that is only passed on.

use std::{
    fs::{self, DirBuilder},
    io,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};

/// For a snapshot that is sent.
pub(super) const SENT: &str = "snapshot-being-sent";
/// For one that comes.
pub(super) const RESTORED: &str = "snapshot-being-restored";

/// A folder that only this user can read. It is removed with this value, also if the caller goes away meanwhile.
#[derive(Debug)]
pub(super) struct TemporaryFolder(PathBuf);

impl TemporaryFolder {
    /// Makes it. If a process that ended early has left one, that one is removed.
    ///
    /// # Errors
    /// Those of the file system.
    pub(super) fn make(snapshots: &Path, name: &str) -> io::Result<TemporaryFolder> {
        let folder = TemporaryFolder(snapshots.join(name));
        remove_left(&folder.0)?;
        DirBuilder::new().mode(0o700).create(&folder.0)?;
        Ok(folder)
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        if let Err(error) = remove_left(&self.0) {
            tracing::warn!(folder = %self.0.display(), %error, "a folder for a snapshot could not be removed");
        }
    }
}

/// Removes what a process that ended early has left in dataDir.
pub(super) fn remove_all_left(snapshots: &Path) {
    for name in [SENT, RESTORED] {
        let folder = snapshots.join(name);
        if let Err(error) = remove_left(&folder) {
            tracing::warn!(folder = %folder.display(), %error, "a folder for a snapshot could not be removed");
        }
    }
}

fn remove_left(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn it_goes_with_its_value_and_replaces_an_older_one() {
        let dir = tempfile::tempdir().unwrap();
        let left = dir.path().join(SENT);
        fs::create_dir(&left).unwrap();
        fs::write(left.join("snapshot.5"), "half").unwrap();
        let folder = TemporaryFolder::make(dir.path(), SENT).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        assert_eq!(folder.path().metadata().unwrap().permissions().mode() & 0o777, 0o700);
        drop(folder);
        assert!(!left.exists());
        fs::create_dir(&left).unwrap();
        remove_all_left(dir.path());
        assert!(!left.exists());
    }
}
