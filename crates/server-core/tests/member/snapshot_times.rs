//! After exactly how much a snapshot is due.

use crate::{
    member::{Client, Member},
    wire::set,
};
use ostler_server_core::{CoreConfig, Input};

fn write(m: &mut Member, a: Client) {
    m.ask(a, set("/", b"x")).unwrap();
}

/// The same seed gives the same spread, so that what one run does another does again.
#[test]
fn the_spread_of_snapshots_follows_from_the_seed() {
    let config = CoreConfig { snapshot_txns: 100, seed: 0x9e37_79b9_7f4a_7c15, ..CoreConfig::default() };
    let mut m = Member::with(config);
    let a = m.join();
    let (mut apart, mut last) = (Vec::new(), 0);
    for snapshots in 1..=8 {
        while m.snapshots.len() < snapshots {
            write(&mut m, a);
        }
        m.step(Input::SnapshotDone);
        apart.push(m.applied().0 - last);
        last = m.applied().0;
        assert_eq!(m.server.summary().stats.snapshots, snapshots as u64);
    }
    // Of xorshift64: half of 100 and a random part of the other half, and the one that is too much.
    assert_eq!(apart, [54, 70, 64, 55, 63, 62, 100, 85]);
}

#[test]
fn a_log_that_is_just_full_is_not_too_full() {
    let mut measured = Member::new();
    let a = measured.join();
    (0..3).for_each(|_| write(&mut measured, a));
    let bytes = measured.server.summary().stats.proposal_bytes.sum;
    // Without a random part.
    for (limit, expected) in [(bytes * 2, 4), (bytes * 2 - 2, 3)] {
        let mut m =
            Member::with(CoreConfig { snapshot_log_bytes: Some(limit), seed: 0, ..CoreConfig::default() });
        let a = m.join();
        let mut writes = 0;
        while m.snapshots.is_empty() {
            write(&mut m, a);
            writes += 1;
        }
        assert_eq!(writes, expected, "{limit}");
    }
}
