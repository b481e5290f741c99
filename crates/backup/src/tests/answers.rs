//! A server's answers to `srvr`, and what a backup takes for committed because of them.

use super::{at, memory, options, server::TestServer};
use crate::{
    BackupError, Committed,
    backup::{Backup, BackupOptions},
    committed,
    history::{History, Target},
    part::Confirmation,
};
use ostler_proto::id::Zxid;
use std::{
    io::{Read, Write},
    net::TcpListener,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

/// A client port that answers `srvr`, and no other word, with the transaction that was applied last.
struct Answers {
    address: String,
    applied: Arc<AtomicU64>,
}

impl Answers {
    fn new(applied: Zxid) -> Answers {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let applied = Arc::new(AtomicU64::new(applied.0));
        let answers = Answers { address, applied: applied.clone() };
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (mut stream, mut word) = (stream.unwrap(), [0; 4]);
                stream.read_exact(&mut word).unwrap();
                let zxid = Zxid(applied.load(Ordering::SeqCst));
                if &word == b"srvr" {
                    write!(stream, "Zookeeper version: 3.9\nZxid: {zxid}\nMode: follower\n").unwrap();
                }
            }
        });
        answers
    }

    fn apply(&self, zxid: Zxid) {
        self.applied.store(zxid.0, Ordering::SeqCst);
    }

    fn options(&self, server: &TestServer) -> BackupOptions {
        BackupOptions { server: Some(self.address.clone()), ..options(server) }
    }
}

#[test]
fn a_server_is_asked_by_srvr() {
    let answers = Answers::new(at(2, 7));
    assert_eq!(committed::ask(&answers.address).unwrap(), Committed::Through(at(2, 7)));
    answers.apply(at(2, 9));
    assert_eq!(committed::ask(&answers.address).unwrap(), Committed::Through(at(2, 9)));
}

#[test]
fn only_what_the_server_has_applied_is_copied_and_it_is_committed() {
    let (store, mut server) = (memory(), TestServer::new());
    let answers = Answers::new(at(1, 3));
    server.write(5);
    let mut backup = Backup::begin(&store, answers.options(&server)).unwrap();
    assert_eq!(backup.step().unwrap().records, 3);
    assert_eq!((backup.part().confirmed_through, backup.last()), (at(1, 3), at(1, 3)));
    answers.apply(at(1, 5));
    assert_eq!(backup.step().unwrap().records, 2);
    let part = backup.part();
    assert_eq!((part.confirmed_through, part.confirmed_by), (at(1, 5), Confirmation::Server));
}

#[test]
fn an_election_without_a_write_leaves_the_end_of_the_log_committed() {
    for has_a_snapshot_of_the_end in [false, true] {
        let (store, mut server) = (memory(), TestServer::new());
        server.write(5);
        let answers = Answers::new(at(1, 4));
        let mut backup = Backup::begin(&store, answers.options(&server)).unwrap();
        if has_a_snapshot_of_the_end {
            server.write_snapshot();
        }
        answers.apply(at(2, 0));
        backup.step().unwrap();
        assert_eq!(backup.part().confirmed_through, at(1, 5));
    }
}

#[test]
fn the_leader_of_an_epoch_has_all_that_was_logged_in_it() {
    let (store, mut server, mut leader) = (memory(), TestServer::new(), TestServer::new());
    server.write(10);
    Backup::begin(&store, options(&server)).unwrap().step().unwrap();
    let answers = Answers::new(at(1, 7));
    let mut backup = Backup::begin(&store, answers.options(&server)).unwrap();
    backup.step().unwrap();
    // The server fell behind, and got the tree of the same leader.
    leader.write(12);
    server.install(&mut leader);
    answers.apply(at(1, 12));
    backup.step().unwrap();
    assert_eq!(backup.part().confirmed_through, at(1, 10));
}

#[test]
fn what_the_server_takes_back_is_not_confirmed_by_what_it_has_applied_then() {
    for looks_before in [true, false] {
        let (store, mut server) = (memory(), TestServer::new());
        server.write(10);
        Backup::begin(&store, options(&server)).unwrap().step().unwrap();
        let answers = Answers::new(at(1, 7));
        let mut backup = Backup::begin(&store, answers.options(&server)).unwrap();
        if looks_before {
            assert_eq!(backup.step().unwrap().records, 0);
        }
        server.truncate(at(1, 7));
        server.epoch(2);
        server.write(4);
        answers.apply(at(2, 4));
        backup.step().unwrap();
        assert_eq!(backup.part().continues_after, Some(at(1, 7)));
        let history = History::read(&store).unwrap();
        assert_eq!(history.find(&store, Target::Latest, false).unwrap(), at(2, 4));
        let gone = history.find(&store, Target::Zxid(at(1, 9)), true);
        assert!(matches!(gone, Err(BackupError::NoSuchTransaction { .. })), "{gone:?}");
    }
}

/// A backup with ten transactions of a server that had applied seven of them, and was asked while it served. Of the
/// others the leader knows nothing: it has sent its tree of `(2, 3)` in their place.
#[test]
fn a_leaders_tree_in_place_of_the_end_does_not_confirm_it() {
    for is_followed_by_records in [false, true] {
        let (store, mut server, mut leader) = (memory(), TestServer::new(), TestServer::new());
        server.write(10);
        Backup::begin(&store, options(&server)).unwrap().step().unwrap();
        let answers = Answers::new(at(1, 7));
        let mut backup = Backup::begin(&store, answers.options(&server)).unwrap();
        backup.step().unwrap();
        assert_eq!(backup.part().confirmed_through, at(1, 7));
        leader.write(7);
        leader.epoch(2);
        leader.write(3);
        server.install(&mut leader);
        answers.apply(at(2, 3));
        if is_followed_by_records {
            server.write(2);
            answers.apply(at(2, 5));
        }
        backup.step().unwrap();
        let history = History::read(&store).unwrap();
        let find = |zxid| history.find(&store, Target::Zxid(zxid), false);
        assert_eq!(find(at(1, 7)).unwrap(), at(1, 7));
        let refused = find(at(1, 9));
        assert!(matches!(refused, Err(BackupError::NotConfirmed { .. })), "{refused:?}");
        if is_followed_by_records {
            assert_eq!(history.find(&store, Target::Latest, false).unwrap(), at(2, 5));
        }
        // Without the word of a server, the log of the next epoch confirms what is behind the tree, and no more.
        server.epoch(3);
        server.write(1);
        drop(backup);
        for _ in 0..2 {
            Backup::begin(&store, options(&server)).unwrap().step().unwrap();
        }
        let history = History::read(&store).unwrap();
        let refused = history.find(&store, Target::Zxid(at(1, 9)), false);
        assert!(matches!(refused, Err(BackupError::NotConfirmed { .. })), "{refused:?}");
        let end = if is_followed_by_records { at(2, 5) } else { at(2, 3) };
        assert_eq!(history.find(&store, Target::Latest, false).unwrap(), end);
    }
}
