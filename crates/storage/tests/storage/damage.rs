//! Damaged logs: which damage is a torn tail, which is corruption, and which is a gap.

use crate::{
    faulty_disk::FaultyDisk,
    sinks::{drain, record},
};
use ostler_proto::id::{Epoch, Zxid};
use ostler_storage::{
    StorageError,
    disk::{Disk, OsDisk},
    error::Result,
    txnlog::{Advance, BATCH_LIMIT, FileEnd, LogFileReader, LogOptions, LogReader, TornTail, TxnLog},
};
use proptest::prelude::*;
use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

type Records = Vec<(Zxid, Vec<u8>)>;

pub(crate) fn logs() -> PathBuf {
    PathBuf::from("/logs")
}

fn file(first: u64) -> PathBuf {
    logs().join(format!("log.{first:x}"))
}

/// Writes log files. Each starts at a zxid and has records of the given sizes.
fn write(files: &[(u64, &[usize])], prealloc_bytes: u64) -> (FaultyDisk, Records) {
    let disk = FaultyDisk::default();
    let mut all = Vec::new();
    for (first, sizes) in files {
        let options = LogOptions { prealloc_bytes, ..LogOptions::default() };
        let mut log = TxnLog::open(Arc::new(disk.clone()), logs(), options);
        for (size, zxid) in sizes.iter().zip(*first..) {
            let record = record(Zxid(zxid), *size);
            log.append(Zxid(zxid), &record).unwrap();
            all.push((Zxid(zxid), record));
        }
        log.commit().unwrap();
    }
    (disk, all)
}

fn read(disk: &FaultyDisk) -> Result<(Records, Option<TornTail>)> {
    let mut reader = LogReader::open(disk, &logs(), Zxid::ZERO)?;
    let records = drain(&mut reader)?;
    Ok((records, reader.torn_tail().cloned()))
}

fn change(disk: &FaultyDisk, path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = disk.bytes(path);
    change(&mut bytes);
    disk.put(path, &bytes);
}

/// The offset at which each record of a file starts, and at last the end of the last one.
fn starts(records: &Records) -> Vec<u64> {
    let mut at = 16;
    let mut starts = vec![at];
    for (_, record) in records {
        at += record.len() as u64 + 13;
        starts.push(at);
    }
    starts
}

fn corrupt_at(result: Result<(Records, Option<TornTail>)>) -> (u64, Zxid, String) {
    match result {
        Err(StorageError::Corrupt { offset, last_good, reason, .. }) => (offset, last_good, reason),
        other => panic!("not seen as corrupt: {other:?}"),
    }
}

#[test]
fn a_file_cut_at_any_byte_has_all_whole_records_before() {
    let (disk, records) = write(&[(1, &[1, 40, 700, 3])], 0);
    let whole = disk.bytes(&file(1));
    let starts = starts(&records);
    for size in 0..whole.len() {
        disk.put(&file(1), &whole[..size]);
        let (found, torn) = read(&disk).unwrap();
        let intact = starts.iter().filter(|start| **start <= size as u64).count().saturating_sub(1);
        assert_eq!(found, records[..intact], "cut at {size}");
        // A checksum starts with zeros, which do not look like a record.
        let clean = size <= 16 || whole[starts[intact] as usize..size].iter().all(|byte| *byte == 0);
        assert_eq!(torn.is_none(), clean, "cut at {size}: {torn:?}");
        if let Some(torn) = torn {
            assert_eq!((torn.offset, torn.zxid_before), (starts[intact], Zxid(intact as u64)));
            assert_eq!(torn.offset + torn.bytes, whole[..size].trim_end_zeros());
        }
    }
}

trait TrimEnd {
    fn trim_end_zeros(&self) -> u64;
}

impl TrimEnd for [u8] {
    fn trim_end_zeros(&self) -> u64 {
        self.iter().rposition(|byte| *byte != 0).map_or(0, |at| at as u64 + 1)
    }
}

#[test]
fn any_flipped_bit_of_a_file_is_reported() {
    let (disk, records) = write(&[(1, &[1, 40, 700, 3])], 1024);
    let whole = disk.bytes(&file(1));
    let starts = starts(&records);
    for at in 0..whole.len() {
        for bit in [0, 3, 7] {
            let mut bytes = whole.clone();
            bytes[at] ^= 1 << bit;
            disk.put(&file(1), &bytes);
            let result = read(&disk);
            match at as u64 {
                0..4 => assert_eq!(corrupt_at(result).0, 0),
                // The version, which is not checked.
                4..8 => assert_eq!(result.unwrap(), (records.clone(), None)),
                // The zxid before the file would be above its first one.
                8..16 => assert_eq!(corrupt_at(result).0, 8),
                at => {
                    let hit = starts.iter().filter(|start| **start <= at).count() - 1;
                    if hit < records.len() {
                        let (offset, last_good, _) = corrupt_at(result);
                        assert_eq!((offset, last_good), (starts[hit], Zxid(hit as u64)), "flip at {at}");
                    } else {
                        // The zeros behind the last record.
                        let (found, torn) = result.unwrap();
                        assert_eq!(found, records);
                        assert_eq!(torn.unwrap().offset, starts[hit], "flip at {at}");
                    }
                }
            }
        }
    }
}

#[test]
fn an_older_file_is_corrupt_where_a_newer_one_would_be_torn() {
    let (disk, records) = write(&[(1, &[10, 10]), (3, &[10])], 4096);
    let second = starts(&records[..2].to_vec())[1] as usize;
    change(&disk, &file(1), |bytes| bytes[second + 30] ^= 1);
    let error = read(&disk).unwrap_err().to_string();
    assert!(error.contains("/logs/log.1: damaged at byte 85"), "{error}");
    assert!(error.contains("Everything up to 0x1 is intact"), "{error}");
    assert!(error.contains("truncate -s 85 /logs/log.1"), "{error}");
}

/// From one epoch to the next the zxids do not show that a record is missing.
#[test]
fn any_flipped_bit_of_a_file_before_another_epoch_is_reported() {
    let next_epoch = Zxid::new(Epoch(1), 1).0;
    let (disk, records) = write(&[(1, &[10, 200, 10]), (next_epoch, &[10])], 1024);
    let whole = disk.bytes(&file(1));
    let starts = starts(&records[..3].to_vec());
    for at in 16..starts[3] {
        for bit in 0..8 {
            let mut bytes = whole.clone();
            bytes[at as usize] ^= 1 << bit;
            disk.put(&file(1), &bytes);
            let hit = starts.iter().filter(|start| **start <= at).count() - 1;
            let (offset, last_good, _) = corrupt_at(read(&disk));
            assert_eq!((offset, last_good), (starts[hit], Zxid(hit as u64)), "flip at {at}");
        }
    }
}

#[test]
fn a_torn_tail_of_an_older_file_is_accepted_if_the_next_file_has_the_cut_record() {
    let (disk, records) = write(&[(1, &[10, 10]), (2, &[10, 10])], 0);
    // The second record of the first file was cut off, and written again in the next file.
    for cut in 1..=records[1].1.len() + 13 {
        let whole = disk.bytes(&file(1));
        change(&disk, &file(1), |bytes| bytes.truncate(bytes.len() - cut));
        let mut reader = LogReader::open(&disk, &logs(), Zxid::ZERO).unwrap();
        let found = drain(&mut reader).unwrap();
        assert_eq!((found, reader.torn_tail()), ([&records[..1], &records[2..]].concat(), None));
        // Only the zeros at the start of the record are left, or there is a torn tail to report.
        let reported: Vec<_> =
            reader.torn_before().iter().map(|torn| (&*torn.file, torn.zxid_before)).collect();
        let (before, rest) = (file(1), records[1].1.len() + 13 - cut);
        assert_eq!(reported, [(&*before, Zxid(1))][..usize::from(rest > 4)], "cut {cut}");
        disk.put(&file(1), &whole);
    }
}

/// The file ends before the end of the record, so its checksum cannot be checked.
#[test]
fn a_long_torn_record_of_an_older_file_is_accepted_if_the_next_file_has_the_cut_record() {
    let (disk, records) = write(&[(1, &[3_000_000, 3_000_000, 5_000_000]), (3, &[10])], 0);
    let cut = starts(&records[..3].to_vec())[2] + 1_000_000;
    change(&disk, &file(1), |bytes| bytes.truncate(cut as usize));
    let mut reader = LogReader::open(&disk, &logs(), Zxid::ZERO).unwrap();
    let found = drain(&mut reader).unwrap();
    assert!(found == [&records[..2], &records[3..]].concat(), "{} records", found.len());
    assert_eq!(reader.torn_before().len(), 1);
}

#[test]
fn missing_files_are_a_gap() {
    let (disk, _) = write(&[(1, &[10, 10]), (4, &[10])], 0);
    let error = read(&disk).unwrap_err();
    assert!(matches!(error, StorageError::Gap { last: Zxid(2), found: Zxid(4), .. }), "{error}");
    assert!(error.to_string().contains("/logs/log.4"), "{error}");
    // Also if the records that would show it are torn off.
    change(&disk, &file(4), |bytes| bytes.truncate(40));
    assert!(matches!(read(&disk), Err(StorageError::Gap { .. })));
    // A snapshot with the missing transactions closes the gap.
    let (disk, records) = write(&[(1, &[10, 10]), (4, &[10])], 0);
    let found = drain(&mut LogReader::open(&disk, &logs(), Zxid(3)).unwrap()).unwrap();
    assert_eq!(found, records[2..]);
    assert!(drain(&mut LogReader::open(&disk, &logs(), Zxid(2)).unwrap()).is_err());
}

/// One writer writes three epochs, with a file for each.
fn write_epochs() -> (FaultyDisk, Records) {
    let disk = FaultyDisk::default();
    let mut log = TxnLog::open(Arc::new(disk.clone()), logs(), LogOptions::default());
    let mut all = Vec::new();
    for epoch in 7..=9 {
        log.roll();
        for counter in 1..=3 {
            let zxid = Zxid::new(Epoch(epoch), counter);
            let record = record(zxid, 10);
            log.append(zxid, &record).unwrap();
            all.push((zxid, record));
        }
        log.commit().unwrap();
    }
    (disk, all)
}

#[test]
fn a_whole_epoch_that_is_missing_is_a_gap() {
    let at = |epoch, counter| Zxid::new(Epoch(epoch), counter);
    let (disk, records) = write_epochs();
    assert_eq!(read(&disk).unwrap().0, records);
    disk.remove(&file(at(8, 1).0)).unwrap();
    let gap = |error: &StorageError| match error {
        StorageError::Gap { last, found, needed, .. } => (*last, *found, *needed),
        other => panic!("no gap: {other}"),
    };
    let error = read(&disk).unwrap_err();
    assert_eq!(gap(&error), (at(7, 3), at(9, 1), at(8, 3)));
    assert!(error.to_string().contains("a snapshot of 0x800000003 or later"), "{error}");
    // Also if all records after it are torn off.
    change(&disk, &file(at(9, 1).0), |bytes| bytes.truncate(40));
    assert_eq!(gap(&read(&disk).unwrap_err()), (at(7, 3), at(9, 1), at(8, 3)));
    // A snapshot with all missing transactions closes the gap, one with less does not.
    let after = |zxid| {
        let (disk, _) = write_epochs();
        disk.remove(&file(at(7, 1).0)).unwrap();
        disk.remove(&file(at(8, 1).0)).unwrap();
        LogReader::open(&disk, &logs(), zxid).and_then(|mut reader| drain(&mut reader))
    };
    assert_eq!(after(at(8, 3)).unwrap(), records[6..]);
    assert_eq!(after(at(9, 0)).unwrap(), records[6..]);
    assert_eq!(gap(&after(at(7, 3)).unwrap_err()), (at(7, 3), at(9, 1), at(8, 3)));
}

#[test]
fn a_log_continues_after_a_truncation_or_after_a_tree_from_a_leader() {
    let at = |epoch, counter| Zxid::new(Epoch(epoch), counter);
    let goes_on = |last: Option<Zxid>, cut: Option<Zxid>| {
        let (disk, _) = write_epochs();
        let mut log = TxnLog::open(Arc::new(disk.clone()), logs(), LogOptions::default());
        if let Some(last) = last {
            log.continue_after(last);
        }
        if let Some(cut) = cut {
            log.truncate_after(cut).unwrap();
        }
        log.append(at(12, 1), &record(at(12, 1), 10)).unwrap();
        log.commit().unwrap();
        let bytes = disk.bytes(&file(at(12, 1).0));
        (
            Zxid(u64::from_be_bytes(*bytes[8..].first_chunk().unwrap())),
            read(&disk).map(|(records, _)| records.len()),
        )
    };
    // A writer that does not know the zxid before writes 0, as in Java.
    assert!(matches!(goes_on(None, None), (Zxid::ZERO, Ok(10))));
    assert!(matches!(goes_on(Some(at(9, 3)), None), (last, Ok(10)) if last == at(9, 3)));
    assert!(matches!(goes_on(Some(at(9, 3)), Some(at(9, 2))), (last, Ok(9)) if last == at(9, 2)));
    assert!(matches!(goes_on(Some(at(9, 3)), Some(at(8, 7))), (last, Ok(7)) if last == at(8, 3)));
    assert!(matches!(goes_on(Some(at(9, 3)), Some(at(7, 0))), (Zxid::ZERO, Ok(1))));
    // A tree at 0xb00000005 came from a leader, and its snapshot is lost.
    assert!(matches!(
        goes_on(Some(at(11, 5)), None),
        (_, Err(StorageError::Gap { last, needed, .. })) if (last, needed) == (at(9, 3), at(11, 5))
    ));
}

#[test]
fn an_unwritten_sector_in_the_last_batch_is_torn_and_other_damage_there_is_corrupt() {
    let (disk, records) = write(&[(1, &[100, 3000, 100])], 16384);
    let starts = starts(&records);
    let whole = disk.bytes(&file(1));
    change(&disk, &file(1), |bytes| bytes[1024..1536].fill(0));
    let (found, torn) = read(&disk).unwrap();
    assert_eq!(found, records[..1]);
    assert_eq!(
        torn.unwrap(),
        TornTail { file: file(1), offset: starts[1], zxid_before: Zxid(1), bytes: starts[3] - starts[1] }
    );
    for (from, to) in [(1024, 1535), (1025, 1536), (1100, 1200)] {
        disk.put(&file(1), &whole);
        change(&disk, &file(1), |bytes| bytes[from..to].fill(0));
        let (offset, last_good, reason) = corrupt_at(read(&disk));
        assert_eq!((offset, last_good), (starts[1], Zxid(1)));
        assert!(reason.contains(&format!("a whole record (0x3) follows at byte {}", starts[2])), "{reason}");
    }
}

#[test]
fn a_hole_up_to_the_zeros_at_the_start_of_the_next_record_is_torn() {
    let framed = record(Zxid(1), 0).len() + 13;
    for before_the_sector in 1..=4 {
        let second = 1536 - before_the_sector - 16 - 100 - 2 * framed;
        let (disk, records) = write(&[(1, &[100, second, 100])], 4096);
        assert_eq!(starts(&records)[2] as usize, 1536 - before_the_sector);
        change(&disk, &file(1), |bytes| bytes[1024..1536].fill(0));
        let (found, torn) = read(&disk).unwrap();
        assert_eq!((found, torn.unwrap().zxid_before), (records[..1].to_vec(), Zxid(1)));
    }
}

#[test]
fn a_hole_more_than_a_batch_before_the_end_is_corrupt() {
    let sizes = [1_000_000; 6];
    let (disk, records) = write(&[(1, &sizes)], 0);
    change(&disk, &file(1), |bytes| bytes[1024..8192].fill(0));
    let (offset, last_good, reason) = corrupt_at(read(&disk));
    assert_eq!((offset, last_good), (16, Zxid(0)));
    assert!(reason.contains("bytes of data follow"), "{reason}");
    // The same hole near the end can be made by a crash.
    let last = starts(&records)[5] as usize;
    let (disk, _) = write(&[(1, &sizes)], 0);
    change(&disk, &file(1), |bytes| bytes[last + 5000..last + 6024].fill(0));
    assert_eq!(read(&disk).unwrap().0, records[..5]);
}

#[test]
fn records_longer_than_a_batch_are_read_and_may_be_torn() {
    let (disk, records) = write(&[(1, &[10, 6_000_000])], 0);
    assert_eq!(read(&disk).unwrap(), (records.clone(), None));
    change(&disk, &file(1), |bytes| bytes.truncate(5_000_000));
    let (found, torn) = read(&disk).unwrap();
    assert_eq!(found, records[..1]);
    assert!(torn.unwrap().bytes > 4_900_000);
}

/// All bytes of the record are there, but for one sector.
#[test]
fn a_record_longer_than_a_batch_with_a_hole_is_torn_though_its_end_is_there() {
    for size in [4 << 20, 6_000_000] {
        let (disk, records) = write(&[(1, &[10, size])], 0);
        change(&disk, &file(1), |bytes| bytes[1024..1536].fill(0));
        let (found, torn) = read(&disk).unwrap();
        assert_eq!(found, records[..1]);
        assert_eq!(torn.unwrap().bytes, starts(&records)[2] - starts(&records)[1]);
    }
}

/// The next batch was written after this one was synced. The length of the record is lost, so the next one is searched.
#[test]
fn a_long_record_without_its_length_is_corrupt_if_others_follow() {
    for size in [4 << 20, 6_000_000] {
        let (disk, records) = write(&[(1, &[10, size, 10])], 0);
        let starts = starts(&records);
        let begin = starts[1] as usize;
        change(&disk, &file(1), |bytes| bytes[begin..begin.next_multiple_of(512)].fill(0));
        let (offset, last_good, reason) = corrupt_at(read(&disk));
        assert_eq!((offset, last_good), (starts[1], Zxid(1)));
        assert!(reason.contains(&format!("a whole record (0x3) follows at byte {}", starts[2])), "{reason}");
    }
}

/// The largest batch that the writer makes.
#[test]
fn a_batch_of_the_largest_size_is_torn_if_a_sector_is_missing() {
    let overhead = record(Zxid(1), 0).len() + 13;
    let rest = BATCH_LIMIT - 3 * overhead - 4000 - 10;
    let batch = [4000, rest, 10];
    let disk = FaultyDisk::default();
    let options = LogOptions { prealloc_bytes: 0, ..LogOptions::default() };
    let mut log = TxnLog::open(Arc::new(disk.clone()), logs(), options);
    log.append(Zxid(1), &record(Zxid(1), 10)).unwrap();
    log.commit().unwrap();
    let start = disk.bytes(&file(1)).len();
    for (zxid, size) in (2..).zip(batch) {
        log.append(Zxid(zxid), &record(Zxid(zxid), size)).unwrap();
        assert_eq!(disk.bytes(&file(1)).len(), start, "one batch");
    }
    log.commit().unwrap();
    assert_eq!(disk.bytes(&file(1)).len() - start, BATCH_LIMIT);
    change(&disk, &file(1), |bytes| bytes[1024..1536].fill(0));
    let (found, torn) = read(&disk).unwrap();
    assert_eq!((found.len(), torn.unwrap().bytes), (1, BATCH_LIMIT as u64));
}

#[test]
fn a_file_that_is_not_a_log_is_corrupt() {
    let (disk, _) = write(&[(1, &[10])], 0);
    disk.put(&file(2), b"these are my notes, please do not delete them");
    let (offset, last_good, reason) = corrupt_at(read(&disk));
    assert_eq!((offset, last_good), (0, Zxid(1)));
    assert!(reason.contains("ZKLG"), "{reason}");
}

#[test]
fn empty_files_are_ignored_at_the_end_and_corrupt_in_the_middle() {
    let (disk, records) = write(&[(1, &[10, 10])], 0);
    disk.put(&file(3), b"");
    disk.put(&file(4), b"ZKLG\0\0");
    disk.put(&file(5), &[0; 70000]);
    let mut reader = LogReader::open(&disk, &logs(), Zxid::ZERO).unwrap();
    assert_eq!(drain(&mut reader).unwrap(), records);
    assert_eq!(reader.empty_files(), [file(5), file(4), file(3)]);
    assert_eq!(reader.torn_tail(), None);
    // In the middle they are corrupt: the server that wrote the later file had read this one.
    let (disk, _) = write(&[(1, &[10, 10]), (3, &[10])], 0);
    disk.put(&file(2), b"");
    assert_eq!(corrupt_at(read(&disk)).0, 0);
}

/// A leader reads its log for a learner while it writes it.
#[test]
fn records_written_after_a_file_was_opened_are_not_read() {
    let (disk, records) = write(&[(1, &[10, 10])], 0);
    let whole = disk.bytes(&file(1));
    let (first, second) = (starts(&records)[0] as usize, starts(&records)[1] as usize);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.1");
    let seen = |size: usize| {
        std::fs::write(&path, &whole[..size]).unwrap();
        let mut reader = LogFileReader::open(&OsDisk, &path).unwrap();
        std::fs::write(&path, &whole).unwrap();
        let mut seen = Vec::new();
        loop {
            match reader.advance().unwrap() {
                Advance::Record(zxid) => seen.push(zxid.0),
                Advance::End(end) => return (seen, end),
            }
        }
    };
    for size in [0, 1, first - 1] {
        assert_eq!(seen(size), (vec![], FileEnd::BadHeader), "{size}");
    }
    assert_eq!(seen(first), (vec![], FileEnd::EndOfFile));
    assert_eq!(seen(first + 1), (vec![], FileEnd::CutOff));
    assert_eq!(seen(second), (vec![1], FileEnd::EndOfFile));
    assert_eq!(seen(second + 20), (vec![1], FileEnd::CutOff));
}

#[test]
fn repeated_zxids_are_read_and_steps_back_are_reported() {
    let disk = FaultyDisk::default();
    let mut log = TxnLog::open(Arc::new(disk.clone()), logs(), LogOptions::default());
    for zxid in [1, 2, 2, 3, 2, 4] {
        log.append(Zxid(zxid), &record(Zxid(zxid), 5)).unwrap();
        log.commit().unwrap();
    }
    let mut reader = LogReader::open(&disk, &logs(), Zxid::ZERO).unwrap();
    let zxids: Vec<u64> = drain(&mut reader).unwrap().iter().map(|(zxid, _)| zxid.0).collect();
    assert_eq!(zxids, [1, 2, 2, 3, 2, 4]);
    assert_eq!(reader.backwards().len(), 1);
    assert_eq!((reader.backwards()[0].before, reader.backwards()[0].zxid), (Zxid(3), Zxid(2)));
    assert_eq!(reader.last(), Zxid(4));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn records_are_read_as_they_were_written_from_any_zxid_on(
        batches in prop::collection::vec(prop::collection::vec(0..5000usize, 0..6), 1..12),
        prealloc_bytes in prop_oneof![Just(0u64), Just(4096), Just(65536)],
        limit in prop_oneof![Just(None), Just(Some(3000u64))],
        from: prop::sample::Index,
    ) {
        let disk = FaultyDisk::default();
        let options = LogOptions { prealloc_bytes, size_limit_bytes: limit, sync: true };
        let mut log = TxnLog::open(Arc::new(disk.clone()), logs(), options);
        let mut all = Vec::new();
        for batch in &batches {
            for size in batch {
                let zxid = Zxid(all.len() as u64 + 1);
                all.push((zxid, record(zxid, *size)));
                log.append(zxid, &all[all.len() - 1].1).unwrap();
            }
            log.commit().unwrap();
        }
        let from = from.index(all.len() + 1);
        let mut reader = LogReader::open(&disk, &logs(), Zxid(from as u64)).unwrap();
        prop_assert_eq!(drain(&mut reader).unwrap(), &all[from..]);
        prop_assert_eq!(reader.torn_tail(), None);
    }

    #[test]
    fn random_bytes_cause_no_panic(bytes in prop::collection::vec(any::<u8>(), 0..3000), header: bool) {
        let disk = FaultyDisk::default();
        let start: &[u8] = if header { b"ZKLG\0\0\0\x02\0\0\0\0\0\0\0\0" } else { b"" };
        disk.put(&file(1), &[start, &bytes].concat());
        let _ = read(&disk);
    }
}
