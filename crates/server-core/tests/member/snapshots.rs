//! Snapshots: when they are asked for, and that they are exact at one zxid.

use crate::{
    disk,
    member::{Client, Member},
    wire::{close_session, create, delete, multi, set, set_acl},
};
use ostler_proto::{
    acl::{Acl, Perms},
    stat::ExtendedTypes,
};
use ostler_server_core::{CoreConfig, Input, SnapshotTurn};

fn every(txns: u64) -> CoreConfig {
    CoreConfig { snapshot_txns: txns, ..CoreConfig::default() }
}

fn write(m: &mut Member, a: Client, writes: usize) {
    for _ in 0..writes {
        m.ask(a, set("/", b"x")).unwrap();
    }
}

#[test]
fn a_snapshot_is_due_after_half_to_all_of_the_limit() {
    let mut at = std::collections::BTreeSet::new();
    for seed in 0..200u64 {
        let config = CoreConfig { seed: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15), ..every(100) };
        let mut m = Member::with(config);
        let a = m.join();
        while m.snapshots.is_empty() {
            write(&mut m, a, 1);
        }
        assert!((51..=101).contains(&m.applied().0), "{}", m.applied());
        at.insert(m.applied());
    }
    assert!(at.len() > 20, "members write theirs at different times: {at:?}");
}

#[test]
fn a_snapshot_is_due_by_the_bytes_of_the_log_too() {
    let mut m = Member::with(CoreConfig { snapshot_log_bytes: Some(10_000), ..CoreConfig::default() });
    let a = m.join();
    for _ in 0..20 {
        m.ask(a, set("/", &[7; 1000])).unwrap();
    }
    assert!((1..=4).contains(&m.applied().0) || !m.snapshots.is_empty());
    assert_eq!(m.snapshots.len(), 1, "the first is still being written");
}

#[test]
fn one_snapshot_at_a_time() {
    let mut m = Member::with(every(10));
    let a = m.join();
    write(&mut m, a, 100);
    assert_eq!(m.snapshots.len(), 1);
    m.step(Input::SnapshotDone);
    write(&mut m, a, 1);
    assert_eq!(m.snapshots.len(), 2);
}

#[test]
fn the_next_snapshot_counts_from_the_last() {
    let mut m = Member::with(every(100));
    let a = m.join();
    for snapshots in 1..=5 {
        let start = m.applied().0;
        while m.snapshots.len() < snapshots {
            write(&mut m, a, 1);
        }
        m.step(Input::SnapshotDone);
        assert!((50..=101).contains(&(m.applied().0 - start)));
    }
}

#[test]
fn an_operator_takes_a_snapshot_once_none_is_written() {
    let mut m = Member::with(every(100));
    let a = m.join();
    write(&mut m, a, 5);
    assert_eq!(m.server.snapshot_turn(), SnapshotTurn::Free);
    m.step(Input::TakeSnapshot);
    assert_eq!(m.snapshots.len(), 1);
    assert_eq!(m.snapshots[0].zxid, m.applied());
    assert_eq!(m.server.snapshot_turn(), SnapshotTurn::Running);
    m.step(Input::TakeSnapshot);
    assert_eq!(m.snapshots.len(), 1, "the first is still being written");
    m.step(Input::SnapshotDone);
    let start = m.applied().0;
    while m.snapshots.len() < 2 {
        write(&mut m, a, 1);
    }
    assert!((50..=101).contains(&(m.applied().0 - start)), "the next one counts from it");
}

/// An operator sees by it how much a restart has to replay.
#[test]
fn the_transactions_since_the_last_snapshot_are_counted() {
    let config = every(1000);
    let tree = ostler_tree::Tree::fresh(config.types);
    let mut m = Member::with(config.clone());
    m.server = ostler_server_core::Server::new(config, tree, 40, m.now);
    let a = m.join();
    write(&mut m, a, 5);
    assert_eq!(
        m.server.records_since_snapshot(),
        40 + 1 + 5,
        "the replayed ones, the session and the writes"
    );
    m.step(Input::TakeSnapshot);
    assert_eq!(m.server.records_since_snapshot(), 0);
    write(&mut m, a, 2);
    m.step(Input::SnapshotDone);
    assert_eq!(m.server.records_since_snapshot(), 2, "it counts from the beginning of the snapshot");
}

#[test]
fn replayed_transactions_count_towards_the_next_snapshot() {
    let config = every(100);
    let tree = ostler_tree::Tree::fresh(config.types);
    let mut m = Member::with(config.clone());
    m.server = ostler_server_core::Server::new(config, tree, 1000, m.now);
    m.join();
    assert_eq!(m.snapshots.len(), 1);
}

#[test]
fn a_snapshot_is_exact_at_its_zxid_whatever_comes_later() {
    let mut m = Member::with(every(60));
    let (a, b) = (m.join(), m.join());
    let mut at_zxid = Vec::new();
    for n in 0..40 {
        let (path, child) = (format!("/n{n}"), format!("/n{n}/x"));
        m.send(a, create(&path).data(b"0"));
        m.send(a, multi(&[create(&child).ephemeral().into(), set(&path, b"1")]));
        if n > 2 {
            m.send(b, delete(&format!("/n{}/x", n - 2)));
            m.send(b, delete(&format!("/n{}", n - 2)));
            m.send(b, set_acl(&format!("/n{}", n - 1), &[Acl::world(Perms::READ)], -1));
        }
        // Several transactions commit in one step: the snapshot is of the moment between two of them.
        while m.disk.waiting() > 0 {
            m.disk_does(if m.snapshots.is_empty() { 1 } else { 7 });
            at_zxid.push((m.applied(), m.contents()));
        }
    }
    m.ask(a, close_session()).unwrap();
    let frozen = &m.snapshots[0];
    let (_, expected) = at_zxid.iter().find(|(zxid, _)| *zxid == frozen.zxid).unwrap();
    assert_eq!(&disk::contents(frozen), expected);
    assert_ne!(&m.contents(), expected);
}

#[test]
fn a_snapshot_in_the_middle_of_a_batch_holds_what_was_committed_before() {
    let mut m = Member::with(every(10));
    let a = m.join();
    for n in 0..40 {
        m.send(a, create(&format!("/n{n:02}")));
    }
    m.disk_does(usize::MAX);
    let frozen = &m.snapshots[0];
    assert!(frozen.zxid < m.applied());
    let restored = disk::restore(frozen, ExtendedTypes::default());
    for n in 0..40 {
        let committed = n + 2 <= frozen.zxid.0;
        assert_eq!(restored.get(&format!("/n{n:02}")).is_some(), committed);
    }
}

#[test]
fn t3_a_snapshot_and_the_log_after_it_give_the_tree_back() {
    let mut m = Member::with(every(20));
    let a = m.join();
    for n in 0..30 {
        m.send(a, create(&format!("/n{n}")).ephemeral());
        m.send(a, create("/s-").sequential());
    }
    m.flush();
    let before = m.contents();
    let frozen = std::mem::take(&mut m.snapshots).remove(0);
    m.crash_with_snapshot(0, &frozen);
    assert_eq!(m.contents(), before);
    m.rejoin(a, 10_000);
    let b = m.join();
    m.ask(b, create("/s-").sequential()).unwrap();
}
