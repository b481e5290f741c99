//! Recovery: the state from which a server starts, its notes, and the errors that refuse a start.

use crate::{
    faulty_disk::{Fault, FaultyDisk},
    sinks::{Contents, begin_snapshot, record},
};
use ostler_proto::{
    id::{Epoch, Zxid},
    stat::StatPersisted,
};
use ostler_storage::{
    StorageError,
    disk::OsDisk,
    epochs::{EpochFile, write_epoch},
    error::Result,
    folders::DataFolders,
    recover::{Note, Origin, RecoverOptions, Recovered, recover},
    snapshot::{SnapshotDigest, SnapshotTrailer},
    txnlog::{LogOptions, TxnLog},
};
use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

const ALL: Zxid = Zxid(u64::MAX);
const STRICT: RecoverOptions =
    RecoverOptions { trust_empty: false, db_autocreate: false, in_use: false, through: ALL };
const EASY: RecoverOptions =
    RecoverOptions { trust_empty: true, db_autocreate: true, in_use: false, through: ALL };

struct World {
    disk: FaultyDisk,
    folders: DataFolders,
}

impl World {
    fn new() -> World {
        World {
            disk: FaultyDisk::default(),
            folders: DataFolders::at(Path::new("/d"), Some(Path::new("/l"))),
        }
    }

    /// The log goes to 4, and the snapshot at the beginning of the next epoch is incomplete.
    fn with_an_incomplete_tree() -> (World, PathBuf) {
        let world = World::new();
        world.snapshot(1);
        let cut_short = world.snapshot(2 << 32);
        let bytes = world.disk.bytes(&cut_short);
        world.disk.put(&cut_short, &bytes[..60]);
        world.log(1..=4);
        (world, cut_short)
    }

    /// Writes a log file with these zxids.
    fn log(&self, zxids: std::ops::RangeInclusive<u64>) -> PathBuf {
        let (disk, dir) = (Arc::new(self.disk.clone()), self.folders.logs.clone());
        let mut log = TxnLog::open(disk, dir, LogOptions { prealloc_bytes: 0, ..LogOptions::default() });
        for zxid in zxids {
            log.append(Zxid(zxid), &record(Zxid(zxid), 20)).unwrap();
        }
        log.commit().unwrap();
        log.file().unwrap().to_path_buf()
    }

    /// Writes a snapshot with a root and a znode named after its zxid.
    fn snapshot(&self, zxid: u64) -> PathBuf {
        self.snapshot_with(zxid, None)
    }

    fn snapshot_with(&self, zxid: u64, digest: Option<SnapshotDigest>) -> PathBuf {
        let mut writer = begin_snapshot(&self.disk, &self.folders.snapshots, zxid).unwrap();
        for path in ["/".to_owned(), format!("/{zxid:x}")] {
            writer.node(&path, None, -1, &StatPersisted::default()).unwrap();
        }
        let last_processed = Some(Zxid(zxid));
        writer.finish(SnapshotTrailer { digest, last_processed }).unwrap()
    }

    /// The disk has lost what was written over the old file.
    fn lose_overwrite(&self, file: &Path, old: &Path) {
        self.disk.put(file, &self.disk.bytes(old));
    }

    fn damage(&self, path: &Path) {
        let mut bytes = self.disk.bytes(path);
        bytes[40] ^= 1;
        self.disk.put(path, &bytes);
    }

    fn recover(&self, options: RecoverOptions) -> Result<(Recovered, Contents)> {
        let before = self.files();
        let mut contents = Contents { refuses: Some("/66"), ..Contents::default() };
        match recover(&self.disk, &self.folders, options, &mut contents) {
            Ok(done) => Ok((done, contents)),
            Err(error) => {
                assert!(self.files() == before, "an error changes nothing");
                Err(error)
            }
        }
    }

    fn files(&self) -> Vec<(PathBuf, Vec<u8>)> {
        self.disk.names().into_iter().map(|path| (path.clone(), self.disk.bytes(&path))).collect()
    }
}

fn zxids(contents: &Contents) -> Vec<u64> {
    contents.records.iter().map(|(zxid, _)| zxid.0).collect()
}

#[test]
fn empty_folders_are_a_fresh_or_untrusted_database_by_the_settings() {
    let world = World::new();
    assert_eq!(world.recover(STRICT).unwrap().0.origin, Origin::Untrusted);
    assert_eq!(world.recover(RecoverOptions::default()).unwrap().0.origin, Origin::Fresh);
    world.disk.put(Path::new("/l/initialize"), b"");
    for _ in 0..2 {
        // The file stays until the caller removes it.
        assert_eq!(world.recover(STRICT).unwrap().0.origin, Origin::Fresh);
    }
    world.folders.remove_initialize(&world.disk).unwrap();
    assert_eq!(world.recover(STRICT).unwrap().0.origin, Origin::Untrusted);
    world.disk.put(Path::new("/l/initialize"), b"");
    world.snapshot(0);
    assert_eq!(world.recover(STRICT).unwrap().0.origin, Origin::Snapshot(Zxid(0)));
}

#[test]
fn the_state_is_the_newest_snapshot_and_the_log_after_it() {
    let world = World::new();
    world.snapshot(0);
    world.snapshot(3);
    world.log(1..=2);
    world.log(3..=7);
    let (done, contents) = world.recover(STRICT).unwrap();
    assert_eq!((done.origin, done.last_zxid, done.records), (Origin::Snapshot(Zxid(3)), Zxid(7), 4));
    assert_eq!(contents.nodes.last().unwrap().path, "/3");
    assert_eq!((zxids(&contents), done.notes), (vec![4, 5, 6, 7], vec![]));
}

#[test]
fn an_older_snapshot_is_used_for_a_bad_one_if_the_log_has_its_last_transaction() {
    let world = World::new();
    world.snapshot(1);
    let bad = world.snapshot(5);
    world.snapshot(0x66);
    world.log(1..=0x66);
    world.damage(&bad);
    let (done, contents) = world.recover(STRICT).unwrap();
    assert_eq!((done.origin, done.last_zxid), (Origin::Snapshot(Zxid(1)), Zxid(0x66)));
    assert_eq!(contents.nodes.len(), 2, "nothing is left of the bad ones");
    let words: Vec<String> = done.notes.iter().map(Note::to_string).collect();
    assert_eq!(words.len(), 2);
    assert_eq!(words[0], "/d/version-2/snapshot.66: skipped this snapshot: its parent is missing");
    assert!(words[1].starts_with("/d/version-2/snapshot.5: skipped this snapshot: "), "{words:?}");
    let skipped: Vec<&str> = done.skipped_snapshots().map(|path| path.to_str().unwrap()).collect();
    assert_eq!(skipped, ["/d/version-2/snapshot.66", "/d/version-2/snapshot.5"]);
}

#[test]
fn a_snapshot_with_an_older_tree_than_its_name_says_is_skipped() {
    let world = World::new();
    let old = world.snapshot(3);
    let new = world.snapshot(6);
    world.log(1..=8);
    world.lose_overwrite(&new, &old);
    let (done, contents) = world.recover(STRICT).unwrap();
    assert_eq!((done.origin, zxids(&contents)), (Origin::Snapshot(Zxid(3)), vec![4, 5, 6, 7, 8]));
    let words: Vec<String> = done.notes.iter().map(Note::to_string).collect();
    assert_eq!(words, ["/d/version-2/snapshot.6: skipped this snapshot: it holds an older tree, of 0x3"]);
}

#[test]
fn a_log_with_older_transactions_than_its_name_says_refuses_the_start() {
    for after in [0, 2, 6] {
        let world = World::new();
        world.snapshot(after);
        let old = world.log(1..=3);
        world.log(4..=6);
        let new = world.log(7..=9);
        world.lose_overwrite(&new, &old);
        let error = world.recover(STRICT).unwrap_err().to_string();
        let message = "log.7: damaged at byte 16: its first transaction is 0x1, and by its name it is 0x7";
        assert!(error.contains(message), "{error}");
    }
}

#[test]
fn an_older_snapshot_is_refused_if_the_log_has_a_gap() {
    let world = World::new();
    world.snapshot(1);
    let bad = world.snapshot(5);
    world.log(6..=8);
    assert_eq!(world.recover(STRICT).unwrap().0.last_zxid, Zxid(8));
    world.damage(&bad);
    let error = world.recover(STRICT).unwrap_err();
    assert!(matches!(error, StorageError::Gap { last: Zxid(1), found: Zxid(6), .. }), "{error}");
}

#[test]
fn an_older_snapshot_is_refused_if_the_log_ends_before_the_bad_one() {
    let world = World::new();
    world.snapshot(1);
    let bad = world.snapshot(5);
    world.log(1..=4);
    world.damage(&bad);
    let error = world.recover(STRICT).unwrap_err();
    assert!(matches!(error, StorageError::LogTooShort { last: Zxid(4), needed: Zxid(5), .. }), "{error}");
}

/// Between epochs the log does not show that a tree took the place of records.
#[test]
fn an_older_snapshot_is_refused_if_the_log_lacks_the_last_transaction_of_the_bad_one() {
    let world = World::new();
    world.snapshot(1);
    let bad = world.snapshot(7);
    world.log(1..=4);
    world.log((2 << 32) + 1..=(2 << 32) + 3);
    assert_eq!(world.recover(STRICT).unwrap().0.last_zxid, Zxid((2 << 32) + 3));
    world.damage(&bad);
    let error = world.recover(STRICT).unwrap_err();
    assert!(matches!(error, StorageError::LogLacks { needed: Zxid(7), .. }), "{error}");
    // A snapshot at the start of an epoch has no transaction of its own that could be looked for.
    let world = World::new();
    world.snapshot(1);
    let bad = world.snapshot(2 << 32);
    world.log(1..=4);
    world.damage(&bad);
    let error = world.recover(STRICT).unwrap_err();
    assert!(matches!(error, StorageError::LogLacks { .. }), "{error}");
}

/// A server died while it got a tree from a leader. After a restart it gets the missing records from the log of another
/// server, and is restarted again.
#[test]
fn an_incomplete_tree_of_an_interrupted_sync_is_removed_and_later_starts_work() {
    let (world, cut_short) = World::with_an_incomplete_tree();
    let started = world.recover(STRICT).unwrap().0;
    assert_eq!((started.last_zxid, &*started.notes), (Zxid(4), &[Note::UnfinishedGivenUp(cut_short)][..]));
    world.log((2 << 32) + 1..=(2 << 32) + 3);
    assert_eq!(world.recover(STRICT).unwrap().0.last_zxid, Zxid((2 << 32) + 3));
    // If the current epoch is saved, the tree was complete before, and was acknowledged.
    let (world, _) = World::with_an_incomplete_tree();
    write_epoch(&world.disk, &world.folders.snapshots, EpochFile::Current, Epoch(2)).unwrap();
    assert!(matches!(world.recover(STRICT), Err(StorageError::LogLacks { .. })));
    write_epoch(&world.disk, &world.folders.snapshots, EpochFile::Current, Epoch(1)).unwrap();
    assert_eq!(world.recover(STRICT).unwrap().0.last_zxid, Zxid(4));
    // A complete tree can have taken the place of records.
    let world = World::new();
    world.snapshot(1);
    world.damage(&world.snapshot(2 << 32));
    world.log(1..=4);
    assert!(matches!(world.recover(STRICT), Err(StorageError::LogLacks { .. })));
}

/// The tree was complete once, since the log continues in its epoch.
#[test]
fn an_incomplete_tree_refuses_the_start_if_the_log_has_its_epoch() {
    let (world, _) = World::with_an_incomplete_tree();
    world.log((2 << 32) + 1..=(2 << 32) + 3);
    let error = world.recover(STRICT).unwrap_err();
    assert!(matches!(error, StorageError::LogLacks { .. }), "{error}");
}

#[test]
fn after_a_hundred_bad_snapshots_no_older_one_is_tried() {
    let started = |bad: u64| {
        let world = World::new();
        world.snapshot(1);
        for zxid in 2..2 + bad {
            world.disk.put(&world.folders.snapshots.join(format!("snapshot.{zxid:x}")), b"ZKSN");
        }
        world.log(1..=1 + bad);
        world.recover(STRICT).map(|(done, _)| done.origin)
    };
    assert_eq!(started(99).unwrap(), Origin::Snapshot(Zxid(1)));
    let error = started(100).unwrap_err();
    assert!(matches!(error, StorageError::NoSnapshot { .. }), "{error}");
    assert!(error.to_string().contains("snapshot.1: there are too many bad ones before it"), "{error}");
}

/// Java writes zxid 0 if it knows no digest.
#[test]
fn a_digest_without_a_zxid_is_left_out() {
    for (zxid, counts) in [(0, false), (1, true), (7, true), (u64::MAX, false)] {
        let world = World::new();
        let digest = Some(SnapshotDigest { zxid: Zxid(zxid), version: 2, digest: 77 });
        world.snapshot_with(7, digest);
        let (_, trailer) = world.recover(STRICT).unwrap().1.snapshot.unwrap();
        assert_eq!(trailer.digest, digest.filter(|_| counts), "zxid {zxid:x}");
    }
}

#[test]
fn the_error_of_a_refused_transaction_names_the_transaction_and_its_file() {
    let world = World::new();
    world.snapshot(0);
    world.log(1..=2);
    let log = world.log(3..=4);
    let mut contents = Contents { refuses_record: Some(Zxid(4)), ..Contents::default() };
    let error = recover(&world.disk, &world.folders, STRICT, &mut contents).unwrap_err();
    assert!(matches!(&error, StorageError::Refused { file, zxid: Zxid(4), .. } if *file == log), "{error}");
}

#[test]
fn logs_without_a_snapshot_are_replayed_only_with_trust_empty() {
    let world = World::new();
    world.log(1..=4);
    let error = world.recover(RecoverOptions::default()).unwrap_err();
    assert!(matches!(error, StorageError::NoSnapshot { .. }), "{error}");
    assert!(error.to_string().contains("snapshot.trust.empty=true"), "{error}");
    let (done, contents) = world.recover(EASY).unwrap();
    assert_eq!((done.origin, zxids(&contents)), (Origin::Log, vec![1, 2, 3, 4]));
    assert_eq!(done.notes, [Note::EmptyTrusted]);
    // The first transactions must be there.
    let world = World::new();
    world.log(2..=4);
    assert!(matches!(world.recover(EASY), Err(StorageError::Gap { .. })));
}

#[test]
fn snapshots_that_cannot_be_read_refuse_the_start_without_logs() {
    let world = World::new();
    let bad = world.snapshot(5);
    world.damage(&bad);
    let error = world.recover(EASY).unwrap_err();
    assert!(matches!(error, StorageError::NoUsableSnapshot { .. }), "{error}");
    assert!(error.to_string().contains("/d/version-2/snapshot.5: "), "{error}");
    // A bad snapshot of zxid 0 is an empty database: the first start was interrupted.
    let world = World::new();
    world.disk.put(Path::new("/d/version-2/snapshot.0"), b"ZKSN");
    assert_eq!(world.recover(EASY).unwrap().0.origin, Origin::Fresh);
}

#[test]
fn rests_of_a_crash_are_removed_and_reported() {
    let world = World::new();
    world.snapshot(0);
    let log = world.log(1..=3);
    let whole = world.disk.bytes(&log);
    world.disk.put(&log, &whole[..whole.len() - 5]);
    world.disk.put(Path::new("/l/version-2/log.3"), b"");
    world.disk.put(Path::new("/d/version-2/unfinished.snapshot.3"), b"ZKSN");
    let (done, contents) = world.recover(STRICT).unwrap();
    assert_eq!((zxids(&contents), done.last_zxid), (vec![1, 2], Zxid(2)));
    let words: Vec<String> = done.notes.iter().map(Note::to_string).collect();
    assert_eq!(words[0], "/l/version-2/log.3: removed: no transaction was ever written to it");
    assert!(
        words[1].starts_with("/l/version-2/log.1: cut at byte 174: the last 74 bytes are"),
        "{}",
        words[1]
    );
    assert!(words[1].ends_with("the last transaction is 0x2"), "{}", words[1]);
    assert_eq!(words[2], "/d/version-2/unfinished.snapshot.3: given up: a snapshot that was not completed");
    // Its file is the spare now: to free the space of a large one would delay the start.
    assert_eq!(world.disk.bytes(Path::new("/d/version-2/spare-snapshot")), b"ZKSN");
    assert_eq!(world.recover(STRICT).unwrap().0.notes, []);
    // The name is free for the next transaction.
    assert_eq!(world.log(3..=3), Path::new("/l/version-2/log.3"));
    assert_eq!(zxids(&world.recover(STRICT).unwrap().1), [1, 2, 3]);
}

/// One becomes the spare. The other is removed, or each crash would leave one more.
#[test]
fn two_half_written_snapshots_lose_their_names() {
    let world = World::new();
    world.snapshot(0);
    let unfinished =
        ["unfinished.snapshot.3", "unfinished.snapshot.5"].map(|name| world.folders.snapshots.join(name));
    for file in &unfinished {
        world.disk.put(file, b"ZKSN");
    }
    let notes = world.recover(STRICT).unwrap().0.notes;
    assert_eq!(notes, unfinished.clone().map(Note::UnfinishedGivenUp));
    let names = world.disk.names();
    assert!(unfinished.iter().all(|file| !names.contains(file)), "{names:?}");
    assert!(names.contains(&world.folders.snapshots.join("spare-snapshot")), "{names:?}");
}

#[test]
fn a_log_file_with_a_torn_first_record_is_removed() {
    let world = World::new();
    world.snapshot(0);
    world.log(1..=2);
    let log = world.log(3..=3);
    let whole = world.disk.bytes(&log);
    world.disk.put(&log, &whole[..60]);
    let (done, _) = world.recover(STRICT).unwrap();
    assert!(
        matches!(&done.notes[..], [Note::TornTail(torn)] if torn.offset == 16 && torn.zxid_before == Zxid(2))
    );
    assert!(!world.disk.names().contains(&log));
    world.log(3..=3);
}

/// The torn file will be removed. Then the file before it is the newest, which every start reads.
#[test]
fn damage_in_the_file_before_a_torn_one_refuses_the_first_start_already() {
    let world = World::new();
    world.snapshot(2);
    let covered = world.log(1..=2);
    let torn = world.log(3..=3);
    world.damage(&covered);
    let whole = world.disk.bytes(&torn);
    world.disk.put(&torn, &whole[..60]);
    let error = world.recover(STRICT).unwrap_err();
    assert!(matches!(error, StorageError::Corrupt { offset: 16, .. }), "{error}");
}

#[test]
fn damage_in_the_middle_refuses_the_start() {
    let world = World::new();
    world.snapshot(0);
    let log = world.log(1..=3);
    world.damage(&log);
    let error = world.recover(EASY).unwrap_err();
    assert!(matches!(error, StorageError::Corrupt { offset: 16, last_good: Zxid(0), .. }), "{error}");
}

#[test]
fn missing_folders_are_made_or_an_error_and_swapped_ones_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (data, logs) = (dir.path().join("a/data"), dir.path().join("logs"));
    let error = DataFolders::open(&OsDisk, &data, Some(&logs), false).unwrap_err();
    assert!(error.to_string().contains("logs/version-2 does not exist"), "{error}");
    let folders = DataFolders::open(&OsDisk, &data, Some(&logs), true).unwrap();
    assert!(folders.snapshots.ends_with("a/data/version-2") && folders.snapshots.is_dir());
    assert!(folders.logs.ends_with("logs/version-2") && folders.logs.is_dir());
    std::fs::write(folders.logs.join("snapshot.5.bak"), "").unwrap();
    let error = DataFolders::open(&OsDisk, &data, Some(&logs), true).unwrap_err();
    assert!(error.to_string().contains("is for transaction logs only, but holds snapshot.5.bak"), "{error}");
    std::fs::remove_file(folders.logs.join("snapshot.5.bak")).unwrap();
    std::fs::write(folders.snapshots.join("log.1"), "").unwrap();
    assert!(matches!(
        DataFolders::open(&OsDisk, &data, Some(&logs), true),
        Err(StorageError::Misplaced { .. })
    ));
    // One folder can have both.
    DataFolders::open(&OsDisk, &data, None, true).unwrap();
}

/// The system reads back bytes that it could not write as long as they are in memory. The records that a start has read
/// are there after a power cut, also if a part of them was not in memory any more and the log is cut.
#[test]
fn records_read_after_a_failed_sync_are_written_again_and_synced() {
    for evicted in [false, true] {
        let world = World::new();
        world.snapshot(0);
        let (disk, dir) = (Arc::new(world.disk.clone()), world.folders.logs.clone());
        let mut log =
            TxnLog::open(disk, dir, LogOptions { prealloc_bytes: 64 << 10, ..LogOptions::default() });
        for zxid in 1..=3 {
            log.append(Zxid(zxid), &record(Zxid(zxid), 20)).unwrap();
        }
        log.commit().unwrap();
        log.note_synced().unwrap();
        for (zxid, size) in [(4, 1000), (5, 3000)] {
            log.append(Zxid(zxid), &record(Zxid(zxid), size)).unwrap();
        }
        // The write, then the sync.
        world.disk.fail(Some(Fault { at: 1, lasting: false, kind: io::ErrorKind::Other }));
        log.commit().unwrap_err();
        world.disk.fail(None);
        if evicted {
            world.disk.evict(log.file().unwrap(), 2048);
        }
        let found = world.recover(STRICT).unwrap().0.last_zxid;
        assert_eq!(found, Zxid(if evicted { 4 } else { 5 }));
        // The system keeps in memory only what it must.
        world.disk.crash(|of| of - 1);
        assert_eq!(world.recover(STRICT).unwrap().0.last_zxid, found);
    }
}
