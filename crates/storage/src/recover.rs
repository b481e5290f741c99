//! How a server gets its state back: the newest snapshot that can be read, then the log after it.
//!
//! | snapshot | log | start |
//! |---|---|---|
//! | one can be read | any | from it, and the log after it |
//! | none | there is one | refused, unless `trust_empty`: then the whole log |
//! | none, or torn ones of zxid 0 | none | empty; trusted if `db_autocreate` or an `initialize` file says so |
//! | some, none of them readable | none | refused |
//!
//! An older snapshot stands in for a newer bad one only if the log has the bad one's last transaction; or if the newer one is
//! a leader's tree that never came whole, and nothing came after it: that is removed. Nothing on disk is
//! changed until everything has been read and applied; then what a crash left over is tidied: the torn tail is
//! cut, files without content are removed. And what was read is synced: if only the process died, it may still
//! be in the system's memory alone, and clients will soon be told of it.

use crate::{
    disk::{Disk, read_full, sync_names},
    epochs::{EpochFile, read_epoch},
    error::{IoContext, Refusal, Result, StorageError},
    folders::DataFolders,
    names::{UNFINISHED, is_unfinished_snapshot, parse_log_name},
    snapshot::{Problem, SnapshotFile, SnapshotSink, SnapshotTrailer, find_snapshots, read_snapshot, spare},
    txnlog::{LogReader, TornTail, ZxidStep, cut_torn_tail, note_durably, remove, takes_all},
};
use ostler_proto::id::{Epoch, Zxid};
use std::{
    collections::BTreeSet,
    fmt,
    ops::Range,
    path::{Path, PathBuf},
};

/// Upstream gives up after so many bad snapshots.
const SNAPSHOTS_TRIED: usize = 100;

/// Takes what recovery reads. A snapshot first, if there is one: its parts (see [`SnapshotSink`]), then
/// [`RecoverySink::snapshot_loaded`]; then the records of the log.
pub trait RecoverySink: SnapshotSink {
    /// What came so far was from a snapshot that turned out bad: back to the empty state.
    fn reset(&mut self);
    /// The snapshot is complete; a digest without a zxid is left out. A refusal makes it a bad one.
    fn snapshot_loaded(&mut self, zxid: Zxid, trailer: SnapshotTrailer) -> std::result::Result<(), Refusal>;
    /// The next record of the log. A refusal ends the recovery.
    fn record(&mut self, zxid: Zxid, record: &[u8]) -> std::result::Result<(), Refusal>;
}

/// What is allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecoverOptions {
    /// Logs without a snapshot are replayed from the start (`snapshot.trust.empty`).
    pub trust_empty: bool,
    /// Without any files, an empty tree is right (`db.autocreate`).
    pub db_autocreate: bool,
    /// This process uses the folders already: an unfinished snapshot is being written, and is left alone.
    pub in_use: bool,
    /// Snapshots above this are left out: the log was cut back to it, and they have more.
    pub through: Zxid,
}

impl Default for RecoverOptions {
    fn default() -> Self {
        RecoverOptions { trust_empty: false, db_autocreate: true, in_use: false, through: Zxid(u64::MAX) }
    }
}

/// What the state was made from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// This snapshot and the log after it.
    Snapshot(Zxid),
    /// The log alone.
    Log,
    /// Nothing: a new, empty database.
    Fresh,
    /// Nothing, and nobody says that this is right: the server may have lost its data, so its vote must not
    /// count (upstream's zxid -1).
    Untrusted,
}

/// What [`recover`] did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recovered {
    /// What the state was made from.
    pub origin: Origin,
    /// The highest zxid in the state.
    pub last_zxid: Zxid,
    /// How many records of the log were replayed.
    pub records: u64,
    /// What the operator should know; for the server's log.
    pub notes: Vec<Note>,
}

impl Recovered {
    /// Snapshots that look like ones and cannot be read.
    pub fn skipped_snapshots(&self) -> impl Iterator<Item = &Path> {
        self.notes.iter().filter_map(|note| match note {
            Note::SnapshotSkipped { file, .. } => Some(&**file),
            _ => None,
        })
    }
}

/// Something unusual that recovery coped with. `Display` says it in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Note {
    /// A snapshot could not be read.
    SnapshotSkipped {
        /// The snapshot.
        file: PathBuf,
        /// Why.
        reason: String,
    },
    /// The last, unacknowledged batch was incomplete and was cut off.
    TornTail(TornTail),
    /// The same in an older log, as Java leaves it: the next one goes on behind it.
    TornBefore(TornTail),
    /// A log file without any record was removed.
    EmptyLogRemoved(PathBuf),
    /// A half-written snapshot was given up.
    UnfinishedGivenUp(PathBuf),
    /// A record with a lower zxid than one before it; it was replayed, as Java does.
    ZxidBackwards(ZxidStep),
    /// No snapshot; the log was trusted to go back to the first transaction.
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
            Note::ZxidBackwards(step) => write!(
                f,
                "{}: transaction {} at byte {} comes after {}; replayed all the same",
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

/// Gets the state back into `sink`, which must be empty.
pub fn recover(
    disk: &dyn Disk,
    folders: &DataFolders,
    options: RecoverOptions,
    sink: &mut dyn RecoverySink,
) -> Result<Recovered> {
    let mut search = newest_usable(disk, &folders.snapshots, options.through, sink)?;
    let mut notes = Vec::new();
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
        .partition(|skipped| !options.in_use && skipped.counted_for_nothing(last_zxid, current));
    notes.extend(skipped.iter().map(Skipped::note));
    notes.extend(log.torn_before().iter().cloned().map(Note::TornBefore));
    notes.extend(log.backwards().iter().cloned().map(Note::ZxidBackwards));
    tidy_logs(disk, &log, &mut notes)?;
    // The next start may find transactions after them, and could not tell any more.
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

/// What the table of this module decides on.
#[derive(Debug, Clone, Copy)]
struct Facts {
    loaded: Option<Zxid>,
    /// A snapshot of something, not of an empty tree, cannot be read.
    lost_snapshot: bool,
    logs: bool,
    trust_empty: bool,
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
    /// Only a part of it was ever written, as far as a first look shows.
    incomplete: bool,
}

impl Skipped {
    fn note(&self) -> Note {
        Note::SnapshotSkipped { file: self.file.path.clone(), reason: self.reason.clone() }
    }

    /// A snapshot at the very start of an epoch (count 0) contains no transaction of it. One that was never completed, as
    /// Java leaves it, and that nothing follows, is a leader's tree that was not acknowledged: the current epoch is
    /// saved once the tree is on disk, and before that is said.
    fn counted_for_nothing(&self, last: Zxid, current: Epoch) -> bool {
        let begun = self.file.zxid.epoch();
        self.file.zxid.counter() == 0 && self.incomplete && last.epoch() < begun && current < begun
    }
}

impl Search {
    fn details(&self) -> String {
        let each = |skipped: &Skipped| format!("; {}: {}", skipped.file.path.display(), skipped.reason);
        self.skipped.iter().map(each).collect()
    }

    /// The log must have what the bad snapshots contained. A tree that came whole from a leader takes the place of
    /// records that are never logged, and from one epoch to the next nothing in the log shows that some are missing:
    /// so the last transaction of each bad snapshot must be there. How far the epoch went before one that stands at the
    /// start of the next is not known.
    fn check_covered(&self, logs: &Path, (last, current): (Zxid, Epoch), replayed: &Replayed) -> Result<()> {
        for skipped in &self.skipped {
            let needed = skipped.file.zxid;
            if needed == Zxid::ZERO || skipped.counted_for_nothing(last, current) {
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
    // Complete, and not what its name says: it was in these blocks before, and a disk that did not do what it was told
    // lost what came over it. Java notes the zxid at the end of the writing, which is never below the name's.
    if let Some(older) = trailer.last_processed.filter(|zxid| *zxid < file.zxid) {
        return Err(format!("it holds an older tree, of {older}"));
    }
    trailer.digest = trailer.digest.filter(|digest| digest.zxid.to_wire() > 0);
    sink.snapshot_loaded(file.zxid, trailer).map_err(|refusal| refusal.to_string())
}

/// What the log had.
struct Replayed {
    records: u64,
    /// Of the transactions that are looked for, those that were not there.
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

/// Leaves the folders so that the next record's file cannot meet an old one of its name, and the torn tail
/// does not become a puzzle in the middle of the log.
fn tidy_logs(disk: &dyn Disk, log: &LogReader<'_>, notes: &mut Vec<Note>) -> Result<()> {
    for file in log.void_files() {
        remove(disk, file)?;
        notes.push(Note::EmptyLogRemoved(file.clone()));
    }
    if let Some(torn) = log.torn_tail() {
        cut_torn_tail(disk, torn)?;
        notes.push(Note::TornTail(torn.clone()));
    }
    Ok(())
}

/// Takes away what a process has left half-written.
fn tidy_unfinished(disk: &dyn Disk, dir: &Path, notes: &mut Vec<Note>) -> Result<()> {
    for name in disk.list(dir).during("list", dir)? {
        if name.starts_with(UNFINISHED) {
            let file = dir.join(&name);
            // To give back the space of a large file takes seconds, and clients wait.
            if !is_unfinished_snapshot(&name) || !spare::keep(disk, dir, &file)? {
                remove(disk, &file)?;
            }
            notes.push(Note::UnfinishedGivenUp(file));
        }
    }
    Ok(())
}

/// After a sync that failed, the system takes pages for written that are not, and reads them back as long as it has
/// the memory ("Can Applications Recover from fsync Failures?", ATC 2020). Another sync would do nothing. A server
/// stops at the first that fails, so only what it wrote last can be meant. Java's batches may be longer than ours.
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
    // A log that was cut has its last batch again, and is synced again for it; one that had nothing else is gone.
    let removed = |path: &Path| log.torn_tail().is_some_and(|torn| torn.file == path && takes_all(torn));
    let logs = log.files_read().iter().map(PathBuf::as_path).filter(|path| !removed(path));
    for path in logs.chain(snapshot) {
        // Some file systems sync no file that is open to be read only.
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

/// From now on nothing of this log is in doubt.
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
    fn every_combination_has_its_start() {
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
