//! Judges the bytes after the last good record of a log file, by the rules in `txnlog.rs`.

use super::{
    BATCH_LIMIT, END_BYTE, FRAMING, FileEnd, HEADER, LogFileReader, MAGIC, PREFIX, file::split_prefix,
};
use crate::{
    disk::{DiskFile, read_full},
    error::{IoContext, Result},
};
use ostler_proto::{id::Zxid, jute::Reader, txn::TxnHeader};
use simd_adler32::adler32;

/// The number of bytes that a disk writes as a whole.
const SECTOR: u64 = 512;
const CHUNK: usize = 1 << 20;
/// The largest first batch of a file, with the header.
pub(super) const LONGEST_BATCH: u64 = (BATCH_LIMIT + HEADER) as u64;

/// The verdict on the bytes after the last good record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// There are no bytes, or only zeros.
    Clean,
    /// The remains of a batch that was not synced.
    Torn {
        /// The number of bytes up to the last one that is not 0.
        bytes: u64,
    },
    /// Damage that a crash cannot do.
    Corrupt {
        /// The damage, in words.
        reason: String,
    },
}

/// Judges the end of a file, at which `reader` stopped with `end`. `last` is the last good zxid.
pub(super) fn judge(reader: &LogFileReader, end: FileEnd, last: Zxid) -> Result<Verdict> {
    let (file, size) = reader.raw();
    let start = reader.offset();
    let Some(data_end) = last_data(file, start, size).during("read", reader.path())? else {
        return Ok(Verdict::Clean);
    };
    let bytes = data_end - start;
    let corrupt = |also: String| Ok(Verdict::Corrupt { reason: format!("{}{also}", end.reason()) });
    let longest = claimed_length(file, start).during("read", reader.path())?;
    if longest.is_some_and(|claimed| bytes > claimed.max(LONGEST_BATCH)) {
        return corrupt(format!(", and {bytes} bytes of data follow"));
    }
    // If the length of the record is not known, whole records after it are looked for in two batches only.
    let looked_at = if longest.is_some() { bytes } else { bytes.min(2 * LONGEST_BATCH) };
    let mut tail = vec![0; looked_at as usize];
    let got = read_full(file, &mut tail, start).during("read", reader.path())?;
    tail.truncate(got);
    if end == FileEnd::BadHeader && !could_become_header(&tail) {
        return corrupt(String::new());
    }
    match next_record(&tail, last) {
        None if is_whole_but_wrong(&tail, end, start) => {
            corrupt(", and all of its bytes are there".to_owned())
        }
        None => Ok(Verdict::Torn { bytes }),
        Some((at, _))
            if bytes <= BATCH_LIMIT as u64 && has_hole(&tail[..at + leading_zeros(&tail[at..])], start) =>
        {
            Ok(Verdict::Torn { bytes })
        }
        Some((at, zxid)) => {
            corrupt(format!(", and a whole record ({zxid}) follows at byte {}", start + at as u64))
        }
    }
}

/// Whether the damaged record is complete. A crash leaves out sectors, or the end of a record, and changes no bytes. So
/// a complete record with a wrong byte was damaged later.
fn is_whole_but_wrong(tail: &[u8], end: FileEnd, start: u64) -> bool {
    let Some((prefix, rest)) = tail.split_first_chunk() else { return false };
    let (checksum, length) = split_prefix(prefix);
    let fits = |entry: &[u8]| u64::from(adler32(&entry)) == checksum;
    let claimed = usize::try_from(length).ok().and_then(|length| rest.split_at_checked(length));
    let wrong = match (end, claimed) {
        (FileEnd::NoEndByte, Some((entry, [_, ..]))) => {
            fits(entry) && !is_in_hole(tail, start, PREFIX + entry.len())
        }
        // The checksum of a long record is checked before its end byte, which may not have been written.
        (FileEnd::WrongChecksum, Some((entry, _))) => {
            tail.get(..PREFIX + entry.len() + 1).is_some_and(|whole| !has_hole(whole, start))
        }
        // No server writes such a record.
        (FileEnd::NoTransaction, _) => true,
        _ => false,
    };
    // The length is wrong, but the entry up to the last byte of data fits the checksum.
    wrong || matches!(rest.split_last(), Some((&END_BYTE, entry)) if fits(entry))
}

/// The size of the record at `start` by its length field; 0 if no record starts there. A single record can be longer
/// than a batch. `None` if the sector with the length field was not written.
fn claimed_length(file: &dyn DiskFile, start: u64) -> std::io::Result<Option<u64>> {
    // Bytes behind the end of the file count as zeros.
    let mut prefix = [0; PREFIX];
    read_full(file, &mut prefix, start)?;
    if prefix[..4] != [0; 4] {
        return Ok(Some(0));
    }
    let (_, length) = split_prefix(&prefix);
    Ok((length != 0).then(|| u64::try_from(length).unwrap_or(0) + FRAMING as u64))
}

/// Reads the start of a file. Returns whether no record was ever written to it: it is empty, or has at most a header
/// and then zeros.
pub(super) fn never_had_records(reader: &mut LogFileReader) -> Result<bool> {
    let end = match reader.advance()? {
        super::Advance::Record(_) => return Ok(false),
        super::Advance::End(end) => end,
    };
    let (file, size) = reader.raw();
    let data_end = last_data(file, reader.offset(), size).during("read", reader.path())?;
    match (end, data_end) {
        (_, None) => Ok(true),
        (FileEnd::BadHeader, Some(data_end)) if data_end < HEADER as u64 => {
            let mut start = vec![0; data_end as usize];
            read_full(file, &mut start, 0).during("read", reader.path())?;
            Ok(could_become_header(&start))
        }
        _ => Ok(false),
    }
}

/// The offset behind the last byte in `from..size` that is not 0. `None` if all are 0.
fn last_data(file: &dyn DiskFile, from: u64, size: u64) -> std::io::Result<Option<u64>> {
    let mut chunk = vec![0; CHUNK.min(size.saturating_sub(from) as usize)];
    let mut end = size;
    while end > from {
        let start = from.max(end.saturating_sub(CHUNK as u64));
        let piece = &mut chunk[..(end - start) as usize];
        let got = read_full(file, piece, start)?;
        if !all_zero(&piece[..got])
            && let Some(at) = piece[..got].iter().rposition(|byte| *byte != 0)
        {
            return Ok(Some(start + at as u64 + 1));
        }
        end = start;
    }
    Ok(None)
}

fn all_zero(bytes: &[u8]) -> bool {
    bytes.chunks(4096).all(|part| part.iter().fold(0, |seen, byte| seen | byte) == 0)
}

/// Whether the bytes can be a header that was not written, or only in part: a beginning of the magic, then zeros.
fn could_become_header(tail: &[u8]) -> bool {
    let head = &tail[..tail.len().min(HEADER)];
    let data = head.iter().rposition(|byte| *byte != 0).map_or(0, |at| at + 1);
    MAGIC.starts_with(&head[..data.min(MAGIC.len())])
}

/// The first whole record behind the start of `tail` whose zxid is not below `last`: its place and its zxid.
fn next_record(tail: &[u8], last: Zxid) -> Option<(usize, Zxid)> {
    (1..tail.len()).find_map(|at| {
        let zxid = whole_record(&tail[at..]).filter(|zxid| *zxid >= last)?;
        Some((at, zxid))
    })
}

/// The zxid of the record at the start of `bytes`, if it is whole.
fn whole_record(bytes: &[u8]) -> Option<Zxid> {
    let (prefix, rest) = bytes.split_first_chunk()?;
    let (checksum, length) = split_prefix(prefix);
    let length = usize::try_from(length).ok()?;
    if checksum >> 32 != 0 || length < TxnHeader::SIZE || *rest.get(length)? != END_BYTE {
        return None;
    }
    let entry = &rest[..length];
    let header = TxnHeader::read(&mut Reader::new(entry)).ok()?;
    (u64::from(adler32(&entry)) == checksum).then_some(header.zxid)
}

/// The number of zeros at the start of a record. A record is whole even if these are in a sector that was not written.
fn leading_zeros(record: &[u8]) -> usize {
    record.iter().take_while(|byte| **byte == 0).count()
}

/// Whether a sector of the damage was not written. The damage starts at `start` in the file. In its first sector only
/// the part behind the last good record can be missing. A good record starts with four zeros, so that part must be
/// longer.
fn has_hole(damage: &[u8], start: u64) -> bool {
    let first = (start.next_multiple_of(SECTOR) - start) as usize;
    let Some((head, sectors)) = damage.split_at_checked(first) else { return false };
    (head.len() > 4 && all_zero(head)) || sectors.chunks_exact(SECTOR as usize).any(all_zero)
}

/// Whether byte `at` of a tail is in a sector that was not written. The tail starts at `start` in the file.
fn is_in_hole(tail: &[u8], start: u64, at: usize) -> bool {
    let within = (start + at as u64) % SECTOR;
    let from = at.saturating_sub(within as usize);
    let to = tail.len().min(at + (SECTOR - within) as usize);
    all_zero(&tail[from..to])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{disk::OsDisk, txnlog::Advance};
    use ostler_proto::id::SessionId;

    #[test]
    fn holes_are_whole_sectors() {
        let mut damage = vec![1; 2000];
        assert!(!has_hole(&damage, 100));
        damage[512..1024].fill(0);
        assert!(has_hole(&damage, 1024));
        assert!(!has_hole(&damage, 1020), "not aligned");
        damage[..412].fill(0);
        assert!(has_hole(&damage, 100), "the rest of the first sector");
        assert!(!has_hole(&[0, 0, 0, 0, 1, 1], 508), "healthy records start with four zeros");
    }

    #[test]
    fn a_half_written_header_is_recognized() {
        assert!(could_become_header(b""));
        assert!(could_become_header(b"ZKL"));
        assert!(could_become_header(&MAGIC));
        assert!(could_become_header(b"ZKLG\0\0\0\x02\0\0\0\x07\0\0\0\x08"));
        assert!(!could_become_header(b"\0\0\0\0\0\0\0\0\0\0\0\x07\0\0\0\x08"));
        assert!(could_become_header(&[0; 40]));
        assert!(!could_become_header(b"hello"));
        assert!(!could_become_header(b"ZKSN"));
        assert!(!could_become_header(b"ZKX"));
        assert!(!could_become_header(b"X"));
    }

    const START: usize = HEADER;

    /// The header of a transaction, and `more` bytes after it.
    fn entry(zxid: u64, more: usize) -> Vec<u8> {
        let mut entry = Vec::new();
        let header = TxnHeader { session: SessionId(1), cxid: 1, zxid: Zxid(zxid), time_ms: 1, code: -11 };
        header.write(&mut entry);
        entry.resize(entry.len() + more, 0xaa);
        entry
    }

    fn framed(entry: &[u8]) -> Vec<u8> {
        let (checksum, length) = (u64::from(adler32(&entry)), entry.len() as u32);
        [&checksum.to_be_bytes()[..], &length.to_be_bytes(), entry, &[END_BYTE]].concat()
    }

    /// The verdict on these bytes after the header of a log.
    fn judged(tail: &[u8]) -> Verdict {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log.1");
        std::fs::write(&path, [&MAGIC[..], &[0; 8], tail].concat()).unwrap();
        let mut reader = LogFileReader::open(&OsDisk, &path).unwrap();
        let Advance::End(end) = reader.advance().unwrap() else { panic!("a whole record") };
        judge(&reader, end, Zxid(0)).unwrap()
    }

    fn is_torn(tail: &[u8]) -> bool {
        match judged(tail) {
            Verdict::Torn { bytes } => bytes == tail.len() as u64,
            Verdict::Corrupt { .. } => false,
            Verdict::Clean => panic!("there is something"),
        }
    }

    /// A batch, with the header of the file if it is the first one. Bytes behind it were written after a sync.
    #[test]
    fn damage_up_to_one_batch_is_torn_and_more_is_corrupt() {
        let garbage = vec![0xff; BATCH_LIMIT + 16 + 1];
        assert!(is_torn(&garbage[1..]));
        assert!(!is_torn(&garbage));
    }

    /// The length was not written, so the place of the next record is not known.
    #[test]
    fn after_a_record_of_unknown_length_whole_records_are_looked_for_in_two_batches() {
        let unknown = |at: usize| {
            let mut tail = vec![0; PREFIX];
            tail.resize(at, 0xff);
            [tail, framed(&entry(2, 9))].concat()
        };
        let two = 2 * LONGEST_BATCH as usize;
        let record = framed(&entry(2, 9)).len();
        assert!(!is_torn(&unknown(two - record)), "a whole record follows");
        assert!(is_torn(&unknown(two - record + 1)));
    }

    /// The end byte is alone in its sector, or comes after zeros of the entry, which are right although the sector was
    /// not written.
    #[test]
    fn a_record_whose_end_byte_is_in_an_unwritten_sector_is_torn() {
        let sector = SECTOR as usize;
        for zeros in [0, 100] {
            let mut whole = entry(1, 2 * sector + zeros - START - PREFIX - TxnHeader::SIZE);
            let data = whole.len() - zeros;
            whole[data..].fill(0);
            let mut tail = framed(&whole);
            assert_eq!((START + tail.len()) % sector, zeros + 1);
            *tail.last_mut().unwrap() = 0;
            // A sector that was not written, and one of the next record that was.
            tail.resize(3 * sector - START, 0);
            tail.resize(4 * sector - START, 0xbb);
            assert!(is_torn(&tail), "{zeros}");
            // Here the sector was written: a crash does not change a byte.
            tail[3 * sector - START - 1] = 0xbb;
            assert!(!is_torn(&tail), "{zeros}");
        }
    }

    /// The checksum of a long record is checked before its end byte. Without the end byte the record may be incomplete.
    #[test]
    fn a_long_record_with_a_wrong_checksum_is_damage_if_its_end_byte_is_there() {
        let mut tail = framed(&entry(1, BATCH_LIMIT + 1000));
        tail[5000] ^= 1;
        assert!(!is_torn(&tail));
        *tail.last_mut().unwrap() = 0;
        assert_eq!(judged(&tail), Verdict::Torn { bytes: tail.len() as u64 - 1 });
    }

    /// No server writes such a record, whatever follows.
    #[test]
    fn a_whole_record_without_a_transaction_header_is_damage() {
        let tail = [framed(&[7; 9]), vec![0xff; 40]].concat();
        assert!(!is_torn(&tail));
    }

    /// In the older formats the end of a session is such a record.
    #[test]
    fn a_record_of_a_header_alone_is_whole() {
        assert_eq!(whole_record(&framed(&entry(7, 0))), Some(Zxid(7)));
        assert_eq!(whole_record(&framed(&entry(7, 0)[1..])), None);
    }

    #[test]
    fn a_file_with_data_after_a_missing_header_once_had_records() {
        let dir = tempfile::tempdir().unwrap();
        for (bytes, is_empty) in [
            (vec![0; 100], true),
            (b"ZKLG\0\0".to_vec(), true),
            ([vec![0; HEADER], framed(&entry(1, 9))].concat(), false),
            (b"ZKSNAP\0\0\0\0\0\0\0\0\0\x01".to_vec(), false),
        ] {
            let path = dir.path().join("log.1");
            std::fs::write(&path, &bytes).unwrap();
            assert_eq!(
                never_had_records(&mut LogFileReader::open(&OsDisk, &path).unwrap()).unwrap(),
                is_empty,
                "{bytes:?}"
            );
        }
    }
}
