//! Recovery on two threads: one reads the files, checks them and makes znodes, the other adds them to the tree.
//!
//! Each thread does about half of the work, so a start takes about half the time. If the tree refuses a part of a
//! snapshot, the reading thread learns this only at the end of the snapshot.

use crate::recovery::{TreeBuilder, decode};
use ostler_proto::{
    acl::Acl,
    id::{SessionId, Zxid},
};
use ostler_storage::{
    StorageError,
    disk::Disk,
    error::Refusal,
    folders::DataFolders,
    recover::{RecoverOptions, Recovered, RecoverySink, recover},
    snapshot::{SnapshotNode, SnapshotSink, SnapshotTrailer},
};
use ostler_tree::DetachedZnode;
use std::{
    panic::resume_unwind,
    sync::mpsc::{Receiver, SyncSender, sync_channel},
    thread,
};

/// The highest number of steps that the reading thread is ahead.
const STEPS_AHEAD: usize = 4;
const ZNODES_PER_STEP: usize = 256;
const BYTES_PER_STEP: usize = 64 << 10;

/// A part of the state that the reading thread passes on, in order.
enum Step {
    Reset,
    Session(SessionId, i32),
    Acl(i64, Vec<Acl>),
    /// Znodes, each with the index of its ACL.
    Znodes(Vec<(DetachedZnode, i64)>),
    SnapshotLoaded {
        zxid: Zxid,
        trailer: SnapshotTrailer,
        verdict: SyncSender<Result<(), Refusal>>,
    },
    Records(Records),
}

/// Records of the log, joined in one buffer.
#[derive(Default)]
struct Records {
    bytes: Vec<u8>,
    ends: Vec<(Zxid, usize)>,
}

/// Recovers into `builder`.
pub(crate) fn recover_into(
    builder: &mut TreeBuilder,
    disk: &dyn Disk,
    folders: &DataFolders,
    options: RecoverOptions,
) -> Result<Recovered, StorageError> {
    let (sender, steps) = sync_channel(STEPS_AHEAD);
    let read = move || {
        let mut reader = ReadingThread {
            steps: sender,
            znodes: Vec::new(),
            records: Records::default(),
            waiting_bytes: 0,
        };
        let recovered = recover(disk, folders, options, &mut reader)?;
        reader.flush();
        Ok(recovered)
    };
    thread::scope(|scope| {
        match thread::Builder::new().name("recovery".to_owned()).spawn_scoped(scope, read) {
            Ok(reader) => {
                build(builder, steps);
                reader.join().unwrap_or_else(|panic| resume_unwind(panic))
            }
            // Without a second thread, recovery runs on this one.
            Err(_) => recover(disk, folders, options, builder),
        }
    })
}

/// Carries out the steps until there are no more.
fn build(builder: &mut TreeBuilder, steps: Receiver<Step>) {
    let mut refused = None;
    for step in steps {
        let done = match step {
            Step::Reset => {
                builder.reset();
                refused = None;
                Ok(())
            }
            Step::Session(id, timeout_ms) => builder.session(id, timeout_ms),
            Step::Acl(index, acl) => builder.acl(index, acl),
            Step::Znodes(znodes) => {
                znodes.into_iter().try_for_each(|(znode, acl)| builder.detached(znode, acl))
            }
            Step::SnapshotLoaded { zxid, trailer, verdict } => {
                let loaded = refused.take().map_or_else(|| builder.snapshot_loaded(zxid, trailer), Err);
                // The reading thread waits for the verdict.
                let _ = verdict.send(loaded);
                Ok(())
            }
            Step::Records(records) => {
                records.apply(builder);
                Ok(())
            }
        };
        refused = refused.or(done.err());
    }
}

impl Records {
    fn push(&mut self, zxid: Zxid, record: &[u8]) {
        self.bytes.extend_from_slice(record);
        self.ends.push((zxid, self.bytes.len()));
    }

    fn apply(&self, builder: &mut TreeBuilder) {
        let mut start = 0;
        for (zxid, end) in &self.ends {
            let record = &self.bytes[start..*end];
            builder.record(*zxid, record).expect("the reading thread has decoded it");
            start = *end;
        }
    }
}

/// The reading thread: a sink that passes on what recovery reads.
struct ReadingThread {
    steps: SyncSender<Step>,
    znodes: Vec<(DetachedZnode, i64)>,
    records: Records,
    /// Bytes of data in `znodes`.
    waiting_bytes: usize,
}

impl ReadingThread {
    /// Passes on a step. The receiver outlives this thread, so sending cannot fail.
    fn send(&self, step: Step) {
        let _ = self.steps.send(step);
    }

    fn flush(&mut self) {
        if !self.znodes.is_empty() {
            let next = Vec::with_capacity(ZNODES_PER_STEP);
            self.waiting_bytes = 0;
            let znodes = std::mem::replace(&mut self.znodes, next);
            self.send(Step::Znodes(znodes));
        }
        if !self.records.ends.is_empty() {
            let next = Records { bytes: Vec::with_capacity(BYTES_PER_STEP), ends: Vec::new() };
            let records = std::mem::replace(&mut self.records, next);
            self.send(Step::Records(records));
        }
    }
}

impl SnapshotSink for ReadingThread {
    fn session(&mut self, id: SessionId, timeout_ms: i32) -> Result<(), Refusal> {
        self.send(Step::Session(id, timeout_ms));
        Ok(())
    }

    fn acl(&mut self, index: i64, acl: Vec<Acl>) -> Result<(), Refusal> {
        self.send(Step::Acl(index, acl));
        Ok(())
    }

    fn node(&mut self, node: SnapshotNode<'_>) -> Result<(), Refusal> {
        self.znodes.push((DetachedZnode::new(&node.path, node.data, node.stat), node.acl));
        self.waiting_bytes += node.data.map_or(0, <[u8]>::len);
        if self.znodes.len() == ZNODES_PER_STEP || self.waiting_bytes >= BYTES_PER_STEP {
            self.flush();
        }
        Ok(())
    }
}

impl RecoverySink for ReadingThread {
    fn reset(&mut self) {
        self.flush();
        self.send(Step::Reset);
    }

    fn snapshot_loaded(&mut self, zxid: Zxid, trailer: SnapshotTrailer) -> Result<(), Refusal> {
        self.flush();
        let (verdict, answer) = sync_channel(1);
        self.send(Step::SnapshotLoaded { zxid, trailer, verdict });
        answer
            .recv()
            .unwrap_or_else(|_| Err(Refusal::from("the thread that builds the tree has ended".to_owned())))
    }

    fn record(&mut self, zxid: Zxid, record: &[u8]) -> Result<(), Refusal> {
        decode(zxid, record)?;
        self.records.push(zxid, record);
        if self.records.bytes.len() >= BYTES_PER_STEP {
            self.flush();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recovery::{RestoreOptions, restore};
    use ostler_proto::{
        stat::StatPersisted,
        txn::{CreateTxn, Txn, TxnCreateKind, TxnHeader, TxnRecord},
    };
    use ostler_storage::{
        disk::OsDisk,
        names::Compression,
        recover::{Note, Origin},
        snapshot::{SnapshotTarget, SnapshotTrailer, SnapshotWriter},
        txnlog::{LogOptions, TxnLog},
    };
    use ostler_tree::Tree;
    use std::sync::Arc;

    fn folders(dir: &tempfile::TempDir) -> DataFolders {
        DataFolders::open(&OsDisk, dir.path(), None, true).unwrap()
    }

    fn write_snapshot(folders: &DataFolders, zxid: u64, paths: impl IntoIterator<Item = String>) {
        let (sessions, acls) = ([], []);
        let mut writer = SnapshotWriter::begin(
            &OsDisk,
            SnapshotTarget::new(&folders.snapshots, Zxid(zxid), Compression::None),
            sessions.into_iter(),
            acls.into_iter(),
        )
        .unwrap();
        for path in paths {
            writer.node(&path, Some(&[7; 100]), -1, &StatPersisted::default()).unwrap();
        }
        writer.finish(SnapshotTrailer { digest: None, last_processed: None }).unwrap();
    }

    fn write_log(folders: &DataFolders, zxids: std::ops::RangeInclusive<u64>) {
        let mut log = TxnLog::open(Arc::new(OsDisk), folders.logs.clone(), LogOptions::default());
        for zxid in zxids {
            let txn = Txn::Create(CreateTxn {
                path: format!("/logged-{zxid}").into(),
                data: Some(&[9; 1000]),
                acl: Vec::new().into(),
                ephemeral: false,
                parent_cversion: -1,
                kind: TxnCreateKind::Create,
            });
            let header =
                TxnHeader { session: SessionId(1), cxid: 0, zxid: Zxid(zxid), time_ms: 0, code: txn.code() };
            let mut record = Vec::new();
            TxnRecord { header, txn, digest: None }.write(&mut record);
            log.append(Zxid(zxid), &record).unwrap();
        }
        log.commit().unwrap();
    }

    fn several_steps_of_paths() -> impl Iterator<Item = String> {
        let count = 5 * ZNODES_PER_STEP + 7;
        ["/".to_owned()].into_iter().chain((0..count).map(|n| format!("/n{n}")))
    }

    #[test]
    fn two_threads_build_the_tree_that_one_builds() {
        let dir = tempfile::tempdir().unwrap();
        let folders = folders(&dir);
        write_snapshot(&folders, 3, several_steps_of_paths());
        write_log(&folders, 4..=5 * (BYTES_PER_STEP as u64) / 1000);
        let how = RestoreOptions { reads_ahead: true, ..RestoreOptions::default() };
        let of = |tree: &Tree| (tree.node_count(), tree.digest(), tree.last_processed(), tree.data_size());
        let two = restore(&OsDisk, &folders, how).unwrap();
        let one = restore(&OsDisk, &folders, RestoreOptions::default()).unwrap();
        assert_eq!(two.recovered, one.recovered);
        assert_eq!(of(&two.tree), of(&one.tree));
        assert!(two.tree.get("/logged-4").is_some() && two.tree.get("/n1").is_some());
    }

    #[test]
    fn a_snapshot_that_the_tree_refuses_leaves_nothing_behind() {
        let dir = tempfile::tempdir().unwrap();
        let folders = folders(&dir);
        write_snapshot(&folders, 0, ["/".to_owned(), "/kept".to_owned()]);
        write_log(&folders, 1..=5);
        write_snapshot(&folders, 5, several_steps_of_paths().chain(["/no/parent".to_owned()]));
        let how = RestoreOptions { reads_ahead: true, ..RestoreOptions::default() };
        let restored = restore(&OsDisk, &folders, how).unwrap();
        assert_eq!(restored.recovered.origin, Origin::Snapshot(Zxid(0)));
        assert_eq!(restored.tree.node_count(), 2 + 5);
        let [Note::SnapshotSkipped { reason, .. }] = &restored.recovered.notes[..] else {
            panic!("{:?}", restored.recovered.notes);
        };
        assert!(reason.contains("/no/parent comes before its parent"), "{reason}");
    }
}
