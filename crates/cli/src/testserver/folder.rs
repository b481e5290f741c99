//! The folder with all servers' folders. It is removed at the end. After a kill of the command the next one removes it.

use super::error::StartError;
use std::{
    env,
    fs::{self, File},
    io,
    path::Path,
};
use tempfile::TempDir;

const PREFIX: &str = "ostler-testserver-";
/// The file that the command locks while it runs.
const LOCK: &str = "lock";

pub(super) struct RootFolder {
    dir: TempDir,
    _lock: File,
}

impl RootFolder {
    /// Makes the folder, and removes those of commands that were killed.
    pub(super) fn create() -> Result<RootFolder, StartError> {
        let parent = env::temp_dir();
        remove_abandoned(&parent);
        RootFolder::create_in(&parent)
            .map_err(|cause| StartError::Folder { folder: parent.display().to_string(), cause })
    }

    fn create_in(parent: &Path) -> io::Result<RootFolder> {
        let dir = tempfile::Builder::new().prefix(PREFIX).tempdir_in(parent)?;
        // Another command takes a folder whose lock is free for abandoned, so the lock gets its name when it is taken.
        let unnamed = dir.path().join("lock.new");
        let lock = File::create(&unnamed)?;
        lock.lock()?;
        fs::rename(&unnamed, dir.path().join(LOCK))?;
        Ok(RootFolder { dir, _lock: lock })
    }

    pub(super) fn path(&self) -> &Path {
        self.dir.path()
    }
}

/// Removes the folders whose command does not run. A folder that cannot be removed stays, since it hurts no test.
fn remove_abandoned(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let is_ours = entry.file_name().to_string_lossy().starts_with(PREFIX);
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_ours && is_folder && is_abandoned(&entry.path()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

fn is_abandoned(folder: &Path) -> bool {
    File::open(folder.join(LOCK)).is_ok_and(|lock| lock.try_lock().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_folder_of_a_command_that_does_not_run_is_removed() {
        let parent = tempfile::tempdir().unwrap();
        let running = RootFolder::create_in(parent.path()).unwrap();
        let killed = RootFolder::create_in(parent.path()).unwrap();
        let killed = {
            let RootFolder { dir, _lock } = killed;
            dir.keep()
        };
        let foreign = parent.path().join("other");
        fs::create_dir(&foreign).unwrap();
        fs::write(foreign.join(LOCK), "").unwrap();
        remove_abandoned(parent.path());
        assert!(running.path().exists());
        assert!(foreign.exists());
        assert!(!killed.exists());
    }
}
