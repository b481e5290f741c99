//! Lists the snapshots of a folder, with a check of the ends of each file, and removes those after a zxid.

use super::{Compression, SEAL_END, snappy, unrenamed};
use crate::{
    disk::{Disk, read_full},
    error::{IoContext, Result},
    names::parse_snapshot_name,
    txnlog::remove,
};
use ostler_proto::id::Zxid;
use std::{
    io,
    path::{Path, PathBuf},
};

const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// A snapshot file in a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotFile {
    /// The last transaction in the snapshot, from the name.
    pub zxid: Zxid,
    /// The compression, from the name.
    pub compression: Compression,
    /// The path of the file.
    pub path: PathBuf,
    /// The problem that the ends of the file show. `None` if it looks complete; it may be bad all the same.
    pub problem: Option<Problem>,
}

/// The reason why a snapshot is not even read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Problem {
    /// The ends of the file are not those of a snapshot. It may never have been completed.
    Incomplete,
    /// The ends of the file could not be read, with the error. The snapshot may be complete.
    Unreadable(String),
}

/// All snapshots of a folder, newest first. The ends of each file are checked, as upstream does before it reads one.
pub fn find_snapshots(disk: &dyn Disk, dir: &Path) -> Result<Vec<SnapshotFile>> {
    let mut found = Vec::new();
    for name in disk.list(dir).during("list", dir)? {
        let Some((zxid, compression)) = parse_snapshot_name(&name) else {
            found.extend(unrenamed::find(disk, dir, &name));
            continue;
        };
        let path = dir.join(name);
        let problem = match has_complete_ends(disk, &path, compression) {
            Ok(true) => None,
            Ok(false) => Some(Problem::Incomplete),
            Err(error) => Some(Problem::Unreadable(error.to_string())),
        };
        found.push(SnapshotFile { zxid, compression, path, problem });
    }
    found.sort_by_key(|file| (std::cmp::Reverse(file.zxid), file.compression));
    Ok(found)
}

/// Removes the snapshots above `zxid`, newest first, and returns their paths. They contain transactions that a TRUNC to
/// `zxid` takes back.
pub fn remove_snapshots_after(disk: &dyn Disk, dir: &Path, zxid: Zxid) -> Result<Vec<PathBuf>> {
    let mut removed = Vec::new();
    for file in find_snapshots(disk, dir)? {
        if file.zxid > zxid {
            remove(disk, &file.path)?;
            removed.push(file.path);
        }
    }
    Ok(removed)
}

/// Checks the last bytes of a plain file, and the first bytes of a compressed one.
pub(super) fn has_complete_ends(disk: &dyn Disk, path: &Path, compression: Compression) -> io::Result<bool> {
    let file = disk.open(path)?;
    let mut bytes = [0; 8];
    match compression {
        Compression::None => {
            let size = file.size()?;
            let last = &mut bytes[..SEAL_END.len()];
            Ok(size >= 10 && read_full(&*file, last, size - 5)? == 5 && *last == SEAL_END)
        }
        Compression::Gz => Ok(read_full(&*file, &mut bytes[..2], 0)? == 2 && bytes[..2] == GZIP_MAGIC),
        Compression::Snappy => Ok(read_full(&*file, &mut bytes, 0)? == 8 && bytes == snappy::MAGIC),
    }
}
