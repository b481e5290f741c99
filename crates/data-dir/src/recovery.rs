//! From files to a tree: what recovery reads is put together here.

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
        SnapshotNode, SnapshotSink, SnapshotTrailer,
        body::{BodyError, BodyReader, BodyWriter},
    },
};
use ostler_tree::{DetachedZnode, FrozenTree, Tree, TreeEvent};
use std::{
    collections::HashMap,
    io::{self, Read, Write},
    time::Instant,
};

/// A tree in the making.
pub(crate) struct TreeBuilder {
    types: ExtendedTypes,
    tree: Tree,
    /// The snapshot's own numbers for its lists.
    acls: HashMap<i64, Vec<Acl>>,
    sessions: Vec<(SessionId, i32)>,
    has_root: bool,
    /// Nobody watches yet.
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

    /// The next znode of a snapshot, with the snapshot's number of its ACL.
    pub(crate) fn detached(&mut self, node: DetachedZnode, acl: i64) -> Result<(), Refusal> {
        // The first root takes the place of the empty database; a second one is refused like any other.
        if node.path() == "/" && !self.has_root {
            self.tree = Tree::empty(self.types);
            self.has_root = true;
        }
        let acl = (acl, self.acls.get(&acl).map(Vec::as_slice));
        self.tree.restore_detached(node, acl).map_err(Refusal::from)
    }
}

/// A transaction of the log.
pub(crate) fn decode(zxid: Zxid, record: &[u8]) -> Result<TxnRecord<'_>, Refusal> {
    TxnRecord::read(record)
        .map_err(|error| Refusal::from(format!("transaction {zxid} does not decode: {error}")))
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

/// Reads the tree that a leader sends: the parts of a snapshot without header and seals, then a signature. What was
/// read beyond it comes back too.
pub fn read_stream(input: impl Read, zxid: Zxid, types: ExtendedTypes) -> Result<(Tree, Vec<u8>), BodyError> {
    let mut builder = TreeBuilder::new(types);
    let mut reader = BodyReader::new(input);
    reader.body(&mut builder)?;
    let (length, signature) = reader.take(4 + SIGNATURE.len())?.split_at(4);
    if *length != SIGNATURE_LENGTH.to_be_bytes() || signature != SIGNATURE.as_bytes() {
        return Err(BodyError::Malformed(JuteError::Truncated));
    }
    builder.tree.finish_restore(zxid, std::mem::take(&mut builder.sessions), None);
    Ok((builder.tree, reader.into_rest()))
}

/// Writes a tree for a learner.
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

/// What stands behind a tree on the wire.
const SIGNATURE: &str = "BenWasHere";
const SIGNATURE_LENGTH: i32 = SIGNATURE.len() as i32;

/// What the files hold.
#[derive(Debug)]
pub struct Restored {
    /// The tree.
    pub tree: Tree,
    /// What it was made from.
    pub recovered: Recovered,
    /// When a snapshot had been read, and the log was to follow: if there was one, and a clock.
    pub snapshot_loaded_at: Option<Instant>,
}

/// How files become a tree.
#[derive(Debug, Clone, Copy, Default)]
pub struct Restoring {
    /// What a start may do without.
    pub recover: RecoverOptions,
    /// How owner fields are read.
    pub types: ExtendedTypes,
    /// Whether a second thread reads ahead: it takes about half the time then.
    pub reads_ahead: bool,
    /// Whoever wants to know how long the parts of it take gives a clock.
    pub clock: Option<fn() -> Instant>,
}

/// Reads the newest snapshot and the log after it. Ephemerals without a session, which a fuzzy snapshot of
/// Java's can hold, are dropped.
pub fn restore(disk: &dyn Disk, folders: &DataFolders, how: Restoring) -> Result<Restored, StorageError> {
    let mut builder = TreeBuilder { clock: how.clock, ..TreeBuilder::new(how.types) };
    let recovered = if how.reads_ahead {
        read_ahead::recover_into(&mut builder, disk, folders, how.recover)?
    } else {
        recover(disk, folders, how.recover, &mut builder)?
    };
    for note in &recovered.notes {
        tracing::warn!("{note}");
    }
    if recovered.origin != Origin::Fresh {
        let orphans = builder.tree.drop_orphaned_ephemerals();
        if !orphans.is_empty() {
            tracing::warn!(znodes = orphans.len(), "ephemerals of sessions that are gone were dropped");
        }
    }
    Ok(Restored { tree: builder.tree, recovered, snapshot_loaded_at: builder.snapshot_loaded_at })
}
