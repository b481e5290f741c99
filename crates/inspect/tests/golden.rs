//! Files that Java ZooKeeper wrote (`crates/storage/tests/golden`) are shown with the facts that its own tools show.
#![allow(clippy::unwrap_used)]

use ostler_inspect::{
    compare::compare,
    history::{HistoryItem, history},
    logs::{self, LogFinding, LogItem},
    snapshot::{self, SnapshotPart},
    source, state,
    view::{DataForm, TxnView},
};
use ostler_proto::id::Zxid;
use ostler_storage::{disk::OsDisk, folders::DataFolders};
use std::path::{Path, PathBuf};

fn golden(version: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../storage/tests/golden").join(version)
}

/// A data folder with a copy of golden files.
fn folder(version: &str) -> (tempfile::TempDir, DataFolders) {
    let dir = tempfile::tempdir().unwrap();
    let inner = dir.path().join("version-2");
    std::fs::create_dir(&inner).unwrap();
    for entry in std::fs::read_dir(golden(version)).unwrap() {
        let path = entry.unwrap().path();
        std::fs::copy(&path, inner.join(path.file_name().unwrap())).unwrap();
    }
    let folders = source::folders(dir.path(), None).unwrap();
    (dir, folders)
}

fn transactions(path: &Path) -> Vec<TxnView> {
    let mut views = Vec::new();
    let totals = logs::walk(&OsDisk, &source::logs(&OsDisk, path).unwrap(), &mut |item| {
        if let LogItem::Txn(txn) = item {
            views.push(TxnView::of(&txn.record.unwrap(), DataForm::Text));
        }
        Ok(())
    })
    .unwrap();
    assert_eq!((totals.damaged, totals.transactions), (0, views.len() as u64));
    views
}

#[test]
fn every_transaction_of_java_has_its_kind_and_json() {
    for version in ["3.9.5", "3.8.0"] {
        let views = transactions(&golden(version));
        assert_eq!((views[0].zxid, views.last().unwrap().zxid), (Zxid(1), Zxid(0x1a)), "{version}");
        let ops: std::collections::BTreeSet<_> = views.iter().map(|view| view.op.op).collect();
        for op in [
            "createSession",
            "closeSession",
            "create",
            "createContainer",
            "createTTL",
            "delete",
            "setData",
            "setACL",
            "multi",
            "error",
        ] {
            assert!(ops.contains(op), "{version} has no {op}: {ops:?}");
        }
        for view in &views {
            let json: serde_json::Value =
                serde_json::from_str(&serde_json::to_string(view).unwrap()).unwrap();
            assert_eq!(json["zxid"], view.zxid.to_string());
        }
    }
}

#[test]
fn a_snapshot_has_the_same_parts_in_every_compression() {
    let parts = |name: &str| {
        let file = source::snapshot(&golden("3.9.5").join(name)).unwrap();
        let mut parts = Vec::new();
        let whole = snapshot::dump(&OsDisk, &file, DataForm::Base64, &mut |part| {
            parts.push(part.to_string());
            Ok(())
        });
        assert!(whole.unwrap());
        // The order of children is random in Java.
        parts.sort();
        parts
    };
    let mut plain = parts("snapshot.1a");
    // The server that wrote the plain one had replayed the log; what follows the znodes depends on that.
    let is_end = |line: &String| line.starts_with("whole snapshot of 0x1a: ");
    assert_eq!(plain.iter().filter(|line| is_end(line)).count(), 1, "{plain:?}");
    plain.retain(|line| !is_end(line));
    for name in ["snapshot.1a.gz", "snapshot.1a.snappy"] {
        let mut packed = parts(name);
        packed.retain(|line| !is_end(line));
        assert_eq!(plain, packed);
    }
}

#[test]
fn damage_of_a_snapshot_is_told_with_its_byte() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("snapshot.1a");
    let mut bytes = std::fs::read(golden("3.9.5").join("snapshot.1a")).unwrap();
    bytes.truncate(bytes.len() / 2);
    std::fs::write(&path, &bytes).unwrap();
    let mut last = None;
    let whole = snapshot::dump(&OsDisk, &source::snapshot(&path).unwrap(), DataForm::Size, &mut |part| {
        last = Some(part);
        Ok(())
    });
    assert!(!whole.unwrap());
    let Some(SnapshotPart::Damage { offset, reason, .. }) = last else { panic!("{last:?}") };
    assert!(offset > 16 && offset <= bytes.len() as u64, "{offset}");
    assert_eq!(reason, "it ends early");
}

#[test]
fn the_tree_at_the_end_of_the_log_is_that_of_the_snapshot() {
    let (dir, folders) = folder("3.9.5");
    let from_snapshot = state::of_folder(&OsDisk, &folders, None).unwrap();
    assert_eq!(from_snapshot.zxid, Zxid(0x1a));
    for name in ["snapshot.1a", "snapshot.1a.gz", "snapshot.1a.snappy"] {
        std::fs::remove_file(dir.path().join("version-2").join(name)).unwrap();
    }
    let from_log = state::of_folder(&OsDisk, &folders, None).unwrap();
    assert_eq!(from_log.tree.digest(), from_snapshot.tree.digest());
    let counts = compare(&from_log.tree, &from_snapshot.tree, "/", &mut |difference| panic!("{difference}"));
    assert!(counts.unwrap().is_equal());
    assert_eq!(from_log.notes, [""; 0]);
}

#[test]
fn a_tree_at_each_zxid_fits_the_digest_that_java_has_logged() {
    let (_dir, folders) = folder("3.9.5");
    for view in transactions(&golden("3.9.5")) {
        let at = state::of_folder(&OsDisk, &folders, Some(view.zxid)).unwrap();
        assert_eq!(at.zxid, view.zxid);
        if let Some(digest) = view.digest {
            assert_eq!(format!("{:#x}", at.tree.digest()), digest, "{}", view.zxid);
        }
    }
    assert!(state::of_folder(&OsDisk, &folders, Some(Zxid(0x1b))).is_err());
}

#[test]
fn the_history_of_a_znode_has_all_transactions_with_its_path() {
    let all = transactions(&golden("3.9.5"));
    let set = all.iter().find(|view| view.op.op == "setData").unwrap();
    let path = set.op.path.clone().unwrap();
    let mut found = Vec::new();
    let files = source::logs(&OsDisk, &golden("3.9.5")).unwrap();
    history(&OsDisk, &files, (&path, DataForm::Size), &mut |item| {
        match item {
            HistoryItem::Touched(view) => found.push(view.zxid),
            HistoryItem::Finding(finding) => panic!("{finding}"),
        }
        Ok(())
    })
    .unwrap();
    let direct = all.iter().filter(|view| view.op.path.as_ref() == Some(&path));
    for zxid in direct.map(|view| view.zxid) {
        assert!(found.contains(&zxid), "{zxid}: {found:?}");
    }
    assert!(found.is_sorted());
}

#[test]
fn torn_tails_damage_and_gaps_of_logs_are_told_with_their_bytes() {
    let (dir, folders) = folder("3.9.5");
    let log = dir.path().join("version-2/log.1");
    let bytes = std::fs::read(&log).unwrap();
    let findings = || {
        let files = source::logs(&OsDisk, &folders.logs).unwrap();
        let (found, totals) = logs::findings(&OsDisk, &files).unwrap();
        let found: Vec<_> =
            found.into_iter().filter(|finding| !matches!(finding, LogFinding::File { .. })).collect();
        (found, totals)
    };
    std::fs::write(&log, &bytes[..bytes.len() - 3]).unwrap();
    assert!(matches!(&findings().0[..], [LogFinding::TornTail { last_good: Zxid(0x19), .. }]));
    let mut flipped = bytes.clone();
    flipped[40] ^= 1;
    std::fs::write(&log, &flipped).unwrap();
    let (found, totals) = findings();
    assert!(matches!(&found[..], [LogFinding::Damage { offset: 16, last_good: Zxid(0), .. }]), "{found:?}");
    assert_eq!((totals.damaged, totals.transactions), (1, 0));
    std::fs::write(&log, &bytes).unwrap();
    let next = dir.path().join("version-2/log.1c");
    let quorum = std::fs::read(golden("quorum-3.9.5").join("log.100000001")).unwrap();
    std::fs::write(&next, &quorum).unwrap();
    assert!(findings().0.is_empty(), "a new epoch may follow");
    std::fs::write(&next, b"ZKLG").unwrap();
    assert!(matches!(&findings().0[..], [LogFinding::Empty { .. }]));
}
