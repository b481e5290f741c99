//! An old snapshot whose file becomes the next one.
//!
//! A snapshot that is removed frees hundreds of megabytes, and a file system that tells the device of every block
//! freed holds up the syncs of the transaction log meanwhile; one that is written over an old one frees nothing and
//! needs no new space.

use super::{Compression, SEAL_END, SnapshotFile};
use crate::{
    disk::{Disk, DiskFile, read_full, sync_names},
    error::{IoContext, Result},
    names::parse_snapshot_name,
};
use ostler_proto::id::Zxid;
use std::{io, path::Path};

/// No name that upstream would take for a snapshot's.
const NAME: &str = "spare-snapshot";

/// A loss of power in the middle of a rename may leave both names, where file systems do not promise otherwise. Then the
/// spare is a snapshot as well, and must not be written over.
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

/// Whether a snapshot may become the spare: it says at its end which transaction it holds. A disk that loses what came
/// over it then shows an older tree under the new name, and a start sees that. What ZooKeeper 3.8 has written does not say
/// it, and of what is compressed it is not known.
pub(crate) fn may_be(disk: &dyn Disk, old: &SnapshotFile) -> Result<bool> {
    let says = || -> io::Result<bool> {
        let file = disk.open(&old.path)?;
        // The end of the section before, then zxid, checksum and end.
        let mut end = [0; SEAL_END.len() + 8 + 8 + SEAL_END.len()];
        let Some(offset) = file.size()?.checked_sub(end.len() as u64) else { return Ok(false) };
        let whole = read_full(&*file, &mut end, offset)? == end.len() && end.starts_with(&SEAL_END);
        let zxid = end[SEAL_END.len()..].first_chunk().map(|bytes| Zxid(u64::from_be_bytes(*bytes)));
        Ok(whole && zxid >= Some(old.zxid))
    };
    let is_only_here = disk.is_only_here(&old.path).during("look at", &old.path)?;
    Ok(is_only_here && old.compression == Compression::None && says().during("read", &old.path)?)
}

/// Keeps a snapshot that nobody needs as the spare. `false` if it was left where it is, as there is a spare already.
pub(crate) fn keep(disk: &dyn Disk, dir: &Path, old: &Path) -> Result<bool> {
    let spare = dir.join(NAME);
    if disk.exists(&spare).during("look for", &spare)? {
        return Ok(false);
    }
    disk.rename(old, &spare).during("rename", old)?;
    // Its old name must be gone for good before its bytes are.
    sync_names(disk, dir)?;
    Ok(true)
}

/// A file to write `unfinished` into: the spare under a new name, with all that is in it, or else an empty one.
pub(super) fn take(disk: &dyn Disk, dir: &Path, unfinished: &Path) -> Result<Box<dyn DiskFile>> {
    remove_second_name(disk, dir)?;
    let spare = dir.join(NAME);
    // Somebody else's by now, or never one of ours.
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
