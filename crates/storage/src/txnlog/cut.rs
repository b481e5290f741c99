//! Cuts a log at its end: after a zxid, for Zab's TRUNC, or before a torn tail, for recovery.

use super::{
    HEADER, TornTail,
    file::{Advance, LogFileReader},
    synced::SyncedMark,
};
use crate::{
    disk::{Disk, sync_names},
    error::{IoContext, Result},
    names::log_files,
};
use ostler_proto::id::Zxid;
use std::{
    io,
    path::{Path, PathBuf},
};

/// The result of [`truncate_after`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Truncated {
    /// The log files that were removed, newest first.
    pub removed: Vec<PathBuf>,
    /// The log file that was cut, and its new size.
    pub cut: Option<(PathBuf, u64)>,
    /// The last transaction in the newest file that is left; zero if no file is left.
    pub last: Zxid,
}

/// Removes all transactions above `zxid` from the logs in `dir`.
///
/// It begins with the newest file, and each step is durable before the next. So a crash at any moment leaves a log
/// without a gap.
pub fn truncate_after(disk: &dyn Disk, dir: &Path, zxid: Zxid) -> Result<Truncated> {
    SyncedMark::remove(disk, dir)?;
    let mut done = Truncated::default();
    let mut files = log_files(disk, dir)?;
    while let Some(file) = files.pop() {
        if file.first > zxid {
            remove(disk, &file.path)?;
            done.removed.push(file.path);
            continue;
        }
        if !disk.exists(&file.path).during("look for", &file.path)? {
            // A purge has removed the file since the folder was listed.
            continue;
        }
        let (last, above) = last_up_to(disk, &file.path, zxid)?;
        done.last = last;
        if let Some(offset) = above {
            cut_at(disk, &file.path, offset)?;
            if holds_records(offset) {
                done.cut = Some((file.path, offset));
            } else {
                done.removed.push(file.path);
            }
        }
        break;
    }
    Ok(done)
}

/// The last zxid up to `zxid` in a file, and the offset of the first record above it.
fn last_up_to(disk: &dyn Disk, path: &Path, zxid: Zxid) -> Result<(Zxid, Option<u64>)> {
    let mut file = LogFileReader::open(disk, path)?;
    let mut last = Zxid::ZERO;
    loop {
        match file.advance()? {
            Advance::Record(found) if found > zxid => {
                return Ok((last, file.record().map(|record| record.offset)));
            }
            Advance::Record(found) => last = last.max(found),
            Advance::End(_) => return Ok((last, None)),
        }
    }
}

/// Cuts a torn tail off. A file without any whole record is removed, so that its name is free for the next record.
pub(crate) fn cut_torn_tail(disk: &dyn Disk, torn: &TornTail) -> Result<()> {
    cut_at(disk, &torn.file, torn.offset)
}

/// Whether a torn tail is all that the file has. Then cutting it removes the file.
pub(crate) fn is_whole_file(torn: &TornTail) -> bool {
    !holds_records(torn.offset)
}

fn cut_at(disk: &dyn Disk, path: &Path, offset: u64) -> Result<()> {
    if !holds_records(offset) {
        return remove(disk, path);
    }
    let file = disk.open_to_change(path).during("open", path)?;
    file.truncate(offset).during("cut", path)?;
    file.sync_data().during("sync", path)
}

fn holds_records(offset: u64) -> bool {
    offset > HEADER as u64
}

/// Removes a file durably. No error if it does not exist.
pub(crate) fn remove(disk: &dyn Disk, path: &Path) -> Result<()> {
    match disk.remove(path) {
        // A purge has removed it first.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        done => done.during("remove", path)?,
    }
    match path.parent() {
        Some(dir) => sync_names(disk, dir),
        None => Ok(()),
    }
}
