//! The files of a server that a test writes: a tree, its log with digests, and snapshots.

use ostler_proto::{
    acl::{Acl, Perms},
    id::{Epoch, SessionId, Zxid},
    txn::{CreateTxn, DIGEST_VERSION, Txn, TxnCreateKind, TxnDigest, TxnHeader, TxnRecord},
};
use ostler_storage::{
    disk::OsDisk,
    epochs::{EpochFile, write_epoch},
    folders::DataFolders,
    snapshot::{SnapshotDigest, SnapshotTarget, SnapshotTrailer, SnapshotWriter, find_snapshots},
    txnlog::{LogOptions, TxnLog},
};
use ostler_tree::Tree;
use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, UNIX_EPOCH},
};

pub(super) const SESSION: SessionId = SessionId(0x77);

pub(super) struct TestServer {
    pub(super) folders: DataFolders,
    pub(super) tree: Tree,
    log: TxnLog,
    zxid: Zxid,
    /// The digest after each transaction.
    pub(super) digests: BTreeMap<Zxid, u64>,
    /// Whether records and snapshots have digests.
    pub(super) records_digests: bool,
    _dir: tempfile::TempDir,
}

impl TestServer {
    /// A member of an ensemble in epoch 1, with a snapshot of the empty tree.
    pub(super) fn new() -> TestServer {
        let dir = tempfile::tempdir().unwrap();
        let folders = DataFolders::open(&OsDisk, dir.path(), None, true).unwrap();
        let log = open_log(&folders);
        let tree = Tree::fresh(Default::default());
        let zxid = Zxid::new(Epoch(1), 0);
        let digests = BTreeMap::new();
        let mut server = TestServer { folders, tree, log, zxid, digests, records_digests: true, _dir: dir };
        server.write_snapshot();
        server.epoch(1);
        server
    }

    /// Begins an epoch.
    pub(super) fn epoch(&mut self, epoch: u32) {
        self.zxid = Zxid::new(Epoch(epoch), 0);
        for which in [EpochFile::Accepted, EpochFile::Current] {
            write_epoch(&OsDisk, &self.folders.snapshots, which, Epoch(epoch)).unwrap();
        }
        self.log.roll();
    }

    /// Begins later in the epoch, as if the transactions before had been purged long ago.
    pub(super) fn skip_to(&mut self, zxid: Zxid) {
        self.zxid = zxid;
        self.log.continue_after(zxid);
    }

    /// Removes the epoch files: the server is standalone.
    pub(super) fn remove_epochs(&self) {
        for name in ["acceptedEpoch", "currentEpoch"] {
            std::fs::remove_file(self.folders.snapshots.join(name)).unwrap();
        }
    }

    /// Gives the newest snapshot file this time.
    pub(super) fn date_snapshot(&self, time_ms: u64) {
        let newest = find_snapshots(&OsDisk, &self.folders.snapshots).unwrap().remove(0);
        let file = std::fs::File::options().write(true).open(newest.path).unwrap();
        file.set_modified(UNIX_EPOCH + Duration::from_millis(time_ms)).unwrap();
    }

    pub(super) fn zxid(&self) -> Zxid {
        self.zxid
    }

    fn log(&mut self, session: SessionId, txn: Txn<'_>) {
        self.zxid = self.zxid.next();
        // One transaction each second.
        let time_ms = self.digests.len() as i64 * 1000;
        let header = TxnHeader { session, cxid: 0, zxid: self.zxid, time_ms, code: txn.code() };
        let record = TxnRecord { header, txn, digest: None };
        self.tree.apply(&record, &mut Vec::new());
        let digest = TxnDigest { version: DIGEST_VERSION, tree: self.tree.digest() };
        let digest = self.records_digests.then_some(digest);
        let mut bytes = Vec::new();
        TxnRecord { digest, ..record }.write(&mut bytes);
        self.log.append(self.zxid, &bytes).unwrap();
        self.digests.insert(self.zxid, self.tree.digest());
    }

    pub(super) fn open_session(&mut self) {
        self.log(SESSION, Txn::CreateSession { timeout_ms: 4000 });
        self.log.commit().unwrap();
    }

    pub(super) fn create(&mut self, path: &str, ephemeral: bool) {
        let txn = Txn::Create(CreateTxn {
            path: path.into(),
            data: Some(b"data"),
            acl: vec![Acl::world(Perms::ALL)].into(),
            ephemeral,
            parent_cversion: -1,
            kind: TxnCreateKind::Create,
        });
        self.log(SESSION, txn);
        self.log.commit().unwrap();
    }

    /// Creates `count` znodes with names that no other has.
    pub(super) fn write(&mut self, count: u32) {
        for _ in 0..count {
            let path = format!("/n{:x}-{}", self.zxid.0, self.digests.len());
            self.create(&path, false);
        }
    }

    pub(super) fn write_snapshot(&mut self) {
        let zxid = if self.digests.is_empty() { Zxid::ZERO } else { self.tree.last_processed() };
        let frozen = self.tree.freeze();
        let mut writer = SnapshotWriter::begin(
            &OsDisk,
            SnapshotTarget::new(&self.folders.snapshots, zxid, Default::default()),
            frozen.sessions.iter().copied(),
            frozen.acls.iter().map(|(id, acls)| (id.to_disk(), &**acls)),
        )
        .unwrap();
        for node in frozen.nodes() {
            writer.node(&node.path, node.data.as_deref(), node.acl.to_disk(), &node.stat).unwrap();
        }
        let digest = SnapshotDigest { zxid, version: DIGEST_VERSION, digest: frozen.digest };
        let digest = self.records_digests.then_some(digest);
        writer.finish(SnapshotTrailer { digest, last_processed: Some(zxid) }).unwrap();
        self.log.roll();
    }

    /// Takes the transactions after `to` back, as at a TRUNC. The tree is that of `to` again.
    pub(super) fn truncate(&mut self, to: Zxid) {
        self.log.truncate_after(to).unwrap();
        let options = ostler_data_dir::recovery::RestoreOptions::default();
        let restored = ostler_data_dir::recovery::restore(&OsDisk, &self.folders, options).unwrap();
        assert_eq!(restored.recovered.last_zxid, to);
        self.tree = restored.tree;
        self.digests.retain(|zxid, _| *zxid <= to);
        self.zxid = to;
    }

    /// Applies transactions that this server never logs, then writes a snapshot, as after a SNAP of a leader.
    pub(super) fn install(&mut self, other: &mut TestServer) {
        self.tree = {
            other.write_snapshot();
            let options = ostler_data_dir::recovery::RestoreOptions::default();
            ostler_data_dir::recovery::restore(&OsDisk, &other.folders, options).unwrap().tree
        };
        self.digests = other.digests.clone();
        self.zxid = other.zxid;
        self.write_snapshot();
        self.log = open_log(&self.folders);
        self.log.continue_after(self.zxid);
    }

    /// Removes log files that begin before `zxid`, all but the last of them, and older snapshots.
    pub(super) fn purge(&mut self) {
        let removed = ostler_storage::retention::purge(
            &OsDisk,
            &self.folders,
            3,
            &[],
            &ostler_storage::txnlog::SpareLog::new(self.folders.logs.clone()),
            &|| true,
        );
        assert!(!removed.unwrap().is_empty());
    }
}

fn open_log(folders: &DataFolders) -> TxnLog {
    let options = LogOptions { prealloc_bytes: 1 << 16, ..LogOptions::default() };
    TxnLog::open(Arc::new(OsDisk), folders.logs.clone(), options)
}
