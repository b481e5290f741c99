//! Builds a tree from the files that recovery reads, and from the stream of a leader.

use crate::read_ahead;
use ostler_proto::{
    acl::Acl,
    id::{SessionId, Zxid},
    jute::JuteError,
    stat::ExtendedTypes,
    txn::TxnRecord,
};
use ostler_storage::{
    StorageError,
    disk::Disk,
    error::Refusal,
    folders::DataFolders,
    recover::{Origin, RecoverOptions, Recovered, RecoverySink, recover},
    snapshot::{
        SnapshotFile, SnapshotNode, SnapshotSink, SnapshotTrailer,
        body::{BodyError, BodyReader, BodyWriter},
        read_snapshot,
    },
};
use ostler_tree::{DetachedZnode, FrozenTree, Tree, TreeEvent};
use std::{
    collections::HashMap,
    fmt,
    io::{self, Read, Write},
    time::Instant,
};

/// Builds a tree from the parts of a snapshot and the records of a log.
pub(crate) struct TreeBuilder {
    types: ExtendedTypes,
    tree: Tree,
    /// The ACLs of the snapshot by their indexes.
    acls: HashMap<i64, Vec<Acl>>,
    sessions: Vec<(SessionId, i32)>,
    has_root: bool,
    /// The events of applied records. They are discarded, because there are no watches yet.
    events: Vec<TreeEvent>,
    clock: Option<fn() -> Instant>,
    snapshot_loaded_at: Option<Instant>,
}

impl TreeBuilder {
    pub(crate) fn new(types: ExtendedTypes) -> Self {
        TreeBuilder {
            types,
            tree: Tree::fresh(types),
            acls: HashMap::new(),
            sessions: Vec::new(),
            has_root: false,
            events: Vec::new(),
            clock: None,
            snapshot_loaded_at: None,
        }
    }

    /// Adds the next znode of a snapshot. `acl` is the index of its ACL in the snapshot.
    pub(crate) fn detached(&mut self, node: DetachedZnode, acl: i64) -> Result<(), Refusal> {
        // The first root replaces the fresh tree. A second root is refused like any repeated znode.
        if node.path() == "/" && !self.has_root {
            self.tree = Tree::empty(self.types);
            self.has_root = true;
        }
        let acl = (acl, self.acls.get(&acl).map(Vec::as_slice));
        self.tree.restore_detached(node, acl).map_err(Refusal::from)
    }

    fn drop_orphans(&mut self) {
        let orphans = self.tree.drop_orphaned_ephemerals();
        if !orphans.is_empty() {
            tracing::warn!(znodes = orphans.len(), "ephemerals of sessions that are gone were dropped");
        }
    }
}

/// Logs the paths of the znodes without an ACL, the first few of them.
fn warn_of_closed(paths: &[impl fmt::Debug], message: &'static str) {
    const SHOWN: usize = 5;
    if !paths.is_empty() {
        tracing::warn!(znodes = paths.len(), paths = ?&paths[..paths.len().min(SHOWN)], "{message}");
    }
}

/// Decodes a record of the log.
pub(crate) fn decode(zxid: Zxid, record: &[u8]) -> Result<TxnRecord<'_>, Refusal> {
    TxnRecord::read(record)
        .map_err(|error| Refusal::from(format!("transaction {zxid} cannot be decoded: {error}")))
}

impl SnapshotSink for TreeBuilder {
    fn session(&mut self, id: SessionId, timeout_ms: i32) -> Result<(), Refusal> {
        self.sessions.push((id, timeout_ms));
        Ok(())
    }

    fn acl(&mut self, index: i64, acl: Vec<Acl>) -> Result<(), Refusal> {
        self.acls.insert(index, acl);
        Ok(())
    }

    fn node(&mut self, node: SnapshotNode<'_>) -> Result<(), Refusal> {
        self.detached(DetachedZnode::new(&node.path, node.data, node.stat), node.acl)
    }
}

impl RecoverySink for TreeBuilder {
    fn reset(&mut self) {
        *self = TreeBuilder { clock: self.clock, ..TreeBuilder::new(self.types) };
    }

    fn snapshot_loaded(&mut self, zxid: Zxid, trailer: SnapshotTrailer) -> Result<(), Refusal> {
        let sessions = std::mem::take(&mut self.sessions);
        self.tree.finish_restore(zxid, sessions, trailer.digest.map(|digest| digest.zxid));
        self.acls = HashMap::new();
        self.snapshot_loaded_at = self.clock.map(|now| now());
        Ok(())
    }

    fn record(&mut self, zxid: Zxid, record: &[u8]) -> Result<(), Refusal> {
        self.tree.apply(&decode(zxid, record)?, &mut self.events);
        self.events.clear();
        Ok(())
    }
}

/// Reads the tree that a leader sends: the parts of a snapshot without header and seals, then a signature. Also returns
/// the bytes that were read beyond the signature.
pub fn read_stream(input: impl Read, zxid: Zxid, types: ExtendedTypes) -> Result<(Tree, Vec<u8>), BodyError> {
    let mut builder = TreeBuilder::new(types);
    let mut reader = BodyReader::new(input);
    reader.body(&mut builder)?;
    let (length, signature) = reader.take(4 + SIGNATURE.len())?.split_at(4);
    if *length != SIGNATURE_LENGTH.to_be_bytes() || signature != SIGNATURE.as_bytes() {
        return Err(BodyError::Malformed(JuteError::Truncated));
    }
    builder.tree.finish_restore(zxid, std::mem::take(&mut builder.sessions), None);
    warn_of_closed(
        &builder.tree.take_znodes_without_acl(),
        "the leader's tree came without the ACL of these znodes: until a transaction sets it, nobody but the super user \
         can read or change them",
    );
    Ok((builder.tree, reader.into_rest()))
}

/// Reads one snapshot file. Its last zxid is the one at its end; `None` if the file has none there. The file can lack
/// the ACLs of znodes: see [`Tree::take_znodes_without_acl`].
pub fn read_file(
    disk: &dyn Disk,
    file: &SnapshotFile,
    types: ExtendedTypes,
) -> Result<(Tree, Option<Zxid>), StorageError> {
    let mut builder = TreeBuilder::new(types);
    let trailer = read_snapshot(disk, file, &mut builder)?;
    let zxid = trailer.last_processed;
    let sessions = std::mem::take(&mut builder.sessions);
    let digest = trailer.digest.map(|digest| digest.zxid);
    builder.tree.finish_restore(zxid.unwrap_or(file.zxid), sessions, digest);
    builder.drop_orphans();
    Ok((builder.tree, zxid))
}

/// Writes a tree in the format in which a leader sends it to a learner.
pub fn write_stream(frozen: &FrozenTree, out: impl Write) -> io::Result<()> {
    let mut writer = BodyWriter::new(out);
    writer.sessions(frozen.sessions.iter().copied())?;
    writer.acls(frozen.acls.iter().map(|(id, acls)| (id.to_disk(), &**acls)))?;
    for node in frozen.nodes() {
        writer.node(&node.path, node.data.as_deref(), node.acl.to_disk(), &node.stat)?;
    }
    writer.end()?;
    let mut out = writer.finish()?;
    out.write_all(&SIGNATURE_LENGTH.to_be_bytes())?;
    out.write_all(SIGNATURE.as_bytes())?;
    out.flush()
}

/// The signature behind a tree that a leader sends.
const SIGNATURE: &str = "BenWasHere";
const SIGNATURE_LENGTH: i32 = SIGNATURE.len() as i32;

/// The state that was restored from the files.
#[derive(Debug)]
pub struct Restored {
    /// The tree.
    pub tree: Tree,
    /// The files from which it was restored.
    pub recovered: Recovered,
    /// The time between snapshot and log: when the snapshot had been read. `None` without a snapshot or a clock.
    pub snapshot_loaded_at: Option<Instant>,
}

/// The options of [`restore`].
#[derive(Debug, Clone, Copy, Default)]
pub struct RestoreOptions {
    /// The options of recovery.
    pub recover: RecoverOptions,
    /// How owner fields are read.
    pub types: ExtendedTypes,
    /// Whether a second thread reads ahead. Then a start takes about half the time.
    pub reads_ahead: bool,
    /// The clock for [`Restored::snapshot_loaded_at`]; `None` if the time is not needed.
    pub clock: Option<fn() -> Instant>,
}

/// Restores the state from the newest snapshot and the log after it. Ephemerals without a session, which a fuzzy snapshot
/// of Java can have, are dropped. If neither defines the ACL of a znode, only the super user can read or change it.
pub fn restore(
    disk: &dyn Disk,
    folders: &DataFolders,
    options: RestoreOptions,
) -> Result<Restored, StorageError> {
    let mut builder = TreeBuilder { clock: options.clock, ..TreeBuilder::new(options.types) };
    let recovered = if options.reads_ahead {
        read_ahead::recover_into(&mut builder, disk, folders, options.recover)?
    } else {
        recover(disk, folders, options.recover, &mut builder)?
    };
    for note in &recovered.notes {
        tracing::warn!("{note}");
    }
    if recovered.origin != Origin::Fresh {
        builder.drop_orphans();
        warn_of_closed(
            &builder.tree.take_znodes_without_acl(),
            "neither snapshot nor log has the ACL of these znodes: nobody but the super user can read or change them; \
             set an ACL as the super user",
        );
    }
    Ok(Restored { tree: builder.tree, recovered, snapshot_loaded_at: builder.snapshot_loaded_at })
}
