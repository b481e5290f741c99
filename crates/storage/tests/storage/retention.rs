//! The purge: which snapshots and logs are removed, and which become spares.

use crate::{faulty_disk::FaultyDisk, sinks::begin_snapshot};
use ostler_proto::{id::Zxid, stat::StatPersisted};
use ostler_storage::{
    disk::Disk as _, folders::DataFolders, retention, snapshot::SnapshotTrailer, txnlog::SpareLog,
};
use std::path::{Path, PathBuf};

fn purge(disk: &FaultyDisk, folders: &DataFolders, retain: usize) -> Vec<PathBuf> {
    retention::purge(disk, folders, retain, &[], &SpareLog::new(folders.logs.clone()), &|| true).unwrap()
}

#[test]
fn the_newest_snapshots_and_the_logs_they_need_stay() {
    let disk = FaultyDisk::default();
    let folders = DataFolders::at(Path::new("/d"), None);
    let put = |name: &str, valid: bool| {
        let bytes: &[u8] = if valid { b"ZKSN......\0\0\0\x01/" } else { b"ZKSN" };
        disk.put(&folders.snapshots.join(name), bytes);
    };
    for name in ["snapshot.0", "snapshot.10", "snapshot.20", "snapshot.30"] {
        put(name, true);
    }
    // Neither counts: one is incomplete, and the other has a name that is not a snapshot's.
    put("snapshot.2f", false);
    put("snapshot.25.bak", true);
    for name in ["log.1", "log.8", "log.11", "log.21", "acceptedEpoch"] {
        put(name, false);
    }
    let names = |paths: Vec<PathBuf>| -> Vec<String> {
        paths.iter().map(|path| path.file_name().unwrap().to_str().unwrap().to_owned()).collect()
    };
    // log.8 can have transactions after 0x10.
    assert_eq!(names(purge(&disk, &folders, 3)), ["log.1", "snapshot.0"]);
    assert_eq!(names(purge(&disk, &folders, 1)), [""; 0], "three are kept whatever is asked");
    put("snapshot.40", true);
    put("snapshot.50", true);
    let removed = names(purge(&disk, &folders, 3));
    assert_eq!(removed, ["log.8", "log.11", "snapshot.10", "snapshot.20", "snapshot.2f"]);
    assert_eq!(
        names(disk.names()),
        [
            "acceptedEpoch",
            "log.21",
            "snapshot.25.bak",
            "snapshot.30",
            "snapshot.40",
            "snapshot.50",
            "spare-log"
        ]
    );
}

#[test]
fn a_snapshot_written_over_the_spare_has_no_bytes_of_it() {
    let disk = FaultyDisk::default();
    let folders = DataFolders::at(Path::new("/d"), None);
    let write = |zxid: u64, znodes: usize| {
        let mut writer = begin_snapshot(&disk, &folders.snapshots, zxid).unwrap();
        for znode in 0..znodes {
            let path = if znode == 0 { "/".to_owned() } else { format!("/{znode}") };
            writer.node(&path, None, -1, &StatPersisted::default()).unwrap();
        }
        writer.finish(SnapshotTrailer { digest: None, last_processed: Some(Zxid(zxid)) }).unwrap();
        disk.bytes(&folders.snapshots.join(format!("snapshot.{zxid:x}")))
    };
    let alone = write(0x50, 10);
    disk.remove(&folders.snapshots.join("snapshot.50")).unwrap();
    for (zxid, znodes) in [(0x10, 50), (0x20, 50), (0x30, 50), (0x40, 50)] {
        write(zxid, znodes);
    }
    let spare = folders.snapshots.join("spare-snapshot");
    purge(&disk, &folders, 3);
    assert!(disk.names().contains(&spare));
    assert_eq!(write(0x50, 10), alone, "a shorter one than the spare");
    assert!(!disk.names().contains(&spare));
    purge(&disk, &folders, 3);
    assert_eq!(write(0x60, 200).len(), write(0x70, 200).len(), "longer ones than the spare, and without");
}

/// If the disk lost what is written over it, the old tree would have the new name, and nothing in it would show this.
#[test]
fn a_snapshot_without_its_last_zxid_does_not_become_the_spare() {
    let disk = FaultyDisk::default();
    let folders = DataFolders::at(Path::new("/d"), None);
    for zxid in [0x10, 0x20, 0x30, 0x40] {
        let mut writer = begin_snapshot(&disk, &folders.snapshots, zxid).unwrap();
        writer.node("/", None, -1, &StatPersisted::default()).unwrap();
        writer.finish(SnapshotTrailer::default()).unwrap();
    }
    purge(&disk, &folders, 3);
    assert_eq!(
        disk.names(),
        ["20", "30", "40"].map(|zxid| folders.snapshots.join(format!("snapshot.{zxid}")))
    );
}

#[test]
fn without_a_valid_snapshot_nothing_is_removed() {
    let disk = FaultyDisk::default();
    let folders = DataFolders::at(Path::new("/d"), None);
    disk.put(&folders.snapshots.join("snapshot.5"), b"");
    disk.put(&folders.logs.join("log.1"), b"");
    assert!(purge(&disk, &folders, 3).is_empty());
}
