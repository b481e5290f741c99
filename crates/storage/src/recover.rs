//! Recovery: restores a server's state from the newest snapshot that can be read and the log after it.
//!
//! | snapshots | logs | start |
//! |---|---|---|
//! | one can be read | any | from it and the log after it |
//! | none can be read | some | refused; with `trust_empty` from the whole log |
//! | none, or only bad ones of zxid 0 | none | empty; trusted with `db_autocreate` or an `initialize` file |
//! | some with a higher zxid, none can be read | none | refused |
//!
//! An older snapshot takes the place of a newer bad one in two cases. The log has the last transaction of the bad one.
//! Or the bad one is a leader's tree that was never complete, and no transaction followed: then it is removed.
//!
//! Nothing on disk is changed before everything has been read and applied. Then the rests of a crash are removed: torn
//! tails are cut, and files without content are deleted. The files that were read are synced: if only the process had died, some of their bytes
//! could be in the system's memory alone, and clients will soon see the state.

use crate::{
    disk::{Disk, read_full, sync_names},
    epochs::{EpochFile, read_epoch},
    error::{IoContext, Refusal, Result, StorageError},
    folders::DataFolders,
    names::{UNFINISHED, is_unfinished_snapshot, parse_log_name},
    snapshot::{
        Problem, SnapshotFile, SnapshotSink, SnapshotTrailer, find_snapshots, read_snapshot, spare, unrenamed,
    },
    txnlog::{LogReader, TornTail, ZxidStep, cut_torn_tail, is_whole_file, note_durably, remove},
};
use ostler_proto::id::{Epoch, Zxid};
use std::{
    collections::BTreeSet,
    fmt,
    ops::Range,
    path::{Path, PathBuf},
};

/// The number of bad snapshots after which no older one is tried, as in upstream.
const SNAPSHOTS_TRIED: usize = 100;

/// Takes the state that recovery reads. First a snapshot, if there is one: its parts (see [`SnapshotSink`]), then
/// [`RecoverySink::snapshot_loaded`]. Then the records of the log.
pub trait RecoverySink: SnapshotSink {
    /// The parts so far came from a bad snapshot. The sink returns to the empty state.
    fn reset(&mut self);
    /// The snapshot is complete. A digest without a zxid is not passed on. If the sink refuses, the snapshot is bad.
    fn snapshot_loaded(&mut self, zxid: Zxid, trailer: SnapshotTrailer) -> std::result::Result<(), Refusal>;
    /// The next record of the log. If the sink refuses, the recovery ends with an error.
    fn record(&mut self, zxid: Zxid, record: &[u8]) -> std::result::Result<(), Refusal>;
}

/// The settings of a recovery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecoverOptions {
    /// Whether logs without a snapshot are replayed from their start (`snapshot.trust.empty`).
    pub trust_empty: bool,
    /// Whether a server without any files may start with a trusted empty tree (`db.autocreate`).
    pub db_autocreate: bool,
    /// Whether this process uses the folders already. Then unfinished snapshots stay, since they are being written.
    pub in_use: bool,
    /// The highest zxid of a snapshot that is read. After a TRUNC, later snapshots have transactions that were taken
    /// back.
    pub through: Zxid,
}

impl Default for RecoverOptions {
    fn default() -> Self {
        RecoverOptions { trust_empty: false, db_autocreate: true, in_use: false, through: Zxid(u64::MAX) }
    }
}

/// The files from which the state was restored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The snapshot at this zxid, and the log after it.
    Snapshot(Zxid),
    /// The log alone.
    Log,
    /// No files: a new, empty database.
    Fresh,
    /// No files, and no setting that allows this. The server may have lost its data, so its vote must not count
    /// (upstream's zxid -1).
    Untrusted,
}

/// The result of [`recover`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recovered {
    /// The files from which the state was restored.
    pub origin: Origin,
    /// The highest zxid in the state.
    pub last_zxid: Zxid,
    /// The number of log records that were replayed.
    pub records: u64,
    /// Notes for the server's log, which the operator should see.
    pub notes: Vec<Note>,
}

impl Recovered {
    /// The paths of the snapshots that could not be read.
    pub fn skipped_snapshots(&self) -> impl Iterator<Item = &Path> {
        self.notes.iter().filter_map(|note| match note {
            Note::SnapshotSkipped { file, .. } => Some(&**file),
            _ => None,
        })
    }
}

/// An unusual state of the files that recovery could handle. `Display` gives the line for the server's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Note {
    /// A snapshot could not be read.
    SnapshotSkipped {
        /// The path of the snapshot.
        file: PathBuf,
        /// The reason, in words.
        reason: String,
    },
    /// The torn tail of the newest log was cut.
    TornTail(TornTail),
    /// An older log has a torn tail, as Java leaves it. It stays: the next log continues after the last whole record.
    TornBefore(TornTail),
    /// A log file without any record was removed.
    EmptyLogRemoved(PathBuf),
    /// A snapshot that was not completed was removed.
    UnfinishedGivenUp(PathBuf),
    /// A leader's tree that Java had written to a temporary file was renamed. The path is the temporary one.
    SnapshotRenamed(PathBuf),
    /// A record has a lower zxid than one before it. It was replayed, as in Java.
    ZxidBackwards(ZxidStep),
    /// There was no snapshot, and the log was trusted to start with the first transaction.
    EmptyTrusted,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Note::SnapshotSkipped { file, reason } => {
                write!(f, "{}: skipped this snapshot: {reason}", file.display())
            }
            Note::TornTail(torn) => write!(
                f,
                "{}: cut at byte {}: the last {} bytes are the remains of a write that a crash interrupted and that \
                 was never acknowledged; the last transaction is {}",
                torn.file.display(),
                torn.offset,
                torn.bytes,
                torn.zxid_before
            ),
            Note::TornBefore(torn) => write!(
                f,
                "{}: the {} bytes from byte {} on are the remains of a write that a crash interrupted and that was never \
                 acknowledged; the next log goes on after {}",
                torn.file.display(),
                torn.bytes,
                torn.offset,
                torn.zxid_before
            ),
            Note::EmptyLogRemoved(file) => {
                write!(f, "{}: removed: no transaction was ever written to it", file.display())
            }
            Note::UnfinishedGivenUp(file) => {
                write!(f, "{}: given up: a snapshot that was not completed", file.display())
            }
            Note::SnapshotRenamed(file) => write!(
                f,
                "{}: renamed: Java wrote a leader's tree to it, and ended before it renamed the file",
                file.display()
            ),
            Note::ZxidBackwards(step) => write!(
                f,
                "{}: transaction {} at byte {} comes after {}; it was replayed nevertheless",
                step.file.display(),
                step.zxid,
                step.offset,
                step.before
            ),
            Note::EmptyTrusted => {
                write!(f, "no snapshot, but snapshot.trust.empty is set: replayed the log from its start")
            }
        }
    }
}

/// Restores the state into `sink`, which must be empty.
pub fn recover(
    disk: &dyn Disk,
    folders: &DataFolders,
    options: RecoverOptions,
    sink: &mut dyn RecoverySink,
) -> Result<Recovered> {
    let mut notes = Vec::new();
    if !options.in_use {
        unrenamed::settle(disk, &folders.snapshots, &mut notes)?;
    }
    let mut search = newest_usable(disk, &folders.snapshots, options.through, sink)?;
    let after = search.loaded.unwrap_or(Zxid::ZERO);
    let mut log = LogReader::open(disk, &folders.logs, after)?;
    let facts = Facts {
        loaded: search.loaded,
        lost_snapshot: search.skipped.iter().any(|skipped| skipped.file.zxid > Zxid::ZERO),
        logs: log.has_files(),
        trust_empty: options.trust_empty,
        may_be_empty: options.db_autocreate || folders.has_initialize(disk)?,
    };
    let origin = match decide(facts) {
        Start::From(origin) => origin,
        Start::RefusedLogsOnly => {
            return Err(StorageError::NoSnapshot {
                logs: folders.logs.clone(),
                snapshots: folders.snapshots.clone(),
                details: search.details(),
            });
        }
        Start::RefusedSnapshotsOnly => {
            let (dir, details) = (folders.snapshots.clone(), search.details());
            return Err(StorageError::NoUsableSnapshot { dir, details });
        }
    };
    if origin == Origin::Log {
        notes.push(Note::EmptyTrusted);
    }
    let wanted = search.skipped.iter().map(|skipped| skipped.file.zxid);
    let replayed = replay(&mut log, wanted, sink)?;
    let last_zxid = log.last();
    let current = read_epoch(disk, &folders.snapshots, EpochFile::Current)?.unwrap_or_default();
    search.check_covered(&folders.logs, (last_zxid, current), &replayed)?;
    let (never_whole, skipped): (Vec<_>, Vec<_>) = search
        .skipped
        .drain(..)
        .partition(|skipped| !options.in_use && skipped.is_interrupted_sync(last_zxid, current));
    notes.extend(skipped.iter().map(Skipped::note));
    notes.extend(log.torn_before().iter().cloned().map(Note::TornBefore));
    notes.extend(log.backwards().iter().cloned().map(Note::ZxidBackwards));
    tidy_logs(disk, &log, &mut notes)?;
    // The next start may find transactions after them, and could not tell that they were never complete.
    for Skipped { file, .. } in never_whole {
        remove(disk, &file.path)?;
        notes.push(Note::UnfinishedGivenUp(file.path));
    }
    if !options.in_use {
        tidy_unfinished(disk, &folders.snapshots, &mut notes)?;
    }
    make_durable(disk, folders, search.snapshot.as_deref(), &log)?;
    Ok(Recovered { origin, last_zxid, records: replayed.records, notes })
}

/// The facts by which the table of this module decides.
#[derive(Debug, Clone, Copy)]
struct Facts {
    /// The zxid of the snapshot that was read.
    loaded: Option<Zxid>,
    /// A snapshot above zxid 0 cannot be read.
    lost_snapshot: bool,
    /// There are logs with records.
    logs: bool,
    trust_empty: bool,
    /// `db_autocreate` or an `initialize` file allows an empty database.
    may_be_empty: bool,
}

#[derive(Debug, PartialEq, Eq)]
enum Start {
    From(Origin),
    RefusedLogsOnly,
    RefusedSnapshotsOnly,
}

fn decide(facts: Facts) -> Start {
    match facts {
        Facts { loaded: Some(zxid), .. } => Start::From(Origin::Snapshot(zxid)),
        Facts { logs: true, trust_empty: true, .. } => Start::From(Origin::Log),
        Facts { logs: true, .. } => Start::RefusedLogsOnly,
        Facts { lost_snapshot: true, .. } => Start::RefusedSnapshotsOnly,
        Facts { may_be_empty: true, .. } => Start::From(Origin::Fresh),
        Facts { .. } => Start::From(Origin::Untrusted),
    }
}

struct Search {
    loaded: Option<Zxid>,
    snapshot: Option<PathBuf>,
    skipped: Vec<Skipped>,
}

struct Skipped {
    file: SnapshotFile,
    reason: String,
    /// The end of the file shows that it was never completed.
    incomplete: bool,
}

impl Skipped {
    fn note(&self) -> Note {
        Note::SnapshotSkipped { file: self.file.path.clone(), reason: self.reason.clone() }
    }

    /// Whether the snapshot is a leader's tree that was never complete on disk and never acknowledged: the server died
    /// during its synchronization. Such a snapshot, as Java leaves it, is at the start of an epoch (counter 0) and has
    /// no transaction of that epoch. Nor does the log, and the current epoch is lower: a server saves that when the
    /// tree is on disk, before it acknowledges.
    fn is_interrupted_sync(&self, last: Zxid, current: Epoch) -> bool {
        let epoch = self.file.zxid.epoch();
        self.file.zxid.counter() == 0 && self.incomplete && last.epoch() < epoch && current < epoch
    }
}

impl Search {
    fn details(&self) -> String {
        let each = |skipped: &Skipped| format!("; {}: {}", skipped.file.path.display(), skipped.reason);
        self.skipped.iter().map(each).collect()
    }

    /// Checks that the log has what the bad snapshots contained. A leader's tree takes the place of records that this
    /// server never logs, and from one epoch to the next the log does not show that some are missing. So the last
    /// transaction of each bad snapshot must be in the log. A bad snapshot at the start of an epoch is always an error:
    /// it does not tell the last transaction of the epoch before.
    fn check_covered(&self, logs: &Path, (last, current): (Zxid, Epoch), replayed: &Replayed) -> Result<()> {
        for skipped in &self.skipped {
            let needed = skipped.file.zxid;
            if needed == Zxid::ZERO || skipped.is_interrupted_sync(last, current) {
                continue;
            }
            let (snapshot, reason) = (skipped.file.path.clone(), skipped.reason.clone());
            let (dir, begins_epoch) = (logs.to_path_buf(), needed.counter() == 0);
            if !begins_epoch && needed > last {
                return Err(StorageError::LogTooShort { snapshot, reason, dir, last, needed });
            }
            if begins_epoch || replayed.lacks(needed) {
                return Err(StorageError::LogLacks { snapshot, reason, dir, needed });
            }
        }
        Ok(())
    }
}

fn newest_usable(disk: &dyn Disk, dir: &Path, through: Zxid, sink: &mut dyn RecoverySink) -> Result<Search> {
    let mut skipped = Vec::new();
    for mut file in find_snapshots(disk, dir)?.into_iter().filter(|file| file.zxid <= through) {
        let tried = skipped.len() < SNAPSHOTS_TRIED;
        let incomplete = file.problem == Some(Problem::Incomplete);
        let reason = match file.problem.take() {
            Some(Problem::Incomplete) => "it is incomplete".to_owned(),
            Some(Problem::Unreadable(error)) => error,
            None if !tried => "there are too many bad ones before it".to_owned(),
            None => match load(disk, &file, sink) {
                Ok(()) => {
                    return Ok(Search { loaded: Some(file.zxid), snapshot: Some(file.path), skipped });
                }
                Err(reason) => {
                    sink.reset();
                    reason
                }
            },
        };
        skipped.push(Skipped { file, reason, incomplete });
    }
    Ok(Search { loaded: None, snapshot: None, skipped })
}

fn load(
    disk: &dyn Disk,
    file: &SnapshotFile,
    sink: &mut dyn RecoverySink,
) -> std::result::Result<(), String> {
    let mut trailer = read_snapshot(disk, file, sink).map_err(|error| match error {
        StorageError::BadSnapshot { reason, .. } => reason,
        other => other.to_string(),
    })?;
    // A complete snapshot that is older than its name: it was in these blocks before, and the disk has lost the new
    // one, although it reported the sync as done. The zxid at the end is never below the one in the name, in Java's
    // too.
    if let Some(older) = trailer.last_processed.filter(|zxid| *zxid < file.zxid) {
        return Err(format!("it holds an older tree, of {older}"));
    }
    trailer.digest = trailer.digest.filter(|digest| digest.zxid.to_wire() > 0);
    sink.snapshot_loaded(file.zxid, trailer).map_err(|refusal| refusal.to_string())
}

/// The result of replaying the log.
struct Replayed {
    records: u64,
    /// The wanted transactions that were not in the log.
    missing: BTreeSet<Zxid>,
}

impl Replayed {
    fn lacks(&self, zxid: Zxid) -> bool {
        self.missing.contains(&zxid)
    }
}

fn replay(
    log: &mut LogReader<'_>,
    wanted: impl Iterator<Item = Zxid>,
    sink: &mut dyn RecoverySink,
) -> Result<Replayed> {
    let mut missing: BTreeSet<Zxid> = wanted.collect();
    let mut records = 0;
    while let Some(record) = log.next_record()? {
        let (zxid, offset) = (record.zxid, record.offset);
        missing.remove(&zxid);
        if let Err(source) = sink.record(zxid, record.bytes) {
            let file = log.file().map(Path::to_path_buf).unwrap_or_default();
            return Err(StorageError::Refused { file, offset, zxid, source });
        }
        records += 1;
    }
    Ok(Replayed { records, missing })
}

/// Removes empty log files, so that the next file can have such a name, and cuts the torn tail, so that it is not in
/// the middle of the log later.
fn tidy_logs(disk: &dyn Disk, log: &LogReader<'_>, notes: &mut Vec<Note>) -> Result<()> {
    for file in log.empty_files() {
        remove(disk, file)?;
        notes.push(Note::EmptyLogRemoved(file.clone()));
    }
    if let Some(torn) = log.torn_tail() {
        cut_torn_tail(disk, torn)?;
        notes.push(Note::TornTail(torn.clone()));
    }
    Ok(())
}

/// Removes snapshots that a process has left half-written.
fn tidy_unfinished(disk: &dyn Disk, dir: &Path, notes: &mut Vec<Note>) -> Result<()> {
    for name in disk.list(dir).during("list", dir)? {
        if name.starts_with(UNFINISHED) {
            let file = dir.join(&name);
            // A snapshot becomes the spare if there is none: to free the space of a large file takes seconds, and
            // clients wait.
            if !is_unfinished_snapshot(&name) || !spare::keep(disk, dir, &file)? {
                remove(disk, &file)?;
            }
            notes.push(Note::UnfinishedGivenUp(file));
        }
    }
    Ok(())
}

/// Writes the last batch of the log again. After a failed sync the system takes its pages for written, and reads them
/// back as long as they are in memory ("Can Applications Recover from fsync Failures?", ATC 2020). Another sync alone
/// would do nothing for them. A server stops after the first failed sync, so only the last batch can be affected.
/// Batches of Java can be longer than this one.
fn write_again(disk: &dyn Disk, path: &Path, batch: Range<u64>) -> Result<()> {
    let file = disk.open_to_change(path).during("open", path)?;
    let mut bytes = vec![0; (batch.end - batch.start) as usize];
    let size = read_full(&*file, &mut bytes, batch.start).during("read", path)?;
    file.write_all_at(&bytes[..size], batch.start).during("write", path)
}

fn make_durable(
    disk: &dyn Disk,
    folders: &DataFolders,
    snapshot: Option<&Path>,
    log: &LogReader<'_>,
) -> Result<()> {
    if let Some((path, batch)) = log.last_batch() {
        write_again(disk, path, batch)?;
    }
    // A log that was cut is synced again, since its last batch was written again. If its torn tail was all it had, it
    // is gone.
    let removed = |path: &Path| log.torn_tail().is_some_and(|torn| torn.file == path && is_whole_file(torn));
    let logs = log.files_read().iter().map(PathBuf::as_path).filter(|path| !removed(path));
    for path in logs.chain(snapshot) {
        // Some file systems cannot sync a file that is open for reading only.
        let file = disk.open_to_change(path).or_else(|_| disk.open(path));
        file.and_then(|file| file.sync_data()).during("sync", path)?;
    }
    for dir in [&folders.logs, &folders.snapshots] {
        sync_names(disk, dir)?;
    }
    match log.last_batch() {
        Some((path, batch)) => note_end(disk, &folders.logs, path, batch.end),
        None => Ok(()),
    }
}

/// Notes durably that this log is synced to its end.
fn note_end(disk: &dyn Disk, dir: &Path, log: &Path, end: u64) -> Result<()> {
    let name = log.file_name().and_then(|name| name.to_str());
    match name.and_then(parse_log_name) {
        Some(first) => note_durably(disk, dir, (log, first), end),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_combination_of_facts_starts_or_refuses_by_the_table() {
        let bits = [false, true];
        for loaded in [None, Some(Zxid(5))] {
            for (lost_snapshot, logs) in bits.iter().flat_map(|a| bits.map(|b| (*a, b))) {
                for (trust_empty, may_be_empty) in bits.iter().flat_map(|a| bits.map(|b| (*a, b))) {
                    let facts = Facts { loaded, lost_snapshot, logs, trust_empty, may_be_empty };
                    let expected = match (loaded, logs) {
                        (Some(zxid), _) => Start::From(Origin::Snapshot(zxid)),
                        (None, true) if trust_empty => Start::From(Origin::Log),
                        (None, true) => Start::RefusedLogsOnly,
                        (None, false) if lost_snapshot => Start::RefusedSnapshotsOnly,
                        (None, false) if may_be_empty => Start::From(Origin::Fresh),
                        (None, false) => Start::From(Origin::Untrusted),
                    };
                    assert_eq!(decide(facts), expected, "{facts:?}");
                }
            }
        }
    }
}
