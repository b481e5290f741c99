//! The sink that tests read into, and records and snapshots to write.

use ostler_proto::{
    acl::Acl,
    id::{SessionId, Zxid},
    stat::StatPersisted,
    txn::{Txn, TxnHeader, TxnRecord},
};
use ostler_storage::{
    disk::Disk,
    error::{Refusal, Result},
    recover::RecoverySink,
    snapshot::{Compression, SnapshotNode, SnapshotSink, SnapshotTarget, SnapshotTrailer, SnapshotWriter},
    txnlog::LogReader,
};
use std::path::Path;

/// A znode of a snapshot, owned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Node {
    pub path: String,
    pub data: Option<Vec<u8>>,
    pub acl: i64,
    pub stat: StatPersisted,
}

/// A sink that keeps everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Contents {
    pub sessions: Vec<(SessionId, i32)>,
    pub acls: Vec<(i64, Vec<Acl>)>,
    pub nodes: Vec<Node>,
    pub snapshot: Option<(Zxid, SnapshotTrailer)>,
    pub records: Vec<(Zxid, Vec<u8>)>,
    /// The path of a znode that is refused, as a tree refuses one without a parent.
    pub refuses: Option<&'static str>,
    /// The zxid of a transaction that is refused.
    pub refuses_record: Option<Zxid>,
}

impl SnapshotSink for Contents {
    fn session(&mut self, id: SessionId, timeout_ms: i32) -> std::result::Result<(), Refusal> {
        self.sessions.push((id, timeout_ms));
        Ok(())
    }

    fn acl(&mut self, index: i64, acl: Vec<Acl>) -> std::result::Result<(), Refusal> {
        self.acls.push((index, acl));
        Ok(())
    }

    fn node(&mut self, node: SnapshotNode<'_>) -> std::result::Result<(), Refusal> {
        if Some(&*node.path) == self.refuses {
            return Err("its parent is missing".into());
        }
        self.nodes.push(Node {
            path: node.path.into_owned(),
            data: node.data.map(<[u8]>::to_vec),
            acl: node.acl,
            stat: node.stat,
        });
        Ok(())
    }
}

impl RecoverySink for Contents {
    fn reset(&mut self) {
        let Contents { refuses, refuses_record, .. } = *self;
        *self = Contents { refuses, refuses_record, ..Contents::default() };
    }

    fn snapshot_loaded(&mut self, zxid: Zxid, trailer: SnapshotTrailer) -> std::result::Result<(), Refusal> {
        self.snapshot = Some((zxid, trailer));
        Ok(())
    }

    fn record(&mut self, zxid: Zxid, record: &[u8]) -> std::result::Result<(), Refusal> {
        if Some(zxid) == self.refuses_record {
            return Err("there is no such znode".into());
        }
        self.records.push((zxid, record.to_vec()));
        Ok(())
    }
}

/// A record of about `size` bytes of data.
pub(crate) fn record(zxid: Zxid, size: usize) -> Vec<u8> {
    let header = TxnHeader { session: SessionId(1), cxid: 2, zxid, time_ms: 3, code: 5 };
    let data: Vec<u8> = (0..size).map(|n| (n as u64 * 7 + zxid.0) as u8 | 1).collect();
    let txn = Txn::SetData { reconfig: false, path: "/a".into(), data: Some(&data), version: 1 };
    let mut bytes = Vec::new();
    TxnRecord { header, txn, digest: None }.write(&mut bytes);
    bytes
}

/// All records that a reader still has.
pub(crate) fn drain(reader: &mut LogReader<'_>) -> Result<Vec<(Zxid, Vec<u8>)>> {
    let mut records = Vec::new();
    while let Some(record) = reader.next_record()? {
        records.push((record.zxid, record.bytes.to_vec()));
    }
    Ok(records)
}

/// Begins a snapshot without sessions and ACLs.
pub(crate) fn begin_snapshot<'d>(disk: &'d dyn Disk, dir: &Path, zxid: u64) -> Result<SnapshotWriter<'d>> {
    SnapshotWriter::begin(
        disk,
        SnapshotTarget::new(dir, Zxid(zxid), Compression::None),
        [].into_iter(),
        [].into_iter(),
    )
}
