//! Repairs of folders with every kind of damage.

use super::{Action, Plan, RepairOptions, Start, apply, plan};
use crate::{InspectError, state};
use ostler_proto::{
    acl::{Acl, Perms},
    id::{SessionId, Zxid},
    txn::{CreateTxn, Txn, TxnCreateKind, TxnHeader, TxnRecord},
};
use ostler_storage::{
    disk::OsDisk,
    folders::DataFolders,
    lock::FolderLock,
    snapshot::{Compression, SnapshotTarget, SnapshotTrailer, SnapshotWriter},
    txnlog::{LogOptions, TxnLog},
};
use std::{
    fs,
    path::PathBuf,
    process::{Child, Command},
    sync::{Arc, RwLock},
};
use tempfile::TempDir;

/// Repairs hold it for reading. Before a child runs its program, it has the files of all tests open.
static CHILDREN: RwLock<()> = RwLock::new(());

/// A program that has this file open.
pub(super) fn user_of(file: fs::File) -> Child {
    let _no_repair = CHILDREN.write().unwrap();
    Command::new("sleep").arg("60").stdin(file).spawn().unwrap()
}

struct Folder {
    _dir: TempDir,
    folders: DataFolders,
}

impl Folder {
    /// A folder with a snapshot of 0, logs of 1..=4 and 5..=9 with one create each, and a snapshot of 4.
    fn new() -> Folder {
        let dir = tempfile::tempdir().unwrap();
        let folders = DataFolders::open(&OsDisk, dir.path(), None, true).unwrap();
        let folder = Folder { _dir: dir, folders };
        folder.snapshot_of(0);
        let mut log = folder.log();
        for zxid in 1..=9 {
            if zxid == 5 {
                log.roll();
            }
            log.append(Zxid(zxid), &create(zxid)).unwrap();
            log.commit().unwrap();
        }
        folder.snapshot_of(4);
        folder
    }

    fn log(&self) -> TxnLog {
        let options = LogOptions { prealloc_bytes: 0, ..LogOptions::default() };
        TxnLog::open(Arc::new(OsDisk), self.folders.logs.clone(), options)
    }

    fn snapshot_of(&self, zxid: u64) {
        let at = Zxid(zxid);
        let state = match zxid {
            0 => ostler_tree::Tree::fresh(crate::view::TYPES),
            _ => state::of_folder(&OsDisk, &self.folders, Some(at)).unwrap().tree,
        };
        let frozen = state.freeze();
        let target = SnapshotTarget::new(&self.folders.snapshots, at, Compression::None);
        let acls = frozen.acls.iter().map(|(id, acls)| (id.to_disk(), &**acls));
        let mut writer =
            SnapshotWriter::begin(&OsDisk, target, frozen.sessions.iter().copied(), acls).unwrap();
        for node in frozen.nodes() {
            writer.node(&node.path, node.data.as_deref(), node.acl.to_disk(), &node.stat).unwrap();
        }
        let last_processed = Some(at);
        writer.finish(SnapshotTrailer { digest: None, last_processed }).unwrap();
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folders.logs.join(name)
    }

    fn edit(&self, name: &str, change: impl FnOnce(&mut Vec<u8>)) {
        let mut bytes = fs::read(self.path(name)).unwrap();
        change(&mut bytes);
        fs::write(self.path(name), bytes).unwrap();
    }

    /// Without the mark that says how far the log was synced, as after a copy.
    fn without_mark(self) -> Folder {
        fs::remove_file(self.path("log-synced")).unwrap();
        self
    }

    fn plan(&self, drop_after: Option<u64>) -> Result<Plan, InspectError> {
        plan(&self.folders, RepairOptions { drop_after: drop_after.map(Zxid) })
    }

    fn apply(&self, plan: &Plan) -> Start {
        let _no_child = CHILDREN.read().unwrap();
        let lock = FolderLock::take(&self.folders).unwrap();
        let applied = apply(&self.folders, plan, &lock).unwrap();
        for action in &plan.actions {
            let name = action.file().file_name().unwrap();
            assert!(applied.kept.iter().any(|kept| kept.join(name).exists()), "{action} keeps a copy");
        }
        assert!(self.plan(None).unwrap().is_clean(), "{:?}", self.plan(None).unwrap());
        applied.start
    }
}

fn create(zxid: u64) -> Vec<u8> {
    let path = format!("/n{zxid}");
    let create = CreateTxn {
        kind: TxnCreateKind::Create,
        path: path.into(),
        data: Some(b"some data"),
        acl: vec![Acl::world(Perms::ALL)].into(),
        ephemeral: false,
        parent_cversion: zxid as i32,
    };
    let header = TxnHeader { session: SessionId(1), cxid: 2, zxid: Zxid(zxid), time_ms: 3, code: 1 };
    let mut bytes = Vec::new();
    TxnRecord { header, txn: Txn::Create(create), digest: None }.write(&mut bytes);
    bytes
}

fn reached(start: &Start) -> Option<u64> {
    match start {
        Start::Works { zxid, .. } => Some(zxid.0),
        Start::Refused { .. } | Start::Empty => None,
    }
}

#[test]
fn a_good_folder_needs_no_repair() {
    let plan = Folder::new().plan(None).unwrap();
    assert!(plan.is_clean(), "{plan:?}");
    assert_eq!(reached(&plan.after), Some(9));
}

#[test]
fn a_torn_tail_and_the_rests_of_a_crash_are_removed_and_nothing_is_lost() {
    let folder = Folder::new().without_mark();
    folder.edit("log.5", |bytes| bytes.extend([0, 0, 0, 0, 7, 7, 7]));
    fs::write(folder.path("log.a"), b"").unwrap();
    fs::write(folder.path("unfinished.snapshot.9"), b"ZKSN").unwrap();
    fs::write(folder.path("acceptedEpoch.tmp"), b"1").unwrap();
    let plan = folder.plan(None).unwrap();
    assert_eq!((reached(&plan.before), reached(&plan.after), plan.drops), (Some(9), Some(9), None));
    assert_eq!(plan.problems.len(), 4, "{:?}", plan.problems);
    assert_eq!(plan.actions.len(), 4, "{:?}", plan.actions);
    assert!(plan.problems.iter().all(|problem| problem.repaired));
    assert!(folder.path("log.a").exists(), "a plan changes nothing");
    assert_eq!(reached(&folder.apply(&plan)), Some(9));
}

#[test]
fn a_bad_snapshot_that_the_log_covers_is_moved_away() {
    let folder = Folder::new();
    folder.edit("snapshot.4", |bytes| bytes[60] ^= 1);
    let plan = folder.plan(None).unwrap();
    assert_eq!(plan.actions, [Action::Move { file: folder.path("snapshot.4") }]);
    assert_eq!(reached(&folder.apply(&plan)), Some(9));
}

#[test]
fn damage_before_a_newer_snapshot_is_told_and_left() {
    let folder = Folder::new();
    folder.edit("log.1", |bytes| bytes[40] ^= 1);
    let plan = folder.plan(None).unwrap();
    assert_eq!((reached(&plan.before), plan.actions.len()), (Some(9), 0));
    let problem = &plan.problems[0].problem;
    assert!(
        problem.contains("damaged at byte 16") && problem.contains("does not need this part"),
        "{problem}"
    );
}

#[test]
fn damage_in_the_newest_log_is_only_repaired_if_the_loss_is_accepted() {
    let folder = Folder::new();
    let record = fs::metadata(folder.path("log.5")).unwrap().len() as usize / 5;
    folder.edit("log.5", |bytes| bytes[16 + 2 * record] ^= 1);
    let refused = folder.plan(None).unwrap();
    assert!(matches!(refused.after, Start::Refused { .. }) && refused.actions.is_empty(), "{refused:?}");
    let needed = refused.needs_drop.unwrap();
    assert_eq!((needed.after, needed.through), (Zxid(6), Zxid(6)), "what follows cannot be read");
    assert!(matches!(folder.plan(Some(7)), Err(InspectError::Refused(_))), "7 cannot be read");
    let plan = folder.plan(Some(6)).unwrap();
    assert_eq!(plan.actions[0], Action::Move { file: folder.path("log-synced") });
    assert_eq!(reached(&folder.apply(&plan)), Some(6));
}

#[test]
fn a_lost_log_file_is_only_accepted_by_dropping_what_follows() {
    let folder = Folder::new();
    fs::remove_file(folder.path("log.1")).unwrap();
    fs::remove_file(folder.path("snapshot.4")).unwrap();
    let refused = folder.plan(None).unwrap();
    let needed = refused.needs_drop.unwrap();
    assert_eq!((needed.after, needed.through, needed.readable), (Zxid(0), Zxid(9), 5));
    let plan = folder.plan(Some(0)).unwrap();
    assert_eq!(plan.drops, Some(needed));
    assert_eq!(reached(&folder.apply(&plan)), Some(0));
}

#[test]
fn a_snapshot_that_the_logs_do_not_cover_is_only_given_up_with_the_flag() {
    let folder = Folder::new().without_mark();
    folder.snapshot_of(9);
    fs::remove_file(folder.path("log.5")).unwrap();
    folder.edit("snapshot.9", |bytes| bytes[60] ^= 1);
    let refused = folder.plan(None).unwrap();
    assert!(
        matches!(&refused.before, Start::Refused { reason } if reason.contains("snapshot.9")),
        "{refused:?}"
    );
    assert_eq!(refused.needs_drop.map(|drops| (drops.after, drops.through)), Some((Zxid(4), Zxid(9))));
    assert_eq!(reached(&folder.apply(&folder.plan(Some(4)).unwrap())), Some(4));
}

#[test]
fn good_data_are_dropped_only_to_the_transaction_that_is_named() {
    let folder = Folder::new();
    let plan = folder.plan(Some(7)).unwrap();
    assert_eq!(
        plan.drops.map(|drops| (drops.after, drops.through, drops.readable)),
        Some((Zxid(7), Zxid(9), 2))
    );
    assert_eq!(reached(&folder.apply(&plan)), Some(7));
    assert!(matches!(folder.plan(Some(8)), Err(InspectError::Refused(_))));
    let before = folder.plan(Some(2)).unwrap();
    assert_eq!(before.actions.len(), 3, "snapshot.4, log.5 and a cut of log.1: {:?}", before.actions);
    assert_eq!(reached(&folder.apply(&before)), Some(2));
}

#[test]
fn a_folder_in_use_is_not_touched() {
    let folder = Folder::new();
    let plan = folder.plan(Some(7)).unwrap();
    let mut user = user_of(fs::File::open(folder.path("log.5")).unwrap());
    let lock = FolderLock::take(&folder.folders).unwrap();
    let refused = apply(&folder.folders, &plan, &lock);
    user.kill().unwrap();
    user.wait().unwrap();
    assert!(matches!(refused, Err(InspectError::Refused(_))));
    assert_eq!(reached(&folder.plan(None).unwrap().before), Some(9));
}

#[test]
fn an_epoch_file_that_cannot_be_read_is_told_and_left() {
    let folder = Folder::new();
    fs::write(folder.path("acceptedEpoch"), "x").unwrap();
    let plan = folder.plan(None).unwrap();
    assert!(plan.problems[0].problem.contains("acceptedEpoch"), "{:?}", plan.problems);
    assert!(plan.actions.is_empty() && !plan.is_clean());
}
