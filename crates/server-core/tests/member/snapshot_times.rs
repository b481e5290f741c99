//! After exactly how much a snapshot is due.

use crate::{
    member::{Client, Member},
    wire::set,
};
use ostler_server_core::{CoreConfig, Input};
use rand_xoshiro::{
    SplitMix64,
    rand_core::{RngCore, SeedableRng},
};

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
    // Half of 100 and a random part of the other half, and the one that is too much. The generator is SplitMix64.
    assert_eq!(apart, [63, 94, 70, 82, 75, 77, 95, 83]);
}

#[test]
fn a_log_that_is_just_full_is_not_too_full() {
    let mut measured = Member::new();
    let a = measured.join();
    (0..3).for_each(|_| write(&mut measured, a));
    let bytes = measured.server.summary().stats.proposal_bytes.sum;
    // A limit that is this number of bytes without its random part, and a seed that makes that part zero.
    let seed_for = |limit: u64| {
        let has_no_part = |seed: &u64| SplitMix64::seed_from_u64(*seed).next_u64() % (limit / 2 + 1) == 0;
        (0..).find(has_no_part).expect("one seed in a few hundred")
    };
    for (limit, expected) in [(bytes * 2, 4), (bytes * 2 - 2, 3)] {
        let seed = seed_for(limit);
        let mut m =
            Member::with(CoreConfig { snapshot_log_bytes: Some(limit), seed, ..CoreConfig::default() });
        let a = m.join();
        let mut writes = 0;
        while m.snapshots.is_empty() {
            write(&mut m, a);
            writes += 1;
        }
        assert_eq!(writes, expected, "{limit}");
    }
}
