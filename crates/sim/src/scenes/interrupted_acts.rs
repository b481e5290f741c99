//! Interrupts the disk operations of a change of leaders at each call. The next start must find a prefix of one
//! history.

use crate::{
    chance::Chance,
    disk::MemberDisk,
    files::{DiskFault, DiskFaultKind},
    history::History,
};
use ostler_proto::{
    id::{Epoch, ServerId, SessionId, Zxid},
    membership::Membership,
    op,
    stat::ExtendedTypes,
    txn::{Txn, TxnHeader, TxnRecord},
};
use ostler_server_core::{PersistOp, Record};
use ostler_tree::Tree;
use ostler_zab::PersistSeq;

fn at(epoch: u32, counter: u32) -> Zxid {
    Zxid::new(Epoch(epoch), counter)
}

fn with_record<T>(zxid: Zxid, with: impl FnOnce(TxnRecord<'_>) -> T) -> T {
    let header = TxnHeader { session: SessionId(1), cxid: 1, zxid, time_ms: 1, code: op::ERROR };
    with(TxnRecord { header, txn: Txn::Error(-101), digest: None })
}

fn append(zxid: Zxid) -> PersistOp {
    let mut bytes = Vec::new();
    with_record(zxid, |record| record.write(&mut bytes));
    PersistOp::Append { zxid, record: Record(bytes.into()) }
}

/// Installs a tree with `count` transactions of the first epoch, and with `begun` as the begin of a later epoch.
fn install(disk: &mut MemberDisk, count: u32, begun: Option<Zxid>) {
    let (mut tree, mut history) = (Tree::fresh(ExtendedTypes::default()), History::default());
    for zxid in (1..=count).map(|count| at(1, count)) {
        with_record(zxid, |record| tree.apply(&record, &mut Vec::new()));
        history.push(zxid);
    }
    if let Some(begun) = begun {
        tree.begin_epoch(begun);
    }
    disk.push(PersistSeq(1), PersistOp::Install(Box::new(tree.freeze())), Some(history));
}

fn sync(disk: &mut MemberDisk) -> bool {
    disk.sync(usize::MAX).is_ok()
}

/// A disk with three logged transactions, then a tree with ten, then two logged transactions of the next epoch.
fn begun() -> (MemberDisk, History) {
    let membership = Membership::parse("server.1=h1:1:2;h1:3\nserver.2=h2:1:2;h2:3\n").unwrap();
    let mut disk = MemberDisk::new(ServerId(1), &membership, 4096);
    disk.start().unwrap();
    (1..=3).for_each(|count| disk.push(PersistSeq(1), append(at(1, count)), None));
    install(&mut disk, 10, Some(at(2, 0)));
    (1..=2).for_each(|count| disk.push(PersistSeq(1), append(at(2, count)), None));
    assert!(sync(&mut disk));
    let (_, history) = disk.look();
    assert_eq!(history.last(), at(2, 2));
    (disk, history)
}

/// Interrupts `act` at each disk call, and starts on what is left. [`MemberDisk::start`] checks that nothing durable is
/// missing.
fn interrupted_anywhere(act: impl Fn(&mut MemberDisk)) {
    for power_lost in [false, true] {
        let mut is_done = false;
        for call in 0.. {
            let (mut disk, before) = begun();
            act(&mut disk);
            disk.files.set_fault(Some(DiskFault { at: call, kind: DiskFaultKind::Dead }));
            is_done = sync(&mut disk);
            disk.files.set_fault(None);
            if power_lost {
                disk.files.lose_power(&mut Chance::new(call));
            }
            disk.stop();
            let history = disk.start().unwrap().history;
            assert!(
                before.agrees(&history, history.last()),
                "after {call} calls: {before:?} became {history:?}"
            );
            if is_done {
                break;
            }
        }
        assert!(is_done);
    }
}

#[test]
fn installing_an_older_tree_can_be_interrupted_anywhere() {
    interrupted_anywhere(|disk| install(disk, 8, None));
}

#[test]
fn installing_a_newer_tree_can_be_interrupted_anywhere() {
    interrupted_anywhere(|disk| install(disk, 10, Some(at(3, 0))));
}

#[test]
fn cutting_a_log_back_to_before_a_tree_can_be_interrupted_anywhere() {
    let cut = || PersistOp::Truncate { to: at(1, 2), reload: Some(1) };
    interrupted_anywhere(|disk| disk.push(PersistSeq(1), cut(), None));
}

#[test]
fn cutting_a_log_back_to_a_tree_can_be_interrupted_anywhere() {
    let cut = || PersistOp::Truncate { to: at(2, 0), reload: None };
    interrupted_anywhere(|disk| disk.push(PersistSeq(1), cut(), None));
}

/// The transactions that stay are in the tree only, and the tree has more. It must stay whole, because the log has
/// less.
#[test]
fn a_tree_from_the_leader_is_kept_where_the_log_has_less_than_what_stays() {
    let cut = || PersistOp::Truncate { to: at(1, 10), reload: Some(1) };
    interrupted_anywhere(|disk| disk.push(PersistSeq(1), cut(), None));
    let (mut disk, before) = begun();
    disk.push(PersistSeq(1), cut(), None);
    assert!(sync(&mut disk));
    assert_eq!(disk.look().1, before.upto(at(1, 10)));
}

/// Lets a start fail at each disk call, by an error or by the end of the process. The next start must find everything.
fn starts_fail_anywhere(act: impl Fn(&mut MemberDisk)) {
    let ready = || {
        let (mut disk, _) = begun();
        act(&mut disk);
        assert!(sync(&mut disk));
        let (_, before) = disk.look();
        disk.stop();
        (disk, before)
    };
    let (mut disk, _) = ready();
    disk.start().unwrap();
    let calls = disk.files.calls();
    for (kind, call) in [DiskFaultKind::Io, DiskFaultKind::Full, DiskFaultKind::Dead]
        .into_iter()
        .flat_map(|kind| (0..calls).map(move |call| (kind, call)))
    {
        for power_lost in [false, true] {
            let (mut disk, before) = ready();
            disk.files.set_fault(Some(DiskFault { at: call, kind }));
            let started = disk.start().is_ok();
            disk.stop();
            if power_lost {
                disk.files.lose_power(&mut Chance::new(call));
            }
            let after = disk.start().unwrap().history;
            assert_eq!(after, before, "{kind:?} at call {call}, started {started}, power lost {power_lost}");
        }
    }
}

#[test]
fn a_start_on_a_log_can_fail_anywhere() {
    starts_fail_anywhere(|_| {});
}

#[test]
fn a_start_on_a_tree_from_the_leader_can_fail_anywhere() {
    starts_fail_anywhere(|disk| install(disk, 10, Some(at(3, 0))));
}

#[test]
fn a_start_on_a_log_that_was_cut_back_can_fail_anywhere() {
    starts_fail_anywhere(|disk| {
        disk.push(PersistSeq(1), PersistOp::Truncate { to: at(2, 0), reload: None }, None);
    });
}
