//! An old snapshot whose file becomes the next one.
//!
//! A snapshot that is removed frees hundreds of megabytes, and a file system that tells the device of every block
//! freed holds up the syncs of the transaction log meanwhile; one that is written over an old one frees nothing and
//! needs no new space.

use crate::{
    disk::{Disk, DiskFile},
    error::{IoContext, Result},
};
use std::{io, path::Path};

/// No name that upstream would take for a snapshot's.
const NAME: &str = "spare-snapshot";

/// Keeps a snapshot that nobody needs as the spare. `false` if it was left where it is, as there is a spare already.
pub(crate) fn keep(disk: &dyn Disk, dir: &Path, old: &Path) -> Result<bool> {
    let spare = dir.join(NAME);
    if disk.exists(&spare).during("look for", &spare)? {
        return Ok(false);
    }
    disk.rename(old, &spare).during("rename", old)?;
    // Its old name must be gone for good before its bytes are.
    disk.sync_dir(dir).during("sync", dir)?;
    Ok(true)
}

/// A file to write `unfinished` into: the spare under a new name, with all that is in it, or else an empty one.
pub(super) fn take(disk: &dyn Disk, dir: &Path, unfinished: &Path) -> Result<Box<dyn DiskFile>> {
    match disk.rename(&dir.join(NAME), unfinished) {
        Ok(()) => disk.open_to_change(unfinished).during("open", unfinished),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            disk.create(unfinished).during("create", unfinished)
        }
        Err(error) => Err(error).during("rename", &dir.join(NAME)),
    }
}
