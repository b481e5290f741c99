//! Where the files are: `version-2` below `dataDir` (snapshots, epochs) and `dataLogDir` (logs).

use crate::{
    disk::{Disk, sync_names},
    error::{IoContext, Result, StorageError},
};
use std::path::{Path, PathBuf};

const VERSION: &str = "version-2";
/// An empty file beside the logs' `version-2`: the operator vouches that an empty database is right.
const INITIALIZE: &str = "initialize";

/// The folders of a server, checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataFolders {
    /// `dataDir`.
    pub data_dir: PathBuf,
    /// `dataLogDir`; the same as `data_dir` where it is not set.
    pub data_log_dir: PathBuf,
    /// Snapshots and epochs.
    pub snapshots: PathBuf,
    /// Transaction logs.
    pub logs: PathBuf,
}

impl DataFolders {
    /// Only the paths; nothing is made or checked.
    pub fn at(data_dir: &Path, data_log_dir: Option<&Path>) -> DataFolders {
        let data_log_dir = data_log_dir.unwrap_or(data_dir);
        DataFolders {
            data_dir: data_dir.to_path_buf(),
            data_log_dir: data_log_dir.to_path_buf(),
            snapshots: data_dir.join(VERSION),
            logs: data_log_dir.join(VERSION),
        }
    }

    /// Makes missing folders, unless `autocreate` (`datadir.autocreate`) is off, and refuses folders that look
    /// swapped: where the two differ, logs and snapshots may not be in each other's place.
    pub fn open(
        disk: &dyn Disk,
        data_dir: &Path,
        data_log_dir: Option<&Path>,
        autocreate: bool,
    ) -> Result<DataFolders> {
        let folders = DataFolders::at(data_dir, data_log_dir);
        make(disk, &folders.logs, "dataLogDir", autocreate)?;
        make(disk, &folders.snapshots, "dataDir", autocreate)?;
        if folders.logs != folders.snapshots {
            refuse(disk, &folders.logs, "snapshot.", "transaction logs")?;
            refuse(disk, &folders.snapshots, "log.", "snapshots")?;
        }
        Ok(folders)
    }

    /// Whether the `initialize` file is there.
    pub fn has_initialize(&self, disk: &dyn Disk) -> Result<bool> {
        let path = self.data_log_dir.join(INITIALIZE);
        disk.exists(&path).during("look for", &path)
    }

    /// Removes the `initialize` file if it is there: to be called once what it vouches for is durable, so that no start
    /// needs it again. Upstream removes it earlier, and then a crash in between makes the next start refuse.
    pub fn remove_initialize(&self, disk: &dyn Disk) -> Result<()> {
        let path = self.data_log_dir.join(INITIALIZE);
        if self.has_initialize(disk)? { disk.remove(&path).during("remove", &path) } else { Ok(()) }
    }
}

fn make(disk: &dyn Disk, folder: &Path, setting: &'static str, autocreate: bool) -> Result<()> {
    if disk.exists(folder).during("look for", folder)? {
        return Ok(());
    }
    if !autocreate {
        return Err(StorageError::NoFolder { folder: folder.to_path_buf(), setting });
    }
    let mut made = Vec::new();
    for level in folder.ancestors() {
        if level == Path::new("") || disk.exists(level).during("look for", level)? {
            break;
        }
        made.push(level);
    }
    disk.create_dir_all(folder).during("create", folder)?;
    // Each level's name is in the one above it.
    for above in made.into_iter().filter_map(Path::parent) {
        let above = if above == Path::new("") { Path::new(".") } else { above };
        sync_names(disk, above)?;
    }
    Ok(())
}

/// By prefix, as upstream does, so that `snapshot.5.bak` counts as well.
fn refuse(disk: &dyn Disk, folder: &Path, prefix: &str, expected: &'static str) -> Result<()> {
    let names = disk.list(folder).during("list", folder)?;
    match names.into_iter().find(|name| name.starts_with(prefix)) {
        Some(found) => Err(StorageError::Misplaced { folder: folder.to_path_buf(), expected, found }),
        None => Ok(()),
    }
}
