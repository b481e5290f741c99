//! How far a log was synced: every subset of missing sectors of the last batch is a torn tail, every flipped bit before
//! it is damage, with zeros in the data and without.

use crate::{
    faulty_disk::FaultyDisk,
    sinks::{Contents, drain},
};
use ostler_proto::{
    id::{SessionId, Zxid},
    txn::{Txn, TxnHeader, TxnRecord},
};
use ostler_storage::{
    StorageError,
    disk::{Disk, OsDisk},
    error::Result,
    folders::DataFolders,
    recover::{RecoverOptions, recover},
    txnlog::{LogOptions, LogReader, TornTail, TxnLog},
};
use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

const SECTOR: usize = 512;

type Records = Vec<(Zxid, Vec<u8>)>;

fn folders() -> DataFolders {
    DataFolders::at(Path::new("/data"), None)
}

fn log_file() -> PathBuf {
    folders().logs.join("log.1")
}

fn mark_file() -> PathBuf {
    folders().logs.join("log-synced")
}

/// A record whose data is this number of bytes of this value.
fn record(zxid: u64, size: usize, value: u8) -> (Zxid, Vec<u8>) {
    let header = TxnHeader { session: SessionId(1), cxid: 2, zxid: Zxid(zxid), time_ms: 3, code: 5 };
    let data = vec![value; size];
    let txn = Txn::SetData { reconfig: false, path: "/a".into(), data: Some(&data), version: 1 };
    let mut bytes = Vec::new();
    TxnRecord { header, txn, digest: None }.write(&mut bytes);
    (Zxid(zxid), bytes)
}

fn open(disk: &FaultyDisk) -> TxnLog {
    let options = LogOptions { prealloc_bytes: 16384, ..LogOptions::default() };
    TxnLog::open(Arc::new(disk.clone()), folders().logs, options)
}

fn commit(log: &mut TxnLog, batch: &[(Zxid, Vec<u8>)]) {
    for (zxid, bytes) in batch {
        log.append(*zxid, bytes).unwrap();
    }
    log.commit().unwrap();
}

/// Batches of data of these sizes, each synced alone.
fn written(batches: &[&[usize]], value: u8) -> (FaultyDisk, Records) {
    let disk = FaultyDisk::default();
    let mut log = open(&disk);
    let (mut all, mut zxid) = (Records::new(), 0);
    for sizes in batches {
        let from = all.len();
        for size in *sizes {
            zxid += 1;
            all.push(record(zxid, *size, value));
        }
        commit(&mut log, &all[from..]);
    }
    (disk, all)
}

/// Where each record starts, and where the last one ends.
fn starts(records: &[(Zxid, Vec<u8>)]) -> Vec<usize> {
    let mut at = 16;
    let mut starts = vec![at];
    for (_, bytes) in records {
        at += bytes.len() + 13;
        starts.push(at);
    }
    starts
}

fn read(disk: &FaultyDisk) -> Result<(Records, Option<TornTail>)> {
    let mut reader = LogReader::open(disk, &folders().logs, Zxid::ZERO)?;
    let records = drain(&mut reader)?;
    Ok((records, reader.torn_tail().cloned()))
}

fn recovered(disk: &FaultyDisk) -> Result<Contents> {
    let mut contents = Contents::default();
    let options = RecoverOptions { trust_empty: true, ..RecoverOptions::default() };
    recover(disk, &folders(), options, &mut contents)?;
    Ok(contents)
}

fn damaged_at(result: Result<(Records, Option<TornTail>)>) -> (u64, String) {
    match result {
        Err(StorageError::Corrupt { offset, reason, .. }) => (offset, reason),
        other => panic!("not seen as damage: {other:?}"),
    }
}

/// Each subset of the sectors that the last batch touches arrives, the others stay as they were.
fn tear(first: usize, last: &[usize], value: u8) {
    let (disk, records) = written(&[&[first, 3], last], value);
    let whole = disk.bytes(&log_file());
    let starts = starts(&records);
    let (begin, end) = (starts[2], starts[records.len()]);
    let sectors: Vec<usize> = (begin / SECTOR..end.div_ceil(SECTOR)).collect();
    for arrived in 0..1u32 << sectors.len() {
        let mut bytes = whole.clone();
        for (bit, sector) in sectors.iter().enumerate() {
            if arrived >> bit & 1 == 0 {
                let from = (sector * SECTOR).max(begin);
                bytes[from..(sector + 1) * SECTOR].fill(0);
            }
        }
        disk.rot(&log_file(), |now| *now = bytes);
        let (found, _) = read(&disk).unwrap_or_else(|error| {
            panic!("first {first}, last {last:?}, value {value}, arrived {arrived:b}: {error}")
        });
        assert!(found.len() >= 2 && records.starts_with(&found), "{first} {last:?} {arrived:b}");
    }
}

/// Numbers below a sector's size: all near its border, some of the others.
fn below_sector() -> impl Iterator<Item = usize> {
    (0..SECTOR).filter(|at| at % 41 == 0 || (*at + 30) % SECTOR < 60)
}

/// Around the border of a sector every byte counts: where the batch begins, and where its records end.
#[test]
fn every_subset_of_missing_sectors_of_the_last_batch_is_a_torn_tail() {
    for first in below_sector() {
        for value in [0, 1, b'B'] {
            tear(first, &[700, 0, 0, 900], value);
            tear(first, &[0, 1400], value);
        }
        tear(first, &[SECTOR - 80 + first % 40, 20, 430, 3], 0);
    }
    // With 86 bytes around the data, the last record ends at each of these places in a sector.
    let (_, bytes) = record(9, 0, 0);
    let around = bytes.len() + 13;
    for at in below_sector() {
        tear(13, &[500, 4 * SECTOR + at - 500 - 3 * around], 0);
        tear(13, &[2 * SECTOR + at - 2 * around, 30], 7);
    }
}

/// Records as long as a batch or longer: their length itself may not have arrived.
#[test]
fn a_record_longer_than_a_batch_is_torn_without_its_first_sector() {
    let size = (4 << 20) + 5000;
    let (disk, records) = written(&[&[300], &[size]], 9);
    let begin = starts(&records)[1];
    disk.rot(&log_file(), |bytes| bytes[begin..begin.next_multiple_of(SECTOR)].fill(0));
    let (found, torn) = read(&disk).unwrap();
    assert_eq!((found.len(), torn.unwrap().offset), (1, begin as u64));
}

#[test]
fn every_flipped_bit_before_the_last_batch_is_damage() {
    for value in [0, 7] {
        let (disk, records) = written(&[&[30], &[1500], &[200, 3], &[0], &[40]], value);
        let starts = starts(&records);
        let whole = disk.bytes(&log_file());
        for at in 16..starts[5] {
            for bit in [0, 3, 7] {
                disk.rot(&log_file(), |bytes| bytes[at] ^= 1 << bit);
                let hit = starts.iter().filter(|start| **start <= at).count() - 1;
                assert_eq!(damaged_at(read(&disk)).0, starts[hit] as u64, "byte {at}, bit {bit}");
                assert!(recovered(&disk).is_err());
                disk.rot(&log_file(), |bytes| bytes.clone_from(&whole));
            }
        }
    }
}

/// As `five records, each synced alone` lost four of them: the zeros looked like a sector that was not written.
#[test]
fn zeros_in_the_data_do_not_hide_damage() {
    let (disk, records) = written(&[&[10], &[4096], &[10], &[10], &[10]], 0);
    disk.rot(&log_file(), |bytes| bytes[starts(&records)[1] + 20] ^= 1);
    let (offset, reason) = damaged_at(read(&disk));
    assert_eq!(offset, starts(&records)[1] as u64);
    assert!(reason.contains("was synced up to byte"), "{reason}");
}

#[test]
fn what_was_synced_and_reads_as_nothing_is_damage() {
    let (disk, records) = written(&[&[10], &[700], &[10], &[10]], 5);
    let starts = starts(&records);
    for from in 0..3 {
        let whole = disk.bytes(&log_file());
        disk.rot(&log_file(), |bytes| bytes[starts[from]..].fill(0));
        assert_eq!(damaged_at(read(&disk)).0, starts[from] as u64);
        disk.rot(&log_file(), |bytes| *bytes = whole);
    }
    // Its header, too.
    disk.rot(&log_file(), |bytes| bytes.fill(0));
    assert_eq!(damaged_at(read(&disk)).0, 0);
}

#[test]
fn after_a_start_the_last_batch_is_not_in_doubt_any_more() {
    let (disk, records) = written(&[&[10], &[4096, 20]], 0);
    let starts = starts(&records);
    // The last batch is in doubt: a server may have ended while it was written.
    recovered(&disk).unwrap();
    for at in starts[1]..starts[3] {
        disk.rot(&log_file(), |bytes| bytes[at] ^= 4);
        damaged_at(read(&disk));
        disk.rot(&log_file(), |bytes| bytes[at] ^= 4);
    }
    assert_eq!(read(&disk).unwrap().0, records);
}

#[test]
fn a_note_after_the_last_batch_leaves_nothing_in_doubt() {
    let disk = FaultyDisk::default();
    let mut log = open(&disk);
    let records = [record(1, 40, 0), record(2, 2000, 0)];
    commit(&mut log, &records);
    log.note_synced().unwrap();
    disk.rot(&log_file(), |bytes| bytes[starts(&records)[2] - 1] = 0);
    assert_eq!(damaged_at(read(&disk)).0, starts(&records)[1] as u64);
}

#[test]
fn the_mark_of_another_file_says_nothing() {
    let (disk, records) = written(&[&[10], &[4096], &[10], &[10]], 0);
    let mut bytes = disk.bytes(&log_file());
    bytes[starts(&records)[1] + 20] ^= 1;
    // A copy: it may have been made while the server wrote.
    disk.put(&log_file(), &bytes);
    assert_eq!(read(&disk).unwrap().0, records[..1]);
}

/// Java cuts a log back by making it shorter, and knows nothing of the mark.
#[test]
fn a_log_that_java_has_cut_back_is_no_damage() {
    let (disk, records) = written(&[&[10], &[700], &[10], &[10]], 3);
    disk.rot(&log_file(), |bytes| bytes.truncate(starts(&records)[2]));
    assert_eq!(read(&disk).unwrap(), (records[..2].to_vec(), None));
}

#[test]
fn a_truncation_takes_the_mark_away_first() {
    let disk = FaultyDisk::default();
    let mut log = open(&disk);
    let records = [record(1, 40, 0), record(2, 20, 0), record(3, 20, 0)];
    for one in &records {
        commit(&mut log, std::slice::from_ref(one));
    }
    assert!(disk.exists(&mark_file()).unwrap());
    log.truncate_after(Zxid(1)).unwrap();
    assert!(!disk.exists(&mark_file()).unwrap());
    commit(&mut log, &records[1..2]);
    log.note_synced().unwrap();
    assert_eq!(read(&disk).unwrap().0, records[..2]);
}

/// It becomes durable with a sync of the log, and only if it was sent to the disk: without that, all that was written since
/// the start would be in doubt after a loss of power. Each mark alone would be a write more for each batch.
#[test]
fn the_mark_is_sent_to_the_disk_now_and_then() {
    for (size, batches) in [(0, 256), (1 << 16, 16), (1 << 20, 1)] {
        let disk = FaultyDisk::default();
        let mut log = open(&disk);
        for round in 1..=3 {
            for batch in 1..=batches {
                let zxid = (round - 1) * batches + batch;
                commit(&mut log, &[record(zxid, size, 1)]);
                log.note_synced().unwrap();
                let sent = if batch < batches { round - 1 } else { round };
                assert_eq!(disk.written_back(&mark_file()), sent as usize, "{size}: {round}, {batch}");
            }
        }
    }
}

/// A damaged mark is as none.
#[test]
fn a_damaged_mark_is_not_believed() {
    let (disk, records) = written(&[&[10], &[4096], &[10], &[10]], 0);
    disk.rot(&mark_file(), |bytes| bytes[30] ^= 1);
    disk.rot(&log_file(), |bytes| bytes[starts(&records)[1] + 20] ^= 1);
    assert_eq!(read(&disk).unwrap().0, records[..1]);
}

/// `cp` over a file that is there keeps what tells it from others, and space was reserved in both: what is missing looks
/// lost. The error says what to do then.
#[test]
fn a_log_from_a_backup_that_was_copied_over_the_old_one_needs_its_mark_removed() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("log.1");
    let options = LogOptions { prealloc_bytes: 16384, ..LogOptions::default() };
    let mut log = TxnLog::open(Arc::new(OsDisk), dir.path().into(), options);
    let records = [record(1, 40, 0), record(2, 20, 0)];
    commit(&mut log, &records[..1]);
    log.note_synced().unwrap();
    let backup = dir.path().join("backup");
    std::fs::copy(&file, &backup).unwrap();
    commit(&mut log, &records[1..]);
    log.note_synced().unwrap();
    drop(log);
    std::fs::copy(&backup, &file).unwrap();
    let read = || LogReader::open(&OsDisk, dir.path(), Zxid::ZERO).and_then(|mut reader| drain(&mut reader));
    let error = read().unwrap_err().to_string();
    assert!(error.contains("remove that one if this log was put back from a backup"), "{error}");
    std::fs::remove_file(dir.path().join("log-synced")).unwrap();
    assert_eq!(read().unwrap(), records[..1]);
}

/// Its end byte is the first of a sector, and that did not arrive, nor did one before.
#[test]
fn a_long_record_without_its_end_byte_and_with_a_hole_is_torn() {
    let (_, bytes) = record(1, 0, 0);
    let size = (2 << 20) * 4 - 16 - 12 - bytes.len();
    let (disk, records) = written(&[&[size], &[]], b'x');
    let whole = starts(&records)[1];
    assert_eq!((whole - 1) % SECTOR, 0);
    disk.rot(&log_file(), |bytes| {
        bytes[whole - 1] = 0;
        bytes[8 * SECTOR..9 * SECTOR].fill(0);
    });
    let (found, torn) = read(&disk).unwrap();
    assert_eq!((found.len(), torn.unwrap().offset), (0, 16));
}
