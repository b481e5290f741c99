//! Crashes of process and machine: afterwards all acknowledged transactions are there, and the server can go on.

use crate::{
    faulty_disk::{Fault, FaultyDisk},
    sinks::{Contents, begin_snapshot, record},
};
use ostler_proto::id::Zxid;
use ostler_storage::{
    error::Result,
    folders::DataFolders,
    recover::{Origin, RecoverOptions, recover},
    retention::{RETAIN_AT_LEAST, purge},
    snapshot::{SnapshotTrailer, find_snapshots},
    txnlog::{LogOptions, TxnLog},
};
use proptest::prelude::*;
use rand_xoshiro::{
    SplitMix64,
    rand_core::{RngCore, SeedableRng},
};
use std::{io, path::Path, sync::Arc};

#[derive(Debug, Clone)]
enum Step {
    /// Commits a batch of records with these sizes.
    Commit(Vec<usize>),
    Roll,
    /// Takes back this number of the last transactions.
    Truncate(u64),
    Snapshot,
    /// Purges old files. With `crash` the machine dies meanwhile.
    Purge {
        crash: bool,
    },
    /// The process dies while it commits this batch. With `power` the whole machine does.
    Crash {
        batch: Vec<usize>,
        power: bool,
    },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    // A record has 86 bytes around its data: many end near the border of a sector.
    let near_border = (1..5usize, 0..20usize).prop_map(|(sectors, at)| sectors * 512 + at - 100);
    let size = prop_oneof![4 => 0..200usize, 1 => 200..3000usize, 2 => near_border];
    let sizes = move || prop::collection::vec(size.clone(), 1..8);
    let step = prop_oneof![
        6 => sizes().prop_map(Step::Commit),
        1 => Just(Step::Roll),
        1 => (0..6u64).prop_map(Step::Truncate),
        2 => Just(Step::Snapshot),
        2 => prop::bool::weighted(0.3).prop_map(|crash| Step::Purge { crash }),
        4 => (sizes(), any::<bool>()).prop_map(|(batch, power)| Step::Crash { batch, power }),
    ];
    prop::collection::vec(step, 1..40)
}

struct Machine {
    disk: FaultyDisk,
    folders: DataFolders,
    options: LogOptions,
    log: TxnLog,
    /// The acknowledged records.
    durable: Vec<(Zxid, Vec<u8>)>,
    next: u64,
    /// Transactions up to this one may have been purged.
    floor: u64,
    random: SplitMix64,
}

impl Machine {
    fn new(prealloc_bytes: u64, seed: u64) -> Machine {
        let disk = FaultyDisk::default();
        let folders = DataFolders::at(Path::new("/data"), None);
        let options = LogOptions { prealloc_bytes, size_limit_bytes: Some(8000), sync: true };
        let log = TxnLog::open(Arc::new(disk.clone()), folders.logs.clone(), options);
        Machine {
            disk,
            folders,
            options,
            log,
            durable: Vec::new(),
            next: 1,
            floor: 0,
            random: SplitMix64::seed_from_u64(seed),
        }
    }

    fn records(&self, sizes: &[usize]) -> Vec<(Zxid, Vec<u8>)> {
        let numbered = sizes.iter().zip(self.next..);
        numbered.map(|(size, zxid)| (Zxid(zxid), record(Zxid(zxid), *size))).collect()
    }

    fn commit(&mut self, records: &[(Zxid, Vec<u8>)]) -> Result<()> {
        for (zxid, record) in records {
            if self.random(8) == 0 {
                self.log.roll();
            }
            self.log.append(*zxid, record)?;
        }
        self.log.commit()
    }

    fn random(&mut self, below: usize) -> usize {
        (self.random.next_u64() % below as u64) as usize
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Commit(sizes) => {
                let records = self.records(&sizes);
                self.commit(&records).unwrap();
                self.next += records.len() as u64;
                self.durable.extend(records);
            }
            Step::Roll => self.log.roll(),
            Step::Truncate(count) => {
                self.next -= count.min(self.next - 1 - self.floor);
                self.log.truncate_after(Zxid(self.next - 1)).unwrap();
                self.durable.truncate(self.next as usize - 1);
                let dir = &self.folders.snapshots;
                ostler_storage::snapshot::remove_snapshots_after(&self.disk, dir, Zxid(self.next - 1))
                    .unwrap();
            }
            Step::Snapshot => {
                let writer = begin_snapshot(&self.disk, &self.folders.snapshots, self.next - 1).unwrap();
                writer.finish(SnapshotTrailer::default()).unwrap();
            }
            Step::Purge { crash } => self.purge(crash),
            Step::Crash { batch, power } => self.crash(&batch, power),
        }
    }

    fn purge(&mut self, crash: bool) {
        let kept = find_snapshots(&self.disk, &self.folders.snapshots).unwrap();
        if let Some(oldest) = kept.iter().take(RETAIN_AT_LEAST).map(|file| file.zxid.0).min() {
            self.floor = self.floor.max(oldest);
        }
        if crash {
            let at = self.random(12);
            self.disk.fail(Some(Fault { at, lasting: true, kind: io::ErrorKind::Other }));
        }
        let done = purge(&self.disk, &self.folders, RETAIN_AT_LEAST, &[], &self.log.spare(), &|| true);
        assert!(crash || done.is_ok(), "{done:?}");
        if crash {
            self.disk.fail(None);
            let disk = self.disk.clone();
            disk.crash(|below| self.random(below));
            self.restart(&[]);
        }
    }

    /// The crash comes during a commit or right after it. If only the process dies, the next one reads what was written
    /// but not synced. All of that which it keeps must be durable then.
    fn crash(&mut self, batch: &[usize], power: bool) {
        let in_doubt = self.records(batch);
        let at = self.random(7);
        self.disk.fail(Some(Fault { at, lasting: true, kind: io::ErrorKind::Other }));
        let _ = self.commit(&in_doubt);
        self.disk.fail(None);
        if power {
            let disk = self.disk.clone();
            disk.crash(|below| self.random(below));
        }
        self.restart(&in_doubt);
    }

    fn restart(&mut self, in_doubt: &[(Zxid, Vec<u8>)]) {
        let mut contents = Contents::default();
        let options = RecoverOptions { trust_empty: true, ..RecoverOptions::default() };
        let done = recover(&self.disk, &self.folders, options, &mut contents).unwrap();
        let after = match done.origin {
            Origin::Snapshot(zxid) => zxid.0 as usize,
            _ => 0,
        };
        let acknowledged = &self.durable[after..];
        assert!(contents.records.len() >= acknowledged.len(), "acknowledged records are gone: {done:?}");
        let (old, new) = contents.records.split_at(acknowledged.len());
        assert!(old == acknowledged, "{done:?}");
        assert!(in_doubt.starts_with(new), "the records kept of the last batch are its first ones");
        self.durable.extend_from_slice(new);
        self.next = self.durable.len() as u64 + 1;

        // The first recovery has removed all rests of the crash.
        let again = recover(&self.disk, &self.folders, options, &mut Contents::default()).unwrap();
        assert_eq!((again.last_zxid.0, again.last_zxid), (self.next - 1, done.last_zxid));
        assert!(again.notes.iter().all(|note| matches!(note, ostler_storage::recover::Note::EmptyTrusted)));
        let (disk, dir) = (Arc::new(self.disk.clone()), self.folders.logs.clone());
        self.log = TxnLog::open(disk, dir, self.options);
    }
}

/// The number of cases: `PROPTEST_CASES`, by default 150.
fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(150)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases()))]

    #[test]
    fn acknowledged_records_survive_any_sequence_of_crashes(
        steps in steps(),
        prealloc_bytes in prop_oneof![Just(0u64), Just(4096u64), Just(16384u64)],
        seed: u64,
    ) {
        let mut machine = Machine::new(prealloc_bytes, seed);
        for step in steps {
            machine.step(step);
        }
        machine.crash(&[10], true);
    }
}

#[test]
fn an_interrupted_truncation_leaves_no_gap() {
    let mut seed = 1;
    // Four files of three records. Truncates to each zxid, with a loss of power at each change of the disk.
    for keep in 0..=12 {
        for at in 0..12 {
            for _ in 0..4 {
                seed += 1;
                let mut machine = Machine::new(4096, seed);
                for _ in 0..4 {
                    machine.step(Step::Commit(vec![300, 300, 300]));
                    machine.step(Step::Roll);
                }
                machine.disk.fail(Some(Fault { at, lasting: true, kind: io::ErrorKind::Other }));
                let done = machine.log.truncate_after(Zxid(keep)).is_ok();
                machine.disk.fail(None);
                let disk = machine.disk.clone();
                disk.crash(|below| machine.random(below));

                let all = machine.durable.clone();
                machine.durable.truncate(keep as usize);
                machine.restart(&all[keep as usize..]);
                assert!(!done || machine.durable.len() == keep as usize);
            }
        }
    }
}
