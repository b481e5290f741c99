//! The files of a log: their number, their sizes, and those that a reader opens.

use crate::{
    damage::logs,
    faulty_disk::FaultyDisk,
    sinks::{drain, record},
};
use ostler_proto::id::Zxid;
use ostler_storage::{
    StorageError,
    disk::{Disk, OsDisk},
    names::log_name,
    txnlog::{BATCH_LIMIT, LogOptions, LogReader, TxnLog},
};
use std::sync::Arc;

const HEADER: u64 = 16;
/// The bytes around a record.
const FRAMING: u64 = 13;

fn log_of(disk: &FaultyDisk, options: LogOptions) -> TxnLog {
    TxnLog::open(Arc::new(disk.clone()), logs(), options)
}

/// Options for a log that reserves no space.
fn tight() -> LogOptions {
    LogOptions { prealloc_bytes: 0, ..LogOptions::default() }
}

fn size(disk: &FaultyDisk) -> u64 {
    disk.bytes(&logs().join(log_name(Zxid(1)))).len() as u64
}

fn log_files(disk: &FaultyDisk) -> usize {
    disk.names().iter().filter(|path| path.to_string_lossy().contains("/log.")).count()
}

#[test]
fn a_file_longer_than_the_limit_is_followed_by_a_new_one() {
    let bytes = record(Zxid(1), 100);
    let two = HEADER + 2 * (bytes.len() as u64 + FRAMING);
    for (limit, files) in [(two - 1, 2), (two, 1), (two + 1, 1)] {
        let disk = FaultyDisk::default();
        let mut log = log_of(&disk, LogOptions { size_limit_bytes: Some(limit), ..tight() });
        for zxid in 1..=3 {
            log.append(Zxid(zxid), &record(Zxid(zxid), 100)).unwrap();
            log.commit().unwrap();
        }
        assert_eq!(log_files(&disk), files, "{limit}");
    }
}

/// The count decides when the next snapshot is due.
#[test]
fn bytes_are_counted_since_the_last_roll() {
    let disk = FaultyDisk::default();
    let mut log = log_of(&disk, tight());
    let framed = record(Zxid(1), 100).len() as u64 + FRAMING;
    for zxid in 1..=3 {
        log.append(Zxid(zxid), &record(Zxid(zxid), 100)).unwrap();
        log.commit().unwrap();
        assert_eq!(log.bytes_since_roll(), HEADER + zxid * framed);
    }
    log.roll();
    assert_eq!(log.bytes_since_roll(), 0);
}

/// A crash may damage one batch at most, so a larger one is written in two.
#[test]
fn a_batch_above_the_limit_is_written_in_two() {
    let rest = |first: usize| BATCH_LIMIT - HEADER as usize - (first + FRAMING as usize) - FRAMING as usize;
    let first = record(Zxid(1), 1000);
    let overhead = record(Zxid(2), 0).len();
    for (more, written) in [(0, 0), (1, HEADER + first.len() as u64 + FRAMING)] {
        let disk = FaultyDisk::default();
        let mut log = log_of(&disk, tight());
        log.append(Zxid(1), &first).unwrap();
        let second = record(Zxid(2), rest(first.len()) - overhead + more);
        assert_eq!(second.len(), rest(first.len()) + more);
        log.append(Zxid(2), &second).unwrap();
        assert_eq!(size(&disk), written, "{more} bytes too many");
        log.commit().unwrap();
        let mut reader = LogReader::open(&disk, &logs(), Zxid(0)).unwrap();
        assert_eq!(drain(&mut reader).unwrap().len(), 2);
    }
}

/// Space is reserved by the same steps as in Java, and no more.
#[test]
fn a_batch_that_fills_the_reserved_space_reserves_no_more() {
    let step = 64 << 10;
    let overhead = record(Zxid(1), 0).len() as u64 + FRAMING;
    for (first_batch, reserved) in [(step - 1, HEADER + step), (step, HEADER + step), (step + 1, 2 * step)] {
        let disk = FaultyDisk::default();
        let mut log = log_of(&disk, LogOptions { prealloc_bytes: step, ..LogOptions::default() });
        log.append(Zxid(1), &record(Zxid(1), (first_batch - overhead) as usize)).unwrap();
        log.commit().unwrap();
        assert_eq!(size(&disk), reserved, "{first_batch}");
    }
}

/// One write and one sync: space is reserved when a file is full, and not with each commit.
#[test]
fn a_commit_changes_the_disk_twice() {
    for options in [tight(), LogOptions::default()] {
        let disk = FaultyDisk::default();
        let mut log = log_of(&disk, options);
        for zxid in 1..=5 {
            log.append(Zxid(zxid), &record(Zxid(zxid), 10)).unwrap();
            disk.fail(None);
            log.commit().unwrap();
            if zxid > 2 {
                // And the mark, which says that the batch before was synced.
                assert_eq!(disk.changes(), 3, "{options:?}");
            }
        }
    }
}

/// Only if space is reserved ahead of the data.
#[test]
fn an_old_log_that_became_the_spare_is_the_next_log() {
    for (prealloc_bytes, used) in [(1 << 16, true), (0, false)] {
        for linked in [false, true] {
            let dir = tempfile::tempdir().unwrap();
            let options = LogOptions { prealloc_bytes, ..LogOptions::default() };
            let mut log = TxnLog::open(Arc::new(OsDisk), dir.path().to_path_buf(), options);
            let commit = |log: &mut TxnLog, zxid: u64| {
                log.append(Zxid(zxid), &record(Zxid(zxid), 10)).unwrap();
                log.commit().unwrap();
                OsDisk.open(&dir.path().join(log_name(Zxid(zxid)))).unwrap().identity().unwrap().inode
            };
            let first = commit(&mut log, 1);
            log.roll();
            commit(&mut log, 2);
            assert!(log.spare().keep(&OsDisk, &dir.path().join(log_name(Zxid(1)))).unwrap());
            if linked {
                // An operator keeps it under another name.
                let spare = std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().path());
                let spare = spare.into_iter().find(|path| !path.to_string_lossy().contains("/log")).unwrap();
                std::fs::hard_link(spare, dir.path().join("kept")).unwrap();
            }
            log.roll();
            assert_eq!(commit(&mut log, 3) == first, used && !linked, "{prealloc_bytes} {linked}");
            let mut reader = LogReader::open(&OsDisk, dir.path(), Zxid(1)).unwrap();
            let zxids: Vec<u64> = drain(&mut reader).unwrap().iter().map(|(zxid, _)| zxid.0).collect();
            assert_eq!(zxids, [2, 3]);
        }
    }
}

/// Three files with the transactions 1 to 9.
fn three_files() -> FaultyDisk {
    let disk = FaultyDisk::default();
    let mut log = log_of(&disk, tight());
    for zxid in 1..=9 {
        if zxid % 3 == 1 {
            log.roll();
        }
        log.append(Zxid(zxid), &record(Zxid(zxid), 10)).unwrap();
        log.commit().unwrap();
    }
    disk
}

fn read_after(disk: &FaultyDisk, after: u64) -> Result<Vec<u64>, StorageError> {
    let mut reader = LogReader::open(disk, &logs(), Zxid(after))?;
    Ok(drain(&mut reader)?.iter().map(|(zxid, _)| zxid.0).collect())
}

/// They can be damaged, or removed at the moment.
#[test]
fn files_before_the_first_record_are_not_opened() {
    let disk = three_files();
    disk.rot(&logs().join(log_name(Zxid(1))), |bytes| bytes[60] ^= 1);
    assert_eq!(read_after(&disk, 3).unwrap(), [4, 5, 6, 7, 8, 9]);
    assert!(read_after(&disk, 2).is_err());
}

/// The header of the next file says it. Files of Java do not.
#[test]
fn the_error_of_a_missing_file_names_its_last_transaction() {
    for (java, needed) in [(false, 6), (true, 6)] {
        let disk = three_files();
        let (first, gap) = (logs().join(log_name(Zxid(4))), logs().join(log_name(Zxid(7))));
        if java {
            disk.rot(&gap, |bytes| bytes[8..16].fill(0));
        }
        disk.remove(&first).unwrap();
        match read_after(&disk, 0) {
            Err(StorageError::Gap { last, found, needed: says, .. }) => {
                assert_eq!((last, found, says), (Zxid(3), Zxid(7), Zxid(needed)), "{java}");
            }
            other => panic!("{other:?}"),
        }
    }
}
