//! Makes the tree of one transaction from a backup, in memory. Nothing on disk or in the backup changes.

use crate::{
    error::{BackupError, FileContext, Result},
    history::{History, time_of},
    part::Base,
    store::Store,
    tree_builder::TreeBuilder,
};
use ostler_proto::{
    id::Zxid,
    stat::ExtendedTypes,
    txn::{DIGEST_VERSION, TxnRecord},
};
use ostler_storage::{
    disk::OsDisk,
    names::parse_snapshot_name,
    snapshot::{SnapshotFile, read_snapshot},
};
use ostler_tree::Tree;
use std::path::{Path, PathBuf};

/// A tree that was rebuilt.
#[derive(Debug)]
pub struct Rebuilt {
    /// The tree, with the sessions and ephemerals of then.
    pub tree: Tree,
    /// The transaction.
    pub zxid: Zxid,
    /// Its time in ms since 1970; `None` if the tree is that of a base.
    pub time_ms: Option<i64>,
    /// The digest that the leader has recorded with the transaction, or the server with the base. It is the digest of
    /// the tree. `None` if none was recorded (`zookeeper.digest.enabled=false`, or ZooKeeper before 3.6).
    pub recorded: Option<u64>,
    /// The base.
    pub base: Zxid,
    /// The number of records that were applied to the base.
    pub records: u64,
    /// The number of earlier records whose digest was not that of the tree.
    pub digest_mismatches: u64,
    /// Bases that could not be used, with the reasons.
    pub notes: Vec<String>,
}

/// Rebuilds the tree at `zxid`, from the newest base that can be used.
///
/// # Errors
/// The backup lacks transactions or has no usable base; the tree has another digest than the one recorded.
pub fn rebuild(store: &Store, history: &History, zxid: Zxid) -> Result<Rebuilt> {
    let types = types(history);
    let mut notes = Vec::new();
    for base in history.bases(zxid) {
        match from_base(store, history, base, (zxid, types)) {
            Ok(rebuilt) => return Ok(Rebuilt { notes, ..rebuilt }),
            // An older base can have the same transactions.
            Err(
                error @ (BackupError::Damaged { .. } | BackupError::Gap { .. } | BackupError::Storage(_)),
            ) => {
                notes.push(format!("base {} was not used: {error}", base.zxid));
            }
            Err(error) => return Err(error),
        }
    }
    let details = notes.iter().map(|note| format!("; {note}")).collect();
    Err(BackupError::NoUsableBase { wanted: zxid, details })
}

/// Rebuilds the tree at `zxid` from this base.
///
/// # Errors
/// As [`rebuild`]; the base or a segment is damaged.
pub fn rebuild_from(store: &Store, history: &History, base: &Base, zxid: Zxid) -> Result<Rebuilt> {
    from_base(store, history, base, (zxid, types(history)))
}

/// How owner fields are read. If the configuration was not known, TTL znodes count as such: only ephemerals of a server
/// with the id 255 would be taken for some.
fn types(history: &History) -> ExtendedTypes {
    let known = history.parts().last().and_then(|part| part.source.extended_types);
    ExtendedTypes { enabled: known.unwrap_or(true), emulate_353: false }
}

/// Rebuilds the tree at a transaction from one base, and compares the digests.
fn from_base(
    store: &Store,
    history: &History,
    base: &Base,
    (zxid, types): (Zxid, ExtendedTypes),
) -> Result<Rebuilt> {
    let mut builder = TreeBuilder::new(types);
    let mut recorded = load_base(store, base, &mut builder)?;
    let mut time_ms = None;
    let records = history.replay(store, (base.zxid, zxid), &mut |own, bytes| {
        let record = TxnRecord::read(bytes).map_err(|error| {
            store.damaged(&format!("transaction {own}"), &format!("it is malformed: {error}"))
        })?;
        builder.apply(&record);
        if own == zxid {
            recorded =
                record.digest.filter(|digest| digest.version == DIGEST_VERSION).map(|digest| digest.tree);
            time_ms = time_of(bytes);
        }
        Ok(())
    })?;
    let tree = builder.into_tree();
    if let Some(recorded) = recorded.filter(|recorded| *recorded != tree.digest()) {
        return Err(BackupError::DigestDiffers { zxid, found: tree.digest(), recorded });
    }
    let digest_mismatches = tree.digest_mismatches();
    Ok(Rebuilt {
        tree,
        zxid,
        time_ms,
        recorded,
        base: base.zxid,
        records,
        digest_mismatches,
        notes: Vec::new(),
    })
}

/// Reads a base into the builder. Returns the digest of its tree, if it has one that is exactly of its zxid.
fn load_base(store: &Store, base: &Base, builder: &mut TreeBuilder) -> Result<Option<u64>> {
    let name = base.object.rsplit('/').next().unwrap_or_default();
    let Some((zxid, compression)) = parse_snapshot_name(name).filter(|(zxid, _)| *zxid == base.zxid) else {
        return Err(store.damaged(&base.object, "its name is not that of a snapshot with its zxid"));
    };
    let (path, _temporary) = fetch(store, base)?;
    let file = SnapshotFile { zxid, compression, path, problem: None };
    let trailer = read_snapshot(&OsDisk, &file, builder)?;
    builder.end_snapshot(zxid, &trailer);
    let digest = trailer.digest.filter(|digest| digest.zxid == zxid && digest.version == DIGEST_VERSION);
    let digest = digest.filter(|_| zxid > Zxid::ZERO).map(|digest| digest.digest);
    match digest {
        Some(recorded) if recorded != builder.tree().digest() => {
            let reason =
                format!("its tree has the digest {:#x}, and it says {recorded:#x}", builder.tree().digest());
            Err(store.damaged(&base.object, &reason))
        }
        digest => Ok(digest),
    }
}

/// Copies a base into a temporary file, which goes away with the second value.
fn fetch(store: &Store, base: &Base) -> Result<(PathBuf, tempfile::NamedTempFile)> {
    let file = tempfile::NamedTempFile::new()
        .during("make a temporary file in", Path::new(&std::env::temp_dir()))?;
    store.fetch(&base.object, &base.stored(), file.as_file(), file.path())?;
    Ok((file.path().to_path_buf(), file))
}
