//! What the bytes after a file's last good record are: the rules of the module above.

use super::{
    BATCH_LIMIT, END_BYTE, FRAMING, FileEnd, HEADER, LogFileReader, MAGIC, PREFIX, file::split_prefix,
};
use crate::{
    disk::{DiskFile, read_full},
    error::{IoContext, Result},
};
use ostler_proto::{id::Zxid, jute::Reader, txn::TxnHeader};
use simd_adler32::adler32;

/// The unit that a disk writes as a whole.
const SECTOR: u64 = 512;
const CHUNK: usize = 1 << 20;
pub(super) const LONGEST_BATCH: u64 = (BATCH_LIMIT + HEADER) as u64;

/// What follows the last good record.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Nothing, or zeros.
    Clean,
    /// The remains of a batch that was not synced: so many bytes up to the last one that is not 0.
    Torn { bytes: u64 },
    /// Damage that a crash does not do.
    Corrupt { reason: String },
}

/// Judges the end of a file, where `reader` stopped for `end`. `last` is the last good zxid.
pub(super) fn judge(reader: &LogFileReader, end: FileEnd, last: Zxid) -> Result<Verdict> {
    let (file, size) = reader.raw();
    let start = reader.offset();
    let Some(data_end) = last_data(file, start, size).during("read", reader.path())? else {
        return Ok(Verdict::Clean);
    };
    let bytes = data_end - start;
    let corrupt = |also: String| Ok(Verdict::Corrupt { reason: format!("{}{also}", end.reason()) });
    let longest = claimed_length(file, start, size).during("read", reader.path())?;
    if longest.is_some_and(|claimed| bytes > claimed.max(LONGEST_BATCH)) {
        return corrupt(format!(", and {bytes} bytes of data follow"));
    }
    // If it is not known how long the record is, whole records behind it are looked for in the next batches only.
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

/// A crash leaves sectors out, and what comes last; it changes no bytes. So a record that is there to its end, with
/// something wrong in it, was damaged later.
fn is_whole_but_wrong(tail: &[u8], end: FileEnd, start: u64) -> bool {
    let Some((prefix, rest)) = tail.split_first_chunk() else { return false };
    let (checksum, length) = split_prefix(prefix);
    let fits = |entry: &[u8]| u64::from(adler32(&entry)) == checksum;
    let claimed = usize::try_from(length).ok().and_then(|length| rest.split_at_checked(length));
    let wrong = match (end, claimed) {
        (FileEnd::NoEndByte, Some((entry, [_, ..]))) => {
            fits(entry) && !is_in_hole(tail, start, PREFIX + entry.len())
        }
        // Of a long record the checksum is looked at first: its end byte may not have arrived.
        (FileEnd::WrongChecksum, Some((entry, _))) => {
            tail.get(..PREFIX + entry.len() + 1).is_some_and(|whole| !has_hole(whole, start))
        }
        // No server writes such a record.
        (FileEnd::NoTransaction, _) => true,
        _ => false,
    };
    // Its length is wrong, or its end byte is where it ends.
    wrong || matches!(rest.split_last(), Some((&END_BYTE, entry)) if fits(entry))
}

/// How many bytes the record at `start` says it has, if there is the start of a record: a single record may be
/// longer than a batch of several. `None` if the sector did not arrive that should say it.
fn claimed_length(file: &dyn DiskFile, start: u64, size: u64) -> std::io::Result<Option<u64>> {
    let mut prefix = [0; PREFIX];
    if size - start < PREFIX as u64 || read_full(file, &mut prefix, start)? < PREFIX || prefix[..4] != [0; 4]
    {
        return Ok(Some(0));
    }
    let (_, length) = split_prefix(&prefix);
    Ok((length != 0).then(|| u64::try_from(length).unwrap_or(0) + FRAMING as u64))
}

/// Whether a file holds no record at all and never did: empty, or a header at most, then zeros.
pub(super) fn is_void(reader: &mut LogFileReader) -> Result<bool> {
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

/// Behind the last byte that is not 0 in `from..size`.
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

/// A header that was not written yet, or only in part: what is there fits, the rest is zero.
fn could_become_header(tail: &[u8]) -> bool {
    let head = &tail[..tail.len().min(HEADER)];
    let data = head.iter().rposition(|byte| *byte != 0).map_or(0, |at| at + 1);
    MAGIC.starts_with(&head[..data.min(MAGIC.len())])
}

/// The first whole record after the start of `tail`, with a zxid that can follow `last`.
fn next_record(tail: &[u8], last: Zxid) -> Option<(usize, Zxid)> {
    (1..tail.len()).find_map(|at| {
        let zxid = whole_record(&tail[at..]).filter(|zxid| *zxid >= last)?;
        Some((at, zxid))
    })
}

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

/// A record starts with zeros, so it is whole even if its first bytes are in a sector that was never written.
fn leading_zeros(record: &[u8]) -> usize {
    record.iter().take_while(|byte| **byte == 0).count()
}

/// Whether a sector of the damage, which starts at `start` in the file, was never written. Of the sector that
/// the damage starts in, only the part behind the last good record can be missing; as healthy records start
/// with four zeros, that part must be longer.
fn has_hole(damage: &[u8], start: u64) -> bool {
    let first = (start.next_multiple_of(SECTOR) - start) as usize;
    let Some((head, sectors)) = damage.split_at_checked(first) else { return false };
    (head.len() > 4 && all_zero(head)) || sectors.chunks_exact(SECTOR as usize).any(all_zero)
}

/// Whether the byte at `at` of a tail, which starts at `start` in the file, is in a sector that was never written.
fn is_in_hole(tail: &[u8], start: u64, at: usize) -> bool {
    let within = (start + at as u64) % SECTOR;
    let from = at.saturating_sub(within as usize);
    let to = tail.len().min(at + (SECTOR - within) as usize);
    all_zero(&tail[from..to])
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn a_half_written_header_is_known() {
        assert!(could_become_header(b""));
        assert!(could_become_header(b"ZKL"));
        assert!(could_become_header(&MAGIC));
        assert!(could_become_header(b"ZKLG\0\0\0\x02\0\0\0\x07\0\0\0\x08"));
        assert!(!could_become_header(b"\0\0\0\0\0\0\0\0\0\0\0\x07\0\0\0\x08"));
        assert!(could_become_header(&[0; 40]));
        assert!(!could_become_header(b"hello"));
        assert!(!could_become_header(b"ZKSN"));
    }
}
