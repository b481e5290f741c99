//! The files beside the snapshots that say how far a server has come: `acceptedEpoch` and `currentEpoch`, a decimal
//! number each without a newline, and the mark `historyIncomplete`.

use crate::{
    disk::{Disk, create_empty, read_full, replace_text, sync_names, unfinished},
    error::{IoContext, Result, StorageError},
};
use ostler_proto::id::Epoch;
use std::path::Path;

/// One of the two epoch files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EpochFile {
    /// `acceptedEpoch`: the highest epoch that this server has promised to a leader.
    Accepted,
    /// `currentEpoch`: the epoch of the last leader whose history this server has.
    Current,
}

impl EpochFile {
    fn name(self) -> &'static str {
        match self {
            EpochFile::Accepted => "acceptedEpoch",
            EpochFile::Current => "currentEpoch",
        }
    }
}

/// Reads an epoch. `None` if the file does not exist, or has Java's -1 for no epoch.
pub fn read_epoch(disk: &dyn Disk, dir: &Path, which: EpochFile) -> Result<Option<Epoch>> {
    read(disk, &dir.join(which.name()))
}

/// Reads the epoch in the temporary file that an interrupted [`write_epoch`] has left.
pub fn read_unfinished_epoch(disk: &dyn Disk, dir: &Path, which: EpochFile) -> Result<Option<Epoch>> {
    read(disk, &unfinished(&dir.join(which.name())))
}

/// Writes an epoch durably and atomically.
pub fn write_epoch(disk: &dyn Disk, dir: &Path, which: EpochFile, epoch: Epoch) -> Result<()> {
    replace_text(disk, &dir.join(which.name()), &epoch.0.to_string())
}

/// An empty file that marks the history as incomplete. Java ignores it.
const INCOMPLETE: &str = "historyIncomplete";

/// Whether the history on disk may be only a part of what this server once had: its folder was empty, and its
/// synchronization with a leader has begun but not ended.
///
/// The mark is only set while there is no current epoch. If there is one too, the mark is left over, and the history is
/// complete: a crash came before the mark was removed, or Java used the folder.
pub fn is_incomplete(disk: &dyn Disk, dir: &Path) -> Result<bool> {
    let path = dir.join(INCOMPLETE);
    let is_marked = disk.exists(&path).during("look for", &path)?;
    let current = read_epoch(disk, dir, EpochFile::Current)?.unwrap_or_default();
    Ok(is_marked && current == Epoch(0))
}

/// Notes durably that the synchronization of an empty server begins.
pub fn mark_incomplete(disk: &dyn Disk, dir: &Path) -> Result<()> {
    create_empty(disk, &dir.join(INCOMPLETE))
}

/// Notes durably that the history is complete.
pub fn mark_complete(disk: &dyn Disk, dir: &Path) -> Result<()> {
    let path = dir.join(INCOMPLETE);
    if !disk.exists(&path).during("look for", &path)? {
        return Ok(());
    }
    disk.remove(&path).during("remove", &path)?;
    sync_names(disk, dir)
}

fn read(disk: &dyn Disk, path: &Path) -> Result<Option<Epoch>> {
    if !disk.exists(path).during("look for", path)? {
        return Ok(None);
    }
    let file = disk.open(path).during("open", path)?;
    let mut bytes = [0; 32];
    let size = read_full(&*file, &mut bytes, 0).during("read", path)?;
    let content = String::from_utf8_lossy(&bytes[..size]);
    // Java writes -1 for the epoch of an empty folder that waits for a leader (db.autocreate=false).
    if content.trim_end() == "-1" {
        return Ok(None);
    }
    match content.trim_end().parse() {
        // The last possible epoch is refused, since it leaves none for the next leader.
        Ok(epoch) if Epoch(epoch).next().is_some() => Ok(Some(Epoch(epoch))),
        _ => Err(StorageError::BadEpoch { file: path.to_path_buf(), content: content.into_owned() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::OsDisk;

    #[test]
    fn epochs_are_read_as_they_were_written() {
        let dir = tempfile::tempdir().unwrap();
        let read = |which| read_epoch(&OsDisk, dir.path(), which);
        assert_eq!(read(EpochFile::Accepted).unwrap(), None);
        write_epoch(&OsDisk, dir.path(), EpochFile::Accepted, Epoch(7)).unwrap();
        write_epoch(&OsDisk, dir.path(), EpochFile::Accepted, Epoch(12)).unwrap();
        assert_eq!(read(EpochFile::Accepted).unwrap(), Some(Epoch(12)));
        assert_eq!(read(EpochFile::Current).unwrap(), None);
        assert_eq!(std::fs::read(dir.path().join("acceptedEpoch")).unwrap(), b"12");
        std::fs::write(dir.path().join("currentEpoch"), "3\n").unwrap();
        assert_eq!(
            read(EpochFile::Current).unwrap(),
            Some(Epoch(3)),
            "a line end, as editors add it, is ignored"
        );
        std::fs::write(dir.path().join("currentEpoch"), "-1").unwrap();
        assert_eq!(read(EpochFile::Current).unwrap(), None, "as Java writes it for an empty folder");
        std::fs::write(dir.path().join("currentEpoch"), "x").unwrap();
        assert!(matches!(read(EpochFile::Current), Err(StorageError::BadEpoch { .. })));
    }
}
