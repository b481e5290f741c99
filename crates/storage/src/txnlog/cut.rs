//! Taking the end off a log: what Zab's TRUNC asks for, and what recovery does with a torn tail.

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

/// What [`truncate_after`] did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Truncated {
    /// Log files removed, newest first.
    pub removed: Vec<PathBuf>,
    /// The file cut, and its size now.
    pub cut: Option<(PathBuf, u64)>,
    /// The last transaction in the newest file that is left; zero if there is none.
    pub last: Zxid,
}

/// Takes all transactions above `zxid` off the logs in `dir`.
///
/// From the newest on, each step durable before the next: wherever a crash comes between, the log that is
/// left has no gap.
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
            // A purge has removed it since it was listed.
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

/// The last record up to `zxid`, and where the first one above it starts.
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

/// Cuts a torn tail off. A file without any whole record goes altogether, so that its name is free for the
/// record that will be written next.
pub(crate) fn cut_torn_tail(disk: &dyn Disk, torn: &TornTail) -> Result<()> {
    cut_at(disk, &torn.file, torn.offset)
}

/// Whether nothing of the file is left when its torn tail is cut off.
pub(crate) fn takes_all(torn: &TornTail) -> bool {
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

/// Removes a file for good.
pub(crate) fn remove(disk: &dyn Disk, path: &Path) -> Result<()> {
    match disk.remove(path) {
        // A purge has been here first.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        done => done.during("remove", path)?,
    }
    match path.parent() {
        Some(dir) => sync_names(disk, dir),
        None => Ok(()),
    }
}
