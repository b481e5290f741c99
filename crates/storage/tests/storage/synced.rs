//! The mark that says how far a log was synced. With it every subset of missing sectors of the last batch is a torn
//! tail, and every flipped bit before that batch is damage, also if the data are zeros.

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
    txnlog::{LogFileReader, LogOptions, LogReader, TornTail, TxnLog, synced_through},
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

/// A record with `size` bytes of this value as data.
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

/// A log with batches of records of these sizes. Each batch is synced.
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

/// The offset at which each record starts, and at last the end of the last one.
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

/// Checks each subset of the sectors of the last batch: these are written, and the others stay as they were.
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

/// Numbers below the size of a sector: all near its border, and some of the others.
fn below_sector() -> impl Iterator<Item = usize> {
    (0..SECTOR).filter(|at| at % 41 == 0 || (*at + 30) % SECTOR < 60)
}

/// Near the border of a sector every byte can matter, for the start of the batch and for the end of its records.
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

/// In records as long as a batch or longer, the length field may not be written.
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

/// Without the mark the zeros would look like a sector that was not written, and the synced records after it would be
/// lost.
#[test]
fn zeros_in_the_data_do_not_hide_damage() {
    let (disk, records) = written(&[&[10], &[4096], &[10], &[10], &[10]], 0);
    disk.rot(&log_file(), |bytes| bytes[starts(&records)[1] + 20] ^= 1);
    let (offset, reason) = damaged_at(read(&disk));
    assert_eq!(offset, starts(&records)[1] as u64);
    assert!(reason.contains("was synced up to byte"), "{reason}");
}

#[test]
fn synced_records_that_read_as_zeros_are_damage() {
    let (disk, records) = written(&[&[10], &[700], &[10], &[10]], 5);
    let starts = starts(&records);
    for from in 0..3 {
        let whole = disk.bytes(&log_file());
        disk.rot(&log_file(), |bytes| bytes[starts[from]..].fill(0));
        assert_eq!(damaged_at(read(&disk)).0, starts[from] as u64);
        disk.rot(&log_file(), |bytes| *bytes = whole);
    }
    // The header of the file, too.
    disk.rot(&log_file(), |bytes| bytes.fill(0));
    assert_eq!(damaged_at(read(&disk)).0, 0);
}

#[test]
fn after_a_start_damage_in_the_last_batch_is_no_torn_tail() {
    let (disk, records) = written(&[&[10], &[4096, 20]], 0);
    let starts = starts(&records);
    // The last batch may be torn: a server can have ended while it was written.
    recovered(&disk).unwrap();
    for at in starts[1]..starts[3] {
        disk.rot(&log_file(), |bytes| bytes[at] ^= 4);
        damaged_at(read(&disk));
        disk.rot(&log_file(), |bytes| bytes[at] ^= 4);
    }
    assert_eq!(read(&disk).unwrap().0, records);
}

#[test]
fn with_a_mark_after_the_last_batch_damage_in_it_is_no_torn_tail() {
    let disk = FaultyDisk::default();
    let mut log = open(&disk);
    let records = [record(1, 40, 0), record(2, 2000, 0)];
    commit(&mut log, &records);
    log.note_synced().unwrap();
    disk.rot(&log_file(), |bytes| bytes[starts(&records)[2] - 1] = 0);
    assert_eq!(damaged_at(read(&disk)).0, starts(&records)[1] as u64);
}

#[test]
fn the_mark_of_another_file_is_ignored() {
    let (disk, records) = written(&[&[10], &[4096], &[10], &[10]], 0);
    let mut bytes = disk.bytes(&log_file());
    bytes[starts(&records)[1] + 20] ^= 1;
    // A copy, which can have been made while the server wrote.
    disk.put(&log_file(), &bytes);
    assert_eq!(read(&disk).unwrap().0, records[..1]);
}

/// Java cuts a log by making it shorter, and does not change the mark.
#[test]
fn a_log_that_java_has_cut_is_not_damaged() {
    let (disk, records) = written(&[&[10], &[700], &[10], &[10]], 3);
    disk.rot(&log_file(), |bytes| bytes.truncate(starts(&records)[2]));
    assert_eq!(read(&disk).unwrap(), (records[..2].to_vec(), None));
}

#[test]
fn a_truncation_removes_the_mark_first() {
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

/// The mark becomes durable with a sync of the log, if it was sent to the disk before. If it were never sent, all
/// batches since the start could be taken for torn after a loss of power. To send each mark would be one more write for
/// each batch.
#[test]
fn the_mark_is_sent_to_the_disk_after_a_number_of_bytes_or_marks() {
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

#[test]
fn a_damaged_mark_is_ignored() {
    let (disk, records) = written(&[&[10], &[4096], &[10], &[10]], 0);
    disk.rot(&mark_file(), |bytes| bytes[30] ^= 1);
    disk.rot(&log_file(), |bytes| bytes[starts(&records)[1] + 20] ^= 1);
    assert_eq!(read(&disk).unwrap().0, records[..1]);
}

/// `cp` over an existing file keeps its identity, and both have reserved space. So the records that the backup does not
/// have look lost. The error says what to do.
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

/// The end byte is the first byte of a sector. This sector was not written, nor was one before it.
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

#[test]
fn whoever_reads_one_file_learns_how_far_it_was_synced() {
    let (disk, records) = written(&[&[100, 200], &[300]], 7);
    let file = LogFileReader::open(&disk, &log_file()).unwrap();
    // The mark is one batch behind.
    let through = starts(&records)[2] as u64;
    assert_eq!(synced_through(&disk, &folders().logs, &file, Zxid(1)).unwrap(), through);
    assert_eq!(
        synced_through(&disk, &folders().logs, &file, Zxid(2)).unwrap(),
        0,
        "the mark is of another file"
    );
}
