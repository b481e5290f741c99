//! Reads all log files of a folder as one stream of records, and refuses damage and gaps.

use super::{
    HEADER, MAGIC,
    file::{Advance, FileEnd, LogFileReader, LogRecord},
    synced::SyncedMark,
    tail::{self, LONGEST_BATCH, Verdict},
};
use crate::{
    disk::Disk,
    error::{IoContext, Result, StorageError},
    names::{LogFile, log_files},
};
use ostler_proto::id::Zxid;
use std::{
    collections::VecDeque,
    ops::Range,
    path::{Path, PathBuf},
};

/// The remains of a batch that a crash interrupted, at the end of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TornTail {
    /// The log file.
    pub file: PathBuf,
    /// The byte at which the first incomplete record starts. The newest file is cut here.
    pub offset: u64,
    /// The last transaction before the torn tail.
    pub zxid_before: Zxid,
    /// The number of bytes from `offset` to the last byte that is not 0.
    pub bytes: u64,
}

/// A record whose zxid is below one before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ZxidStep {
    /// The log file.
    pub file: PathBuf,
    /// The byte at which the record starts.
    pub offset: u64,
    /// The highest zxid before the record.
    pub before: Zxid,
    /// The zxid of the record.
    pub zxid: Zxid,
}

/// Reads the records after a zxid, file after file, and checks that none is missing.
pub struct LogReader<'d> {
    disk: &'d dyn Disk,
    files: VecDeque<LogFile>,
    read: Vec<PathBuf>,
    current: Option<LogFileReader>,
    /// The zxid in the name of the current file, until its first record is compared with it.
    first: Option<Zxid>,
    newest: PathBuf,
    mark: Option<SyncedMark>,
    /// The current file was synced up to this byte; 0 if that is not known.
    synced: u64,
    after: Zxid,
    last: Zxid,
    empty: Vec<PathBuf>,
    /// The offset of the last record read.
    last_record: u64,
    /// The offset behind the last record of the last file that was read to its end.
    data_end: u64,
    torn: Option<TornTail>,
    torn_before: Vec<TornTail>,
    backwards: Vec<ZxidStep>,
}

impl<'d> LogReader<'d> {
    /// Opens the logs in `dir`, to read the records above `after`: the zxid of a snapshot, or zero for all records.
    pub fn open(disk: &'d dyn Disk, dir: &Path, after: Zxid) -> Result<LogReader<'d>> {
        let mut files = log_files(disk, dir)?;
        let mark = SyncedMark::read(disk, dir)?;
        let empty = split_empty(disk, &mut files, mark)?;
        let start = start_of(disk, &files, after)?;
        let newest = files.last().map(|file| file.path.clone()).unwrap_or_default();
        Ok(LogReader {
            disk,
            files: files.split_off(start).into(),
            read: Vec::new(),
            current: None,
            first: None,
            newest,
            mark,
            synced: 0,
            after,
            last: after,
            empty,
            last_record: 0,
            data_end: 0,
            torn: None,
            torn_before: Vec::new(),
            backwards: Vec::new(),
        })
    }

    /// The next record. `None` at the end of the log.
    pub fn next_record(&mut self) -> Result<Option<LogRecord<'_>>> {
        while self.current.is_some() || self.open_next()? {
            let Some(file) = &mut self.current else { break };
            match file.advance()? {
                Advance::Record(zxid) => {
                    self.last_record = file.record().map_or(0, |record| record.offset);
                    self.check_first(zxid)?;
                    // The snapshot has the others.
                    if zxid > self.after {
                        self.check_order(zxid)?;
                        return Ok(self.current.as_ref().and_then(LogFileReader::record));
                    }
                }
                Advance::End(end) => {
                    self.check_end(end)?;
                    self.current = None;
                }
            }
        }
        Ok(None)
    }

    /// The highest zxid so far; before the first record, the zxid after which the reader started.
    pub fn last(&self) -> Zxid {
        self.last
    }

    /// The path of the file that is being read.
    pub fn file(&self) -> Option<&Path> {
        self.current.as_ref().map(LogFileReader::path)
    }

    /// Whether there is a log file that is not empty, see [`LogReader::empty_files`].
    pub fn has_files(&self) -> bool {
        self.newest != Path::new("")
    }

    /// The files that were opened for reading so far.
    pub fn files_read(&self) -> &[PathBuf] {
        &self.read
    }

    /// The file that was read last, and the part of it that can be its last batch, or its last record if that is
    /// longer. `None` if the file has no records. To be called after [`LogReader::next_record`] has returned `None`.
    pub(crate) fn last_batch(&self) -> Option<(&Path, Range<u64>)> {
        let path = self.read.last().filter(|_| self.data_end > HEADER as u64)?;
        let start = self.data_end.saturating_sub(LONGEST_BATCH).min(self.last_record);
        Some((path, start..self.data_end))
    }

    /// The torn tail of the newest file. To be called after [`LogReader::next_record`] has returned `None`.
    pub fn torn_tail(&self) -> Option<&TornTail> {
        self.torn.as_ref()
    }

    /// The torn tails of older files so far, as Java leaves them.
    pub fn torn_before(&self) -> &[TornTail] {
        &self.torn_before
    }

    /// The newest files to which no record was ever written, because of a crash when they were created.
    pub fn empty_files(&self) -> &[PathBuf] {
        &self.empty
    }

    /// The records so far with a zxid below an earlier one. A repeated zxid is not among them: Java logs the failures
    /// of malformed requests with one.
    pub fn backwards(&self) -> &[ZxidStep] {
        &self.backwards
    }

    fn open_next(&mut self) -> Result<bool> {
        let Some(next) = self.files.pop_front() else { return Ok(false) };
        let mut file = LogFileReader::open(self.disk, &next.path)?;
        let before = file.before()?.unwrap_or(Zxid::ZERO);
        if before >= next.first {
            let reason =
                format!("by its header it follows {before}, and by its name it starts with {}", next.first);
            return Err(StorageError::Corrupt {
                file: next.path,
                offset: MAGIC.len() as u64,
                reason,
                last_good: self.last,
            });
        }
        // Name and header show what came before the first record, even if that record is torn.
        let fits = next.first <= self.last || follows(self.last, next.first);
        if before > self.last || !fits {
            let needed = if before > Zxid::ZERO { before } else { next.first.previous() };
            return Err(StorageError::Gap { file: next.path, last: self.last, found: next.first, needed });
        }
        self.synced = synced_of(self.mark, &file, next.first)?;
        self.current = Some(file);
        self.first = Some(next.first);
        self.read.push(next.path);
        Ok(true)
    }

    /// Checks the first record of a file against the file's name. Whole records of another file were in these blocks
    /// before: then the disk has lost what was written over them, although it reported the sync as done.
    fn check_first(&mut self, zxid: Zxid) -> Result<()> {
        let (Some(named), Some(file)) = (self.first.take(), &self.current) else { return Ok(()) };
        if named == zxid {
            return Ok(());
        }
        let offset = file.record().map_or(0, |record| record.offset);
        let reason = format!("its first transaction is {zxid}, and by its name it is {named}");
        Err(StorageError::Corrupt { file: file.path().to_path_buf(), offset, reason, last_good: self.last })
    }

    fn check_order(&mut self, zxid: Zxid) -> Result<()> {
        if zxid == self.last.next() {
            self.last = zxid;
            return Ok(());
        }
        let Some(file) = &self.current else { return Ok(()) };
        if !follows(self.last, zxid) {
            let needed = zxid.previous();
            return Err(StorageError::Gap {
                file: file.path().to_path_buf(),
                last: self.last,
                found: zxid,
                needed,
            });
        }
        if zxid < self.last {
            let offset = file.record().map_or(0, |record| record.offset);
            let step = ZxidStep { file: file.path().to_path_buf(), offset, before: self.last, zxid };
            self.backwards.push(step);
        }
        self.last = self.last.max(zxid);
        Ok(())
    }

    fn check_end(&mut self, end: FileEnd) -> Result<()> {
        let Some(file) = &self.current else { return Ok(()) };
        let (path, offset) = (file.path().to_path_buf(), file.offset());
        self.data_end = offset;
        let is_newest = path == self.newest;
        let context = EndContext { is_newest, last: self.last, synced: self.synced };
        let reason = match judge_end(file, end, context)? {
            Verdict::Clean => return Ok(()),
            Verdict::Torn { bytes } => {
                let torn = TornTail { file: path, offset, zxid_before: self.last, bytes };
                match is_newest {
                    true => self.torn = Some(torn),
                    false => self.torn_before.push(torn),
                }
                return Ok(());
            }
            Verdict::Corrupt { reason } => reason,
        };
        Err(StorageError::Corrupt { file: path, offset, reason, last_good: self.last })
    }
}

/// The facts about a log file beside its bytes, for [`judge_end`].
#[derive(Debug, Clone, Copy)]
pub struct EndContext {
    /// Whether no later log file has records.
    pub is_newest: bool,
    /// The last transaction before the end.
    pub last: Zxid,
    /// The file was synced up to this byte, see [`synced_through`]; 0 if that is not known.
    pub synced: u64,
}

/// Judges the end of a log file, at which the reader stopped with `end`, by the rules of [`crate::txnlog`].
pub fn judge_end(file: &LogFileReader, end: FileEnd, context: EndContext) -> Result<Verdict> {
    let may_be_torn = matches!(end, FileEnd::Unwritten | FileEnd::CutOff | FileEnd::NoEndByte);
    match end {
        _ if file.offset() < context.synced => {
            Ok(Verdict::Corrupt { reason: lost_after_sync(end, context.synced) })
        }
        FileEnd::EndOfFile => Ok(Verdict::Clean),
        _ if context.is_newest || may_be_torn => tail::judge(file, end, context.last),
        _ => Ok(Verdict::Corrupt { reason: end.reason() }),
    }
}

/// The byte up to which the mark in the folder `dir` says that a log was synced; 0 if the mark is of another file.
pub fn synced_through(disk: &dyn Disk, dir: &Path, file: &LogFileReader, first: Zxid) -> Result<u64> {
    synced_of(SyncedMark::read(disk, dir)?, file, first)
}

fn lost_after_sync(end: FileEnd, synced: u64) -> String {
    format!(
        "{}, and the file was synced up to byte {synced}, says log-synced beside it (remove that one if this log was put \
         back from a backup)",
        end.reason()
    )
}

fn synced_of(mark: Option<SyncedMark>, file: &LogFileReader, first: Zxid) -> Result<u64> {
    mark.map_or(Ok(0), |mark| mark.synced_of(file.raw().0, first).during("read", file.path()))
}

/// Moves the newest files off the list as long as no record was ever written to them.
fn split_empty(disk: &dyn Disk, files: &mut Vec<LogFile>, mark: Option<SyncedMark>) -> Result<Vec<PathBuf>> {
    let mut empty = Vec::new();
    while let Some(newest) = files.last() {
        let mut file = LogFileReader::open(disk, &newest.path)?;
        if synced_of(mark, &file, newest.first)? > 0 || !tail::never_had_records(&mut file)? {
            break;
        }
        empty.extend(files.pop().map(|file| file.path));
    }
    Ok(empty)
}

/// The index of the first file to read for the records above `after`: a file has everything up to the zxid in the next
/// one's name. A newest file without a whole record does not count. Recovery will remove it, and then the next start
/// would have to read more files than this one.
fn start_of(disk: &dyn Disk, files: &[LogFile], after: Zxid) -> Result<usize> {
    let mut lasting = files;
    while let [before @ .., newest] = lasting {
        if matches!(LogFileReader::open(disk, &newest.path)?.advance()?, Advance::Record(_)) {
            break;
        }
        lasting = before;
    }
    Ok(lasting.iter().rposition(|file| file.first <= after.next()).unwrap_or(0))
}

/// Whether `next` can come right after `last`. Within an epoch no number is left out. A new epoch starts at 1, or at 0
/// after an overflow of the counter. The last number of an old epoch is not known here; the next file's header can have
/// it.
pub fn follows(last: Zxid, next: Zxid) -> bool {
    if next.epoch() > last.epoch() { next.counter() <= 1 } else { next <= last.next() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn within_an_epoch_no_number_may_be_left_out() {
        let zxid = |epoch: u64, counter: u64| Zxid(epoch << 32 | counter);
        for (last, next, ok) in [
            (zxid(0, 0), zxid(0, 1), true),
            (zxid(0, 0), zxid(0, 2), false),
            (zxid(1, 7), zxid(1, 7), true),
            (zxid(1, 7), zxid(1, 3), true),
            (zxid(1, 7), zxid(2, 1), true),
            (zxid(1, 7), zxid(4, 0), true),
            (zxid(1, 7), zxid(2, 2), false),
            (zxid(1, 7), zxid(0, 9), true),
            (zxid(1, 0xffff_ffff), zxid(2, 0), true),
        ] {
            assert_eq!(follows(last, next), ok, "{last} {next}");
        }
    }
}
