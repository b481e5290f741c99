//! Appends records to the log, in batches with one write and one sync.

use super::{
    BATCH_LIMIT, END_BYTE, FRAMING, HEADER, MAGIC, PREFIX, Truncated,
    file::{Advance, LogFileReader},
    spare::SpareLog,
    synced::{MarkFile, SyncedMark},
    tail::{self, Verdict},
    truncate_after,
};
use crate::{
    disk::{Disk, DiskFile, FileIdentity, sync_names},
    error::{IoContext, Result, StorageError},
    names::log_name,
};
use ostler_planted::{self as planted, Bug};
use ostler_proto::id::Zxid;
use simd_adler32::adler32;
use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

/// The number of bytes left in a file at which more space is reserved, as in upstream.
const MARGIN: u64 = 4096;
/// The zeros that are written ahead of the records into reserved space. A sync of bytes that were written before has
/// only those bytes to make durable. In space that is only reserved, the file system must also note that it is in use
/// now, and this waits for other writes, such as a snapshot.
static ZEROS: [u8; 256 << 10] = [0; 256 << 10];
/// The capacity of the buffer that is kept after a giant batch.
const KEPT_BUFFER: usize = 2 * BATCH_LIMIT;

/// The settings of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogOptions {
    /// The number of bytes by which a file is made longer when it is full (`preAllocSize`). With 0 no space is
    /// reserved.
    pub prealloc_bytes: u64,
    /// The size of a file after which a new one is started (`txnLogSizeLimitInKb`). `None` for no limit.
    pub size_limit_bytes: Option<u64>,
    /// Whether a commit waits for the disk (`forceSync`).
    pub sync: bool,
}

impl Default for LogOptions {
    fn default() -> Self {
        LogOptions { prealloc_bytes: 64 << 20, size_limit_bytes: None, sync: true }
    }
}

/// The writer of the log. Each process starts a new file with its first record.
///
/// After any error the log is poisoned and takes no more records. In particular a failed sync is not repeated: the
/// system may have dropped the pages, and would then report success for data that is not on disk.
pub struct TxnLog {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    options: LogOptions,
    spare: Arc<SpareLog>,
    current: Option<CurrentFile>,
    marks: Option<MarkFile>,
    /// The mark could not be written, and is not written any more.
    unmarked: bool,
    /// Framed records that are not written yet.
    buffer: Vec<u8>,
    last: Option<Zxid>,
    /// The last transaction on disk before the first record that is appended; zero if it is not known.
    base: Zxid,
    roll: bool,
    since_roll: u64,
    poisoned: bool,
}

struct CurrentFile {
    path: PathBuf,
    first: Zxid,
    file: Box<dyn DiskFile>,
    /// The identity of the file, which does not change while it is open. Read with the first mark.
    identity: Option<FileIdentity>,
    /// The file is synced up to this byte.
    synced: u64,
    /// The mark says that the file is synced up to this byte.
    noted: u64,
    /// The offset of the next write.
    position: u64,
    /// The size of the file, with the reserved space.
    size: u64,
    /// The bytes up to here were written, as records or as zeros ahead of them.
    filled: u64,
    /// Whether the name of the file is durable.
    named: bool,
}

impl TxnLog {
    /// A writer of logs in `dir`. Nothing is written before the first commit.
    pub fn open(disk: Arc<dyn Disk>, dir: PathBuf, options: LogOptions) -> TxnLog {
        TxnLog {
            disk,
            spare: Arc::new(SpareLog::new(dir.clone())),
            dir,
            options,
            current: None,
            marks: None,
            unmarked: false,
            buffer: Vec::new(),
            last: None,
            base: Zxid::ZERO,
            roll: false,
            since_roll: 0,
            poisoned: false,
        }
    }

    /// The place of the spare log. The purge puts an old file there for this writer.
    pub fn spare(&self) -> Arc<SpareLog> {
        self.spare.clone()
    }

    /// Sets the zxid up to which all transactions are on disk, in logs or in a snapshot. The header of the next file
    /// says that the file follows it. To be called before the first record, and after a tree has taken the place of
    /// records.
    pub fn continue_after(&mut self, zxid: Zxid) {
        self.base = zxid;
        self.last = None;
    }

    /// Adds a record to the batch. It is durable after the next [`TxnLog::commit`].
    pub fn append(&mut self, zxid: Zxid, record: &[u8]) -> Result<()> {
        self.guarded(|log| log.append_unguarded(zxid, record))
    }

    /// Writes the appended records, with one write and one sync.
    pub fn commit(&mut self) -> Result<()> {
        self.guarded(|log| {
            log.flush()?;
            if let (Some(limit), Some(current)) = (log.options.size_limit_bytes, &log.current)
                && current.position > limit
            {
                log.roll = true;
            }
            Ok(())
        })
    }

    /// Writes the mark that tells a later start how far the log is synced. No reply needs to wait for it.
    pub fn note_synced(&mut self) -> Result<()> {
        self.guarded(TxnLog::note_synced_unguarded)
    }

    /// Lets the next record start a new file.
    pub fn roll(&mut self) {
        self.roll = true;
        self.since_roll = 0;
    }

    /// The number of bytes written since the last [`TxnLog::roll`]. A new file because of the size limit does not
    /// count.
    pub fn bytes_since_roll(&self) -> u64 {
        self.since_roll
    }

    /// The path of the file that is being written. `None` before the first record.
    pub fn file(&self) -> Option<&Path> {
        self.current.as_ref().map(|current| current.path.as_path())
    }

    /// Removes all transactions above `zxid` from the log, durably. The next record starts a new file.
    pub fn truncate_after(&mut self, zxid: Zxid) -> Result<Truncated> {
        self.guarded(|log| {
            log.flush()?;
            (log.current, log.marks) = (None, None);
            let cut = truncate_after(&*log.disk, &log.dir, zxid)?;
            log.continue_after(cut.last);
            Ok(cut)
        })
    }

    /// Runs `work`. After an error the log is poisoned, and this returns an error without running `work`.
    fn guarded<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.poisoned {
            return Err(StorageError::Poisoned { dir: self.dir.clone() });
        }
        let done = work(self);
        if planted::is(Bug::DiskErrorIgnored) {
            self.buffer.clear();
            return done;
        }
        self.poisoned = done.is_err();
        done
    }

    fn append_unguarded(&mut self, zxid: Zxid, record: &[u8]) -> Result<()> {
        // A repeated zxid (the failure of a malformed request, from a Java leader) stays in the file of the first
        // record with this zxid: a new file could have the same name as that file.
        if self.roll && self.last.is_none_or(|last| zxid > last) {
            self.flush()?;
            self.note_synced_unguarded()?;
            self.current = None;
            self.roll = false;
        }
        if self.current.is_none() {
            self.current = Some(self.start_file(zxid)?);
            self.buffer.extend_from_slice(&MAGIC);
            let before = self.last.unwrap_or(self.base).min(zxid.previous());
            self.buffer.extend_from_slice(&before.0.to_be_bytes());
        } else if self.buffer.len() + record.len() + FRAMING > BATCH_LIMIT {
            self.flush()?;
        }
        let before = self.buffer.len();
        frame(record, &mut self.buffer);
        if planted::is(Bug::AppendOutOfOrder) && before > HEADER {
            let start = if self.buffer.starts_with(&MAGIC) { HEADER } else { 0 };
            self.buffer[start..].rotate_left(before - start);
        }
        self.last = Some(self.last.map_or(zxid, |last| last.max(zxid)));
        Ok(())
    }

    fn start_file(&self, zxid: Zxid) -> Result<CurrentFile> {
        let path = self.dir.join(log_name(zxid));
        if self.disk.exists(&path).during("look for", &path)? && holds_data(&*self.disk, &path)? {
            return Err(StorageError::LogExists { file: path });
        }
        if self.options.prealloc_bytes > 0
            && let Some(file) = self.spare.take(&*self.disk, &path)?
        {
            let size = file.size().during("read the size of", &path)?;
            return Ok(CurrentFile::new(path, zxid, file, size));
        }
        let file = self.disk.create(&path).during("create", &path)?;
        Ok(CurrentFile::new(path, zxid, file, 0))
    }

    fn note_synced_unguarded(&mut self) -> Result<()> {
        let Some(current) = &mut self.current else { return Ok(()) };
        if current.noted == current.synced || self.unmarked {
            return Ok(());
        }
        let file = current.identity()?;
        let mark = SyncedMark { first: current.first, file, through: current.synced };
        current.noted = current.synced;
        let marks = match self.marks.take() {
            Some(marks) => Ok(marks),
            None => MarkFile::open(&*self.disk, &self.dir),
        };
        let noted = marks.and_then(|mut marks| marks.note(&mark).map(|()| marks));
        match noted {
            Ok(marks) => self.marks = Some(marks),
            // An old mark is a lower bound, so it is still right. An error of the log itself shows with the next batch.
            Err(error) => {
                self.unmarked = true;
                tracing::warn!(%error, "the file log-synced cannot be written, so it is not updated any more");
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        self.note_synced_unguarded()?;
        let Some(current) = &mut self.current else { return Ok(()) };
        let length = self.buffer.len() as u64;
        current.reserve(length, self.options.prealloc_bytes)?;
        current.write(&self.buffer)?;
        if self.options.sync && !planted::is(Bug::AckBeforeSync) {
            current.file.sync_data().during("sync", &current.path)?;
            if !current.named {
                sync_names(&*self.disk, &self.dir)?;
                current.named = true;
            }
            current.synced = current.position;
        }
        self.since_roll += length;
        self.buffer.clear();
        self.buffer.shrink_to(KEPT_BUFFER);
        Ok(())
    }
}

impl CurrentFile {
    fn new(path: PathBuf, first: Zxid, file: Box<dyn DiskFile>, size: u64) -> CurrentFile {
        CurrentFile {
            path,
            first,
            file,
            identity: None,
            synced: 0,
            noted: 0,
            position: 0,
            size,
            filled: 0,
            named: false,
        }
    }

    fn identity(&mut self) -> Result<FileIdentity> {
        let identity = match self.identity {
            Some(identity) => identity,
            None => self.file.identity().during("look at", &self.path)?,
        };
        self.identity = Some(identity);
        Ok(identity)
    }

    fn reserve(&mut self, length: u64, step: u64) -> Result<()> {
        if step == 0 {
            return Ok(());
        }
        // In upstream the header of a new file is already written at this point.
        let position = self.position.max(HEADER as u64);
        let mut size = padded_size(position, self.size.max(HEADER as u64), step);
        if self.position + length > size {
            size = padded_size(self.position + length, size, step);
        }
        if size > self.size {
            self.file.allocate(size).during("reserve space for", &self.path)?;
            self.size = size;
        }
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.write_all_at(bytes, self.position).during("write", &self.path)?;
        self.position += bytes.len() as u64;
        self.size = self.size.max(self.position);
        self.fill_ahead()
    }

    fn fill_ahead(&mut self) -> Result<()> {
        if self.position <= self.filled {
            return Ok(());
        }
        let ahead = (self.size - self.position).min(ZEROS.len() as u64);
        if ahead == 0 {
            return Ok(());
        }
        self.file.write_all_at(&ZEROS[..ahead as usize], self.position).during("write", &self.path)?;
        self.filled = self.position + ahead;
        Ok(())
    }
}

/// The size that upstream gives a file before it writes a record at `position`.
fn padded_size(position: u64, size: u64, step: u64) -> u64 {
    if step == 0 || position + MARGIN < size {
        size
    } else if position > size {
        (position + step) / step * step
    } else {
        size + step
    }
}

pub(super) fn frame(record: &[u8], out: &mut Vec<u8>) {
    assert!(!record.is_empty(), "a record of length 0 would read as the end of the log");
    let length = i32::try_from(record.len()).expect("a record is no longer than a frame, which has 31 bits");
    out.reserve(PREFIX + record.len() + 1);
    out.extend_from_slice(&u64::from(adler32(&record)).to_be_bytes());
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(record);
    out.push(END_BYTE);
}

/// Whether a file has a record, or damage that may have been one.
fn holds_data(disk: &dyn Disk, path: &Path) -> Result<bool> {
    let mut file = LogFileReader::open(disk, path)?;
    match file.advance()? {
        Advance::Record(_) => Ok(true),
        Advance::End(end) => Ok(matches!(tail::judge(&file, end, Zxid::ZERO)?, Verdict::Corrupt { .. })),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_grow_by_the_same_steps_as_in_upstream() {
        let step = 64 << 10;
        assert_eq!(padded_size(16, 16, step), 65552);
        assert_eq!(padded_size(61_000, 65552, step), 65552);
        assert_eq!(padded_size(61_455, 65552, step), 65552, "4097 bytes are left");
        assert_eq!(padded_size(61_456, 65552, step), 65552 + step);
        assert_eq!(padded_size(61_457, 65552, step), 65552 + step);
        assert_eq!(padded_size(70_000, 65552, step), 131_072);
        assert_eq!(padded_size(70_000, 65552, 0), 65552);
    }
}
