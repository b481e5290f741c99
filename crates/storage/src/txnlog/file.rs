//! Reads one log file, record by record.

use super::{END_BYTE, FRAMING, HEADER, MAGIC, PREFIX};
use crate::{
    disk::{Disk, DiskFile, read_full},
    error::{IoContext, Result},
};
use ostler_proto::{id::Zxid, jute::Reader, txn::TxnHeader};
use simd_adler32::{Adler32, adler32};
use std::path::{Path, PathBuf};

const BUFFER: usize = 1 << 20;
/// A record with a greater length is checked against its checksum before memory is allocated for it.
const TRUSTED_LENGTH: usize = 4 << 20;

/// A record of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogRecord<'a> {
    /// The zxid, from the header of the transaction.
    pub zxid: Zxid,
    /// The byte of the file at which the record starts.
    pub offset: u64,
    /// TxnHeader, txn and digest, as they were logged.
    pub bytes: &'a [u8],
}

/// The reason why a file has no further record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileEnd {
    /// The file ends after a record.
    EndOfFile,
    /// The length is 0: nothing was written here.
    Unwritten,
    /// The file ends inside a record.
    CutOff,
    /// The byte after the record is not the end byte.
    NoEndByte,
    /// The record does not fit its checksum.
    WrongChecksum,
    /// The length is negative.
    BadLength(i32),
    /// The record is too short for the header of a transaction.
    NoTransaction,
    /// The file does not start as a log does.
    BadHeader,
}

impl FileEnd {
    /// The reason in words, for error messages.
    pub fn reason(self) -> String {
        match self {
            FileEnd::EndOfFile => "the file ends".to_owned(),
            FileEnd::Unwritten => "nothing was written".to_owned(),
            FileEnd::CutOff => "the file ends inside a record".to_owned(),
            FileEnd::NoEndByte => "a record's end byte is missing".to_owned(),
            FileEnd::WrongChecksum => "a record does not fit its checksum".to_owned(),
            FileEnd::BadLength(length) => format!("a record's length is {length}"),
            FileEnd::NoTransaction => "a record is too short for a transaction".to_owned(),
            FileEnd::BadHeader => "the file does not start with a log header (ZKLG)".to_owned(),
        }
    }
}

/// The checksum and the length that stand in front of an entry.
pub(super) fn split_prefix(prefix: &[u8; PREFIX]) -> (u64, i32) {
    let [checksum @ .., a, b, c, d] = *prefix;
    (u64::from_be_bytes(checksum), i32::from_be_bytes([a, b, c, d]))
}

/// The zxid before a log's first record, by its header: only that is read. Zero if the writer did not know it, `None` for a
/// file that does not start as a log does.
pub fn zxid_before(disk: &dyn Disk, path: &Path) -> Result<Option<Zxid>> {
    let mut header = [0; HEADER];
    let read = disk.open(path).and_then(|file| read_full(&*file, &mut header, 0)).during("read", path)?;
    let (magic, before) = header.split_at(MAGIC.len());
    let is_log = read == HEADER && magic[..4] == MAGIC[..4];
    Ok(before.first_chunk().filter(|_| is_log).map(|before| Zxid(u64::from_be_bytes(*before))))
}

/// The result of [`LogFileReader::advance`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Advance {
    /// The next record has this zxid. [`LogFileReader::record`] returns it.
    Record(Zxid),
    /// No further record can be read. [`LogFileReader::offset`] is where it would start, 0 for a bad header.
    End(FileEnd),
}

/// Reads one log file from its start. It returns only whole records with a correct checksum.
pub struct LogFileReader {
    path: PathBuf,
    file: Box<dyn DiskFile>,
    size: u64,
    buffer: Vec<u8>,
    /// The offset of `buffer[0]` in the file.
    base: u64,
    /// `start..filled` of the buffer is not parsed yet.
    start: usize,
    filled: usize,
    /// Zxid and length of the current record. It ends, with its end byte, at `start`.
    at_hand: Option<(Zxid, usize)>,
    /// The zxid before the first record, as the header says it.
    before: Option<Zxid>,
}

impl LogFileReader {
    /// Opens a log file.
    pub fn open(disk: &dyn Disk, path: &Path) -> Result<LogFileReader> {
        LogFileReader::over(disk.open(path).during("open", path)?, path)
    }

    /// Reads an open file. `path` is for messages.
    pub fn over(file: Box<dyn DiskFile>, path: &Path) -> Result<LogFileReader> {
        let size = file.size().during("read the size of", path)?;
        let buffer = vec![0; BUFFER.min(size as usize)];
        Ok(LogFileReader {
            path: path.to_path_buf(),
            file,
            size,
            buffer,
            base: 0,
            start: 0,
            filled: 0,
            at_hand: None,
            before: None,
        })
    }

    /// Goes on in an open file that was read up to `offset`, the start of a record. So a log that grows is read without
    /// its beginning.
    pub fn resume(file: Box<dyn DiskFile>, path: &Path, offset: u64) -> Result<LogFileReader> {
        let mut reader = LogFileReader::over(file, path)?;
        reader.base = offset;
        reader.before = Some(Zxid::ZERO);
        Ok(reader)
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The offset behind the last record read, where the next one starts.
    pub fn offset(&self) -> u64 {
        self.base + self.start as u64
    }

    /// The zxid before the file's first record, from the header; zero if the writer did not know it. `None` for a bad
    /// header.
    pub fn before(&mut self) -> Result<Option<Zxid>> {
        if self.before.is_some() {
            return Ok(self.before);
        }
        let have = self.fill(HEADER)?;
        let Some((magic, before)) = self.buffer[..have].split_first_chunk::<{ MAGIC.len() }>() else {
            return Ok(None);
        };
        let Some(before) = before.first_chunk() else { return Ok(None) };
        // As in upstream, the first half of the magic must be right, and the version does not matter.
        if magic[..4] != MAGIC[..4] {
            return Ok(None);
        }
        self.start = HEADER;
        self.before = Some(Zxid(u64::from_be_bytes(*before)));
        Ok(self.before)
    }

    /// Reads the next record.
    pub fn advance(&mut self) -> Result<Advance> {
        self.at_hand = None;
        if self.before()?.is_none() {
            return Ok(Advance::End(FileEnd::BadHeader));
        }
        let rest = self.size.saturating_sub(self.offset());
        let have = self.fill(PREFIX)?;
        let Some(prefix) = self.buffer[self.start..self.start + have].first_chunk() else {
            return Ok(Advance::End(if have == 0 { FileEnd::EndOfFile } else { FileEnd::CutOff }));
        };
        let (checksum, length) = split_prefix(prefix);
        let length = match usize::try_from(length) {
            Ok(0) => return Ok(Advance::End(FileEnd::Unwritten)),
            Ok(length) if (length + FRAMING) as u64 > rest => return Ok(Advance::End(FileEnd::CutOff)),
            Ok(length) => length,
            Err(_) => return Ok(Advance::End(FileEnd::BadLength(length))),
        };
        if length > TRUSTED_LENGTH && self.checksum_in_pieces(length)? != checksum {
            return Ok(Advance::End(FileEnd::WrongChecksum));
        }
        if self.fill(FRAMING + length)? < FRAMING + length {
            return Ok(Advance::End(FileEnd::CutOff));
        }
        let entry_start = self.start + PREFIX;
        let entry = &self.buffer[entry_start..entry_start + length];
        // In upstream's order: a missing end byte can be a torn tail in an older file, a wrong checksum cannot.
        if self.buffer[entry_start + length] != END_BYTE {
            return Ok(Advance::End(FileEnd::NoEndByte));
        }
        if u64::from(adler32(&entry)) != checksum {
            return Ok(Advance::End(FileEnd::WrongChecksum));
        }
        let Ok(header) = TxnHeader::read(&mut Reader::new(entry)) else {
            return Ok(Advance::End(FileEnd::NoTransaction));
        };
        self.start += FRAMING + length;
        self.at_hand = Some((header.zxid, length));
        Ok(Advance::Record(header.zxid))
    }

    /// The record that [`LogFileReader::advance`] has read.
    pub fn record(&self) -> Option<LogRecord<'_>> {
        let (zxid, length) = self.at_hand?;
        let end = self.start - 1;
        Some(LogRecord {
            zxid,
            offset: self.offset() - (length + FRAMING) as u64,
            bytes: &self.buffer[end - length..end],
        })
    }

    /// The open file and its size, to judge the bytes after the last record.
    pub(super) fn raw(&self) -> (&dyn DiskFile, u64) {
        (&*self.file, self.size)
    }

    /// Reads until `wanted` unparsed bytes are in the buffer or the file ends. Returns the smaller number of the two.
    fn fill(&mut self, wanted: usize) -> Result<usize> {
        if self.filled - self.start >= wanted {
            return Ok(wanted);
        }
        self.buffer.copy_within(self.start..self.filled, 0);
        self.base += self.start as u64;
        self.filled -= self.start;
        self.start = 0;
        if self.buffer.len() < wanted {
            self.buffer.resize(wanted, 0);
        }
        let offset = self.base + self.filled as u64;
        // Up to the size when the file was opened, since it may be written meanwhile.
        let left = usize::try_from(self.size.saturating_sub(offset)).unwrap_or(usize::MAX);
        let room = left.min(self.buffer.len() - self.filled);
        let into = &mut self.buffer[self.filled..self.filled + room];
        self.filled += read_full(&*self.file, into, offset).during("read", &self.path)?;
        Ok(self.filled.min(wanted))
    }

    /// The checksum of the next entry, which has `length` bytes. It is read in pieces and not kept.
    fn checksum_in_pieces(&self, length: usize) -> Result<u64> {
        let mut sum = Adler32::new();
        let mut piece = vec![0; BUFFER];
        let (mut offset, mut left) = (self.offset() + PREFIX as u64, length);
        while left > 0 {
            let into = &mut piece[..left.min(BUFFER)];
            let got = read_full(&*self.file, into, offset).during("read", &self.path)?;
            if got == 0 {
                break;
            }
            sum.write(&into[..got]);
            (offset, left) = (offset + got as u64, left - got);
        }
        Ok(u64::from(sum.finish()))
    }
}
