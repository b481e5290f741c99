//! Parts put together: the log from a base on, its gaps, and how much of it is committed.

use super::{at, memory};
use crate::{
    BackupError,
    history::{History, LogGap, Target, UsedSegment, read_segment},
    part::{Base, Confirmation, FORMAT, Part, Segment, Source},
    store::Store,
    verify::verify,
};
use ostler_proto::{
    id::{SessionId, Zxid},
    txn::{Txn, TxnHeader, TxnRecord},
};
use ostler_storage::txnlog::LogImage;

/// The transactions from one counter of an epoch through another.
fn run(epoch: u32, counters: std::ops::RangeInclusive<u32>) -> Vec<Zxid> {
    counters.map(|counter| at(epoch, counter)).collect()
}

/// Stores a segment. A record is of the second that its counter says.
fn segment(store: &Store, part: u32, zxids: &[Zxid]) -> Segment {
    let (first, last) = (zxids[0], zxids[zxids.len() - 1]);
    let mut image = LogImage::after(Zxid::ZERO);
    for zxid in zxids {
        let time_ms = i64::from(zxid.counter()) * 1000;
        let txn = Txn::Error(-4);
        let header = TxnHeader { session: SessionId(1), cxid: 0, zxid: *zxid, time_ms, code: txn.code() };
        let mut bytes = Vec::new();
        TxnRecord { header, txn, digest: None }.write(&mut bytes);
        image.push(&bytes);
    }
    let object = format!("{part:08}/log.{:x}", first.0);
    let stored = store.put(&object, image.into_bytes()).unwrap();
    let latest_ms = zxids.iter().map(|zxid| i64::from(zxid.counter()) * 1000).max().unwrap();
    let (bytes, sha256, records) = (stored.bytes, stored.sha256, zxids.len() as u64);
    Segment { object, first, last, records, latest_ms, bytes, sha256 }
}

/// A backup: for each part the transaction after which it goes on, its base, and its segments.
struct Parts<'s> {
    store: &'s Store,
    parts: Vec<Part>,
}

impl<'s> Parts<'s> {
    fn new(store: &'s Store) -> Parts<'s> {
        Parts { store, parts: Vec::new() }
    }

    fn with(mut self, continues_after: Option<Zxid>, base: Zxid, segments: &[Vec<Zxid>]) -> Parts<'s> {
        let part = self.parts.len() as u32 + 1;
        let object = format!("{part:08}/snapshot.{:x}", base.0);
        let base = Base { object, zxid: base, exact_from: base, time_ms: None, bytes: 0, sha256: "".into() };
        self.parts.push(Part {
            format: FORMAT,
            part,
            writer: "w".to_owned(),
            revision: 0,
            source: Source {
                snapshots: "/s".into(),
                logs: "/l".into(),
                server_id: None,
                extended_types: None,
            },
            continues_after,
            base,
            segments: segments.iter().map(|zxids| segment(self.store, part, zxids)).collect(),
            confirmed_through: Zxid::ZERO,
            confirmed_by: Confirmation::Nothing,
            highest_epoch: 1,
            last_record: None,
            written_ms: 0,
            sha256: String::new(),
        });
        self
    }

    /// The last part knows that all is committed through this transaction.
    fn confirmed(mut self, through: Zxid) -> Parts<'s> {
        self.parts.last_mut().unwrap().confirmed_through = through;
        self
    }

    fn history(self) -> History {
        History::of(self.parts)
    }
}

/// How far the log goes from the base with this zxid on, up to `through`.
fn reach(history: &History, base: Zxid, through: Zxid) -> Zxid {
    let part = history.parts().iter().find(|part| part.base.zxid == base).unwrap();
    history.reach(&part.base, through)
}

/// The transactions that are replayed above `after` up to `through`.
fn replayed(store: &Store, history: &History, after: Zxid, through: Zxid) -> Result<Vec<Zxid>, BackupError> {
    let mut zxids = Vec::new();
    let records = history.replay(store, (after, through), &mut |zxid, _| {
        zxids.push(zxid);
        Ok(())
    })?;
    assert_eq!(records, zxids.len() as u64);
    Ok(zxids)
}

fn is_gap(result: Result<Vec<Zxid>, BackupError>, between: (Zxid, Zxid)) {
    match result {
        Err(BackupError::Gap { after, found }) => assert_eq!((after, found), between),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_log_of_a_part_is_replayed_and_reached_to_each_of_its_transactions() {
    let store = memory();
    let history =
        Parts::new(&store).with(None, at(1, 0), &[run(1, 1..=5), run(1, 6..=8), run(2, 1..=2)]).history();
    for through in [run(1, 1..=8), run(2, 1..=2)].concat() {
        assert_eq!(reach(&history, at(1, 0), through), through);
        let zxids = replayed(&store, &history, at(1, 0), through).unwrap();
        assert_eq!((zxids[0], *zxids.last().unwrap()), (at(1, 1), through));
    }
    assert_eq!(replayed(&store, &history, at(1, 4), at(1, 7)).unwrap(), run(1, 5..=7));
    assert_eq!(reach(&history, at(1, 0), at(2, 9)), at(2, 2), "the end of the log");
    is_gap(replayed(&store, &history, at(1, 0), at(2, 9)), (at(2, 2), at(2, 9)));
}

#[test]
fn the_log_is_reached_from_each_base_that_it_goes_through() {
    let store = memory();
    let history = Parts::new(&store)
        .with(None, at(1, 0), &[run(1, 1..=10)])
        .with(Some(at(1, 10)), at(1, 7), &[run(1, 11..=15)])
        .with(Some(at(1, 15)), at(1, 10), &[])
        .with(Some(at(1, 15)), at(1, 15), &[run(1, 16..=18)])
        .history();
    assert_eq!(history.gaps(), []);
    for base in [at(1, 0), at(1, 7), at(1, 10), at(1, 15)] {
        assert_eq!(reach(&history, base, at(1, 18)), at(1, 18), "{base}");
        let zxids = replayed(&store, &history, base, at(1, 18)).unwrap();
        assert_eq!(zxids, run(1, base.counter() + 1..=18));
    }
}

#[test]
fn the_log_of_an_epoch_goes_on_from_its_beginning_and_from_the_end_of_the_one_before() {
    let store = memory();
    let history = Parts::new(&store)
        .with(None, at(1, 9), &[run(2, 1..=2)])
        .with(Some(at(2, 2)), at(2, 0), &[run(2, 3..=4)])
        .history();
    for base in [at(1, 9), at(2, 0)] {
        assert_eq!(reach(&history, base, at(2, 4)), at(2, 4));
        assert_eq!(replayed(&store, &history, base, at(2, 4)).unwrap(), run(2, 1..=4));
    }
}

#[test]
fn the_log_is_not_reached_beyond_what_was_taken_back() {
    let store = memory();
    let history = Parts::new(&store)
        .with(None, at(1, 0), &[run(1, 1..=20), run(1, 21..=25)])
        .with(Some(at(1, 10)), at(1, 0), &[run(2, 1..=3)])
        .history();
    assert_eq!(history.segments().len(), 2);
    assert_eq!(reach(&history, at(1, 0), at(1, 15)), at(1, 10));
    let zxids = replayed(&store, &history, at(1, 0), at(2, 3)).unwrap();
    assert_eq!(zxids, [run(1, 1..=10), run(2, 1..=3)].concat());
    assert_eq!(history.find(&store, Target::Zxid(at(1, 10)), true).unwrap(), at(1, 10));
    assert!(history.find(&store, Target::Zxid(at(1, 11)), true).is_err());
}

#[test]
fn a_base_that_no_log_reaches_is_a_gap_that_nothing_is_replayed_over() {
    let store = memory();
    // The base came with a leader's tree, and the next epoch follows right behind it.
    let history = Parts::new(&store)
        .with(None, at(1, 0), &[run(1, 1..=5)])
        .with(Some(at(1, 5)), at(1, 9), &[])
        .with(Some(at(1, 9)), at(1, 9), &[run(2, 1..=3)])
        .history();
    let gap = LogGap { before: at(1, 5), base: at(1, 9), exact_from: at(1, 9), time_ms: None };
    assert_eq!(history.gaps(), [gap]);
    is_gap(replayed(&store, &history, at(1, 0), at(2, 1)), (at(1, 5), at(1, 9)));
    is_gap(replayed(&store, &history, at(1, 3), at(1, 9)), (at(1, 5), at(1, 9)));
    assert_eq!(replayed(&store, &history, at(1, 0), at(1, 5)).unwrap(), run(1, 1..=5));
    assert_eq!(replayed(&store, &history, at(1, 9), at(2, 3)).unwrap(), run(2, 1..=3));
    assert_eq!(reach(&history, at(1, 0), at(2, 3)), at(1, 5));
    assert_eq!(reach(&history, at(1, 9), at(2, 3)), at(2, 3));
}

#[test]
fn a_base_at_or_before_the_end_of_the_log_is_no_gap() {
    let store = memory();
    for base in [at(1, 4), at(1, 5)] {
        let parts = Parts::new(&store).with(None, at(1, 0), &[run(1, 1..=5)]);
        assert_eq!(parts.with(Some(at(1, 5)), base, &[]).history().gaps(), []);
    }
}

/// A part that did not see the end of the one before has another log from its base on.
#[test]
fn a_log_does_not_go_on_in_a_part_whose_base_is_before_its_end() {
    let store = memory();
    let history = Parts::new(&store)
        .with(None, at(1, 0), &[run(1, 1..=11)])
        .with(None, at(1, 9), &[run(2, 1..=2)])
        .history();
    is_gap(replayed(&store, &history, at(1, 0), at(2, 1)), (at(1, 11), at(2, 1)));
    assert_eq!(reach(&history, at(1, 0), at(2, 2)), at(1, 11));
    let from_base = History::of(history.parts().to_vec());
    assert_eq!(from_base.segments().len(), 0, "the parts of a history have no segments any more");
}

#[test]
fn the_end_of_the_epoch_before_is_known_only_if_the_log_since_then_is_whole() {
    let store = memory();
    let whole = Parts::new(&store).with(None, at(1, 0), &[run(1, 1..=3), run(2, 1..=4)]).history();
    assert_eq!(whole.before_epoch(&store, at(2, 4)), Some(at(1, 3)));
    assert_eq!(whole.before_epoch(&store, at(1, 3)), Some(at(1, 0)), "all before the epoch");
    let from_base = Parts::new(&store).with(None, at(1, 9), &[run(2, 1..=4)]).history();
    assert_eq!(from_base.before_epoch(&store, at(2, 4)), Some(at(1, 9)));
    let begins_later = Parts::new(&store).with(None, at(2, 2), &[run(2, 3..=4)]).history();
    assert_eq!(begins_later.before_epoch(&store, at(2, 4)), None);
    let fresh = Parts::new(&store).with(None, Zxid::ZERO, &[run(1, 1..=2)]).history();
    assert_eq!(fresh.before_epoch(&store, at(1, 2)), None, "nothing was before");
    let with_gap = Parts::new(&store)
        .with(None, at(1, 0), &[run(1, 1..=3)])
        .with(None, at(2, 2), &[run(2, 3..=4)])
        .history();
    assert_eq!(with_gap.before_epoch(&store, at(2, 4)), None);
}

#[test]
fn a_segment_must_have_all_the_records_of_its_manifest() {
    let store = memory();
    let mut own = segment(&store, 1, &run(1, 1..=3));
    own.records = 4;
    let used = UsedSegment { through: own.last, segment: own, connects: true, part: 1, base: Zxid::ZERO };
    let damaged = read_segment(&store, &used, &mut |_, _| Ok(true));
    assert!(matches!(damaged, Err(BackupError::Damaged { .. })), "{damaged:?}");
}

#[test]
fn a_check_of_a_backup_reads_all_segments_and_replays_them_from_each_base() {
    let (store, mut server) = (memory(), super::server::TestServer::new());
    server.write(10);
    crate::backup::Backup::begin(&store, super::options(&server)).unwrap().step().unwrap();
    server.write_snapshot();
    server.write(5);
    let mut backup = crate::backup::Backup::begin(&store, super::options(&server)).unwrap();
    backup.step().unwrap();
    let history = History::read(&store).unwrap();
    let verified = verify(&store, &history).unwrap();
    assert_eq!((verified.bases, verified.records), (2, 15));
    assert_eq!(verified.segments, history.segments().len());
    assert!(verified.segments > 2, "{verified:?}");
}

#[test]
fn what_is_known_behind_a_gap_says_nothing_of_the_log_before_it() {
    let store = memory();
    let history = Parts::new(&store)
        .with(None, at(1, 0), &[run(1, 1..=10)])
        .confirmed(at(1, 7))
        .with(None, at(2, 3), &[run(2, 4..=9)])
        .confirmed(at(2, 6))
        .with(None, at(3, 5), &[run(3, 6..=9)])
        .confirmed(at(3, 8))
        .history();
    let find = |zxid| history.find(&store, Target::Zxid(zxid), false);
    for zxid in [at(1, 1), at(1, 7), at(2, 3), at(2, 6), at(3, 5), at(3, 8)] {
        assert_eq!(find(zxid).unwrap(), zxid);
    }
    for (zxid, known) in [
        (at(1, 8), at(1, 7)),
        (at(1, 10), at(1, 7)),
        (at(2, 7), at(2, 6)),
        (at(2, 9), at(2, 6)),
        (at(3, 9), at(3, 8)),
    ] {
        match find(zxid) {
            Err(BackupError::NotConfirmed { wanted, confirmed }) => {
                assert_eq!((wanted, confirmed), (zxid, known));
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(history.find(&store, Target::Zxid(zxid), true).unwrap(), zxid);
    }
    assert_eq!(history.find(&store, Target::Latest, false).unwrap(), at(3, 8));
}

/// Java writes its snapshots while the tree changes. Until the log shows the end of that, nothing behind the gap can be
/// restored; and before the gap, only what was known without what is behind it.
#[test]
fn the_latest_transaction_before_a_base_that_is_not_exact_yet_is_a_committed_one() {
    let store = memory();
    let mut parts = Parts::new(&store)
        .with(None, at(1, 0), &[run(1, 1..=10)])
        .confirmed(at(1, 7))
        .with(None, at(2, 3), &[])
        .confirmed(at(2, 3));
    parts.parts[1].base.exact_from = at(2, 6);
    let history = parts.history();
    assert_eq!(history.find(&store, Target::Latest, false).unwrap(), at(1, 7));
    assert_eq!(history.find(&store, Target::Latest, true).unwrap(), at(2, 3));
}
