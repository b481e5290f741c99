//! Finds the files of a server from a path that an operator gives.

use crate::error::{InspectError, Result};
use ostler_proto::id::Zxid;
use ostler_storage::{
    disk::{Disk, OsDisk},
    error::IoContext,
    folders::DataFolders,
    names::{LogFile, log_files, parse_log_name, parse_snapshot_name, parse_unrenamed_name},
    snapshot::{Compression, SnapshotFile},
};
use std::path::{Path, PathBuf};

const VERSION: &str = "version-2";

/// The folders below `folder`: a dataDir, or the folder `version-2` in it. `logs` is the dataLogDir, or its
/// `version-2`, if that is another folder.
pub fn folders(folder: &Path, logs: Option<&Path>) -> Result<DataFolders> {
    let data_dir = above_version(folder)?;
    let data_log_dir = logs.map(above_version).transpose()?;
    Ok(DataFolders::at(&data_dir, data_log_dir.as_deref()))
}

/// The dataDir of a folder that is one, or that is its `version-2`.
fn above_version(folder: &Path) -> Result<PathBuf> {
    if folder.join(VERSION).is_dir() {
        return Ok(folder.to_path_buf());
    }
    let whole = std::path::absolute(folder).unwrap_or_else(|_| folder.to_path_buf());
    match (whole.file_name(), whole.parent()) {
        (Some(name), Some(above)) if name == VERSION && folder.is_dir() => Ok(above.to_path_buf()),
        _ => Err(InspectError::NotData {
            path: folder.to_path_buf(),
            reason: "this is no data folder: it has no folder version-2; give the dataDir of zoo.cfg",
        }),
    }
}

/// The log files that a path stands for, oldest first: one file, all logs of a folder, or those of its `version-2`.
pub fn logs(disk: &dyn Disk, path: &Path) -> Result<Vec<LogFile>> {
    if path.is_dir() {
        let inner = path.join(VERSION);
        let dir = if inner.is_dir() { &inner } else { path };
        let found = log_files(disk, dir)?;
        if found.is_empty() {
            return Err(InspectError::NotData {
                path: path.to_path_buf(),
                reason: "there is no log file here; logs are named log.ZXID, in version-2 of dataLogDir",
            });
        }
        return Ok(found);
    }
    disk.open(path).during("open", path)?;
    let named = path.file_name().and_then(|name| name.to_str()).and_then(parse_log_name);
    Ok(vec![LogFile { first: named.unwrap_or(Zxid::ZERO), path: path.to_path_buf() }])
}

/// The snapshot file at a path. Its name gives zxid and compression; for another name the first bytes show the
/// compression, and the zxid is zero.
pub fn snapshot(path: &Path) -> Result<SnapshotFile> {
    let file = OsDisk.open(path).during("open", path)?;
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let unrenamed = || parse_unrenamed_name(name).map(|zxid| (zxid, Compression::None));
    let named = parse_snapshot_name(name).or_else(unrenamed);
    let (zxid, compression) = match named {
        Some(named) => named,
        None => {
            let mut start = [0; 8];
            let size = file.read_at(&mut start, 0).during("read", path)?;
            (Zxid::ZERO, compression_of(&start[..size]))
        }
    };
    Ok(SnapshotFile { zxid, compression, path: path.to_path_buf(), problem: None })
}

fn compression_of(start: &[u8]) -> Compression {
    match start {
        [0x1f, 0x8b, ..] => Compression::Gz,
        [0x82, b'S', b'N', b'A', b'P', b'P', b'Y', ..] => Compression::Snappy,
        _ => Compression::None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_data_folder_is_found_from_itself_and_from_its_version_2() {
        let dir = tempfile::tempdir().unwrap();
        let inner = dir.path().join(VERSION);
        std::fs::create_dir(&inner).unwrap();
        for given in [dir.path(), &inner] {
            assert_eq!(folders(given, None).unwrap().snapshots, inner);
        }
        assert!(matches!(folders(&inner.join("x"), None), Err(InspectError::NotData { .. })));
    }

    #[test]
    fn a_folder_without_logs_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        assert!(matches!(logs(&OsDisk, dir.path()), Err(InspectError::NotData { .. })));
        std::fs::write(dir.path().join("log.5"), b"").unwrap();
        assert_eq!(logs(&OsDisk, dir.path()).unwrap()[0].first, Zxid(5));
    }

    #[test]
    fn the_compression_of_a_renamed_snapshot_is_seen_in_its_first_bytes() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("copy");
        for (bytes, expected) in [
            (&b"\x1f\x8b\x08"[..], Compression::Gz),
            (b"\x82SNAPPY\0", Compression::Snappy),
            (b"ZKSN", Compression::None),
        ] {
            std::fs::write(&path, bytes).unwrap();
            assert_eq!(snapshot(&path).unwrap().compression, expected);
        }
    }
}
