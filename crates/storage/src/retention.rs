//! The purge: removes snapshots and logs that no start will need (`autopurge.snapRetainCount`).

use crate::{
    disk::Disk,
    error::{IoContext, Result},
    folders::DataFolders,
    names::log_files,
    snapshot::{find_snapshots, spare},
    txnlog::SpareLog,
};
use std::path::PathBuf;

/// The lowest number of snapshots that are kept, as in upstream.
pub const RETAIN_AT_LEAST: usize = 3;

/// Keeps the `retain` newest snapshots that look valid and are not among the `unreadable`, and every log file that one
/// of them needs. Removes older snapshots and logs, oldest first, and returns their paths. One of each can become the
/// spare, into which the next file is written. Stops when `go_on` returns false; the next purge removes the rest.
pub fn purge(
    disk: &dyn Disk,
    folders: &DataFolders,
    retain: usize,
    unreadable: &[PathBuf],
    spare: &SpareLog,
    go_on: &dyn Fn() -> bool,
) -> Result<Vec<PathBuf>> {
    let snapshots = find_snapshots(disk, &folders.snapshots)?;
    let valid = snapshots.iter().filter(|file| file.problem.is_none() && !unreadable.contains(&file.path));
    let Some(oldest) = valid.take(retain.max(RETAIN_AT_LEAST)).map(|file| file.zxid).min() else {
        return Ok(Vec::new());
    };
    // The newest log that starts at or before the oldest snapshot can have transactions after that snapshot.
    let logs = log_files(disk, &folders.logs)?;
    let needed = logs.iter().rposition(|file| file.first <= oldest).unwrap_or(0);
    let mut removed = Vec::new();
    for log in logs.into_iter().take(needed).take_while(|_| go_on()) {
        if !spare.keep(disk, &log.path)? {
            disk.remove_while(&log.path, go_on).during("remove", &log.path)?;
        }
        removed.push(log.path);
    }
    for old in snapshots.into_iter().rev().filter(|file| file.zxid < oldest).take_while(|_| go_on()) {
        if !spare::is_usable(disk, &old)? || !spare::keep(disk, &folders.snapshots, &old.path)? {
            disk.remove_while(&old.path, go_on).during("remove", &old.path)?;
        }
        removed.push(old.path);
    }
    Ok(removed)
}
