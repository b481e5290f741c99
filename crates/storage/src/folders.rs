//! The folders of a server: `version-2` below `dataDir` (snapshots, epochs) and below `dataLogDir` (logs), and the
//! `initialize` file.

use crate::{
    disk::{Disk, sync_names},
    error::{IoContext, Result, StorageError},
};
use std::path::{Path, PathBuf};

const VERSION: &str = "version-2";
/// An empty file in `dataLogDir`. With it an operator confirms that the server may start with an empty database.
const INITIALIZE: &str = "initialize";

/// The folders of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataFolders {
    /// The setting `dataDir`.
    pub data_dir: PathBuf,
    /// The setting `dataLogDir`, by default the same as `dataDir`.
    pub data_log_dir: PathBuf,
    /// The folder with snapshots and epochs.
    pub snapshots: PathBuf,
    /// The folder with transaction logs.
    pub logs: PathBuf,
}

impl DataFolders {
    /// Computes the paths. Nothing is made or checked.
    pub fn at(data_dir: &Path, data_log_dir: Option<&Path>) -> DataFolders {
        let data_log_dir = data_log_dir.unwrap_or(data_dir);
        DataFolders {
            data_dir: data_dir.to_path_buf(),
            data_log_dir: data_log_dir.to_path_buf(),
            snapshots: data_dir.join(VERSION),
            logs: data_log_dir.join(VERSION),
        }
    }

    /// Makes missing folders if `autocreate` (`datadir.autocreate`) is on. Refuses folders that look swapped: if the
    /// two differ, there may be no snapshot among the logs and no log among the snapshots.
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

    /// Whether the `initialize` file exists.
    pub fn has_initialize(&self, disk: &dyn Disk) -> Result<bool> {
        let path = self.data_log_dir.join(INITIALIZE);
        disk.exists(&path).during("look for", &path)
    }

    /// Removes the `initialize` file if it exists. To be called when the empty database is durable, so that no later
    /// start needs the file. Upstream removes it earlier, and a crash in between makes the next start refuse.
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

/// Refuses a folder with a file whose name starts with `prefix`. As in upstream, `snapshot.5.bak` counts too.
fn refuse(disk: &dyn Disk, folder: &Path, prefix: &str, expected: &'static str) -> Result<()> {
    let names = disk.list(folder).during("list", folder)?;
    match names.into_iter().find(|name| name.starts_with(prefix)) {
        Some(found) => Err(StorageError::Misplaced { folder: folder.to_path_buf(), expected, found }),
        None => Ok(()),
    }
}
