//! Reads one snapshot, part by part, without a tree in memory.

use crate::{
    error::Result,
    view::{AclView, DataForm, DataView, Printable, StatView, acl_text, session_text, time_text, zxid_text},
};
use ostler_proto::{
    acl::Acl,
    id::{SessionId, Zxid},
};
use ostler_storage::{
    StorageError,
    disk::Disk,
    error::Refusal,
    snapshot::{SnapshotFile, SnapshotNode, SnapshotSink, read_snapshot},
};
use serde::Serialize;
use std::{collections::HashMap, fmt, path::PathBuf};

/// A part of a snapshot, in the order of the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum SnapshotPart {
    /// A session.
    Session {
        /// The id.
        #[serde(serialize_with = "session_text")]
        session: SessionId,
        /// The timeout in ms.
        timeout_ms: i32,
    },
    /// A znode.
    Znode {
        /// The path.
        path: String,
        /// The size of the data in bytes; null for null data.
        data_bytes: Option<usize>,
        /// The data, if they are wanted.
        #[serde(flatten)]
        data: Option<DataView>,
        /// The ACL; null if the snapshot does not define the list that the znode refers to. A fuzzy snapshot of Java can
        /// lack it: the log after the snapshot has it.
        acl: Option<Vec<AclView>>,
        /// The stored Stat.
        #[serde(flatten)]
        stat: StatView,
    },
    /// The end of a whole snapshot.
    End(SnapshotEnd),
    /// The snapshot cannot be read any further.
    Damage {
        /// The snapshot file.
        file: PathBuf,
        /// The byte at which the unreadable part starts; in the contents if the file is compressed.
        offset: u64,
        /// The damage, in words.
        reason: String,
    },
}

/// The sections behind the znodes, and the counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct SnapshotEnd {
    /// The zxid in the name of the file.
    #[serde(serialize_with = "zxid_text")]
    pub zxid: Zxid,
    /// The zxid when the snapshot was completed. Java writes a snapshot while the tree changes, so this can be higher.
    #[serde(serialize_with = "zxid_or_null")]
    pub last_processed: Option<Zxid>,
    /// The digest of the tree.
    #[serde(serialize_with = "hex_or_null")]
    pub digest: Option<u64>,
    /// The zxid at which the digest was taken.
    #[serde(serialize_with = "zxid_or_null")]
    pub digest_zxid: Option<Zxid>,
    /// The number of sessions.
    pub sessions: u64,
    /// The number of znodes.
    pub znodes: u64,
    /// The size of their data in bytes.
    pub data_bytes: u64,
}

fn zxid_or_null<S: serde::Serializer>(zxid: &Option<Zxid>, to: S) -> std::result::Result<S::Ok, S::Error> {
    zxid.map(|zxid| zxid.to_string()).serialize(to)
}

fn hex_or_null<S: serde::Serializer>(value: &Option<u64>, to: S) -> std::result::Result<S::Ok, S::Error> {
    value.map(|value| format!("{value:#x}")).serialize(to)
}

impl fmt::Display for SnapshotPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SnapshotPart::Session { session, timeout_ms } => {
                write!(f, "session {session} timeout {timeout_ms} ms")
            }
            SnapshotPart::Znode { path, data_bytes, data, acl, stat } => {
                write!(f, "{} ", Printable(path))?;
                match data_bytes {
                    Some(bytes) => write!(f, "{bytes} bytes")?,
                    None => write!(f, "null")?,
                }
                data.as_ref().map_or(Ok(()), |data| write!(f, " {data}"))?;
                write!(
                    f,
                    " version {} cversion {} aversion {} czxid {} mzxid {} pzxid {} created {} changed {} {} acl {}",
                    stat.version,
                    stat.cversion,
                    stat.aversion,
                    stat.czxid,
                    stat.mzxid,
                    stat.pzxid,
                    time_text(stat.ctime_ms),
                    time_text(stat.mtime_ms),
                    stat.kind,
                    acl.as_deref().map_or_else(|| "not in this snapshot".to_owned(), acl_text)
                )
            }
            SnapshotPart::End(end) => {
                write!(
                    f,
                    "whole snapshot of {}: {} znodes, {} bytes of data, {} sessions",
                    end.zxid, end.znodes, end.data_bytes, end.sessions
                )?;
                // Java writes a digest of zxid 0 if it knows none.
                if let (Some(digest), Some(zxid @ Zxid(1..))) = (end.digest, end.digest_zxid) {
                    write!(f, ", digest {digest:#x} at {zxid}")?;
                }
                end.last_processed.map_or(Ok(()), |zxid| write!(f, ", completed at {zxid}"))
            }
            SnapshotPart::Damage { file, offset, reason } => {
                write!(f, "{}: damaged at byte {offset}: {reason}", file.display())
            }
        }
    }
}

/// Reads a snapshot and passes its parts to `take`. The last part is its end, or the damage at which it stopped.
/// Returns whether it is whole.
pub fn dump(
    disk: &dyn Disk,
    file: &SnapshotFile,
    form: DataForm,
    take: &mut dyn FnMut(SnapshotPart) -> Result<()>,
) -> Result<bool> {
    let counts = SnapshotEnd {
        zxid: file.zxid,
        last_processed: None,
        digest: None,
        digest_zxid: None,
        sessions: 0,
        znodes: 0,
        data_bytes: 0,
    };
    let mut sink = Dump { form, take, acls: HashMap::new(), counts, failed: None };
    let read = read_snapshot(disk, file, &mut sink);
    let Dump { take, mut counts, failed, .. } = sink;
    if let Some(error) = failed {
        return Err(error);
    }
    match read {
        Ok(trailer) => {
            counts.last_processed = trailer.last_processed;
            counts.digest = trailer.digest.map(|digest| digest.digest);
            counts.digest_zxid = trailer.digest.map(|digest| digest.zxid);
            take(SnapshotPart::End(counts))?;
            Ok(true)
        }
        Err(StorageError::BadSnapshot { file, offset, reason }) => {
            take(SnapshotPart::Damage { file, offset, reason })?;
            Ok(false)
        }
        Err(other) => Err(other.into()),
    }
}

struct Dump<'a> {
    form: DataForm,
    take: &'a mut dyn FnMut(SnapshotPart) -> Result<()>,
    acls: HashMap<i64, Vec<AclView>>,
    counts: SnapshotEnd,
    /// The error of `take`, which ends the dump.
    failed: Option<crate::InspectError>,
}

impl Dump<'_> {
    fn pass(&mut self, part: SnapshotPart) -> std::result::Result<(), Refusal> {
        (self.take)(part).map_err(|error| {
            self.failed = Some(error);
            "the output ended".into()
        })
    }
}

impl SnapshotSink for Dump<'_> {
    fn session(&mut self, session: SessionId, timeout_ms: i32) -> std::result::Result<(), Refusal> {
        self.counts.sessions += 1;
        self.pass(SnapshotPart::Session { session, timeout_ms })
    }

    fn acl(&mut self, index: i64, acl: Vec<Acl>) -> std::result::Result<(), Refusal> {
        self.acls.insert(index, AclView::list(&acl));
        Ok(())
    }

    fn node(&mut self, node: SnapshotNode<'_>) -> std::result::Result<(), Refusal> {
        let acl = match node.acl {
            -1 => Some(AclView::list(&[Acl::world(ostler_proto::acl::Perms::ALL)])),
            index => self.acls.get(&index).cloned(),
        };
        self.counts.znodes += 1;
        self.counts.data_bytes += node.data.map_or(0, <[u8]>::len) as u64;
        self.pass(SnapshotPart::Znode {
            path: node.path.clone().into_owned(),
            data_bytes: node.data.map(<[u8]>::len),
            data: DataView::of(node.data, self.form),
            acl,
            stat: StatView::of(&node.stat),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ostler_proto::stat::StatPersisted;
    use ostler_storage::{
        disk::OsDisk,
        snapshot::{Compression, SnapshotTarget, SnapshotTrailer, SnapshotWriter, find_snapshots},
    };

    /// A fuzzy snapshot of Java can be like this, and SnapshotFormatter shows its znodes too.
    #[test]
    fn a_znode_is_shown_also_if_the_snapshot_lacks_its_acl() {
        let dir = tempfile::tempdir().unwrap();
        let target = SnapshotTarget::new(dir.path(), Zxid(3), Compression::None);
        let list = [Acl::world(ostler_proto::acl::Perms::READ)];
        let mut writer =
            SnapshotWriter::begin(&OsDisk, target, [].into_iter(), [(5, &list[..])].into_iter()).unwrap();
        for (path, acl) in [("/", -1), ("/known", 5), ("/new", 6)] {
            writer.node(path, Some(b"x"), acl, &StatPersisted::default()).unwrap();
        }
        writer.finish(SnapshotTrailer { digest: None, last_processed: None }).unwrap();
        let files = find_snapshots(&OsDisk, dir.path()).unwrap();
        let mut acls = Vec::new();
        let whole = dump(&OsDisk, &files[0], DataForm::Size, &mut |part| {
            let text = part.to_string();
            acls.extend(text.split_once(" acl ").map(|(_, acl)| acl.to_owned()));
            Ok(())
        });
        assert!(whole.unwrap());
        assert_eq!(acls, ["world:anyone:cdrwa", "world:anyone:r", "not in this snapshot"]);
    }
}
