//! Removing snapshots and logs that no start will need (`autopurge.snapRetainCount`).

use crate::{
    disk::Disk,
    error::{IoContext, Result},
    folders::DataFolders,
    names::log_files,
    snapshot::find_snapshots,
};
use std::path::PathBuf;

/// Upstream keeps no fewer.
pub const RETAIN_AT_LEAST: usize = 3;

/// Keeps the `retain` newest snapshots that look valid, and every log file that one of them needs; removes the
/// older ones of both, oldest first. Returns what was removed.
pub fn purge(disk: &dyn Disk, folders: &DataFolders, retain: usize) -> Result<Vec<PathBuf>> {
    let snapshots = find_snapshots(disk, &folders.snapshots)?;
    let valid = snapshots.iter().filter(|file| file.problem.is_none());
    let Some(oldest) = valid.take(retain.max(RETAIN_AT_LEAST)).map(|file| file.zxid).min() else {
        return Ok(Vec::new());
    };
    // The newest log that starts at or before the oldest snapshot goes on behind it.
    let logs = log_files(disk, &folders.logs)?;
    let needed = logs.iter().rposition(|file| file.first <= oldest).unwrap_or(0);
    let logs = logs.into_iter().take(needed).map(|file| file.path);
    let old = snapshots.into_iter().rev().filter(|file| file.zxid < oldest).map(|file| file.path);

    let mut removed = Vec::new();
    for path in logs.chain(old) {
        disk.remove(&path).during("remove", &path)?;
        removed.push(path);
    }
    Ok(removed)
}
