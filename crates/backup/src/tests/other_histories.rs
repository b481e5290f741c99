//! Folders whose history is not that of the backup, and the meaning of an epoch for the one before.

use super::{at, memory, options, server::TestServer};
use crate::{BackupError, backup::Backup, history::History, part::Confirmation};
use ostler_proto::id::Zxid;

#[test]
fn a_newer_snapshot_does_not_hide_that_the_folder_is_another_one() {
    let (store, mut server) = (memory(), TestServer::new());
    server.write(3);
    server.remove_epochs();
    Backup::begin(&store, options(&server)).unwrap().step().unwrap();
    let mut other = TestServer::new();
    other.open_session();
    other.write(4);
    other.write_snapshot();
    let refused = Backup::begin(&store, options(&other)).map(|backup| backup.part().clone());
    assert!(matches!(refused, Err(BackupError::HistoryTakenBack { .. })), "{refused:?}");
    assert_eq!(History::read(&store).unwrap().parts().len(), 1);
}

#[test]
fn the_next_epoch_after_a_long_one_says_nothing_of_its_end() {
    let (store, mut server) = (memory(), TestServer::new());
    server.skip_to(at(1, 1500));
    server.write(1);
    server.write_snapshot();
    server.write(2);
    let mut backup = Backup::begin(&store, options(&server)).unwrap();
    server.epoch(2);
    server.write(3);
    backup.step().unwrap();
    // The leader could have moved on in place, and be cut off before a follower had the last records of epoch 1.
    assert_eq!(backup.part().confirmed_through, Zxid::ZERO);
    drop(backup);
    // A leader moves on in place only after a long epoch, so this was an election.
    server.epoch(3);
    server.write(1);
    let mut backup = Backup::begin(&store, options(&server)).unwrap();
    backup.step().unwrap();
    let part = backup.part();
    assert_eq!((part.confirmed_through, part.confirmed_by), (at(2, 3), Confirmation::LaterEpoch));
}

#[test]
fn a_backup_that_goes_on_in_a_long_epoch_knows_where_it_began() {
    let (store, mut server) = (memory(), TestServer::new());
    server.write(2);
    server.epoch(2);
    server.write(1000);
    Backup::begin(&store, options(&server)).unwrap().step().unwrap();
    server.write(1);
    server.epoch(3);
    server.write(1);
    let mut backup = Backup::begin(&store, options(&server)).unwrap();
    assert_eq!(backup.part().continues_after, Some(at(2, 1000)));
    backup.step().unwrap();
    assert_eq!(backup.part().confirmed_through, at(1, 2));
}

/// The log shows where a long epoch began also to a process that begins in the middle of it.
#[test]
fn a_backup_that_goes_on_in_a_second_long_epoch_confirms_what_was_before_it() {
    let (store, mut server) = (memory(), TestServer::new());
    server.write(1000);
    server.epoch(2);
    server.write(1000);
    Backup::begin(&store, options(&server)).unwrap().step().unwrap();
    assert_eq!(History::read(&store).unwrap().confirmed_through(), Zxid::ZERO);
    server.epoch(3);
    server.write(1);
    let mut backup = Backup::begin(&store, options(&server)).unwrap();
    backup.step().unwrap();
    assert_eq!(backup.part().confirmed_through, at(1, 1000));
}

#[test]
fn an_epoch_file_that_was_not_finished_counts_only_if_it_can_be_read() {
    for (text, highest) in [("", 1), ("9", 9)] {
        let (store, mut server) = (memory(), TestServer::new());
        server.write(1);
        std::fs::write(server.folders.snapshots.join("acceptedEpoch.tmp"), text).unwrap();
        let mut backup = Backup::begin(&store, options(&server)).unwrap();
        backup.step().unwrap();
        assert_eq!(backup.part().highest_epoch, highest, "{text:?}");
    }
}
