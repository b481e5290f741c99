//! Files that Java ZooKeeper wrote are read, and written again with the same bytes. `tests/golden/README.md` describes
//! them.

use crate::{
    faulty_disk::FaultyDisk,
    sinks::{Contents, drain},
};
use ostler_proto::{
    id::{Epoch, Zxid},
    txn::{TxnDigest, TxnRecord},
};
use ostler_storage::{
    disk::OsDisk,
    epochs::{EpochFile, is_incomplete, mark_incomplete, read_epoch, write_epoch},
    folders::DataFolders,
    recover::{Origin, RecoverOptions, recover},
    snapshot::{
        Compression, SnapshotFile, SnapshotTarget, SnapshotTrailer, SnapshotWriter, find_snapshots,
        read_snapshot,
    },
    txnlog::{LogOptions, LogReader, TxnLog},
};
use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

fn golden(version: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(version)
}

fn read(file: &SnapshotFile) -> (Contents, SnapshotTrailer) {
    let mut contents = Contents::default();
    let trailer = read_snapshot(&OsDisk, file, &mut contents).unwrap();
    (contents, trailer)
}

/// Reads a snapshot and sorts it, since the order of children is random in Java.
fn read_sorted(file: &SnapshotFile) -> Contents {
    let (mut contents, _) = read(file);
    contents.nodes.sort_by(|a, b| a.path.cmp(&b.path));
    contents
}

fn write(zxid: Zxid, contents: &Contents, trailer: SnapshotTrailer, compression: Compression) -> Vec<u8> {
    let disk = FaultyDisk::default();
    let sessions = contents.sessions.iter().copied();
    let acls = contents.acls.iter().map(|(index, acl)| (*index, &acl[..]));
    let mut writer =
        SnapshotWriter::begin(&disk, SnapshotTarget::new(Path::new("/d"), zxid, compression), sessions, acls)
            .unwrap();
    for node in &contents.nodes {
        writer.node(&node.path, node.data.as_deref(), node.acl, &node.stat).unwrap();
    }
    let path = writer.finish(trailer).unwrap();
    assert_eq!(disk.names(), std::slice::from_ref(&path));
    disk.bytes(&path)
}

#[test]
fn a_plain_snapshot_of_java_is_read_and_written_with_the_same_bytes() {
    for version in ["3.8.0", "3.9.5", "quorum-3.9.5"] {
        for file in find_snapshots(&OsDisk, &golden(version)).unwrap() {
            assert_eq!(file.problem, None);
            let (contents, trailer) = read(&file);
            assert_eq!(contents.nodes[0].path, "/");
            assert_eq!(trailer.last_processed.is_some(), version != "3.8.0");
            if file.compression == Compression::None {
                let again = write(file.zxid, &contents, trailer, Compression::None);
                assert!(again == fs::read(&file.path).unwrap(), "{}", file.path.display());
            }
        }
    }
}

#[test]
fn compressed_snapshots_of_java_have_the_contents_of_the_plain_one() {
    for version in ["3.8.0", "3.9.5"] {
        let files = find_snapshots(&OsDisk, &golden(version)).unwrap();
        let with = |compression| {
            files.iter().find(|file| file.zxid == Zxid(0x1a) && file.compression == compression).unwrap()
        };
        let plain = read_sorted(with(Compression::None));
        assert_eq!((plain.sessions.len(), plain.nodes.len()), (1, 15));
        for compression in [Compression::Gz, Compression::Snappy] {
            assert!(read_sorted(with(compression)) == plain);
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("snapshot");
            fs::write(&path, write(Zxid(0x1a), &plain, SnapshotTrailer::default(), compression)).unwrap();
            let file = SnapshotFile { zxid: Zxid(0x1a), compression, path, problem: None };
            assert!(read(&file).0 == plain);
        }
    }
}

#[test]
fn a_log_of_java_is_read_and_written_with_the_same_bytes() {
    let mut types = BTreeSet::new();
    for (version, first, count) in [("3.8.0", 1, 26), ("3.9.5", 1, 26), ("quorum-3.9.5", 0x1_0000_0001, 3)] {
        let mut reader = LogReader::open(&OsDisk, &golden(version), Zxid::ZERO).unwrap();
        let records = drain(&mut reader).unwrap();
        assert_eq!((records.len(), records[0].0), (count, Zxid(first)));
        assert_eq!((reader.torn_tail(), reader.empty_files(), reader.backwards()), (None, &[][..], &[][..]));

        let disk = FaultyDisk::default();
        let options = LogOptions { prealloc_bytes: 0, ..LogOptions::default() };
        let mut log = TxnLog::open(Arc::new(disk.clone()), "/d".into(), options);
        for (zxid, record) in &records {
            let txn = TxnRecord::read(record).unwrap();
            types.insert(txn.header.code);
            assert!(matches!(txn.digest, None | Some(TxnDigest { version: 2, .. })));
            log.append(*zxid, record).unwrap();
        }
        log.commit().unwrap();
        let name = format!("log.{first:x}");
        assert!(disk.bytes(&Path::new("/d").join(&name)) == fs::read(golden(version).join(name)).unwrap());
    }
    // All kinds that Java logs: errors, sessions, creates, deletes, setData, setACL, multi, reconfig, container, TTL.
    assert_eq!(types, BTreeSet::from([-11, -10, -1, 1, 2, 5, 7, 14, 15, 16, 19, 20, 21]));
}

#[test]
fn a_server_starts_from_a_folder_of_java() {
    for version in ["3.8.0", "3.9.5", "quorum-3.9.5"] {
        let dir = tempfile::tempdir().unwrap();
        let folders = DataFolders::open(&OsDisk, dir.path(), None, true).unwrap();
        for file in fs::read_dir(golden(version)).unwrap() {
            let path = file.unwrap().path();
            fs::copy(&path, folders.snapshots.join(path.file_name().unwrap())).unwrap();
        }
        let mut contents = Contents::default();
        let done = recover(&OsDisk, &folders, RecoverOptions::default(), &mut contents).unwrap();
        assert_eq!(done.notes, []);
        if version == "quorum-3.9.5" {
            assert_eq!((done.origin, done.last_zxid), (Origin::Snapshot(Zxid(0)), Zxid(0x1_0000_0003)));
        } else {
            assert_eq!((done.origin, done.last_zxid), (Origin::Snapshot(Zxid(0x1a)), Zxid(0x1a)));
        }
    }
}

#[test]
fn epoch_files_of_java_are_read_and_written_with_the_same_bytes() {
    let dir = tempfile::tempdir().unwrap();
    for which in [EpochFile::Accepted, EpochFile::Current] {
        assert_eq!(read_epoch(&OsDisk, &golden("quorum-3.9.5"), which).unwrap(), Some(Epoch(1)));
        write_epoch(&OsDisk, dir.path(), which, Epoch(1)).unwrap();
    }
    for name in ["acceptedEpoch", "currentEpoch"] {
        assert_eq!(
            fs::read(dir.path().join(name)).unwrap(),
            fs::read(golden("quorum-3.9.5").join(name)).unwrap()
        );
    }
}

/// The current epoch is saved when the history is complete. Java does this too, and does not remove the mark. And a
/// server can end after the epoch is saved and before the mark is removed.
#[test]
fn with_a_current_epoch_the_history_is_complete_in_spite_of_the_mark() {
    let dir = tempfile::tempdir().unwrap();
    mark_incomplete(&OsDisk, dir.path()).unwrap();
    write_epoch(&OsDisk, dir.path(), EpochFile::Accepted, Epoch(1)).unwrap();
    assert!(is_incomplete(&OsDisk, dir.path()).unwrap(), "it has promised an epoch");
    // In the same way as Java's `setCurrentEpoch`.
    fs::write(dir.path().join("currentEpoch"), "1").unwrap();
    assert!(!is_incomplete(&OsDisk, dir.path()).unwrap(), "it has a leader's history");
}
