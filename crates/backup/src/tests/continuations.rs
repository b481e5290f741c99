//! Where the next part of a backup goes on.

use super::{at, look_at_all, memory, options, server::TestServer};
use crate::{
    BackupError,
    backup::Backup,
    continuation::{connection, earlier},
    history::{History, Target},
    part::Confirmation,
    store::Store,
};
use ostler_proto::id::Zxid;

/// A server with ten transactions, and a backup of them. Of `confirmed` the backup knows that they were committed.
fn with_ten(store: &Store, confirmed: Zxid) -> TestServer {
    let mut server = TestServer::new();
    server.write(10);
    let mut backup = Backup::begin(store, options(&server)).unwrap();
    backup.step().unwrap();
    let mut part = backup.part().clone();
    (part.confirmed_through, part.confirmed_by) = (confirmed, Confirmation::Server);
    store.put(&crate::part::Part::name(1), part.encode()).unwrap();
    server
}

/// A server with ten transactions of its own.
fn another() -> TestServer {
    let mut other = TestServer::new();
    other.open_session();
    other.write(9);
    other
}

fn connect(
    store: &Store,
    server: &TestServer,
    broke_off: bool,
    snapshot: Zxid,
) -> Result<Option<Zxid>, BackupError> {
    let earlier = earlier(store).unwrap().unwrap();
    connection(store, &server.folders, (&earlier, broke_off), snapshot)
}

#[test]
fn a_log_with_the_last_transaction_goes_on_after_it_whatever_the_snapshot() {
    for confirmed in [at(1, 7), at(1, 10)] {
        let store = memory();
        let mut server = with_ten(&store, confirmed);
        server.write(2);
        for snapshot in [Zxid::ZERO, at(1, 10), at(1, 12)] {
            assert_eq!(connect(&store, &server, false, snapshot).unwrap(), Some(at(1, 10)), "{snapshot}");
        }
    }
}

#[test]
fn a_log_that_breaks_off_after_the_last_transaction_needs_a_newer_snapshot() {
    for confirmed in [at(1, 7), at(1, 10)] {
        let store = memory();
        let server = with_ten(&store, confirmed);
        assert_eq!(connect(&store, &server, true, at(1, 11)).unwrap(), None);
        for snapshot in [Zxid::ZERO, at(1, 10)] {
            let stuck = connect(&store, &server, true, snapshot);
            assert!(matches!(stuck, Err(BackupError::Stuck { .. })), "{stuck:?}");
        }
    }
}

#[test]
fn a_log_with_another_last_transaction_is_copied_again_from_where_it_is_surely_the_same() {
    let store = memory();
    with_ten(&store, at(1, 7));
    let other = another();
    for snapshot in [Zxid::ZERO, at(1, 10)] {
        assert_eq!(connect(&store, &other, false, snapshot).unwrap(), Some(at(1, 7)), "{snapshot}");
    }
    assert_eq!(connect(&store, &other, false, at(1, 11)).unwrap(), None);
}

#[test]
fn another_transaction_in_place_of_a_committed_one_is_another_history() {
    let store = memory();
    with_ten(&store, at(1, 10));
    for snapshot in [Zxid::ZERO, at(1, 10), at(1, 11)] {
        let refused = connect(&store, &another(), false, snapshot);
        assert!(matches!(refused, Err(BackupError::HistoryTakenBack { .. })), "{refused:?}");
    }
}

#[test]
fn a_log_that_ends_before_the_last_transaction_connects_there_or_at_its_snapshot() {
    let store = memory();
    let mut server = with_ten(&store, at(1, 7));
    server.truncate(at(1, 8));
    for (snapshot, after) in [
        (Zxid::ZERO, Some(at(1, 8))),
        (at(1, 9), Some(at(1, 9))),
        (at(1, 10), Some(at(1, 10))),
        (at(1, 11), None),
    ] {
        assert_eq!(connect(&store, &server, false, snapshot).unwrap(), after, "{snapshot}");
    }
    server.truncate(at(1, 7));
    assert_eq!(connect(&store, &server, false, Zxid::ZERO).unwrap(), Some(at(1, 7)));
    server.truncate(at(1, 6));
    let refused = connect(&store, &server, false, Zxid::ZERO);
    assert!(matches!(refused, Err(BackupError::HistoryTakenBack { .. })), "{refused:?}");
    // With a newer snapshot it is a log that was not copied.
    assert_eq!(connect(&store, &server, false, at(1, 11)).unwrap(), None);
}

#[test]
fn a_snapshot_of_the_last_zxid_does_not_hide_another_history() {
    let (store, mut server, mut other) = (memory(), TestServer::new(), another());
    server.write(10);
    Backup::begin(&store, options(&server)).unwrap().step().unwrap();
    other.write_snapshot();
    let mut backup = Backup::begin(&store, options(&other)).unwrap();
    backup.step().unwrap();
    look_at_all(&store, &other);
}

/// The tail of an offline backup that a later leader has replaced is never committed, whatever comes later.
#[test]
fn a_later_part_does_not_confirm_a_tail_that_it_does_not_continue() {
    let (store, mut server) = (memory(), TestServer::new());
    server.write(10);
    Backup::begin(&store, options(&server)).unwrap().step().unwrap();
    server.truncate(at(1, 7));
    for epoch in [2, 3] {
        server.epoch(epoch);
        server.write(4);
        server.write_snapshot();
    }
    server.epoch(4);
    server.write(1);
    Backup::begin(&store, options(&server)).unwrap().step().unwrap();
    let history = History::read(&store).unwrap();
    assert_eq!(history.confirmed_through(), at(3, 4));
    assert_eq!(history.find(&store, Target::Latest, false).unwrap(), at(3, 4));
    for target in [Target::Zxid(at(1, 9)), Target::Zxid(at(1, 1)), Target::TimeMs(8_000)] {
        let refused = history.find(&store, target, false);
        let Err(BackupError::NotConfirmed { confirmed, .. }) = refused else { panic!("{refused:?}") };
        assert_eq!(confirmed, Zxid::ZERO, "the backup had confirmed nothing before the gap");
    }
    assert_eq!(history.find(&store, Target::Zxid(at(1, 9)), true).unwrap(), at(1, 9));
}

#[test]
fn a_later_part_confirms_the_tail_that_it_continues() {
    let (store, mut server) = (memory(), TestServer::new());
    server.write(10);
    Backup::begin(&store, options(&server)).unwrap().step().unwrap();
    server.epoch(2);
    server.write(2);
    Backup::begin(&store, options(&server)).unwrap().step().unwrap();
    let history = History::read(&store).unwrap();
    assert_eq!(history.find(&store, Target::Zxid(at(1, 9)), false).unwrap(), at(1, 9));
    assert_eq!(history.find(&store, Target::Latest, false).unwrap(), at(1, 10));
}
