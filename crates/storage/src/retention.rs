//! The purge: removes snapshots and logs that no start will need (`autopurge.snapRetainCount`).

use crate::{
    disk::Disk,
    error::{IoContext, Result},
    folders::DataFolders,
    names::{LogFile, log_files},
    snapshot::{SnapshotFile, find_snapshots, spare},
    txnlog::SpareLog,
};
use std::path::{Path, PathBuf};

/// The lowest number of snapshots that are kept, as in upstream.
pub const RETAIN_AT_LEAST: usize = 3;

/// The files that a purge removes, oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PurgePlan {
    /// Logs that no kept snapshot needs.
    pub logs: Vec<LogFile>,
    /// Snapshots older than the kept ones.
    pub snapshots: Vec<SnapshotFile>,
}

impl PurgePlan {
    /// The paths, in the order in which they are removed.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        let logs = self.logs.iter().map(|file| &*file.path);
        logs.chain(self.snapshots.iter().map(|file| &*file.path))
    }
}

/// Plans a purge. The `retain` newest snapshots that look valid and are not among the `unreadable` are kept, and every log
/// file that one of them needs.
pub fn plan(
    disk: &dyn Disk,
    folders: &DataFolders,
    retain: usize,
    unreadable: &[PathBuf],
) -> Result<PurgePlan> {
    let mut snapshots = find_snapshots(disk, &folders.snapshots)?;
    let valid = snapshots.iter().filter(|file| file.problem.is_none() && !unreadable.contains(&file.path));
    let Some(oldest) = valid.take(retain.max(RETAIN_AT_LEAST)).map(|file| file.zxid).min() else {
        return Ok(PurgePlan::default());
    };
    // The newest log that starts at or before the oldest snapshot can have transactions after that snapshot.
    let mut logs = log_files(disk, &folders.logs)?;
    let needed = logs.iter().rposition(|file| file.first <= oldest).unwrap_or(0);
    logs.truncate(needed);
    snapshots.retain(|file| file.zxid < oldest);
    snapshots.reverse();
    Ok(PurgePlan { logs, snapshots })
}

/// Removes the files of [`plan`], and returns their paths. One log and one snapshot can become the spare, into which the
/// next file is written. Stops when `go_on` returns false; the next purge removes the rest.
pub fn purge(
    disk: &dyn Disk,
    folders: &DataFolders,
    retain: usize,
    unreadable: &[PathBuf],
    spare: &SpareLog,
    go_on: &dyn Fn() -> bool,
) -> Result<Vec<PathBuf>> {
    let plan = plan(disk, folders, retain, unreadable)?;
    carry_out(disk, folders, plan, spare, go_on)
}

/// Removes the files of a plan that was made just now, as [`purge`].
pub fn carry_out(
    disk: &dyn Disk,
    folders: &DataFolders,
    plan: PurgePlan,
    spare: &SpareLog,
    go_on: &dyn Fn() -> bool,
) -> Result<Vec<PathBuf>> {
    let mut removed = Vec::new();
    for log in plan.logs.into_iter().take_while(|_| go_on()) {
        if !spare.keep(disk, &log.path)? {
            disk.remove_while(&log.path, go_on).during("remove", &log.path)?;
        }
        removed.push(log.path);
    }
    for old in plan.snapshots.into_iter().take_while(|_| go_on()) {
        if !spare::is_usable(disk, &old)? || !spare::keep(disk, &folders.snapshots, &old.path)? {
            disk.remove_while(&old.path, go_on).during("remove", &old.path)?;
        }
        removed.push(old.path);
    }
    Ok(removed)
}
