//! The purge: which snapshots and logs are removed, and which become spares.

use crate::{
    faulty_disk::FaultyDisk,
    sinks::{Contents, begin_snapshot, record},
};
use ostler_proto::{id::Zxid, stat::StatPersisted};
use ostler_storage::{
    disk::Disk as _,
    folders::DataFolders,
    recover::{RecoverOptions, recover},
    retention,
    snapshot::SnapshotTrailer,
    txnlog::{LogOptions, SpareLog, TxnLog, zxid_before},
};
use proptest::prelude::*;
use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

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

/// A server's files: logs that begin after some transactions, and snapshots at some, not all of which are complete.
#[derive(Debug, Clone)]
struct Past {
    transactions: u64,
    rolls: Vec<u64>,
    snapshots: Vec<(u64, bool)>,
    /// The place among the snapshots of one that the start could not read.
    unreadable: Option<prop::sample::Index>,
}

impl Past {
    fn any() -> impl Strategy<Value = Past> {
        (4..60u64).prop_flat_map(|transactions| {
            let at = 1..transactions;
            let snapshots = prop::collection::btree_map(at.clone(), prop::bool::weighted(0.8), 1..9);
            let rolls = prop::collection::vec(at, 0..9);
            (Just(transactions), rolls, snapshots, any::<Option<prop::sample::Index>>()).prop_map(
                |(transactions, rolls, snapshots, unreadable)| Past {
                    transactions,
                    rolls,
                    snapshots: snapshots.into_iter().collect(),
                    unreadable,
                },
            )
        })
    }

    /// Writes the files. Returns the snapshot that the start could not read.
    fn write(&self, disk: &FaultyDisk, folders: &DataFolders) -> Vec<PathBuf> {
        let options = LogOptions { prealloc_bytes: 0, ..LogOptions::default() };
        let mut log = TxnLog::open(Arc::new(disk.clone()), folders.logs.clone(), options);
        for zxid in 1..=self.transactions {
            log.append(Zxid(zxid), &record(Zxid(zxid), 20)).unwrap();
            log.commit().unwrap();
            if self.rolls.contains(&zxid) {
                log.roll();
            }
        }
        for (zxid, is_complete) in &self.snapshots {
            let mut writer = begin_snapshot(disk, &folders.snapshots, *zxid).unwrap();
            writer.node("/", None, -1, &StatPersisted::default()).unwrap();
            let trailer = SnapshotTrailer { digest: None, last_processed: Some(Zxid(*zxid)) };
            let path = writer.finish(trailer).unwrap();
            if !is_complete {
                disk.rot(&path, |bytes| bytes.truncate(bytes.len() - 3));
            }
        }
        let bad = self
            .unreadable
            .map(|at| folders.snapshots.join(format!("snapshot.{:x}", at.get(&self.snapshots).0)));
        bad.into_iter().collect()
    }
}

fn world() -> (FaultyDisk, DataFolders) {
    (FaultyDisk::default(), DataFolders::at(Path::new("/d"), Some(Path::new("/l"))))
}

proptest! {
    /// After a purge a server can start from each snapshot that is kept, even if all newer ones cannot be read: it has all
    /// transactions after it.
    #[test]
    fn a_start_needs_nothing_that_a_purge_removes(past in Past::any(), retain in 0..6usize, newer_bad in 0..5usize) {
        let (disk, folders) = world();
        let unreadable = past.write(&disk, &folders);
        let plan = retention::plan(&disk, &folders, retain, &unreadable).unwrap();
        let planned: Vec<PathBuf> = plan.paths().map(Path::to_path_buf).collect();
        let spare = SpareLog::new(folders.logs.clone());
        let removed = retention::purge(&disk, &folders, retain, &unreadable, &spare, &|| true).unwrap();
        prop_assert_eq!(&removed, &planned, "the plan says what is removed");
        let usable = |zxid: &u64| !unreadable.contains(&folders.snapshots.join(format!("snapshot.{zxid:x}")));
        let valid: Vec<u64> = past.snapshots.iter().rev().filter(|(_, whole)| *whole).map(|(zxid, _)| *zxid).filter(usable).collect();
        let kept = valid.len().min(retain.max(retention::RETAIN_AT_LEAST));
        if kept == 0 {
            prop_assert!(removed.is_empty());
            return Ok(());
        }
        let bad = newer_bad.min(kept - 1);
        let start = valid[bad];
        for (zxid, _) in past.snapshots.iter().filter(|(zxid, _)| *zxid > start) {
            disk.remove(&folders.snapshots.join(format!("snapshot.{zxid:x}"))).unwrap();
        }
        let mut contents = Contents::default();
        recover(&disk, &folders, RecoverOptions::default(), &mut contents).unwrap();
        prop_assert_eq!(contents.snapshot.map(|(zxid, _)| zxid), Some(Zxid(start)));
        let records: Vec<u64> = contents.records.iter().map(|(zxid, _)| zxid.0).collect();
        prop_assert_eq!(records, (start + 1..=past.transactions).collect::<Vec<u64>>());
    }
}

#[test]
fn a_header_says_where_the_log_before_ends() {
    let (disk, folders) = world();
    let past = Past { transactions: 9, rolls: vec![4], snapshots: Vec::new(), unreadable: None };
    past.write(&disk, &folders);
    let before = |name: &str| zxid_before(&disk, &folders.logs.join(name));
    assert_eq!(before("log.5").unwrap(), Some(Zxid(4)));
    disk.put(&folders.logs.join("log.63"), b"ZKSN\0\0\0\x02........");
    disk.put(&folders.logs.join("log.64"), b"ZKLG");
    assert_eq!((before("log.63").unwrap(), before("log.64").unwrap()), (None, None));
    assert!(before("log.65").is_err());
}
