//! Disks that fail: errors are returned, nothing is tried twice, and nothing acknowledged is lost.

use crate::{
    faulty_disk::{Fault, FaultyDisk},
    sinks::{begin_snapshot, drain, record},
};
use ostler_proto::id::Zxid;
use ostler_storage::{
    StorageError,
    snapshot::{SnapshotTrailer, find_snapshots, remove_snapshots_after},
    txnlog::{LogOptions, LogReader, TxnLog, truncate_after},
};
use std::{io::ErrorKind, path::Path, sync::Arc};

fn new_log(disk: &FaultyDisk) -> TxnLog {
    TxnLog::open(
        Arc::new(disk.clone()),
        "/logs".into(),
        LogOptions { prealloc_bytes: 8192, ..LogOptions::default() },
    )
}

/// Three commits, the second one after a roll, until one fails. Returns the number of acknowledged ones, and the error.
fn three_commits(log: &mut TxnLog) -> (u64, Option<StorageError>) {
    for zxid in 1..=3 {
        let done = log.append(Zxid(zxid), &record(Zxid(zxid), 50)).and_then(|()| log.commit());
        if let Err(error) = done {
            return (zxid - 1, Some(error));
        }
        if zxid == 1 {
            log.roll();
        }
    }
    (3, None)
}

#[test]
fn any_failed_change_closes_the_log_for_good() {
    let counting = FaultyDisk::default();
    assert!(three_commits(&mut new_log(&counting)).1.is_none());
    let changes = counting.changes();
    // Two files (create, allocate, write, zeros ahead, sync, sync the folder) and a third commit (write, sync); and
    // before the second and the third, how far the log is synced (create, write, sync, sync the folder; two writes).
    assert_eq!(changes, 14 + 6);
    for kind in [ErrorKind::Other, ErrorKind::StorageFull] {
        let mut needless = 0;
        for at in 0..changes {
            let disk = FaultyDisk::default();
            let mut log = new_log(&disk);
            disk.fail(Some(Fault { at, lasting: false, kind }));
            let (acknowledged, error) = three_commits(&mut log);
            let Some(error) = error else {
                // The mark is not needed, so its failure is no error.
                assert_eq!(acknowledged, 3);
                needless += 1;
                continue;
            };
            match error {
                StorageError::DiskFull { .. } => assert_eq!(kind, ErrorKind::StorageFull),
                StorageError::Io { .. } => assert_eq!(kind, ErrorKind::Other),
                error => panic!("{error}"),
            }
            // The disk would work again, but it is not known what it has.
            let before = disk.changes();
            assert!(matches!(log.commit(), Err(StorageError::Poisoned { .. })));
            assert!(matches!(log.append(Zxid(9), b"x"), Err(StorageError::Poisoned { .. })));
            assert!(matches!(log.truncate_after(Zxid(0)), Err(StorageError::Poisoned { .. })));
            assert_eq!(disk.changes(), before);

            let mut reader = LogReader::open(&disk, Path::new("/logs"), Zxid::ZERO).unwrap();
            assert!(drain(&mut reader).unwrap().len() as u64 >= acknowledged);
        }
        assert_eq!(needless, 6);
    }
}

#[test]
fn the_error_of_a_full_disk_says_that_it_is_full() {
    let disk = FaultyDisk::default();
    disk.fail(Some(Fault { at: 1, lasting: true, kind: ErrorKind::StorageFull }));
    let error = three_commits(&mut new_log(&disk)).1.unwrap().to_string();
    assert!(error.starts_with("the disk is full: cannot reserve space for /logs/log.1"), "{error}");
    assert!(error.contains("Free some space"), "{error}");
}

#[test]
fn transactions_are_never_overwritten() {
    let disk = FaultyDisk::default();
    let bytes = record(Zxid(5), 10);
    let commit = || {
        let mut log = new_log(&disk);
        log.append(Zxid(5), &bytes).and_then(|()| log.commit())
    };
    for leftover in [&b""[..], b"ZKLG\0\0\0\x02\0\0\0\0\0\0\0\0", &[0; 5000]] {
        disk.put(Path::new("/logs/log.5"), leftover);
        commit().unwrap();
    }
    let error = commit().unwrap_err();
    assert!(matches!(error, StorageError::LogExists { .. }), "{error}");
    assert!(error.to_string().contains("/logs/log.5"), "{error}");
    disk.put(Path::new("/logs/log.5"), b"another server's file");
    assert!(matches!(commit(), Err(StorageError::LogExists { .. })));
}

#[test]
fn a_repeated_zxid_stays_in_the_file_of_the_first_one() {
    let disk = FaultyDisk::default();
    let mut log = new_log(&disk);
    for zxid in [7, 7, 8] {
        log.append(Zxid(zxid), &record(Zxid(zxid), 10)).unwrap();
        log.commit().unwrap();
        log.roll();
    }
    let names = ["/logs/log-synced", "/logs/log.7", "/logs/log.8"];
    assert_eq!(disk.names(), names.map(Path::new));
}

#[test]
fn a_giant_batch_is_synced_in_parts() {
    let disk = FaultyDisk::default();
    let mut log = new_log(&disk);
    for zxid in 1..=5 {
        log.append(Zxid(zxid), &record(Zxid(zxid), 1_000_000)).unwrap();
        // After the create: allocate, write, zeros ahead, sync, and one sync of the folder.
        assert_eq!(disk.changes(), if zxid < 5 { 1 } else { 6 });
    }
    log.commit().unwrap();
    let mut reader = LogReader::open(&disk, Path::new("/logs"), Zxid::ZERO).unwrap();
    assert_eq!(drain(&mut reader).unwrap().len(), 5);
}

#[test]
fn nothing_is_synced_if_sync_is_off() {
    let disk = FaultyDisk::default();
    let options = LogOptions { sync: false, prealloc_bytes: 0, ..LogOptions::default() };
    let mut log = TxnLog::open(Arc::new(disk.clone()), "/logs".into(), options);
    log.append(Zxid(1), &record(Zxid(1), 10)).unwrap();
    log.commit().unwrap();
    assert_eq!(disk.changes(), 2, "create, write");
}

#[test]
fn a_failed_snapshot_leaves_no_file() {
    for at in 0..6 {
        let disk = FaultyDisk::default();
        disk.fail(Some(Fault { at, lasting: false, kind: ErrorKind::Other }));
        let dir = Path::new("/snapshots");
        let done = begin_snapshot(&disk, dir, 5).and_then(|writer| writer.finish(SnapshotTrailer::default()));
        disk.fail(None);
        match done {
            Ok(path) => assert_eq!(disk.names(), [path]),
            // The file is renamed, but the name may not be durable: the caller must not count on it.
            Err(error) if error.to_string().contains("cannot sync /snapshots:") => {
                assert_eq!(find_snapshots(&disk, dir).unwrap().len(), 1);
            }
            Err(_) => assert!(disk.names().is_empty(), "{at}"),
        }
    }
}

/// A purge can have removed the file after the folder was listed.
#[test]
fn removing_a_missing_file_is_no_error_and_failing_to_remove_one_is() {
    let dir = Path::new("/logs");
    for kind in [ErrorKind::NotFound, ErrorKind::PermissionDenied, ErrorKind::Other] {
        let disk = FaultyDisk::default();
        let first_fails = || disk.fail(Some(Fault { at: 0, lasting: false, kind }));
        let mut log = new_log(&disk);
        log.append(Zxid(3), &record(Zxid(3), 50)).unwrap();
        log.commit().unwrap();
        first_fails();
        let truncated = truncate_after(&disk, dir, Zxid(2)).map(|done| done.removed);
        disk.fail(None);
        begin_snapshot(&disk, dir, 3).unwrap().finish(SnapshotTrailer::default()).unwrap();
        first_fails();
        let removed = remove_snapshots_after(&disk, dir, Zxid(2));
        if kind == ErrorKind::NotFound {
            assert_eq!(truncated.unwrap(), [dir.join("log.3")]);
            assert_eq!(removed.unwrap(), [dir.join("snapshot.3")]);
        } else {
            for error in [truncated.unwrap_err(), removed.unwrap_err()] {
                assert!(matches!(error, StorageError::Io { .. }), "{kind:?}: {error}");
            }
        }
    }
}
