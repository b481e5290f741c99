//! Takes a base: copies the newest snapshot of a server that can be read, while the server may remove it.

use crate::{
    error::{BackupError, FileContext, Result},
    history::time_of,
    log_tail::last_up_to,
    part::Base,
    store::{Store, Stored},
};
use ostler_proto::{
    acl::Acl,
    id::{SessionId, Zxid},
};
use ostler_storage::{
    StorageError,
    disk::{Disk, DiskFile, FileIdentity, OsDisk},
    error::Refusal,
    names::snapshot_name,
    snapshot::{SnapshotFile, SnapshotNode, SnapshotSink, find_snapshots, read_snapshot},
};
use sha2::{Digest, Sha256};
use std::{
    io::{self, Read},
    path::Path,
    time::UNIX_EPOCH,
};

/// A snapshot that can be read.
pub(crate) struct Found {
    pub(crate) file: SnapshotFile,
    exact_from: Zxid,
    /// The latest time of a znode.
    latest_ms: i64,
}

/// Finds the newest snapshot that can be read. Snapshots that disappear while they are read are passed over.
pub(crate) fn find(snapshots: &Path) -> Result<Found> {
    let mut details = String::new();
    for file in find_snapshots(&OsDisk, snapshots)? {
        if let Some(problem) = &file.problem {
            details += &format!("; {}: {problem:?}", file.path.display());
            continue;
        }
        let mut times = LatestTime(i64::MIN);
        match read_snapshot(&OsDisk, &file, &mut times) {
            Ok(trailer) => {
                let digest = trailer.digest.map(|digest| digest.zxid);
                let ends = [digest, trailer.last_processed].into_iter().flatten();
                let exact_from = ends.fold(file.zxid, Zxid::max);
                return Ok(Found { file, exact_from, latest_ms: times.0 });
            }
            Err(StorageError::BadSnapshot { reason, .. }) => {
                details += &format!("; {}: {reason}", file.path.display());
            }
            Err(_) if !file.path.exists() => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(BackupError::NoBase { folder: snapshots.to_path_buf(), details })
}

/// Copies a snapshot to `folder` of the store. `None` if it was removed meanwhile.
pub(crate) fn copy(store: &Store, folder: &str, found: &Found, logs: &Path) -> Result<Option<Base>> {
    let (file, exact_from) = (&found.file, found.exact_from);
    let object = format!("{folder}/{}", snapshot_name(file.zxid, file.compression));
    let Some((reader, identity)) = open(&file.path)? else { return Ok(None) };
    let stored = store.put_file(&object, reader, &file.path)?;
    // A purge gives the file another name before it writes anything else into it. A Java server that starts writes the
    // snapshot of its last zxid again, into the same file.
    let same = match open(&file.path)? {
        Some((reader, now)) if now == identity => sum(reader).during("read", &file.path)? == stored,
        _ => false,
    };
    if !same {
        return Ok(None);
    }
    let Some(time_ms) = time_of_snapshot(found, logs)? else { return Ok(None) };
    let (zxid, time_ms) = (file.zxid, Some(time_ms));
    Ok(Some(Base { object, zxid, exact_from, time_ms, bytes: stored.bytes, sha256: stored.sha256 }))
}

/// The time of the snapshot's last transaction, from the log. If the log does not have it, a time that is not before it:
/// that of the file, or of a znode if the clock of the leader is ahead. `None` if the file was removed meanwhile.
fn time_of_snapshot(found: &Found, logs: &Path) -> Result<Option<i64>> {
    let (zxid, path) = (found.file.zxid, &found.file.path);
    if let Some((last, record)) = last_up_to(logs, zxid)?
        && last == zxid
        && let Some(time_ms) = time_of(&record)
    {
        return Ok(Some(time_ms));
    }
    let written = match path.metadata().and_then(|metadata| metadata.modified()) {
        Ok(written) => written,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).during("look at", path),
    };
    let written_ms = written.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64);
    Ok(Some(written_ms.max(found.latest_ms)))
}

/// Whether a base of the backup is a copy of this file.
pub(crate) fn is_copy(file: &SnapshotFile, base: &Base) -> Result<bool> {
    let name = snapshot_name(file.zxid, file.compression);
    let same_name = base.object.rsplit('/').next() == Some(&*name);
    match open(&file.path)? {
        Some((reader, _)) if same_name => Ok(sum(reader).during("read", &file.path)? == base.stored()),
        _ => Ok(false),
    }
}

fn sum(mut reader: FileReader) -> io::Result<Stored> {
    let (mut sum, mut bytes, mut piece) = (Sha256::new(), 0, vec![0; 1 << 18]);
    loop {
        match reader.read(&mut piece)? {
            0 => return Ok(Stored::new(bytes, sum)),
            got => {
                sum.update(&piece[..got]);
                bytes += got as u64;
            }
        }
    }
}

fn open(path: &Path) -> Result<Option<(FileReader, FileIdentity)>> {
    match OsDisk.open(path) {
        Ok(file) => {
            let identity = file.identity().during("look at", path)?;
            Ok(Some((FileReader { file, position: 0 }, identity)))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).during("open", path),
    }
}

struct FileReader {
    file: Box<dyn DiskFile>,
    position: u64,
}

impl Read for FileReader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let got = self.file.read_at(into, self.position)?;
        self.position += got as u64;
        Ok(got)
    }
}

/// Takes a snapshot and keeps only the latest time of a znode: the reader has checked its seals.
struct LatestTime(i64);

impl SnapshotSink for LatestTime {
    fn session(&mut self, _: SessionId, _: i32) -> std::result::Result<(), Refusal> {
        Ok(())
    }

    fn acl(&mut self, _: i64, _: Vec<Acl>) -> std::result::Result<(), Refusal> {
        Ok(())
    }

    fn node(&mut self, node: SnapshotNode<'_>) -> std::result::Result<(), Refusal> {
        self.0 = self.0.max(node.stat.mtime);
        Ok(())
    }
}
