//! Several processes that write into one backup.

use super::{look_at_all, options, server::TestServer};
use crate::{BackupError, backup::Backup, history::History, part::Part, store::Store};
use object_store::memory::InMemory;
use std::sync::Arc;

/// Two processes at one place.
fn two_stores() -> (Store, Store) {
    let objects = Arc::new(InMemory::new());
    (Store::in_memory(objects.clone()).unwrap(), Store::in_memory(objects).unwrap())
}

#[test]
fn a_second_writer_is_noticed() {
    let objects = Arc::new(InMemory::new());
    let (first, second) = (Store::in_memory(objects.clone()).unwrap(), Store::in_memory(objects).unwrap());
    let mut server = TestServer::new();
    server.write(2);
    let mut one = Backup::begin(&first, options(&server)).unwrap();
    one.step().unwrap();
    let mut part = one.part().clone();
    part.writer = "another".to_owned();
    second.put(&Part::name(1), part.encode()).unwrap();
    server.write(1);
    assert!(matches!(one.step(), Err(BackupError::AnotherWriter { .. })));
}

#[test]
fn a_backup_goes_on_after_the_part_of_another_process() {
    let (first, second) = two_stores();
    let mut server = TestServer::new();
    server.write(2);
    let mut follows = Backup::begin(&first, options(&server)).unwrap();
    follows.step().unwrap();
    for _ in 0..3 {
        server.write(2);
        Backup::begin(&second, options(&server)).unwrap().step().unwrap();
        server.write(2);
        let report = follows.step().unwrap();
        assert_eq!(report.notes.len(), 1, "{report:?}");
        server.write(1);
        assert_eq!(follows.step().unwrap().notes, [""; 0]);
        look_at_all(&first, &server);
    }
    assert_eq!(follows.part().part, 7);
    assert_eq!(History::read(&first).unwrap().last(), server.zxid());
}

#[test]
fn a_step_without_new_records_notices_the_part_of_another_process() {
    let (first, second) = two_stores();
    let mut server = TestServer::new();
    server.write(2);
    let mut follows = Backup::begin(&first, options(&server)).unwrap();
    follows.step().unwrap();
    Backup::begin(&second, options(&server)).unwrap().step().unwrap();
    assert_eq!(follows.step().unwrap().notes.len(), 1);
    assert_eq!(follows.part().part, 3);
}

#[test]
fn of_two_processes_that_go_on_and_on_one_ends_with_an_error() {
    let (first, second) = two_stores();
    let mut server = TestServer::new();
    server.write(2);
    let mut one = Backup::begin(&first, options(&server)).unwrap();
    let mut other = Backup::begin(&second, options(&server)).unwrap();
    for _ in 0..10 {
        server.write(1);
        let ended = [one.step(), other.step()].into_iter().find_map(Result::err);
        if let Some(error) = ended {
            assert!(matches!(error, BackupError::AnotherWriter { .. }), "{error}");
            look_at_all(&first, &server);
            return;
        }
    }
    panic!("both go on");
}
