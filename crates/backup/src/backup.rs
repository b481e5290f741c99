//! Copies a server's files into a store: a base, then the log as it grows.

use crate::{
    base,
    committed::{self, Committed, EpochBorder},
    continuation::{connection, earlier, take_base},
    error::{BackupError, FileContext, Result},
    log_tail::{LogTail, TailState},
    part::{Confirmation, FORMAT, LastRecord, Part, Segment, Source},
    store::{Store, stored},
};
use ostler_proto::{id::Zxid, jute::Reader, txn::TxnHeader};
use ostler_storage::{
    StorageError,
    disk::OsDisk,
    epochs::{EpochFile, read_epoch, read_unfinished_epoch},
    folders::DataFolders,
    snapshot::find_snapshots,
    txnlog::LogImage,
};
use std::{
    fs, io,
    path::Path,
    time::{SystemTime, UNIX_EPOCH},
};

/// How often a base is tried while the server removes the snapshots under the reader.
const BASES_TRIED: u32 = 10;
/// The number of new bases in one step, after which a log that breaks off again and again is an error.
const BREAKS_IN_A_STEP: u32 = 3;
/// How often in a row another process may begin a part after the one of this process. A single backup beside one that
/// goes on does that once or twice; two that go on do it at every step.
const OVERTAKEN: u32 = 3;

/// The server to copy, and how.
#[derive(Debug, Clone)]
pub struct BackupOptions {
    /// The server's folders.
    pub folders: DataFolders,
    /// The client address at which the server says how far its history is committed. With `None` everything in the log
    /// is copied, and the manifest says that it is not known to be committed.
    pub server: Option<String>,
    /// `extendedTypesEnabled` of the server; `None` if it is not known.
    pub extended_types: Option<bool>,
    /// The size of a segment in bytes after which the next one begins.
    pub segment_bytes: usize,
    /// A new base is taken when the log after the base has this number of bytes, and twice the size of the base.
    pub rebase_bytes: u64,
}

impl BackupOptions {
    /// The options for a server, with segments of 8 MiB, and a new base after at least 256 MiB of log.
    pub fn new(folders: DataFolders) -> BackupOptions {
        BackupOptions {
            folders,
            server: None,
            extended_types: None,
            segment_bytes: 8 << 20,
            rebase_bytes: 256 << 20,
        }
    }
}

/// The copies that a step has made.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StepReport {
    /// The number of new records.
    pub records: u64,
    /// Unusual things that the operator should see.
    pub notes: Vec<String>,
    /// The reason why nothing can be copied now. The next step tries again.
    pub waits: Option<String>,
}

/// A backup that is being written.
#[derive(Debug)]
pub struct Backup<'s> {
    store: &'s Store,
    options: BackupOptions,
    part: Part,
    tail: LogTail,
    /// The records that are not stored yet.
    pending: Pending,
    /// The bytes of log since the base.
    bytes_since_base: u64,
    border: EpochBorder,
    /// How often in a row another process has begun a part meanwhile.
    overtaken: u32,
    changed: bool,
}

#[derive(Debug)]
struct Pending {
    image: LogImage,
    first: Option<Zxid>,
    last: Zxid,
    records: u64,
    latest_ms: i64,
    last_sha256: String,
}

impl Pending {
    fn after(last: Zxid) -> Pending {
        let image = LogImage::after(last);
        Pending { image, first: None, last, records: 0, latest_ms: i64::MIN, last_sha256: String::new() }
    }

    fn push(&mut self, zxid: Zxid, record: &[u8]) {
        self.image.push(record);
        self.first.get_or_insert(zxid);
        self.last = zxid;
        self.records += 1;
        let time_ms = TxnHeader::read(&mut Reader::new(record)).map_or(i64::MIN, |header| header.time_ms);
        self.latest_ms = self.latest_ms.max(time_ms);
    }
}

impl<'s> Backup<'s> {
    /// Begins a part: takes the newest snapshot as its base, and finds the place in the log where the backup ends.
    ///
    /// # Errors
    /// There is no snapshot that can be read; the folder's history is not that of the backup; the server named in the
    /// options does not serve; files or store fail.
    pub fn begin(store: &'s Store, options: BackupOptions) -> Result<Backup<'s>> {
        Backup::begin_after(store, options, false)
    }

    fn begin_after(store: &'s Store, options: BackupOptions, broke_off: bool) -> Result<Backup<'s>> {
        let earlier = earlier(store)?;
        let folders = options.folders.clone();
        let number = earlier.as_ref().map_or(1, |earlier| earlier.number + 1);
        for _ in 0..BASES_TRIED {
            let found = base::find(&folders.snapshots)?;
            let limit = limit(&options)?;
            if limit.is_some_and(|limit| found.file.zxid > limit) {
                let reason =
                    format!("it has a snapshot of {}, and has not applied that yet", found.file.zxid);
                return Err(not_serving(&options, reason));
            }
            let continues_after = match &earlier {
                Some(earlier) => connection(store, &folders, (earlier, broke_off), found.file.zxid)?,
                None => None,
            };
            let known = earlier.as_ref().map(|earlier| &earlier.base);
            let Some(base) = take_base(store, number, &found, &folders.logs, known)? else { continue };
            let (mut confirmed, mut by) =
                earlier.as_ref().map_or((Zxid::ZERO, Confirmation::Nothing), |earlier| earlier.confirmed);
            if limit.is_some() {
                (confirmed, by) = (confirmed.max(base.zxid), Confirmation::Server);
            }
            let start = continues_after.unwrap_or(base.zxid);
            let known_border = earlier.as_ref().filter(|earlier| start == earlier.last);
            let border = EpochBorder::new(known_border.and_then(|earlier| earlier.before_epoch));
            let part = Part {
                format: FORMAT,
                part: number,
                writer: random_name()?,
                revision: 0,
                source: source(&options)?,
                continues_after,
                confirmed_through: confirmed,
                confirmed_by: by,
                highest_epoch: earlier.as_ref().map_or(0, |earlier| earlier.highest_epoch),
                last_record: earlier.as_ref().and_then(|earlier| earlier.last_record.clone()),
                segments: Vec::new(),
                written_ms: now_ms(),
                sha256: String::new(),
                base,
            };
            let mut tail = LogTail::after(&folders.logs, &folders.snapshots, start);
            tail.find_place()?;
            let pending = Pending::after(start);
            let (bytes_since_base, overtaken, changed) = (0, 0, false);
            let mut backup =
                Backup { store, options, part, tail, pending, bytes_since_base, border, overtaken, changed };
            backup.note_epochs()?;
            backup.note_standalone()?;
            store.put_new(&Part::name(number), backup.part.encode())?;
            return Ok(backup);
        }
        let details = "; the server removed each of them while it was read".to_owned();
        Err(BackupError::NoBase { folder: folders.snapshots, details })
    }

    /// The manifest of the part that is being written.
    pub fn part(&self) -> &Part {
        &self.part
    }

    /// The last transaction that the backup has.
    pub fn last(&self) -> Zxid {
        self.tail.last().max(self.part.base.zxid)
    }

    /// Copies what is new in the log, and stores it.
    ///
    /// # Errors
    /// The log cannot be read on, and no newer snapshot helps; another process writes into the backup; files or store
    /// fail. Everything that was stored before is kept.
    pub fn step(&mut self) -> Result<StepReport> {
        let mut report = StepReport::default();
        let limit = match limit(&self.options) {
            Ok(limit) => limit,
            Err(error @ BackupError::NotServing { .. }) => {
                report.waits = Some(error.to_string());
                return Ok(report);
            }
            Err(error) => return Err(error),
        };
        let (mut breaks, overtaken) = (0, self.overtaken);
        loop {
            let state = self.copy(limit, &mut report)?;
            if self.go_on_after_another(&mut report)? {
                continue;
            }
            let reason = match state {
                TailState::AtEnd => break,
                TailState::Unreadable(reason) => {
                    report.waits = Some(format!("after {}: {reason}", self.tail.last()));
                    break;
                }
                TailState::Broken(reason) => reason,
            };
            breaks += 1;
            if breaks > BREAKS_IN_A_STEP {
                let (folder, last) = (self.options.folders.logs.clone(), self.last());
                return Err(BackupError::Stuck { folder, last, reason });
            }
            report.notes.push(format!("the log breaks off: {reason}; a new base is taken"));
            self.begin_anew(true)?;
        }
        if self.overtaken == overtaken {
            self.overtaken = 0;
        }
        let due = self.bytes_since_base > self.options.rebase_bytes.max(2 * self.part.base.bytes);
        if due && newest_snapshot(&self.options.folders.snapshots)? > self.part.base.zxid {
            self.begin_anew(false)?;
        }
        Ok(report)
    }

    /// Begins a part after one that another process has begun meanwhile: it does not know what this process writes from
    /// then on. Returns whether that was so.
    fn go_on_after_another(&mut self, report: &mut StepReport) -> Result<bool> {
        let next = Part::name(self.part.part + 1);
        if !self.store.has(&next)? {
            return Ok(false);
        }
        let overtaken = self.overtaken + 1;
        if overtaken > OVERTAKEN {
            return Err(self.store.another_writer(&next));
        }
        report.notes.push(format!("another process has begun {next}; this one goes on after it"));
        match self.begin_anew(false) {
            // The other one was faster once more.
            Ok(()) | Err(BackupError::AnotherWriter { .. }) => self.overtaken = overtaken,
            Err(error) => return Err(error),
        }
        Ok(true)
    }

    /// Copies up to the limit, or to where the log breaks off, and replaces the manifest.
    fn copy(&mut self, limit: Option<Zxid>, report: &mut StepReport) -> Result<TailState> {
        let state = loop {
            let border = &mut self.border;
            let (pending, largest) = (&mut self.pending, self.options.segment_bytes);
            let (mut copied, mut confirmed) = (0, None);
            let state = self.tail.read(limit.unwrap_or(Zxid(u64::MAX)), &mut |zxid, record| {
                confirmed = border.pass(pending.last, zxid).or(confirmed);
                pending.push(zxid, record);
                pending.last_sha256 = stored(record).sha256;
                copied += 1;
                Ok(pending.image.size() < largest)
            })?;
            report.records += copied;
            if let Some(confirmed) = confirmed {
                self.confirm(confirmed, Confirmation::LaterEpoch);
            }
            let is_full = self.pending.image.size() >= largest;
            self.flush()?;
            if !is_full || state != TailState::AtEnd {
                break state;
            }
        };
        self.note_epochs()?;
        // The state of the server now does not come after a log that breaks off.
        if !matches!(state, TailState::Broken(_)) {
            if let Some(limit) = limit
                && self.leads_to(limit)?
            {
                self.confirm(limit.min(self.last()), Confirmation::Server);
            }
            self.note_standalone()?;
        }
        self.replace_manifest()?;
        Ok(state)
    }

    /// Stores the pending records as a segment.
    fn flush(&mut self) -> Result<()> {
        let Some(first) = self.pending.first else { return Ok(()) };
        let next = Pending::after(self.pending.last);
        let pending = std::mem::replace(&mut self.pending, next);
        let object = self.part.object(&ostler_storage::names::log_name(first));
        let stored = self.store.put(&object, pending.image.into_bytes())?;
        self.bytes_since_base += stored.bytes;
        self.part.segments.push(Segment {
            object,
            first,
            last: pending.last,
            records: pending.records,
            latest_ms: pending.latest_ms,
            bytes: stored.bytes,
            sha256: stored.sha256,
        });
        self.part.last_record = Some(LastRecord { zxid: pending.last, sha256: pending.last_sha256 });
        self.part.highest_epoch = self.part.highest_epoch.max(pending.last.epoch().0);
        self.changed = true;
        Ok(())
    }

    fn confirm(&mut self, through: Zxid, by: Confirmation) {
        if through > self.part.confirmed_through {
            (self.part.confirmed_through, self.part.confirmed_by) = (through, by);
            self.changed = true;
        }
    }

    /// Whether what the server has applied, up to `limit`, has the log that was copied as its history. The leader of an
    /// epoch has all of the epoch. A later leader can have sent its tree in place of the log's end, which then is in a
    /// snapshot before the server serves, and before the log goes on.
    fn leads_to(&self, limit: Zxid) -> Result<bool> {
        let last = self.last();
        Ok(last.epoch() >= limit.epoch() || newest_snapshot(&self.options.folders.snapshots)? <= last)
    }

    fn note_epochs(&mut self) -> Result<()> {
        let dir = &self.options.folders.snapshots;
        let mut highest = self.part.highest_epoch.max(self.part.base.zxid.epoch().0);
        for which in [EpochFile::Accepted, EpochFile::Current] {
            // The unfinished file becomes the other one, so it is read first.
            let unfinished = match read_unfinished_epoch(&OsDisk, dir, which) {
                // A crash can leave it empty, and the server can end it while it is read.
                Err(StorageError::BadEpoch { .. }) => None,
                Err(StorageError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => None,
                read => read?,
            };
            for epoch in [unfinished, read_epoch(&OsDisk, dir, which)?] {
                highest = highest.max(epoch.unwrap_or_default().0);
            }
        }
        self.changed |= highest > self.part.highest_epoch;
        self.part.highest_epoch = highest;
        Ok(())
    }

    /// A standalone server has no epoch files. Everything in its log is committed.
    fn note_standalone(&mut self) -> Result<()> {
        let dir = &self.options.folders.snapshots;
        let current = read_epoch(&OsDisk, dir, EpochFile::Current)?;
        let accepted = read_epoch(&OsDisk, dir, EpochFile::Accepted)?;
        if self.options.server.is_none() && current.is_none() && accepted.is_none() {
            self.confirm(self.last(), Confirmation::Standalone);
        }
        Ok(())
    }

    fn replace_manifest(&mut self) -> Result<()> {
        if !self.changed {
            return Ok(());
        }
        let name = Part::name(self.part.part);
        let there = Part::read(self.store, &name)?;
        if there.writer != self.part.writer || there.revision != self.part.revision {
            return Err(self.store.another_writer(&name));
        }
        self.part.revision += 1;
        self.part.written_ms = now_ms();
        self.store.put(&name, self.part.encode())?;
        self.changed = false;
        Ok(())
    }

    fn begin_anew(&mut self, broke_off: bool) -> Result<()> {
        self.replace_manifest()?;
        *self = Backup::begin_after(self.store, self.options.clone(), broke_off)?;
        Ok(())
    }
}

/// How far the server's history is committed; `None` if no server is named.
fn limit(options: &BackupOptions) -> Result<Option<Zxid>> {
    let Some(server) = &options.server else { return Ok(None) };
    match committed::ask(server) {
        Ok(Committed::Through(zxid)) => Ok(Some(zxid)),
        Ok(Committed::Unknown) => {
            let reason = "it does not serve now, or only in read-only mode, or does not allow the word srvr";
            Err(not_serving(options, reason.to_owned()))
        }
        Err(error) => Err(not_serving(options, error.to_string())),
    }
}

fn not_serving(options: &BackupOptions, reason: String) -> BackupError {
    BackupError::NotServing { server: options.server.clone().unwrap_or_default(), reason }
}

fn source(options: &BackupOptions) -> Result<Source> {
    let folders = &options.folders;
    let myid = folders.data_dir.join("myid");
    let server_id = match fs::read_to_string(&myid) {
        Ok(text) => text.trim().parse().ok(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error).during("read", &myid),
    };
    Ok(Source {
        snapshots: folders.snapshots.display().to_string(),
        logs: folders.logs.display().to_string(),
        server_id,
        extended_types: options.extended_types,
    })
}

/// The zxid of the newest snapshot file.
fn newest_snapshot(dir: &Path) -> Result<Zxid> {
    Ok(find_snapshots(&OsDisk, dir)?.first().map_or(Zxid::ZERO, |newest| newest.zxid))
}

fn random_name() -> Result<String> {
    let random = getrandom::u64().map_err(|error| BackupError::Runtime(error.into()))?;
    Ok(format!("{random:016x}"))
}

pub(crate) fn now_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64)
}
