//! `acceptedEpoch` and `currentEpoch`: a decimal number each, without a newline, beside the snapshots.

use crate::{
    disk::{Disk, create_empty, read_full, replace_text, sync_names, unfinished},
    error::{IoContext, Result, StorageError},
};
use ostler_proto::id::Epoch;
use std::path::Path;

/// Which of the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EpochFile {
    /// The newest epoch that this server has promised a leader to follow.
    Accepted,
    /// The newest epoch whose history this server has.
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

/// Reads an epoch; `None` where the file does not exist.
pub fn read_epoch(disk: &dyn Disk, dir: &Path, which: EpochFile) -> Result<Option<Epoch>> {
    read(disk, &dir.join(which.name()))
}

/// Reads what an interrupted [`write_epoch`] left in its temporary file.
pub fn read_unfinished_epoch(disk: &dyn Disk, dir: &Path, which: EpochFile) -> Result<Option<Epoch>> {
    read(disk, &unfinished(&dir.join(which.name())))
}

/// Writes an epoch, durably and all at once.
pub fn write_epoch(disk: &dyn Disk, dir: &Path, which: EpochFile, epoch: Epoch) -> Result<()> {
    replace_text(disk, &dir.join(which.name()), &epoch.0.to_string())
}

/// An empty file beside the epochs. Java ignores it.
const INCOMPLETE: &str = "historyIncomplete";

/// Whether what is on disk may be only a part of what this server once had: its folder was empty, and a leader has
/// begun to bring it to its history, but has not come to the end.
///
/// The mark is never set where a current epoch is on disk. Beside one it is left over: a crash came between the two, or
/// Java went on here.
pub fn is_incomplete(disk: &dyn Disk, dir: &Path) -> Result<bool> {
    let path = dir.join(INCOMPLETE);
    let is_marked = disk.exists(&path).during("look for", &path)?;
    let current = read_epoch(disk, dir, EpochFile::Current)?.unwrap_or_default();
    Ok(is_marked && current == Epoch(0))
}

/// Notes durably that a history begins to come into an empty folder.
pub fn mark_incomplete(disk: &dyn Disk, dir: &Path) -> Result<()> {
    create_empty(disk, &dir.join(INCOMPLETE))
}

/// Notes durably that the history is all there.
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
    match content.trim_end().parse() {
        // The last there is leaves none for the next leader.
        Ok(epoch) if Epoch(epoch).next().is_some() => Ok(Some(Epoch(epoch))),
        _ => Err(StorageError::BadEpoch { file: path.to_path_buf(), content: content.into_owned() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::OsDisk;

    #[test]
    fn epochs_survive() {
        let dir = tempfile::tempdir().unwrap();
        let read = |which| read_epoch(&OsDisk, dir.path(), which);
        assert_eq!(read(EpochFile::Accepted).unwrap(), None);
        write_epoch(&OsDisk, dir.path(), EpochFile::Accepted, Epoch(7)).unwrap();
        write_epoch(&OsDisk, dir.path(), EpochFile::Accepted, Epoch(12)).unwrap();
        assert_eq!(read(EpochFile::Accepted).unwrap(), Some(Epoch(12)));
        assert_eq!(read(EpochFile::Current).unwrap(), None);
        assert_eq!(std::fs::read(dir.path().join("acceptedEpoch")).unwrap(), b"12");
        std::fs::write(dir.path().join("currentEpoch"), "3\n").unwrap();
        assert_eq!(read(EpochFile::Current).unwrap(), Some(Epoch(3)), "a line end by hand is no harm");
        std::fs::write(dir.path().join("currentEpoch"), "x").unwrap();
        assert!(matches!(read(EpochFile::Current), Err(StorageError::BadEpoch { .. })));
    }
}
