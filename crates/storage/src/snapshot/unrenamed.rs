//! Snapshots that Java did not come to rename.
//!
//! Java writes a leader's tree as `snapshot.<zxid>.tmp`, and renames the file when it is durable. If it dies before the
//! rename, it takes the file for a snapshot at its next start, and can log many transactions after it. So the file can
//! be the only base of the log. If the tree is of an epoch that this server has not come to, Java does not start.

use super::{Compression, Problem, SnapshotFile, find::has_complete_ends};
use crate::{
    disk::{Disk, sync_names},
    epochs::{EpochFile, read_epoch},
    error::{IoContext, Result},
    names::{parse_unrenamed_name, snapshot_name},
    recover::Note,
    txnlog::remove,
};
use ostler_proto::id::Zxid;
use std::path::{Path, PathBuf};

/// A file with such a name.
struct Unrenamed {
    zxid: Zxid,
    path: PathBuf,
    /// The path that it would have got.
    target: PathBuf,
}

impl Unrenamed {
    fn of(dir: &Path, name: &str) -> Option<Unrenamed> {
        let zxid = parse_unrenamed_name(name)?;
        let target = dir.join(snapshot_name(zxid, Compression::None));
        Some(Unrenamed { zxid, path: dir.join(name), target })
    }

    /// Whether Java would start with the file. It prefers the file with the right name if that one is complete.
    fn counts(&self, disk: &dyn Disk, dir: &Path) -> Result<bool> {
        let is_complete = |path| has_complete_ends(disk, path, Compression::None).during("read", path);
        let current = read_epoch(disk, dir, EpochFile::Current)?;
        let is_of_known_epoch = current.is_none_or(|current| self.zxid.epoch() <= current);
        let has_target = disk.exists(&self.target).during("look for", &self.target)?;
        Ok(is_of_known_epoch && is_complete(&self.path)? && !(has_target && is_complete(&self.target)?))
    }
}

/// The snapshot in the file with this name, if the name is of this kind and the file counts.
pub(super) fn find(disk: &dyn Disk, dir: &Path, name: &str) -> Option<SnapshotFile> {
    let file = Unrenamed::of(dir, name)?;
    let problem = match file.counts(disk, dir) {
        Ok(true) => None,
        Ok(false) => return None,
        Err(error) => Some(Problem::Unreadable(error.to_string())),
    };
    Some(SnapshotFile { zxid: file.zxid, compression: Compression::None, path: file.path, problem })
}

/// Renames the files that count, and removes the others. A tree that does not count now must not count later, when this
/// server has come to its epoch by another history.
pub(crate) fn settle(disk: &dyn Disk, dir: &Path, notes: &mut Vec<Note>) -> Result<()> {
    let names = disk.list(dir).during("list", dir)?;
    for file in names.iter().filter_map(|name| Unrenamed::of(dir, name)) {
        if !file.counts(disk, dir)? {
            remove(disk, &file.path)?;
            notes.push(Note::UnfinishedGivenUp(file.path));
            continue;
        }
        disk.open_to_change(&file.path).and_then(|opened| opened.sync_data()).during("sync", &file.path)?;
        disk.rename(&file.path, &file.target).during("rename", &file.path)?;
        sync_names(disk, dir)?;
        notes.push(Note::SnapshotRenamed(file.path));
    }
    Ok(())
}
