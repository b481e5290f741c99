//! Work beside the service: slow snapshots, purges, and log parts for learners. They must not disturb each other.

use crate::{options, restricted_disk::RestrictedDisk};
use ostler_data_dir::{
    Persistence, PersistenceOptions, log_part,
    recovery::{RestoreOptions, read_stream, restore, write_stream},
    snapshots::{
        UnfinishedSnapshot, purge, purge_as_planned, purge_plan, write_at_once, write_at_once_unless_cut,
    },
};
use ostler_proto::{
    acl::Perms,
    id::{Epoch, SessionId, Zxid},
    stat::{ExtendedTypes, StatPersisted},
    txn::{CreateTxn, Txn, TxnCreateKind, TxnHeader, TxnRecord},
};
use ostler_server_core::{PersistOp, effect::Record};
use ostler_storage::{
    disk::{Disk, OsDisk},
    epochs::{EpochFile, write_epoch},
    folders::DataFolders,
    recover::Origin,
    snapshot::{Compression, SnapshotTarget, SnapshotTrailer, SnapshotWriter, body::BodyWriter},
};
use ostler_tree::Tree;
use std::{
    path::{Path, PathBuf},
    sync::{Arc, atomic::Ordering},
    thread,
    time::{Duration, Instant},
};

/// The options of a standalone server that keeps three snapshots.
fn options() -> PersistenceOptions {
    let mut options = options::standalone();
    options.snapshots.keep = Some(3);
    options
}

fn append(zxid: u64) -> PersistOp {
    let txn = Txn::Create(CreateTxn {
        path: format!("/{zxid}").into(),
        data: Some(&[7; 2000]),
        acl: Vec::new().into(),
        ephemeral: false,
        parent_cversion: -1,
        kind: TxnCreateKind::Create,
    });
    let zxid = Zxid(zxid);
    let header = TxnHeader { session: SessionId(1), cxid: 0, zxid, time_ms: 0, code: txn.code() };
    let mut record = Vec::new();
    TxnRecord { header, txn, digest: None }.write(&mut record);
    PersistOp::Append { zxid, record: Record(record.into()) }
}

/// A member with this number of records on disk.
fn member(dir: &Path, records: u64) -> (Persistence, DataFolders) {
    let folders = DataFolders::open(&OsDisk, dir, None, true).unwrap();
    let (mut member, _) = Persistence::start(Arc::new(OsDisk), folders.clone(), options()).unwrap();
    for zxid in 1..=records {
        member.carry_out(append(zxid)).unwrap();
    }
    member.sync().unwrap();
    (member, folders)
}

fn tree_in(folders: &DataFolders) -> Tree {
    restore(&OsDisk, folders, RestoreOptions::default()).unwrap().tree
}

/// A slow snapshot is under way. Meanwhile the log is cut, and a leader's tree is installed.
#[test]
fn a_snapshot_under_way_does_not_replace_an_installed_tree() {
    // The second tree has the zxid of the snapshot.
    for leader_has in [600, 1000] {
        install_beside_a_snapshot(leader_has);
    }
}

fn install_beside_a_snapshot(leader_has: u64) {
    let dir = tempfile::tempdir().unwrap();
    let (mut member, folders) = member(dir.path(), 1000);
    let frozen = restore(&OsDisk, &folders, RestoreOptions::default()).unwrap().tree.freeze();
    let settings = member.snapshots().clone();
    let mut slow = UnfinishedSnapshot::begin(&frozen, &settings).unwrap();
    assert!(!slow.advance(|_| false).unwrap());

    let elsewhere = tempfile::tempdir().unwrap();
    let (_leader, its_folders) = self::member(elsewhere.path(), leader_has);
    let leaders = restore(&OsDisk, &its_folders, RestoreOptions::default()).unwrap().tree;
    member.carry_out(PersistOp::Truncate { to: Zxid(1), reload: Some(1) }).unwrap();
    member.carry_out(PersistOp::Install(Box::new(leaders.freeze()))).unwrap();
    member.sync().unwrap();
    assert!(slow.advance(|_| true).unwrap());
    drop(slow);

    let found = restore(&OsDisk, &folders, RestoreOptions::default()).unwrap();
    assert_eq!(found.recovered.origin, Origin::Snapshot(Zxid(leader_has)));
    assert_eq!(found.tree.digest(), leaders.digest());
}

#[test]
fn a_log_part_is_none_if_a_file_is_purged_meanwhile() {
    let dir = tempfile::tempdir().unwrap();
    let (_member, folders) = member(dir.path(), 10);
    let span = (Zxid(3), Zxid(10));
    let part = log_part(&OsDisk, &folders, span, 33).unwrap().expect("all of it is there");
    assert_eq!(part.records.len(), 7);
    // A purge removes the file as soon as it is open.
    let purged = folders.logs.join("log.1");
    let disk = RestrictedDisk { may_change: |_: &Path| Ok(()), shows: move |path: &Path| path != purged };
    assert!(log_part(&disk, &folders, span, 33).unwrap().is_none());
}

/// If the log part is larger than this part of the snapshot, the snapshot is sent instead.
#[test]
fn a_log_part_is_limited_by_the_size_of_the_newest_snapshot() {
    let dir = tempfile::tempdir().unwrap();
    let (mut member, folders) = member(dir.path(), 3000);
    write_at_once(&tree_in(&folders).freeze(), member.snapshots()).unwrap();
    for zxid in 3001..=3700 {
        member.carry_out(append(zxid)).unwrap();
    }
    member.sync().unwrap();
    let part = |percent| log_part(&OsDisk, &folders, (Zxid(3000), Zxid(3700)), percent).unwrap();
    assert_eq!(part(33).map(|part| part.records.len()), Some(700), "1.5 of 6 MB");
    assert!(part(20).is_none());
}

/// As after an upgrade of a server that never wrote a snapshot.
#[test]
fn a_truncation_without_a_snapshot_restores_from_the_log_alone() {
    let dir = tempfile::tempdir().unwrap();
    let (mut member, folders) = member(dir.path(), 40);
    for name in OsDisk.list(&folders.snapshots).unwrap() {
        if name.starts_with("snapshot.") {
            OsDisk.remove(&folders.snapshots.join(name)).unwrap();
        }
    }
    let cut = PersistOp::Truncate { to: Zxid(20), reload: Some(7) };
    let reloaded = member.carry_out(cut).unwrap().unwrap();
    assert_eq!((reloaded.search_id, reloaded.restored.recovered.last_zxid), (7, Zxid(20)));
    let tree = reloaded.restored.tree;
    assert!(tree.get("/20").is_some() && tree.get("/21").is_none());
}

/// A later snapshot has transactions that the new leader does not have.
#[test]
fn a_truncation_removes_later_snapshots() {
    let dir = tempfile::tempdir().unwrap();
    let (mut member, folders) = member(dir.path(), 40);
    write_at_once(&tree_in(&folders).freeze(), member.snapshots()).unwrap();
    let cut = PersistOp::Truncate { to: Zxid(20), reload: Some(7) };
    let reloaded = member.carry_out(cut).unwrap().unwrap();
    assert_eq!(reloaded.restored.recovered.last_zxid, Zxid(20));
    assert!(reloaded.restored.tree.get("/21").is_none());
    assert!(!folders.snapshots.join("snapshot.28").exists());
}

/// The stream is the one from a leader to a learner.
#[test]
fn a_tree_is_read_from_a_stream_as_it_was_written() {
    let dir = tempfile::tempdir().unwrap();
    let (_, folders) = member(dir.path(), 40);
    let tree = tree_in(&folders);
    let mut bytes = Vec::new();
    write_stream(&tree.freeze(), &mut bytes).unwrap();
    bytes.extend_from_slice(b"more");
    let (came, rest) = read_stream(&*bytes, Zxid(40), ExtendedTypes::default()).unwrap();
    assert_eq!((came.digest(), came.last_processed()), (tree.digest(), Zxid(40)));
    assert_eq!((came.get("/40").is_some(), &*rest), (true, &b"more"[..]));
    let signed = bytes.len() - b"more".len();
    assert!(read_stream(&bytes[..signed - 1], Zxid(40), ExtendedTypes::default()).is_err());
}

/// Writes a snapshot of znodes, each with the index of its ACL. The snapshot has no list of ACLs.
fn write_snapshot(folders: &DataFolders, zxid: Zxid, znodes: &[(&str, i64)]) -> PathBuf {
    let target = SnapshotTarget::new(&folders.snapshots, zxid, Compression::None);
    let mut writer = SnapshotWriter::begin(&OsDisk, target, [].into_iter(), [].into_iter()).unwrap();
    for (path, acl) in znodes {
        writer.node(path, None, *acl, &StatPersisted::default()).unwrap();
    }
    writer.finish(SnapshotTrailer { digest: None, last_processed: None }).unwrap()
}

/// Whether the znode has an ACL by which nobody may do anything.
fn is_closed(tree: &Tree, path: &str) -> bool {
    let acl = tree.acl(tree.get(path).unwrap());
    acl.is_some_and(|acl| !acl.is_empty() && acl.perms_of_everybody() == Perms(0))
}

/// Java writes the ACLs before the znodes, while the tree changes. So the list of a new znode can be missing.
#[test]
fn a_snapshot_without_the_acl_of_a_znode_is_used_and_the_log_sets_it() {
    let dir = tempfile::tempdir().unwrap();
    let (member, folders) = member(dir.path(), 5);
    drop(member);
    write_snapshot(&folders, Zxid(3), &[("/", -1), ("/4", 6), ("/never", 6)]);
    for reads_ahead in [false, true] {
        let options = RestoreOptions { reads_ahead, ..RestoreOptions::default() };
        let found = restore(&OsDisk, &folders, options).unwrap();
        assert_eq!(found.recovered.origin, Origin::Snapshot(Zxid(3)));
        assert_eq!(["/4", "/5", "/never"].map(|path| is_closed(&found.tree, path)), [false, false, true]);
    }
}

/// A member with five records, and a leader's tree at `zxid` that Java wrote and did not rename.
fn with_unrenamed_tree(dir: &Path, zxid: Zxid, current: Epoch) -> (DataFolders, PathBuf) {
    let (member, folders) = member(dir, 5);
    drop(member);
    write_epoch(&OsDisk, &folders.snapshots, EpochFile::Current, current).unwrap();
    let named = write_snapshot(&folders, zxid, &[("/", -1), ("/of-leader", -1)]);
    let unrenamed = PathBuf::from(format!("{}.tmp", named.display()));
    std::fs::rename(named, &unrenamed).unwrap();
    (folders, unrenamed)
}

/// Java goes on from it, so it can be the only base of the log.
#[test]
fn a_start_renames_a_leaders_tree_that_java_wrote() {
    let dir = tempfile::tempdir().unwrap();
    let (folders, unrenamed) = with_unrenamed_tree(dir.path(), Zxid(9), Epoch(0));
    let (mut member, _) = Persistence::start(Arc::new(OsDisk), folders.clone(), options()).unwrap();
    member.carry_out(append(10)).unwrap();
    member.sync().unwrap();
    drop(member);
    assert!(!unrenamed.exists() && unrenamed.with_extension("").exists());
    let found = restore(&OsDisk, &folders, RestoreOptions::default()).unwrap();
    assert_eq!((found.recovered.origin, found.recovered.last_zxid), (Origin::Snapshot(Zxid(9)), Zxid(10)));
    assert!(["/of-leader", "/10"].iter().all(|path| found.tree.get(path).is_some()));
}

/// Java does not start with it. The tree is of a leader that may never have been established. So it must not come back
/// when this server has come to its epoch with another leader.
#[test]
fn a_start_removes_a_leaders_tree_of_an_epoch_that_the_server_has_not_come_to() {
    let dir = tempfile::tempdir().unwrap();
    let (folders, unrenamed) = with_unrenamed_tree(dir.path(), Zxid::new(Epoch(4), 9), Epoch(3));
    let start = || restore(&OsDisk, &folders, RestoreOptions::default()).unwrap();
    assert_eq!(start().recovered.last_zxid, Zxid(5));
    assert!(!unrenamed.exists());
    write_epoch(&OsDisk, &folders.snapshots, EpochFile::Current, Epoch(6)).unwrap();
    assert_eq!(start().recovered.last_zxid, Zxid(5));
}

#[test]
fn a_start_fails_if_a_leaders_tree_that_java_wrote_cannot_be_looked_at() {
    let dir = tempfile::tempdir().unwrap();
    let (folders, unrenamed) = with_unrenamed_tree(dir.path(), Zxid(9), Epoch(0));
    std::fs::remove_file(&unrenamed).unwrap();
    std::fs::create_dir(&unrenamed).unwrap();
    let error = restore(&OsDisk, &folders, RestoreOptions::default()).unwrap_err().to_string();
    assert!(error.contains("snapshot.9.tmp"), "{error}");
}

#[test]
fn a_leaders_tree_may_lack_the_acl_of_a_znode() {
    let mut writer = BodyWriter::new(Vec::new());
    writer.sessions([].into_iter()).unwrap();
    writer.acls([].into_iter()).unwrap();
    writer.node("/", None, -1, &StatPersisted::default()).unwrap();
    writer.node("/new", None, 6, &StatPersisted::default()).unwrap();
    writer.end().unwrap();
    let mut stream = writer.finish().unwrap();
    stream.extend_from_slice(b"\0\0\0\x0aBenWasHere");
    let (came, _) = read_stream(&*stream, Zxid(3), ExtendedTypes::default()).unwrap();
    assert!(is_closed(&came, "/new"));
}

/// An operator's snapshot is written as fast as it can be, and the log is cut meanwhile all the same.
#[test]
fn a_snapshot_for_an_operator_is_given_up_after_a_cut() {
    let dir = tempfile::tempdir().unwrap();
    let (mut member, folders) = member(dir.path(), 20);
    let tree = || Box::new(restore(&OsDisk, &folders, RestoreOptions::default()).unwrap().tree.freeze());
    let old = member.frozen(tree());
    member.carry_out(PersistOp::Truncate { to: Zxid(10), reload: Some(1) }).unwrap();
    assert!(!write_at_once_unless_cut(&old, member.snapshots()).unwrap());
    assert!(!folders.snapshots.join("snapshot.14").exists());
    let new = member.frozen(tree());
    assert!(write_at_once_unless_cut(&new, member.snapshots()).unwrap());
    assert!(folders.snapshots.join("snapshot.a").exists());
}

#[test]
fn a_purge_for_an_operator_removes_nothing_if_the_plan_has_changed() {
    let dir = tempfile::tempdir().unwrap();
    let (member, folders) = member(dir.path(), 1);
    let mut frozen = restore(&OsDisk, &folders, RestoreOptions::default()).unwrap().tree.freeze();
    let mut write = |zxid| {
        frozen.zxid = Zxid(zxid);
        write_at_once(&frozen, member.snapshots()).unwrap();
    };
    (2..=5).for_each(&mut write);
    let names = |keep| -> Vec<String> {
        let plan = purge_plan(member.snapshots(), keep).unwrap();
        plan.paths().map(|path| path.file_name().unwrap().to_str().unwrap().to_owned()).collect()
    };
    let planned = names(3);
    assert_eq!(planned, ["snapshot.0", "snapshot.2"]);
    write(6);
    let purge = |keep, planned: &[String]| purge_as_planned(member.snapshots(), keep, planned).unwrap();
    assert_eq!(purge(3, &planned), None);
    assert_eq!(names(3), ["snapshot.0", "snapshot.2", "snapshot.3"], "nothing was removed");
    // Another number of snapshots gives the plan of before.
    assert_eq!(purge(4, &planned).map(|removed| removed.len()), Some(2));
    assert_eq!((names(4), names(0)), (Vec::new(), vec!["snapshot.3".to_owned()]));
}

/// Java can leave torn snapshots under their final names. The start has found them unreadable.
#[test]
fn a_purge_does_not_count_unreadable_snapshots() {
    let dir = tempfile::tempdir().unwrap();
    drop(member(dir.path(), 40));
    let folders = DataFolders::open(&OsDisk, dir.path(), None, true).unwrap();
    for zxid in [10, 20, 30] {
        // The ends of the file look complete.
        std::fs::write(
            folders.snapshots.join(format!("snapshot.{zxid:x}.gz")),
            [0x1f, 0x8b, 8, 0, 0, 0, 0, 0],
        )
        .unwrap();
    }
    for _ in 0..2 {
        let (again, restored) = Persistence::start(Arc::new(OsDisk), folders.clone(), options()).unwrap();
        assert_eq!(restored.recovered.origin, Origin::Snapshot(Zxid(0)));
        assert_eq!(restored.recovered.last_zxid, Zxid(40));
        purge(again.snapshots());
    }
}

/// The space of an old file is freed slowly, to spare the clients: about 20 s for a gigabyte.
#[test]
fn a_purge_stops_when_the_server_ends() {
    let dir = tempfile::tempdir().unwrap();
    let (member, folders) = member(dir.path(), 1);
    let mut frozen = restore(&OsDisk, &folders, RestoreOptions::default()).unwrap().tree.freeze();
    for zxid in 1_000..1_004 {
        frozen.zxid = Zxid(zxid);
        write_at_once(&frozen, member.snapshots()).unwrap();
    }
    for old in ["snapshot.5", "snapshot.6"] {
        let file = std::fs::File::create(folders.snapshots.join(old)).unwrap();
        file.set_len(400 << 20).unwrap();
    }
    let settings = member.snapshots().clone();
    let begun = Instant::now();
    let purging = thread::spawn({
        let settings = settings.clone();
        move || purge(&settings)
    });
    while folders.snapshots.join("snapshot.5").exists() {
        thread::sleep(Duration::from_millis(1));
    }
    settings.ending.store(true, Ordering::Relaxed);
    purging.join().unwrap();
    assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
    assert!(folders.snapshots.join("snapshot.6").exists(), "the next purge takes it");
}

#[test]
fn an_abandoned_snapshot_of_an_ending_server_becomes_the_spare_of_the_next_start() {
    let dir = tempfile::tempdir().unwrap();
    let (member, folders) = member(dir.path(), 100);
    let frozen = restore(&OsDisk, &folders, RestoreOptions::default()).unwrap().tree.freeze();
    let unfinished = || {
        let names = OsDisk.list(&folders.snapshots).unwrap();
        names.iter().filter(|name| name.starts_with("unfinished.")).count()
    };
    for (ending, left) in [(false, 0), (true, 1)] {
        let settings = member.snapshots();
        settings.ending.store(ending, Ordering::Relaxed);
        let snapshot = UnfinishedSnapshot::begin(&frozen, settings).unwrap();
        assert_eq!(unfinished(), 1);
        snapshot.give_up(settings);
        assert_eq!(unfinished(), left);
    }
    drop(member);
    Persistence::start(Arc::new(OsDisk), folders.clone(), options()).unwrap();
    assert_eq!(unfinished(), 0);
    assert!(folders.snapshots.join("spare-snapshot").exists());
}
