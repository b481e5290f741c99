//! All log files of a folder as one stream of records.

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
    /// Where the first bad record starts; the newest file is to be cut here.
    pub offset: u64,
    /// The last good transaction.
    pub zxid_before: Zxid,
    /// How many bytes of the batch are there.
    pub bytes: u64,
}

/// A record whose zxid is not above the one before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ZxidStep {
    /// The log file.
    pub file: PathBuf,
    /// Where the record starts.
    pub offset: u64,
    /// The highest zxid before it.
    pub before: Zxid,
    /// Its zxid.
    pub zxid: Zxid,
}

/// Reads the records after a zxid, file after file, and checks that none is missing.
pub struct LogReader<'d> {
    disk: &'d dyn Disk,
    files: VecDeque<LogFile>,
    read: Vec<PathBuf>,
    current: Option<LogFileReader>,
    /// What the first record of the file at hand must be, until it is seen.
    first: Option<Zxid>,
    newest: PathBuf,
    mark: Option<SyncedMark>,
    /// Up to here the file at hand is known to have been synced.
    synced: u64,
    after: Zxid,
    last: Zxid,
    void: Vec<PathBuf>,
    /// Where the last record begins that was read, and where those of its file end.
    last_record: u64,
    data_end: u64,
    torn: Option<TornTail>,
    torn_before: Vec<TornTail>,
    backwards: Vec<ZxidStep>,
}

impl<'d> LogReader<'d> {
    /// Starts after `after` (the snapshot's zxid; zero for everything) in the logs of `dir`.
    pub fn open(disk: &'d dyn Disk, dir: &Path, after: Zxid) -> Result<LogReader<'d>> {
        let mut files = log_files(disk, dir)?;
        let mark = SyncedMark::read(disk, dir)?;
        let void = split_void(disk, &mut files, mark)?;
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
            void,
            last_record: 0,
            data_end: 0,
            torn: None,
            torn_before: Vec::new(),
            backwards: Vec::new(),
        })
    }

    /// The next record; `None` at the end of the log.
    pub fn next_record(&mut self) -> Result<Option<LogRecord<'_>>> {
        while self.current.is_some() || self.open_next()? {
            let Some(file) = &mut self.current else { break };
            match file.advance()? {
                Advance::Record(zxid) => {
                    self.last_record = file.record().map_or(0, |record| record.offset);
                    self.check_first(zxid)?;
                    // Others are covered by the snapshot.
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

    /// The highest zxid so far; the one the reader started after, if there was no record yet.
    pub fn last(&self) -> Zxid {
        self.last
    }

    /// The file being read.
    pub fn file(&self) -> Option<&Path> {
        self.current.as_ref().map(LogFileReader::path)
    }

    /// Whether there is any log file with more than a header.
    pub fn has_files(&self) -> bool {
        self.newest != Path::new("")
    }

    /// The files that records were read from so far.
    pub fn files_read(&self) -> &[PathBuf] {
        &self.read
    }

    /// The file that was read last, and the part of it that was written last: one batch, or one record that is longer.
    /// `None` if it has no records. Known once [`LogReader::next_record`] has said `None`.
    pub(crate) fn last_batch(&self) -> Option<(&Path, Range<u64>)> {
        let path = self.read.last().filter(|_| self.data_end > HEADER as u64)?;
        let start = self.data_end.saturating_sub(LONGEST_BATCH).min(self.last_record);
        Some((path, start..self.data_end))
    }

    /// Of the newest file. Known once [`LogReader::next_record`] has said `None`.
    pub fn torn_tail(&self) -> Option<&TornTail> {
        self.torn.as_ref()
    }

    /// Of files so far that another one goes on behind, as Java leaves them.
    pub fn torn_before(&self) -> &[TornTail] {
        &self.torn_before
    }

    /// The newest files, as far as no record was ever written to them: a crash at their creation.
    pub fn void_files(&self) -> &[PathBuf] {
        &self.void
    }

    /// Records so far that stepped back. A repeated zxid is none: Java logs failures of malformed requests so.
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
        // Name and header tell what came before the first record, even if that record is torn.
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

    /// Whole records of another file: they were in these blocks before, and a disk that did not do what it was told
    /// lost what came over them.
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
        let may_be_torn = matches!(end, FileEnd::Unwritten | FileEnd::CutOff | FileEnd::NoEndByte);
        let verdict = match end {
            _ if offset < self.synced => Verdict::Corrupt { reason: lost_after_sync(end, self.synced) },
            FileEnd::EndOfFile => Verdict::Clean,
            _ if is_newest || may_be_torn => tail::judge(file, end, self.last)?,
            _ => Verdict::Corrupt { reason: end.reason() },
        };
        let reason = match verdict {
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

/// Takes the newest files off the list as long as they hold nothing, and never did.
fn split_void(disk: &dyn Disk, files: &mut Vec<LogFile>, mark: Option<SyncedMark>) -> Result<Vec<PathBuf>> {
    let mut void = Vec::new();
    while let Some(newest) = files.last() {
        let mut file = LogFileReader::open(disk, &newest.path)?;
        if synced_of(mark, &file, newest.first)? > 0 || !tail::is_void(&mut file)? {
            break;
        }
        void.extend(files.pop().map(|file| file.path));
    }
    Ok(void)
}

/// A file covers everything up to the next one's name. A newest file without a whole record does not count: it will be
/// removed, and the next start must not find more to read than this one.
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

/// Whether `next` can come right after `last`: within an epoch the count has no holes, and a new epoch starts
/// its count at 1 (at 0 where a full count overflowed). How far an old epoch went only a file's header knows.
fn follows(last: Zxid, next: Zxid) -> bool {
    if next.epoch() > last.epoch() { next.counter() <= 1 } else { next <= last.next() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_have_no_holes_within_an_epoch() {
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
