//! The exact counts of a standalone server, and its session ids.

use crate::{
    disk::Disk,
    member::{Member, TIMEOUT_MS},
    wire::{WireRequest, children_and_watch, create, delete, exists_and_watch, get_and_watch, set, set_acl},
};
use ostler_proto::{
    acl::{Acl, Perms},
    error::ErrorCode,
    id::{SessionId, Zxid},
    op::Op,
    password::password_of,
    txn::{Txn, TxnHeader, TxnRecord},
};
use ostler_server_core::{Server, stats::Summary};
use ostler_tree::Tree;

fn summary(values: &[u64]) -> Summary {
    let mut summary = Summary::default();
    values.iter().for_each(|value| summary.add(*value));
    summary
}

#[test]
fn handshakes_are_counted_by_what_comes_of_them() {
    let mut m = Member::new();
    let counts = |m: &Member| {
        let of = m.server.summary().stats;
        (of.packets_received, of.packets_sent, of.connection_requests, of.connection_revalidations)
    };
    let a = m.join();
    assert_eq!(counts(&m), (1, 1, 1, 0));
    m.rejoin(a, TIMEOUT_MS);
    assert_eq!(counts(&m), (2, 2, 2, 1));
    let gone = SessionId(99);
    let conn = m.dial();
    m.shake_hands(conn, TIMEOUT_MS, gone, &password_of(gone));
    assert_eq!(counts(&m), (3, 3, 3, 1), "it is told that its session is gone");
    let of = m.server.summary().stats;
    assert_eq!((of.proposals, of.commits), (1, 1));
    assert_eq!((of.writes.led_commits, of.writes.quorum_ms.summary.count), (0, 0), "there is no quorum");
    assert_eq!(of.writes.own_ack_ms.summary.count, 0, "there is no leader to acknowledge to");
    assert_eq!(of.writes.propagation_ms.summary.count, 1);
}

#[test]
fn events_are_counted_by_kind_and_by_who_is_told() {
    let mut m = Member::new();
    let (a, b, c) = (m.join(), m.join(), m.join());
    m.ask(a, create("/a")).unwrap();
    for client in [b, c] {
        m.send(client, exists_and_watch("/new"));
        m.send(client, get_and_watch("/a"));
    }
    m.send(b, children_and_watch("/"));
    let sent = m.server.summary().stats.packets_sent;
    m.ask(a, create("/new")).unwrap();
    m.ask(a, set("/a", b"x")).unwrap();
    m.send(c, get_and_watch("/a"));
    m.ask(a, delete("/a")).unwrap();
    let of = m.server.summary().stats;
    assert_eq!(of.node_created_watches, summary(&[2]));
    assert_eq!(of.node_children_watches, summary(&[1]));
    assert_eq!(of.node_changed_watches, summary(&[2]));
    assert_eq!(of.node_deleted_watches, summary(&[1]));
    assert_eq!(of.packets_sent - sent, 6 + 4, "events and answers");
}

/// The clock may stand where a session of before was given its number.
#[test]
fn a_new_session_gets_no_number_of_one_that_lives() {
    let taken = Member::new().join().session;
    let mut m = Member::new();
    let mut tree = Tree::fresh(m.config.types);
    let (zxid, txn) = (Zxid(1), Txn::CreateSession { timeout_ms: TIMEOUT_MS });
    let header = TxnHeader { session: taken, cxid: 0, zxid, time_ms: 0, code: txn.code() };
    tree.apply(&TxnRecord { header, txn, digest: None }, &mut Vec::new());
    m.server = Server::new(m.config.clone(), tree, 0, m.now);
    m.disk = Disk::new(zxid);
    let sessions = [m.join().session, m.join().session];
    assert!(!sessions.contains(&taken));
    assert_ne!(sessions[0], sessions[1]);
}

/// A multi that does not decode keeps its place in the order by a transaction. For a list that upstream trips over there
/// is none.
#[test]
fn of_what_does_not_decode_only_a_multi_takes_a_zxid() {
    let mut m = Member::new();
    let a = m.join();
    let before = m.applied();
    let malformed = WireRequest { code: Op::Multi.code(), body: vec![1, 2, 3], acls: Vec::new() };
    assert_eq!(m.ask(a, malformed), Err(ErrorCode::MarshallingError));
    assert_eq!(m.applied(), before.next());
    let mut nobody = set_acl("/", &[Acl::world(Perms::ALL)], -1);
    // The id of the only entry: its text is null.
    let end = nobody.body.windows(6).position(|part| part == b"anyone").unwrap();
    nobody.body.splice(end - 4..end + 6, [255; 4]);
    assert_eq!(m.ask(a, nobody), Err(ErrorCode::MarshallingError));
    assert_eq!(m.applied(), before.next());
    m.ask(a, set("/", b"x")).unwrap();
    assert_eq!(m.applied(), before.next().next());
}
