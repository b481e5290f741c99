//! Does what was planned. Each file is kept before it is changed.

use super::{Action, Plan, Start, try_start, users};
use crate::{
    error::{InspectError, Result},
    planned_disk::PlannedDisk,
};
use ostler_storage::{
    disk::{Disk, OsDisk},
    error::IoContext,
    folders::DataFolders,
    lock::FolderLock,
};
use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// The result of a repair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    /// The folders with the files as they were before.
    pub kept: Vec<PathBuf>,
    /// The result of a start as the folder is now.
    pub start: Start,
}

/// Does the actions of a plan. `lock` is the lock of the folders. The start of a server is tried again at the end, and
/// must have the planned result.
pub fn apply(folders: &DataFolders, plan: &Plan, _lock: &FolderLock) -> Result<Applied> {
    let open = users(&[&folders.snapshots, &folders.logs]);
    if let Some(pid) = open.first() {
        return Err(InspectError::Refused(format!(
            "process {pid} has files of {} open. Nothing was changed. Stop this server first",
            folders.data_dir.display()
        )));
    }
    let mut kept = Vec::new();
    for action in &plan.actions {
        let keep = keep_folder(folders, action.file(), &mut kept)?;
        carry_out(action, &keep)?;
    }
    let start = try_start(folders, &PlannedDisk::default())?;
    if start != plan.after {
        return Err(InspectError::Refused(format!(
            "the repair was done, but not with the planned result: {start}; expected was: {}. The files as they were \
             before are in {}",
            plan.after,
            kept.iter().map(|folder| folder.display().to_string()).collect::<Vec<_>>().join(", ")
        )));
    }
    Ok(Applied { kept, start })
}

/// The folder that keeps a file: beside the `version-2` with the file. It is made when it is needed first.
fn keep_folder(folders: &DataFolders, file: &Path, kept: &mut Vec<PathBuf>) -> Result<PathBuf> {
    let is_log = file.parent() == Some(&folders.logs);
    let beside = if is_log { &folders.data_log_dir } else { &folders.data_dir };
    if let Some(known) = kept.iter().find(|folder| folder.parent() == Some(beside)) {
        return Ok(known.clone());
    }
    for number in 1_u32.. {
        let folder = beside.join(format!("before-repair-{number}"));
        if !folder.exists() {
            OsDisk.create_dir_all(&folder).during("create", &folder)?;
            OsDisk.sync_dir(beside).during("sync", beside)?;
            kept.push(folder.clone());
            return Ok(folder);
        }
    }
    Err(InspectError::Refused(format!("{}: there are too many folders of earlier repairs", beside.display())))
}

fn carry_out(action: &Action, keep: &Path) -> Result<()> {
    let file = action.file();
    let copy = keep.join(file.file_name().unwrap_or_default());
    let dir = file.parent().unwrap_or(Path::new("/"));
    match action {
        Action::Move { .. } => {
            match OsDisk.rename(file, &copy) {
                // The folders can be on two file systems, if one of them is a link.
                Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
                    copy_durably(file, &copy)?;
                    OsDisk.remove(file).during("remove", file)?;
                }
                done => done.during("move", file)?,
            }
            OsDisk.sync_dir(keep).during("sync", keep)?;
            OsDisk.sync_dir(dir).during("sync", dir)?;
        }
        Action::Cut { size, .. } => {
            copy_durably(file, &copy)?;
            OsDisk.sync_dir(keep).during("sync", keep)?;
            let open = OsDisk.open_to_change(file).during("open", file)?;
            open.truncate(*size).during("cut", file)?;
            open.sync_data().during("sync", file)?;
        }
    }
    Ok(())
}

fn copy_durably(from: &Path, to: &Path) -> Result<()> {
    fs::copy(from, to).during("copy", from)?;
    let file = OsDisk.open_to_change(to).during("open", to)?;
    Ok(file.sync_data().during("sync", to)?)
}
