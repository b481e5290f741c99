//! Times at which the backup has no log, and bases that stand alone.

use super::{at, memory, options, server::TestServer};
use crate::{
    BackupError,
    backup::Backup,
    history::{History, Target},
    part::Part,
    rebuild::rebuild,
    store::Store,
    verify::verify,
};
use ostler_proto::id::Zxid;

/// A server whose backup has five transactions, until 4 s, and a base of the ninth, of 8.5 s.
fn with_a_gap(store: &Store) -> (TestServer, Backup<'_>) {
    let (mut server, mut leader) = (TestServer::new(), TestServer::new());
    server.write(5);
    leader.write(9);
    let mut backup = Backup::begin(store, options(&server)).unwrap();
    backup.step().unwrap();
    server.install(&mut leader);
    server.date_snapshot(8_500);
    server.epoch(2);
    (server, backup)
}

fn find(store: &Store, time_ms: i64) -> Result<Zxid, BackupError> {
    History::read(store).unwrap().find(store, Target::TimeMs(time_ms), true)
}

/// The time is refused, and the message names both transactions that could be meant.
fn is_in_gap(store: &Store, time_ms: i64) {
    let refused = find(store, time_ms).unwrap_err().to_string();
    let names = |zxid: Zxid| refused.contains(&format!("--to-zxid {zxid}"));
    assert!(names(at(1, 5)) && names(at(1, 9)), "{refused}");
}

#[test]
fn a_time_between_two_logs_is_refused() {
    let store = memory();
    let (mut server, mut backup) = with_a_gap(&store);
    server.write(3);
    backup.step().unwrap();
    assert_eq!(find(&store, 3_500).unwrap(), at(1, 4));
    is_in_gap(&store, 4_500);
    is_in_gap(&store, 8_200);
    assert_eq!(find(&store, 8_500).unwrap(), at(1, 9), "the time of the base itself");
    assert_eq!(find(&store, 8_700).unwrap(), at(1, 9));
    assert_eq!(find(&store, 9_500).unwrap(), at(2, 1));
    assert_eq!(find(&store, i64::MAX).unwrap(), at(2, 3));
    let verified = verify(&store, &History::read(&store).unwrap()).unwrap();
    assert!(verified.faults.is_empty(), "{verified:?}");
    let gap = format!("gap: the log between {} and {} is missing", at(1, 5), at(1, 9));
    assert!(verified.checked.iter().any(|line| line.starts_with(&gap)), "{verified:?}");
}

#[test]
fn a_time_before_a_base_without_a_log_is_refused() {
    let store = memory();
    let (server, mut backup) = with_a_gap(&store);
    drop(backup);
    backup = Backup::begin(&store, options(&server)).unwrap();
    backup.step().unwrap();
    is_in_gap(&store, 6_000);
    assert_eq!(find(&store, 8_700).unwrap(), at(1, 9));
    let verified = verify(&store, &History::read(&store).unwrap()).unwrap();
    assert!(verified.checked.iter().any(|line| line.starts_with("gap: ")), "{verified:?}");
}

#[test]
fn the_base_of_a_manifest_without_its_time_is_refused_at_all_times() {
    let store = memory();
    let (server, backup) = with_a_gap(&store);
    drop(backup);
    let backup = Backup::begin(&store, options(&server)).unwrap();
    let name = Part::name(backup.part().part);
    let text = String::from_utf8(store.get(&name).unwrap().unwrap()).unwrap();
    assert!(text.contains("\"time_ms\": 8500"), "{text}");
    let mut part = backup.part().clone();
    part.base.time_ms = None;
    store.put(&name, part.encode()).unwrap();
    let text = String::from_utf8(store.get(&name).unwrap().unwrap()).unwrap();
    assert!(!text.contains("time_ms"), "as before the field was there: {text}");
    is_in_gap(&store, 6_000);
    is_in_gap(&store, i64::MAX);
}

#[test]
fn a_base_is_of_the_time_of_its_record_if_the_log_has_it() {
    let (store, mut server) = (memory(), TestServer::new());
    server.write(5);
    server.write_snapshot();
    let backup = Backup::begin(&store, options(&server)).unwrap();
    assert_eq!(backup.part().base.time_ms, Some(4_000));
    assert_eq!(find(&store, 4_000).unwrap(), at(1, 5));
    assert!(find(&store, 3_999).is_err());
}

#[test]
fn a_log_goes_on_only_from_the_base_of_its_own_part() {
    let (store, mut server) = (memory(), TestServer::new());
    server.records_digests = false;
    Backup::begin(&store, options(&server)).unwrap().step().unwrap();
    server.write(5);
    server.write_snapshot();
    server.epoch(2);
    server.write(2);
    let mut backup = Backup::begin(&store, options(&server)).unwrap();
    backup.step().unwrap();
    assert_eq!((backup.part().continues_after, backup.part().base.zxid), (None, at(1, 5)));
    let history = History::read(&store).unwrap();
    assert_eq!(rebuild(&store, &history, at(2, 2)).unwrap().base, at(1, 5));
    store.put(&backup.part().base.object, b"damaged".to_vec()).unwrap();
    let lost = rebuild(&store, &history, at(2, 2));
    assert!(matches!(lost, Err(BackupError::NoUsableBase { .. })), "{lost:?}");
}
