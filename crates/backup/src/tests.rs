//! Backups of files that a test writes, and what can be restored from them.

mod answers;
mod continuations;
mod gaps;
mod histories;
mod other_histories;
mod server;
mod writers;

use crate::{
    BackupError,
    backup::{Backup, BackupOptions},
    history::{History, Target},
    part::Confirmation,
    rebuild::rebuild,
    restore::{self, EPOCH_MARGIN, RestoredServer},
    store::Store,
    verify::verify,
};
use object_store::memory::InMemory;
use ostler_data_dir::recovery::RestoreOptions;
use ostler_proto::id::{Epoch, Zxid};
use ostler_storage::{disk::OsDisk, folders::DataFolders, names::log_files};
use server::TestServer;
use std::sync::Arc;

fn memory() -> Store {
    Store::in_memory(Arc::default()).unwrap()
}

fn options(server: &TestServer) -> BackupOptions {
    BackupOptions { segment_bytes: 700, ..BackupOptions::new(server.folders.clone()) }
}

fn at(epoch: u32, counter: u32) -> Zxid {
    Zxid::new(Epoch(epoch), counter)
}

/// Every transaction that the server has can be restored, with the digest of then.
fn look_at_all(store: &Store, server: &TestServer) {
    let history = History::read(store).unwrap();
    for (zxid, digest) in &server.digests {
        let found = history.find(store, Target::Zxid(*zxid), true).unwrap();
        let rebuilt = rebuild(store, &history, found).unwrap();
        assert_eq!((rebuilt.tree.digest(), rebuilt.recorded), (*digest, Some(*digest)), "{zxid}");
        assert_eq!((rebuilt.digest_mismatches, rebuilt.notes.len()), (0, 0), "{zxid}: {:?}", rebuilt.notes);
    }
    let verified = verify(store, &history).unwrap();
    assert!(verified.faults.is_empty(), "{verified:?}");
}

#[test]
fn each_transaction_is_restored_with_the_digest_of_then() {
    let (store, mut server) = (memory(), TestServer::new());
    server.open_session();
    server.create("/e", true);
    server.write(20);
    let mut backup = Backup::begin(&store, options(&server)).unwrap();
    assert_eq!(backup.step().unwrap().records, 22);
    look_at_all(&store, &server);
    assert!(backup.part().segments.len() > 2, "{:?}", backup.part());
    // The log grows, in the same file, in a new one, and over the change of the epoch.
    server.write(3);
    assert_eq!(backup.step().unwrap().records, 3);
    assert_eq!(backup.step().unwrap().records, 0);
    server.write_snapshot();
    server.write(3);
    server.epoch(2);
    server.write(2);
    assert_eq!(backup.step().unwrap().records, 5);
    look_at_all(&store, &server);
    assert_eq!(backup.part().highest_epoch, 2);
    assert_eq!(History::read(&store).unwrap().parts().len(), 1);
}

#[test]
fn a_backup_that_is_begun_again_goes_on_where_it_ended() {
    let (store, mut server) = (memory(), TestServer::new());
    server.write(5);
    Backup::begin(&store, options(&server)).unwrap().step().unwrap();
    server.write(5);
    server.write_snapshot();
    server.write(5);
    let mut backup = Backup::begin(&store, options(&server)).unwrap();
    assert_eq!(backup.part().continues_after, Some(at(1, 5)));
    assert_eq!(backup.step().unwrap().records, 10);
    look_at_all(&store, &server);
    let again = Backup::begin(&store, options(&server)).unwrap();
    assert_eq!(again.part().base.object, "00000002/snapshot.10000000a", "the same file is not stored twice");
}

#[test]
fn what_a_later_epoch_takes_back_is_no_history() {
    let (store, mut server) = (memory(), TestServer::new());
    server.write(10);
    let mut backup = Backup::begin(&store, options(&server)).unwrap();
    backup.step().unwrap();
    let history = History::read(&store).unwrap();
    let refused = history.find(&store, Target::Zxid(at(1, 9)), false);
    assert!(matches!(refused, Err(BackupError::NotConfirmed { .. })), "{refused:?}");
    // The last three were never committed.
    server.truncate(at(1, 7));
    server.epoch(2);
    server.write(4);
    let report = backup.step().unwrap();
    assert_eq!((report.records, report.notes.len()), (4, 1), "{report:?}");
    look_at_all(&store, &server);
    let history = History::read(&store).unwrap();
    assert_eq!(backup.part().continues_after, Some(at(1, 7)));
    assert_eq!(
        (history.confirmed_through(), backup.part().confirmed_by),
        (at(1, 7), Confirmation::LaterEpoch)
    );
    let gone = history.find(&store, Target::Zxid(at(1, 9)), true);
    assert!(matches!(gone, Err(BackupError::NoSuchTransaction { .. })), "{gone:?}");
    assert_eq!(history.find(&store, Target::Latest, false).unwrap(), at(1, 7));
    assert_eq!(history.find(&store, Target::Latest, true).unwrap(), at(2, 4));
}

#[test]
fn what_was_taken_back_while_no_backup_ran_is_no_history_either() {
    let (store, mut server) = (memory(), TestServer::new());
    server.write(10);
    Backup::begin(&store, options(&server)).unwrap().step().unwrap();
    server.truncate(at(1, 7));
    server.epoch(2);
    server.write(4);
    let mut backup = Backup::begin(&store, options(&server)).unwrap();
    assert_eq!(backup.part().continues_after, Some(at(1, 7)));
    backup.step().unwrap();
    look_at_all(&store, &server);
    assert_eq!(History::read(&store).unwrap().confirmed_through(), at(1, 7));
}

#[test]
fn a_folder_that_lacks_committed_transactions_is_refused() {
    let (store, mut server) = (memory(), TestServer::new());
    server.write(5);
    server.epoch(2);
    server.write(1);
    Backup::begin(&store, options(&server)).unwrap().step().unwrap();
    let mut other = TestServer::new();
    other.write(3);
    let refused = Backup::begin(&store, options(&other)).unwrap_err();
    assert!(matches!(refused, BackupError::HistoryTakenBack { .. }), "{refused}");
}

#[test]
fn a_tree_in_place_of_records_begins_with_a_new_base() {
    let (store, mut server, mut leader) = (memory(), TestServer::new(), TestServer::new());
    server.write(5);
    leader.write(9);
    let mut backup = Backup::begin(&store, options(&server)).unwrap();
    backup.step().unwrap();
    server.install(&mut leader);
    server.epoch(2);
    server.write(3);
    let report = backup.step().unwrap();
    assert_eq!(report.notes.len(), 1, "{report:?}");
    assert_eq!(backup.part().continues_after, None);
    let history = History::read(&store).unwrap();
    for zxid in [at(1, 3), at(1, 9), at(2, 2)] {
        let found = history.find(&store, Target::Zxid(zxid), true).unwrap();
        rebuild(&store, &history, found).unwrap();
    }
    let missing = history.find(&store, Target::Zxid(at(1, 7)), true);
    assert!(matches!(missing, Err(BackupError::NoSuchTransaction { .. })), "{missing:?}");
    assert!(verify(&store, &history).unwrap().faults.is_empty());
}

#[test]
fn files_that_a_purge_removes_are_followed_by_the_next_ones() {
    let (store, mut server) = (memory(), TestServer::new());
    let mut backup = Backup::begin(&store, options(&server)).unwrap();
    for _ in 0..5 {
        server.write(3);
        server.write_snapshot();
        backup.step().unwrap();
    }
    server.purge();
    server.write(3);
    let report = backup.step().unwrap();
    assert_eq!((report.records, report.notes.len()), (3, 0), "{report:?}");
    look_at_all(&store, &server);
    // Now files go that were not read.
    for _ in 0..5 {
        server.write(3);
        server.write_snapshot();
    }
    server.purge();
    backup.step().unwrap();
    assert_eq!(backup.part().continues_after, None);
    let history = History::read(&store).unwrap();
    let last = history.find(&store, Target::Zxid(server.zxid()), true).unwrap();
    rebuild(&store, &history, last).unwrap();
}

#[test]
fn a_process_that_dies_at_any_write_leaves_a_backup_that_restores() {
    for writes in 0..40 {
        let mut server = TestServer::new();
        server.write(10);
        let objects = Arc::new(InMemory::new());
        let store = Store::in_memory(objects.clone()).unwrap();
        Backup::begin(&store, options(&server)).unwrap().step().unwrap();
        let (before, confirmed) = (server.zxid(), server.digests.clone());
        server.write(10);
        server.write_snapshot();
        server.write(2);
        store.writes_left.set(writes);
        let died = Backup::begin(&store, options(&server)).and_then(|mut backup| backup.step()).is_err();
        let after = Store::in_memory(objects).unwrap();
        let history = History::read(&after).unwrap();
        assert!(history.last() >= before);
        for (zxid, digest) in confirmed.iter().filter(|(zxid, _)| **zxid <= history.last()) {
            assert_eq!(rebuild(&after, &history, *zxid).unwrap().tree.digest(), *digest);
        }
        assert!(verify(&after, &history).unwrap().faults.is_empty());
        Backup::begin(&after, options(&server)).unwrap().step().unwrap();
        let history = History::read(&after).unwrap();
        assert_eq!(rebuild(&after, &history, server.zxid()).unwrap().tree.digest(), server.tree.digest());
        if !died {
            return;
        }
    }
    panic!("a step has more than 40 writes");
}

#[test]
fn a_damaged_base_or_segment_is_a_fault_and_an_older_base_takes_its_place() {
    let (store, mut server) = (memory(), TestServer::new());
    server.write(5);
    Backup::begin(&store, options(&server)).unwrap().step().unwrap();
    server.write(2);
    server.write_snapshot();
    let mut backup = Backup::begin(&store, options(&server)).unwrap();
    backup.step().unwrap();
    let history = History::read(&store).unwrap();
    let base = backup.part().base.object.clone();
    let mut bytes = store.get(&base).unwrap().unwrap();
    bytes[100] ^= 1;
    store.put(&base, bytes).unwrap();
    let rebuilt = rebuild(&store, &history, at(1, 7)).unwrap();
    assert_eq!((rebuilt.base, rebuilt.notes.len()), (Zxid(0), 1), "{rebuilt:?}");
    assert_eq!(verify(&store, &history).unwrap().faults.len(), 1);
    let segment = backup.part().segments[0].object.clone();
    store.put(&segment, b"short".to_vec()).unwrap();
    let lost = rebuild(&store, &history, at(1, 7));
    assert!(matches!(lost, Err(BackupError::NoUsableBase { .. })), "{lost:?}");
    assert!(verify(&store, &history).unwrap().faults.len() >= 2);
}

#[test]
fn a_time_names_the_last_transaction_before_the_first_later_one() {
    let (store, mut server) = (memory(), TestServer::new());
    server.write(30);
    Backup::begin(&store, options(&server)).unwrap().step().unwrap();
    let history = History::read(&store).unwrap();
    let find = |ms| history.find(&store, Target::TimeMs(ms), true).map_err(|error| error.to_string());
    assert_eq!(find(0), Ok(at(1, 1)));
    assert_eq!(find(12_999), Ok(at(1, 13)));
    assert_eq!(find(13_000), Ok(at(1, 14)));
    assert_eq!(find(i64::MAX), Ok(at(1, 30)));
    assert!(find(-1).unwrap_err().contains("begins later"), "{:?}", find(-1));
}

#[test]
fn restored_folders_have_no_sessions_and_an_epoch_above_all() {
    let (store, mut server) = (memory(), TestServer::new());
    server.open_session();
    server.create("/e", true);
    server.create("/kept", false);
    Backup::begin(&store, options(&server)).unwrap().step().unwrap();
    let history = History::read(&store).unwrap();
    let low = restore::choose_epoch(&store, &history, Some(Epoch(1)));
    assert!(matches!(low, Err(BackupError::EpochTooLow { .. })), "{low:?}");
    assert_eq!(restore::choose_epoch(&store, &history, Some(Epoch(2))).unwrap(), Epoch(2));
    let epoch = restore::choose_epoch(&store, &history, None).unwrap();
    assert_eq!(epoch, Epoch(1 + EPOCH_MARGIN));
    let rebuilt = rebuild(&store, &history, at(1, 3)).unwrap();
    let ended = restore::end_sessions(rebuilt.tree, epoch);
    assert_eq!((ended.sessions, &*ended.ephemerals), (1, &["/e".to_owned()][..]));
    let dir = tempfile::tempdir().unwrap();
    let folders = DataFolders::at(&dir.path().join("1"), Some(&dir.path().join("logs")));
    let target = RestoredServer { folders: folders.clone(), server_id: Some(1) };
    ended.write(&target).unwrap();
    assert!(matches!(ended.write(&target), Err(BackupError::FolderInUse { .. })));
    assert_eq!(std::fs::read_to_string(dir.path().join("1/myid")).unwrap(), "1\n");
    assert!(log_files(&OsDisk, &folders.logs).unwrap().is_empty());
    let started = ostler_data_dir::recovery::restore(&OsDisk, &folders, RestoreOptions::default()).unwrap();
    assert_eq!(started.recovered.last_zxid, ended.zxid());
    assert_eq!((started.tree.digest(), started.tree.session_count()), (ended.digest(), 0));
    assert!(started.tree.get("/kept").is_some() && started.tree.get("/e").is_none());
    restore::note_restore(&store, at(1, 3), epoch).unwrap();
    let next = restore::choose_epoch(&store, &history, None).unwrap();
    assert_eq!(next, Epoch(1 + 2 * EPOCH_MARGIN), "the next restore goes higher");
}

#[test]
fn the_log_of_a_standalone_server_is_committed() {
    let (store, mut server) = (memory(), TestServer::new());
    server.write(3);
    server.remove_epochs();
    Backup::begin(&store, options(&server)).unwrap().step().unwrap();
    let history = History::read(&store).unwrap();
    assert_eq!(history.find(&store, Target::Latest, false).unwrap(), at(1, 3));
}
