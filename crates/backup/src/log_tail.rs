//! Reads a server's log while it grows, and notices when the server takes transactions back or removes files.

use crate::error::{FileContext, Result};
use ostler_proto::id::Zxid;
use ostler_storage::{
    disk::{Disk, FileIdentity, OsDisk},
    names::{LogFile, log_files},
    snapshot::find_snapshots,
    txnlog::{Advance, FileEnd, LogFileReader},
};
use std::{
    io,
    path::{Path, PathBuf},
};

/// The place in a server's log up to which it was read.
#[derive(Debug)]
pub(crate) struct LogTail {
    logs: PathBuf,
    snapshots: PathBuf,
    place: Option<Place>,
    /// The last transaction that was read, or the one after which the reading began.
    last: Zxid,
}

/// A place in a log file.
#[derive(Debug, Clone)]
struct Place {
    file: LogFile,
    identity: FileIdentity,
    /// The start of the next record.
    offset: u64,
    /// The last record that was read from the file: its start and its first bytes, with the checksum.
    last_record: Option<(u64, Prefix)>,
}

/// Checksum and length in front of a record.
type Prefix = [u8; 12];

/// The result of [`LogTail::read`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TailState {
    /// All that is there, or all up to the limit, was read.
    AtEnd,
    /// The log has no whole record here although bytes follow, in words. They may be written just now.
    Unreadable(String),
    /// The log does not go on where it was read: the server took transactions back, or removed files, or a leader's tree
    /// took the place of records. A new base is needed.
    Broken(String),
}

impl LogTail {
    /// A reader of the records after `last`.
    pub(crate) fn after(logs: &Path, snapshots: &Path, last: Zxid) -> LogTail {
        LogTail { logs: logs.to_path_buf(), snapshots: snapshots.to_path_buf(), place: None, last }
    }

    /// Goes to the place after the last record, so that it is noticed if the server takes records back from now on.
    pub(crate) fn find_place(&mut self) -> Result<()> {
        self.read(Zxid::ZERO, &mut |_, _| Ok(true)).map(|_| ())
    }

    /// The last transaction that was read.
    pub(crate) fn last(&self) -> Zxid {
        self.last
    }

    /// Passes the records up to `limit` that are new to `take`, in order, until it returns false.
    pub(crate) fn read(
        &mut self,
        limit: Zxid,
        take: &mut dyn FnMut(Zxid, &[u8]) -> Result<bool>,
    ) -> Result<TailState> {
        loop {
            // The files are listed before the end of one is read: a server ends a file before it begins the next.
            let files = log_files(&OsDisk, &self.logs)?;
            let place = match self.place.take() {
                Some(place) => place,
                None => match self.begin(&files)? {
                    Ok(Some(place)) => place,
                    Ok(None) => return Ok(TailState::AtEnd),
                    Err(reason) => return Ok(TailState::Broken(reason)),
                },
            };
            let next = files.iter().find(|file| file.first > place.file.first).cloned();
            match self.read_file(place, limit, take)? {
                FileState::Broken(reason) => return Ok(TailState::Broken(reason)),
                FileState::Gone => {
                    // A purge may have removed a file that was read to its end.
                    let next = files.iter().find(|file| file.first == self.last.next()).cloned();
                    let opened = match next {
                        Some(next) => self.open(next)?.is_none(),
                        None => false,
                    };
                    if !opened {
                        let reason =
                            format!("after {}: the log file was removed, cut or replaced", self.last);
                        return Ok(TailState::Broken(reason));
                    }
                }
                FileState::Stopped => return Ok(TailState::AtEnd),
                FileState::End(end) => match next {
                    Some(_) if !is_end_of_writing(end) => {
                        return Ok(TailState::Broken(format!("before {:?}: {}", self.last, end.reason())));
                    }
                    Some(next) => {
                        if let Some(reason) = self.open(next)? {
                            return Ok(TailState::Broken(reason));
                        }
                    }
                    None if matches!(end, FileEnd::EndOfFile | FileEnd::Unwritten) => {
                        return Ok(TailState::AtEnd);
                    }
                    None => return Ok(TailState::Unreadable(end.reason())),
                },
            }
        }
    }

    /// The file with the first record after `last`. The error is the reason why the log does not reach back to `last`.
    fn begin(&mut self, files: &[LogFile]) -> Result<std::result::Result<Option<Place>, String>> {
        let start = files.iter().rposition(|file| file.first <= self.last.next());
        let file = match (start, files.first()) {
            (Some(at), _) => &files[at],
            (None, None) => return Ok(Ok(None)),
            (None, Some(first)) if follows(self.last, first.first) => first,
            (None, Some(first)) => {
                return Ok(Err(format!("after {} the log begins with {}", self.last, first.first)));
            }
        };
        match self.open(file.clone())? {
            Some(reason) => Ok(Err(reason)),
            None => Ok(Ok(self.place.take())),
        }
    }

    /// Goes to the start of a file. Returns the reason if that is not possible.
    fn open(&mut self, file: LogFile) -> Result<Option<String>> {
        let opened = match OsDisk.open(&file.path) {
            Ok(opened) => opened,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Some(format!("{} was removed", file.path.display())));
            }
            Err(error) => return Err(error).during("open", &file.path),
        };
        let identity = opened.identity().during("look at", &file.path)?;
        let mut reader = LogFileReader::over(opened, &file.path)?;
        let before = reader.before()?.unwrap_or(Zxid::ZERO);
        if before > self.last {
            return Ok(Some(format!("{} follows {before}, not {}", file.path.display(), self.last)));
        }
        // Without a whole header the file was just made, and its offset is 0.
        self.place = Some(Place { file, identity, offset: reader.offset(), last_record: None });
        Ok(None)
    }

    fn read_file(
        &mut self,
        mut place: Place,
        limit: Zxid,
        take: &mut dyn FnMut(Zxid, &[u8]) -> Result<bool>,
    ) -> Result<FileState> {
        let Some(mut reader) = reopen(&place)? else { return Ok(FileState::Gone) };
        let state = loop {
            let zxid = match reader.advance()? {
                Advance::Record(zxid) => zxid,
                Advance::End(end) => break FileState::End(end),
            };
            // Records that were read before are passed over beyond the limit, too, so that the place is behind them: otherwise it would
            // not be noticed when the server takes them back.
            if zxid > limit.max(self.last) {
                break FileState::Stopped;
            }
            let Some(record) = reader.record() else { break FileState::Stopped };
            // Records up to `last` are in the file only before the first one after it. Java repeats a zxid for the
            // failure of a malformed request.
            if zxid > self.last {
                if let Some(reason) = self.break_before(zxid)? {
                    break FileState::Broken(reason);
                }
                self.last = zxid;
                let goes_on = take(zxid, record.bytes)?;
                place.read_through(&reader)?;
                if !goes_on {
                    break FileState::Stopped;
                }
            } else {
                place.read_through(&reader)?;
            }
        };
        // A purge gives a file another name before it clears it. Bytes that were read after that do not count.
        if matches!(state, FileState::End(_)) && reopen(&place)?.is_none() {
            return Ok(FileState::Gone);
        }
        self.place = Some(place);
        Ok(state)
    }

    /// The reason why `next` does not come right after the last record.
    fn break_before(&self, next: Zxid) -> Result<Option<String>> {
        if next == self.last.next() {
            return Ok(None);
        }
        if !follows(self.last, next) {
            return Ok(Some(format!("after {} the log goes on with {next}", self.last)));
        }
        // A new epoch. If a leader sent its tree in place of records, a snapshot is between the two: a Java log does not
        // show it.
        let between = find_snapshots(&OsDisk, &self.snapshots)?
            .into_iter()
            .find(|file| file.problem.is_none() && file.zxid > self.last && file.zxid < next);
        Ok(between.map(|file| format!("a leader's tree at {} came in place of records", file.zxid)))
    }
}

enum FileState {
    /// No further whole record.
    End(FileEnd),
    /// The limit was reached, or the taker stopped.
    Stopped,
    /// The file, or what was read of it, is not there any more.
    Gone,
    Broken(String),
}

impl Place {
    /// Notes that the reader's record was read.
    fn read_through(&mut self, reader: &LogFileReader) -> Result<()> {
        if let Some(record) = reader.record() {
            // A record starts with its checksum and length.
            let length = (record.bytes.len() as u32).to_be_bytes();
            let sum = u64::from(simd_adler32::adler32(&record.bytes)).to_be_bytes();
            let mut prefix = Prefix::default();
            prefix[..8].copy_from_slice(&sum);
            prefix[8..].copy_from_slice(&length);
            self.last_record = Some((record.offset, prefix));
        }
        self.offset = reader.offset();
        Ok(())
    }
}

/// Opens a file where it was left. `None` if the file, or what was read of it, is not there any more.
fn reopen(place: &Place) -> Result<Option<LogFileReader>> {
    let path = &place.file.path;
    let file = match OsDisk.open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).during("open", path),
    };
    let identity = file.identity().during("look at", path)?;
    if identity != place.identity || file.size().during("read the size of", path)? < place.offset {
        return Ok(None);
    }
    if let Some((offset, expected)) = place.last_record {
        let mut prefix = Prefix::default();
        let got = file.read_at(&mut prefix, offset).during("read", path)?;
        if got < prefix.len() || prefix != expected {
            return Ok(None);
        }
    }
    Ok(Some(match place.offset {
        0 => LogFileReader::over(file, path)?,
        offset => LogFileReader::resume(file, path, offset)?,
    }))
}

/// Whether a log of before can end in this way: Java leaves the torn tail of a crash.
fn is_end_of_writing(end: FileEnd) -> bool {
    !matches!(end, FileEnd::WrongChecksum | FileEnd::BadLength(_) | FileEnd::NoTransaction)
}

/// Whether `next` can come right after `last`: within an epoch no number is left out, and an epoch starts at 1, or at 0
/// after an overflow of the counter.
pub(crate) fn follows(last: Zxid, next: Zxid) -> bool {
    if next.epoch() > last.epoch() { next.counter() <= 1 } else { next <= last.next() }
}

/// The last transaction up to `through` in the log, with its record.
pub(crate) fn last_up_to(logs: &Path, through: Zxid) -> Result<Option<(Zxid, Vec<u8>)>> {
    for file in log_files(&OsDisk, logs)?.into_iter().rev().filter(|file| file.first <= through) {
        let mut reader = match LogFileReader::open(&OsDisk, &file.path) {
            Ok(reader) => reader,
            // Removed by a purge.
            Err(_) if !file.path.exists() => continue,
            Err(error) => return Err(error.into()),
        };
        let mut found = None;
        while let Advance::Record(zxid) = reader.advance()? {
            if zxid > through {
                break;
            }
            found = reader.record().map(|record| (zxid, record.bytes.to_vec()));
        }
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}
