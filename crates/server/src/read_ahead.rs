//! Recovery on two threads: one reads the files, checks them and makes znodes, the other puts them into the tree.
//!
//! Either is about half of the work, and a server that comes back is waited for. What is refused by the tree is known
//! late: at the end of the snapshot.

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

/// Steps that wait at most.
const AHEAD: usize = 4;
const ZNODES_PER_STEP: usize = 256;
const BYTES_PER_STEP: usize = 64 << 10;

/// What the reading thread has found, in order.
enum Step {
    Reset,
    Session(SessionId, i32),
    Acl(i64, Vec<Acl>),
    /// With the number of each one's ACL.
    Znodes(Vec<(DetachedZnode, i64)>),
    SnapshotLoaded {
        zxid: Zxid,
        trailer: SnapshotTrailer,
        verdict: SyncSender<Result<(), Refusal>>,
    },
    Records(Records),
}

/// Records of the log, one behind the other.
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
    let (sender, steps) = sync_channel(AHEAD);
    let read = move || {
        let mut reader =
            Reader { steps: sender, znodes: Vec::new(), records: Records::default(), waiting: 0 };
        let recovered = recover(disk, folders, options, &mut reader)?;
        reader.flush();
        Ok(recovered)
    };
    thread::scope(|scope| {
        match thread::Builder::new().name("recovery".to_owned()).spawn_scoped(scope, read) {
            Ok(reader) => {
                build(builder, &steps);
                reader.join().unwrap_or_else(|panic| resume_unwind(panic))
            }
            // One thread does it too.
            Err(_) => recover(disk, folders, options, builder),
        }
    })
}

/// Carries out the steps until there are no more.
fn build(builder: &mut TreeBuilder, steps: &Receiver<Step>) {
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
                // Who asked waits for it.
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

/// The reading thread's end.
struct Reader {
    steps: SyncSender<Step>,
    znodes: Vec<(DetachedZnode, i64)>,
    records: Records,
    /// Bytes of data in `znodes`.
    waiting: usize,
}

impl Reader {
    /// What is said to nobody is of no use: the other side ends after this one.
    fn say(&self, step: Step) {
        let _ = self.steps.send(step);
    }

    fn flush(&mut self) {
        if !self.znodes.is_empty() {
            let next = Vec::with_capacity(ZNODES_PER_STEP);
            self.waiting = 0;
            let znodes = std::mem::replace(&mut self.znodes, next);
            self.say(Step::Znodes(znodes));
        }
        if !self.records.ends.is_empty() {
            let next = Records { bytes: Vec::with_capacity(BYTES_PER_STEP), ends: Vec::new() };
            let records = std::mem::replace(&mut self.records, next);
            self.say(Step::Records(records));
        }
    }
}

impl SnapshotSink for Reader {
    fn session(&mut self, id: SessionId, timeout_ms: i32) -> Result<(), Refusal> {
        self.say(Step::Session(id, timeout_ms));
        Ok(())
    }

    fn acl(&mut self, index: i64, acl: Vec<Acl>) -> Result<(), Refusal> {
        self.say(Step::Acl(index, acl));
        Ok(())
    }

    fn node(&mut self, node: SnapshotNode<'_>) -> Result<(), Refusal> {
        self.znodes.push((DetachedZnode::new(&node.path, node.data, node.stat), node.acl));
        self.waiting += node.data.map_or(0, <[u8]>::len);
        if self.znodes.len() == ZNODES_PER_STEP || self.waiting >= BYTES_PER_STEP {
            self.flush();
        }
        Ok(())
    }
}

impl RecoverySink for Reader {
    fn reset(&mut self) {
        self.flush();
        self.say(Step::Reset);
    }

    fn snapshot_loaded(&mut self, zxid: Zxid, trailer: SnapshotTrailer) -> Result<(), Refusal> {
        self.flush();
        let (verdict, answer) = sync_channel(1);
        self.say(Step::SnapshotLoaded { zxid, trailer, verdict });
        answer.recv().unwrap_or_else(|_| Err(Refusal::from("nobody builds the tree".to_owned())))
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
