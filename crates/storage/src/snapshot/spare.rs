//! The spare snapshot: the file of an old snapshot, over which the next one is written.
//!
//! Removing a snapshot frees hundreds of megabytes, and a file system that tells its device of each freed block holds
//! up the syncs of the transaction log meanwhile. Writing over an old file frees no space and needs none.

use super::{Compression, SEAL_END, SnapshotFile};
use crate::{
    disk::{Disk, DiskFile, read_full, sync_names},
    error::{IoContext, Result},
    names::parse_snapshot_name,
};
use ostler_proto::id::Zxid;
use std::{io, path::Path};

/// The name of the spare, which upstream does not take for a snapshot.
const NAME: &str = "spare-snapshot";

/// Removes the name of the spare if the same file also has the name of a snapshot. A loss of power during a rename can
/// leave both names on some file systems. Then the file is a snapshot and must not be written over.
fn remove_second_name(disk: &dyn Disk, dir: &Path) -> Result<()> {
    let spare = dir.join(NAME);
    if !disk.exists(&spare).during("look for", &spare)? {
        return Ok(());
    }
    let identity = |path: &Path| disk.open(path).and_then(|file| file.identity());
    let own = identity(&spare).during("look at", &spare)?;
    for name in disk.list(dir).during("list", dir)? {
        if parse_snapshot_name(&name).is_some() && identity(&dir.join(name)).is_ok_and(|other| other == own) {
            disk.remove(&spare).during("remove", &spare)?;
            return sync_names(disk, dir);
        }
    }
    Ok(())
}

/// Whether a snapshot can become the spare. It must have its last zxid at its end: if the disk loses what is written
/// over it, the next start sees by this zxid that the tree is older than the name says. Snapshots of ZooKeeper 3.8 do
/// not have it, and in compressed ones it is not looked for.
pub(crate) fn is_usable(disk: &dyn Disk, old: &SnapshotFile) -> Result<bool> {
    let has_last_zxid = || -> io::Result<bool> {
        let file = disk.open(&old.path)?;
        // The end of the section before, then zxid, checksum and "/".
        let mut end = [0; SEAL_END.len() + 8 + 8 + SEAL_END.len()];
        let Some(offset) = file.size()?.checked_sub(end.len() as u64) else { return Ok(false) };
        let whole = read_full(&*file, &mut end, offset)? == end.len() && end.starts_with(&SEAL_END);
        let zxid = end[SEAL_END.len()..].first_chunk().map(|bytes| Zxid(u64::from_be_bytes(*bytes)));
        Ok(whole && zxid >= Some(old.zxid))
    };
    let is_only_here = disk.is_only_here(&old.path).during("look at", &old.path)?;
    Ok(is_only_here && old.compression == Compression::None && has_last_zxid().during("read", &old.path)?)
}

/// Makes an old snapshot the spare. Returns false and leaves the file if there is a spare already.
pub(crate) fn keep(disk: &dyn Disk, dir: &Path, old: &Path) -> Result<bool> {
    let spare = dir.join(NAME);
    if disk.exists(&spare).during("look for", &spare)? {
        return Ok(false);
    }
    disk.rename(old, &spare).during("rename", old)?;
    // The old name must be gone durably before the bytes are overwritten.
    sync_names(disk, dir)?;
    Ok(true)
}

/// A file for a new snapshot at the path `unfinished`: the spare with its old bytes, or an empty file if there is none.
pub(super) fn take(disk: &dyn Disk, dir: &Path, unfinished: &Path) -> Result<Box<dyn DiskFile>> {
    remove_second_name(disk, dir)?;
    let spare = dir.join(NAME);
    // A link, or a file that has another name by now, is not written over.
    if disk.is_only_here(&spare).is_ok_and(|only_here| !only_here) {
        disk.remove(&spare).during("remove", &spare)?;
    }
    match disk.rename(&spare, unfinished) {
        Ok(()) => disk.open_to_change(unfinished).during("open", unfinished),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            disk.create(unfinished).during("create", unfinished)
        }
        Err(error) => Err(error).during("rename", &spare),
    }
}
