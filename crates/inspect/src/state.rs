//! The tree of a folder at a zxid, from a snapshot and the log after it. Nothing on disk is changed.

use crate::{
    error::{InspectError, Result},
    view::TYPES,
};
use ostler_proto::{
    acl::Acl,
    id::{SessionId, Zxid},
    txn::TxnRecord,
};
use ostler_storage::{
    StorageError,
    disk::Disk,
    error::Refusal,
    folders::DataFolders,
    recover::RecoverySink,
    snapshot::{
        Problem, SnapshotFile, SnapshotNode, SnapshotSink, SnapshotTrailer, find_snapshots, read_snapshot,
    },
    txnlog::LogReader,
};
use ostler_tree::{Tree, TreeEvent};
use std::{collections::HashMap, path::PathBuf};

/// A tree that was read from files.
#[derive(Debug)]
pub struct State {
    /// The tree.
    pub tree: Tree,
    /// The snapshot that was read. `None` if all came from the log.
    pub snapshot: Option<PathBuf>,
    /// The last transaction in the tree.
    pub zxid: Zxid,
    /// Notes about the files for an operator, one sentence each.
    pub notes: Vec<String>,
}

/// Reads the tree of a folder at its newest zxid, or at `at`: all transactions up to this one, and none after it.
///
/// The newest usable snapshot is read, then the log. A snapshot that Java has written while the tree changed is only
/// used if it was completed before `at`.
pub fn of_folder(disk: &dyn Disk, folders: &DataFolders, at: Option<Zxid>) -> Result<State> {
    let mut builder = StateBuilder::new();
    let (snapshot, mut notes) = newest_usable(disk, folders, at, &mut builder)?;
    let after = snapshot.as_ref().map_or(Zxid::ZERO, |file| file.zxid);
    let mut log = LogReader::open(disk, &folders.logs, after)?;
    if snapshot.is_none() && !log.has_files() {
        let reason = "there is no snapshot that can be read, and no log".to_owned();
        return Err(InspectError::NoState { path: folders.snapshots.clone(), reason });
    }
    if snapshot.is_none() {
        notes.push(
            "no snapshot was used: the tree is from the log alone, and lacks what came before it".to_owned(),
        );
    }
    let mut last = after;
    while let Some(record) = log.next_record()? {
        if at.is_some_and(|at| record.zxid > at) {
            break;
        }
        let (zxid, offset) = (record.zxid, record.offset);
        if let Err(source) = builder.record(zxid, record.bytes) {
            let file = log.file().map(Into::into).unwrap_or_default();
            return Err(StorageError::Refused { file, offset, zxid, source }.into());
        }
        last = last.max(zxid);
    }
    notes.extend(
        log.torn_tail().map(|torn| {
            format!("{}: the torn tail at byte {} was left out", torn.file.display(), torn.offset)
        }),
    );
    if let Some(at) = at.filter(|at| *at > last) {
        let reason = format!("the files end at {last}, before {at}");
        return Err(InspectError::NoState { path: folders.logs.clone(), reason });
    }
    Ok(builder.into_state(snapshot, last, notes))
}

/// Reads the tree of one snapshot.
pub fn of_snapshot(disk: &dyn Disk, file: &SnapshotFile) -> Result<State> {
    let mut builder = StateBuilder::new();
    let trailer = read_snapshot(disk, file, &mut builder)?;
    builder.finish(file.zxid, trailer);
    let fuzzy = trailer.last_processed.filter(|completed| *completed > file.zxid);
    let notes = fuzzy.map(|completed| fuzzy_note(file, completed)).into_iter().collect();
    let zxid = file.zxid;
    Ok(builder.into_state(Some(file.clone()), zxid, notes))
}

/// Reads a snapshot to its end, as a start does, and keeps nothing of it.
pub(crate) fn check_snapshot(
    disk: &dyn Disk,
    file: &SnapshotFile,
) -> std::result::Result<SnapshotTrailer, StorageError> {
    read_snapshot(disk, file, &mut StateBuilder::new())
}

fn fuzzy_note(file: &SnapshotFile, completed: Zxid) -> String {
    format!(
        "{}: the tree changed while this snapshot was written: it can have effects of transactions up to {completed}",
        file.path.display()
    )
}

/// Reads the newest snapshot that is usable. The others before it give notes.
fn newest_usable(
    disk: &dyn Disk,
    folders: &DataFolders,
    at: Option<Zxid>,
    builder: &mut StateBuilder,
) -> Result<(Option<SnapshotFile>, Vec<String>)> {
    let mut notes = Vec::new();
    for file in find_snapshots(disk, &folders.snapshots)? {
        if at.is_some_and(|at| file.zxid > at) {
            continue;
        }
        let read = match &file.problem {
            Some(Problem::Incomplete) => Err("it is incomplete".to_owned()),
            Some(Problem::Unreadable(reason)) => Err(reason.clone()),
            None => read_snapshot(disk, &file, builder).map_err(|error| error.to_string()),
        };
        match read {
            Ok(trailer) => {
                let completed = trailer.last_processed.unwrap_or(file.zxid);
                if at.is_none_or(|at| completed <= at) {
                    builder.finish(file.zxid, trailer);
                    return Ok((Some(file), notes));
                }
                notes.push(format!("{}; an earlier one was used", fuzzy_note(&file, completed)));
            }
            Err(reason) => {
                notes.push(format!("{}: this snapshot was left out: {reason}", file.path.display()))
            }
        }
        *builder = StateBuilder::new();
    }
    Ok((None, notes))
}

/// Builds a tree from the parts of a snapshot and the records of a log.
pub(crate) struct StateBuilder {
    tree: Tree,
    acls: HashMap<i64, Vec<Acl>>,
    sessions: Vec<(SessionId, i32)>,
    has_root: bool,
    events: Vec<TreeEvent>,
}

impl StateBuilder {
    pub(crate) fn new() -> StateBuilder {
        StateBuilder {
            tree: Tree::fresh(TYPES),
            acls: HashMap::new(),
            sessions: Vec::new(),
            has_root: false,
            events: Vec::new(),
        }
    }

    pub(crate) fn tree(&self) -> &Tree {
        &self.tree
    }

    fn finish(&mut self, zxid: Zxid, trailer: SnapshotTrailer) {
        let sessions = std::mem::take(&mut self.sessions);
        let digest_zxid = trailer.digest.map(|digest| digest.zxid).filter(|zxid| zxid.to_wire() > 0);
        self.tree.finish_restore(zxid, sessions, digest_zxid);
        self.acls = HashMap::new();
    }

    fn into_state(mut self, snapshot: Option<SnapshotFile>, zxid: Zxid, mut notes: Vec<String>) -> State {
        // A start does the same: a snapshot of Java can have ephemerals of sessions that have ended.
        let orphans = self.tree.drop_orphaned_ephemerals().len();
        if orphans > 0 {
            notes.push(format!("{orphans} ephemerals of sessions that are gone were left out"));
        }
        let closed = self.tree.take_znodes_without_acl();
        if let Some(first) = closed.first() {
            notes.push(format!(
                "what was read lacks the ACL of {} znodes, such as {first}: by it nobody but the super user can read \
                 or change them",
                closed.len()
            ));
        }
        let mismatches = self.tree.digest_mismatches();
        if mismatches > 0 {
            notes.push(format!(
                "the digests of {mismatches} transactions do not fit the tree from these files"
            ));
        }
        State { tree: self.tree, snapshot: snapshot.map(|file| file.path), zxid, notes }
    }
}

impl SnapshotSink for StateBuilder {
    fn session(&mut self, id: SessionId, timeout_ms: i32) -> std::result::Result<(), Refusal> {
        self.sessions.push((id, timeout_ms));
        Ok(())
    }

    fn acl(&mut self, index: i64, acl: Vec<Acl>) -> std::result::Result<(), Refusal> {
        self.acls.insert(index, acl);
        Ok(())
    }

    fn node(&mut self, node: SnapshotNode<'_>) -> std::result::Result<(), Refusal> {
        // The first root replaces the fresh tree. A second root is refused like any repeated znode.
        if node.path == "/" && !self.has_root {
            self.tree = Tree::empty(TYPES);
            self.has_root = true;
        }
        let acl = (node.acl, self.acls.get(&node.acl).map(Vec::as_slice));
        self.tree.restore_node(&node.path, node.data, node.stat, acl).map_err(Refusal::from)
    }
}

impl RecoverySink for StateBuilder {
    fn reset(&mut self) {
        *self = StateBuilder::new();
    }

    fn snapshot_loaded(&mut self, zxid: Zxid, trailer: SnapshotTrailer) -> std::result::Result<(), Refusal> {
        self.finish(zxid, trailer);
        Ok(())
    }

    fn record(&mut self, zxid: Zxid, record: &[u8]) -> std::result::Result<(), Refusal> {
        let record = TxnRecord::read(record)
            .map_err(|error| Refusal::from(format!("transaction {zxid} cannot be decoded: {error}")))?;
        self.tree.apply(&record, &mut self.events);
        self.events.clear();
        Ok(())
    }
}
