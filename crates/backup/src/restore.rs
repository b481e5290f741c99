//! Writes the data folders of a whole ensemble from a tree that was rebuilt.
//!
//! Each folder gets one snapshot and no log. The snapshot is the tree of the chosen transaction after the end of all its
//! sessions, and its zxid is the first of a new epoch, far above all epochs that the backup has seen. Both epoch files
//! have that epoch. So a server with data of before loses every election against a restored one, and a restored leader
//! cannot know how its log relates to its own: it sends its whole tree (SNAP), which removes what was undone.

use crate::{
    backup::now_ms,
    error::{BackupError, FileContext, Result},
    history::History,
    rebuild::Rebuilt,
    store::Store,
};
use ostler_proto::{
    id::{Epoch, SessionId, Zxid},
    path,
    txn::{DIGEST_VERSION, Txn, TxnHeader, TxnRecord},
};
use ostler_storage::{
    disk::OsDisk,
    epochs::{EpochFile, write_epoch},
    folders::DataFolders,
    names::{Compression, parse_log_name},
    snapshot::{SnapshotDigest, SnapshotTarget, SnapshotTrailer, SnapshotWriter},
};
use ostler_tree::{FrozenTree, Tree};
use serde::{Deserialize, Serialize};
use std::{borrow::Cow, collections::BTreeSet, fs, io, path::Path};

/// How far the epoch of a restored ensemble is above the highest one that the backup has seen. Servers can have elected
/// leaders after the end of the backup: this is one election a minute for 45 days.
pub const EPOCH_MARGIN: u32 = 1 << 16;
/// The folder in the backup with the notes of restores.
const NOTES: &str = "restores";

/// A restored tree, ready to be written.
#[derive(Debug)]
pub struct EndedTree {
    frozen: FrozenTree,
    /// The number of sessions that were ended.
    pub sessions: usize,
    /// The paths of the ephemerals that went with them.
    pub ephemerals: Vec<String>,
    /// The epoch of the restored ensemble.
    pub epoch: Epoch,
    /// The server lines in `/zookeeper/config`, if there are any.
    pub membership: Option<String>,
}

/// A server's folders to write.
#[derive(Debug, Clone)]
pub struct RestoredServer {
    /// The folders.
    pub folders: DataFolders,
    /// The server id for the file `myid`; `None` for a standalone server.
    pub server_id: Option<i64>,
}

/// A note in the backup that an ensemble was restored from it, so that the next restore takes a higher epoch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Note {
    epoch: u32,
    zxid: String,
    written_ms: i64,
}

/// The epoch for a restored ensemble: `wanted`, or [`EPOCH_MARGIN`] above the highest that the backup has seen, restores
/// included.
///
/// # Errors
/// The wanted epoch is not above all that the backup has seen; there is none left; the store cannot be read.
pub fn choose_epoch(store: &Store, history: &History, wanted: Option<Epoch>) -> Result<Epoch> {
    let mut seen = history.highest_epoch();
    for name in store.list(".json")?.into_iter().filter(|name| name.starts_with(NOTES)) {
        let bytes = store.get(&name)?.unwrap_or_default();
        let note: Note =
            serde_json::from_slice(&bytes).map_err(|error| store.damaged(&name, &error.to_string()))?;
        seen = seen.max(Epoch(note.epoch));
    }
    match wanted {
        Some(epoch) if epoch > seen && epoch < Epoch::LAST => Ok(epoch),
        Some(epoch) => Err(BackupError::EpochTooLow { epoch, seen }),
        None => {
            let epoch = seen.0.checked_add(EPOCH_MARGIN).map(Epoch).filter(|epoch| *epoch < Epoch::LAST);
            epoch.ok_or(BackupError::NoEpochLeft { seen })
        }
    }
}

/// Notes in the backup which epoch a restored ensemble has.
///
/// # Errors
/// The store cannot be written. Then the next restore from it needs `--epoch`.
pub fn note_restore(store: &Store, zxid: Zxid, epoch: Epoch) -> Result<()> {
    let note = Note { epoch: epoch.0, zxid: zxid.to_string(), written_ms: now_ms() };
    let bytes = serde_json::to_vec_pretty(&note).expect("a note has only numbers and strings");
    store.put(&format!("{NOTES}/{:010}.json", epoch.0), bytes)?;
    Ok(())
}

/// Ends all sessions of a tree, by transactions of the epoch. Ephemerals whose session is gone already, as a snapshot of
/// Java can have, end too.
pub fn end_sessions(mut tree: Tree, epoch: Epoch) -> EndedTree {
    let now_ms = now_ms();
    let mut zxid = Zxid::new(epoch, 0);
    let owners = tree.ephemerals_by_session().map(|(session, _)| session);
    let sessions: BTreeSet<SessionId> = tree.sessions().map(|(session, _)| session).chain(owners).collect();
    let mut ephemerals = Vec::new();
    let mut events = Vec::new();
    // At least one transaction, so that the zxid is not that of an epoch without any.
    apply(&mut tree, &mut zxid, (SessionId::NONE, now_ms), Txn::Error(NOTHING_DONE), &mut events);
    for session in &sessions {
        let paths: Vec<String> = tree.ephemerals(*session).iter().map(|path| (*path).to_owned()).collect();
        let listed = paths.iter().map(|path| Cow::Borrowed(&**path)).collect();
        apply(&mut tree, &mut zxid, (*session, now_ms), Txn::CloseSession(Some(listed)), &mut events);
        ephemerals.extend(paths);
        events.clear();
    }
    EndedTree {
        sessions: sessions.len(),
        ephemerals,
        epoch,
        membership: membership(&tree),
        frozen: tree.freeze(),
    }
}

/// The error code of the transaction that begins the epoch: "system error", which servers log for a refused request.
const NOTHING_DONE: i32 = -1;

fn apply(
    tree: &mut Tree,
    zxid: &mut Zxid,
    (session, time_ms): (SessionId, i64),
    txn: Txn<'_>,
    events: &mut Vec<ostler_tree::TreeEvent>,
) {
    *zxid = zxid.next();
    let header = TxnHeader { session, cxid: 0, zxid: *zxid, time_ms, code: txn.code() };
    tree.apply(&TxnRecord { header, txn, digest: None }, events);
}

fn membership(tree: &Tree) -> Option<String> {
    let data = tree.get(path::CONFIG)?.data.as_deref()?;
    let text = String::from_utf8_lossy(data).into_owned();
    text.contains("server.").then_some(text)
}

impl EndedTree {
    /// The zxid of the snapshots.
    pub fn zxid(&self) -> Zxid {
        self.frozen.zxid
    }

    /// The digest of the tree after the end of the sessions.
    pub fn digest(&self) -> u64 {
        self.frozen.digest
    }

    /// The number of znodes.
    pub fn znodes(&self) -> usize {
        self.frozen.len()
    }

    /// Writes a server's folders. The snapshot is last: before it is there, a server does not start as if it were
    /// complete.
    ///
    /// # Errors
    /// [`BackupError::FolderInUse`] if the folders have data. The files cannot be written.
    pub fn write(&self, server: &RestoredServer) -> Result<()> {
        let folders = &server.folders;
        refuse_data(folders)?;
        let log_dir = (folders.data_log_dir != folders.data_dir).then_some(&*folders.data_log_dir);
        DataFolders::open(&OsDisk, &folders.data_dir, log_dir, true)?;
        if let Some(id) = server.server_id {
            let myid = folders.data_dir.join("myid");
            ostler_storage::disk::replace_text(&OsDisk, &myid, &format!("{id}\n"))?;
        }
        for which in [EpochFile::Accepted, EpochFile::Current] {
            write_epoch(&OsDisk, &folders.snapshots, which, self.epoch)?;
        }
        let frozen = &self.frozen;
        let mut writer = SnapshotWriter::begin(
            &OsDisk,
            SnapshotTarget::new(&folders.snapshots, frozen.zxid, Compression::None),
            frozen.sessions.iter().copied(),
            frozen.acls.iter().map(|(id, acls)| (id.to_disk(), &**acls)),
        )?;
        for node in frozen.nodes() {
            writer.node(&node.path, node.data.as_deref(), node.acl.to_disk(), &node.stat)?;
        }
        let digest = SnapshotDigest { zxid: frozen.zxid, version: DIGEST_VERSION, digest: frozen.digest };
        writer.finish(SnapshotTrailer { digest: Some(digest), last_processed: Some(frozen.zxid) })?;
        Ok(())
    }
}

/// Refuses folders with data, before anything is written. Call it for all servers first.
///
/// # Errors
/// [`BackupError::FolderInUse`], or a folder cannot be read.
pub fn refuse_data(folders: &DataFolders) -> Result<()> {
    for folder in [&folders.snapshots, &folders.logs] {
        if let Some(found) = find_data(folder)? {
            return Err(BackupError::FolderInUse { folder: folder.clone(), found });
        }
    }
    Ok(())
}

fn find_data(folder: &Path) -> Result<Option<String>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).during("list", folder),
    };
    for entry in entries {
        let name = entry.during("list", folder)?.file_name().to_string_lossy().into_owned();
        let is_data = parse_log_name(&name).is_some()
            // Java takes `snapshot.5.tmp` for a snapshot, too.
            || name.starts_with("snapshot.")
            || ["acceptedEpoch", "currentEpoch"].contains(&&*name);
        if is_data {
            return Ok(Some(name));
        }
    }
    Ok(None)
}

/// The lines with which a command describes a rebuilt tree.
pub fn describe(rebuilt: &Rebuilt) -> String {
    let recorded = match rebuilt.recorded {
        Some(_) => "as recorded then",
        None => "none was recorded then",
    };
    format!(
        "transaction {}: {} znodes, {} sessions, digest {:#x} ({recorded}), from base {} and {} records",
        rebuilt.zxid,
        rebuilt.tree.node_count(),
        rebuilt.tree.session_count(),
        rebuilt.tree.digest(),
        rebuilt.base,
        rebuilt.records
    )
}
