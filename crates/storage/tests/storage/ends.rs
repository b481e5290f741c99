//! The reasons for which the records of one log file end.

use crate::{faulty_disk::FaultyDisk, sinks::record};
use ostler_proto::{id::Zxid, txn::TxnHeader};
use ostler_storage::txnlog::{Advance, FileEnd, LogFileReader};
use simd_adler32::adler32;
use std::path::Path;

const FILE: &str = "/logs/log.1";

fn framed(entry: &[u8], checksum: u32, end: u8) -> Vec<u8> {
    let length = entry.len() as i32;
    [&u64::from(checksum).to_be_bytes()[..], &length.to_be_bytes(), entry, &[end]].concat()
}

/// A log file with these records.
fn holding(records: &[Vec<u8>]) -> FaultyDisk {
    let disk = FaultyDisk::default();
    disk.put(Path::new(FILE), &[&b"ZKLG\0\0\0\x02\0\0\0\0\0\0\0\0"[..], &records.concat()].concat());
    disk
}

fn open(disk: &FaultyDisk) -> LogFileReader {
    LogFileReader::open(disk, Path::new(FILE)).unwrap()
}

#[test]
fn a_whole_record_without_the_header_of_a_transaction_is_no_transaction() {
    for length in 1..TxnHeader::SIZE {
        let entry = vec![7; length];
        let disk = holding(&[framed(&entry, adler32(&&entry[..]), b'B')]);
        assert_eq!(open(&disk).advance().unwrap(), Advance::End(FileEnd::NoTransaction), "{length} bytes");
    }
}

/// The checksum is checked before memory is allocated. For shorter records the end byte is checked first, as in
/// upstream.
#[test]
fn the_checksum_of_a_record_above_4_mib_is_checked_before_its_end_byte() {
    for (length, end) in [(4 << 20, FileEnd::NoEndByte), ((4 << 20) + 1, FileEnd::WrongChecksum)] {
        let disk = holding(&[framed(&vec![7; length], 5, b'x')]);
        assert_eq!(open(&disk).advance().unwrap(), Advance::End(end), "{length} bytes");
    }
}

/// A server that takes back transactions can cut the log while it is being read.
#[test]
fn a_file_that_is_cut_after_it_was_opened_ends_inside_a_record() {
    let whole = |zxid| {
        let entry = record(Zxid(zxid), 40);
        framed(&entry, adler32(&&entry[..]), b'B')
    };
    for left in 1..whole(2).len() {
        let disk = holding(&[whole(1), whole(2)]);
        let mut reader = open(&disk);
        disk.rot(Path::new(FILE), |bytes| bytes.truncate(16 + whole(1).len() + left));
        assert_eq!(reader.advance().unwrap(), Advance::Record(Zxid(1)));
        assert_eq!(reader.advance().unwrap(), Advance::End(FileEnd::CutOff), "{left} bytes left");
    }
}
