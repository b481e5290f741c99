//! Taking the end off a log: what Zab's TRUNC asks for, and what recovery does with a torn tail.

use super::{
    HEADER, TornTail,
    file::{Advance, LogFileReader},
};
use crate::{
    disk::Disk,
    error::{IoContext, Result},
    names::log_files,
};
use ostler_proto::id::Zxid;
use std::path::{Path, PathBuf};

/// What [`truncate_after`] did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Truncated {
    /// Log files removed, newest first.
    pub removed: Vec<PathBuf>,
    /// The file cut, and its size now.
    pub cut: Option<(PathBuf, u64)>,
}

/// Takes all transactions above `zxid` off the logs in `dir`.
///
/// From the newest on, each step durable before the next: wherever a crash comes between, the log that is
/// left has no gap.
pub fn truncate_after(disk: &dyn Disk, dir: &Path, zxid: Zxid) -> Result<Truncated> {
    let mut done = Truncated::default();
    let mut files = log_files(disk, dir)?;
    while let Some(file) = files.pop() {
        if file.first > zxid {
            remove(disk, &file.path)?;
            done.removed.push(file.path);
            continue;
        }
        if let Some(offset) = first_above(disk, &file.path, zxid)? {
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

/// Where the first record above `zxid` starts.
fn first_above(disk: &dyn Disk, path: &Path, zxid: Zxid) -> Result<Option<u64>> {
    let mut file = LogFileReader::open(disk, path)?;
    loop {
        match file.advance()? {
            Advance::Record(found) if found > zxid => return Ok(file.record().map(|record| record.offset)),
            Advance::Record(_) => {}
            Advance::End(_) => return Ok(None),
        }
    }
}

/// Cuts a torn tail off. A file without any whole record goes altogether, so that its name is free for the
/// record that will be written next.
pub(crate) fn cut_torn_tail(disk: &dyn Disk, torn: &TornTail) -> Result<()> {
    cut_at(disk, &torn.file, torn.offset)
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
    offset > HEADER.len() as u64
}

/// Removes a file for good.
pub(crate) fn remove(disk: &dyn Disk, path: &Path) -> Result<()> {
    disk.remove(path).during("remove", path)?;
    match path.parent() {
        Some(dir) => disk.sync_dir(dir).during("sync", dir),
        None => Ok(()),
    }
}
