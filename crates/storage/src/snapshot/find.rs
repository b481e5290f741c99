//! The snapshots of a folder.

use super::{Compression, SEAL_END, snappy};
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

/// A snapshot file in its folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotFile {
    /// From its name.
    pub zxid: Zxid,
    /// From its name.
    pub compression: Compression,
    /// Where it is.
    pub path: PathBuf,
    /// What a first look finds wrong with it: `None` means that it is worth reading.
    pub problem: Option<Problem>,
}

/// Why a snapshot is not worth reading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Problem {
    /// It does not end as one does: maybe it was never completed.
    Incomplete,
    /// The disk did not let it be looked at. It may be whole.
    Unreadable(String),
}

/// All snapshots of a folder, newest first, each looked at as upstream does before it reads one: the ends of
/// the file only.
pub fn find_snapshots(disk: &dyn Disk, dir: &Path) -> Result<Vec<SnapshotFile>> {
    let mut found = Vec::new();
    for name in disk.list(dir).during("list", dir)? {
        let Some((zxid, compression)) = parse_snapshot_name(&name) else { continue };
        let path = dir.join(name);
        let problem = match first_look(disk, &path, compression) {
            Ok(true) => None,
            Ok(false) => Some(Problem::Incomplete),
            Err(error) => Some(Problem::Unreadable(error.to_string())),
        };
        found.push(SnapshotFile { zxid, compression, path, problem });
    }
    found.sort_by_key(|file| (std::cmp::Reverse(file.zxid), file.compression));
    Ok(found)
}

/// Removes the snapshots above `zxid`, newest first: they contain what a TRUNC to `zxid` takes back.
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

fn first_look(disk: &dyn Disk, path: &Path, compression: Compression) -> io::Result<bool> {
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
