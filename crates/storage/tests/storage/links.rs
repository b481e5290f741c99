//! Links in the place of a server's files, and other names of them: the server does not change the files behind them.

use crate::sinks::begin_snapshot;
use ostler_proto::stat::StatPersisted;
use ostler_storage::{
    disk::{Disk, OsDisk, replace_text},
    error::{IoContext, StorageError},
    folders::DataFolders,
    lock::FolderLock,
    shared_files::SharedFiles,
    snapshot::SnapshotTrailer,
    txnlog::SpareLog,
};
use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::Path,
};

const SECRET: &str = "of another user, and longer than the written text\n";

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777
}

/// A folder with a file of another user, and a function that puts a link to this file at a name.
fn linked(how: fn(&Path, &Path) -> std::io::Result<()>) -> (tempfile::TempDir, impl Fn(&str) -> bool) {
    let dir = tempfile::tempdir().unwrap();
    let theirs = dir.path().join("theirs");
    fs::write(&theirs, SECRET).unwrap();
    let at = dir.path().to_path_buf();
    let put = move |name: &str| {
        let place = at.join(name);
        let _ = fs::remove_file(&place);
        how(&theirs, &place).is_ok()
    };
    (dir, put)
}

fn is_untouched(dir: &Path) -> bool {
    fs::read_to_string(dir.join("theirs")).is_ok_and(|text| text == SECRET)
}

fn hard_link(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::hard_link(from, to)
}

fn soft_link(from: &Path, to: &Path) -> std::io::Result<()> {
    symlink(from, to)
}

#[test]
fn a_link_in_the_place_of_a_new_file_is_replaced() {
    for how in [soft_link, hard_link] {
        let (dir, put) = linked(how);
        let path = dir.path().join("log.1");
        assert!(put("log.1"));
        let file = OsDisk.create(&path).unwrap();
        file.write_all_at(b"records", 0).unwrap();
        assert!(is_untouched(dir.path()));
        assert_eq!(fs::read(&path).unwrap(), b"records");
        assert!(fs::symlink_metadata(&path).unwrap().is_file());

        assert!(put("currentEpoch.tmp"));
        replace_text(&OsDisk, &dir.path().join("currentEpoch"), "5").unwrap();
        assert!(is_untouched(dir.path()));
        assert_eq!(fs::read_to_string(dir.path().join("currentEpoch")).unwrap(), "5");
    }
    let (dir, put) = linked(soft_link);
    assert!(put("log.1"));
    let path = dir.path().join("log.1");
    let error = OsDisk.open_to_change(&path).during("open", &path).err().unwrap();
    assert!(matches!(error, StorageError::IsLink { .. }), "{error}");
    // A link to a file that does not exist yet.
    fs::remove_file(dir.path().join("theirs")).unwrap();
    OsDisk.create(&dir.path().join("log.1")).unwrap();
    assert!(!dir.path().join("theirs").exists());
}

#[test]
fn removing_a_link_keeps_the_file_behind_it() {
    for how in [soft_link, hard_link] {
        let (dir, put) = linked(how);
        let long = "x".repeat(5 << 20);
        fs::write(dir.path().join("theirs"), &long).unwrap();
        assert!(put("snapshot.5"));
        OsDisk.remove(&dir.path().join("snapshot.5")).unwrap();
        assert!(fs::read_to_string(dir.path().join("theirs")).unwrap() == long);
        assert!(!dir.path().join("snapshot.5").exists());
    }
}

#[test]
fn a_spare_that_is_a_link_or_has_another_name_is_not_written_over() {
    for how in [soft_link, hard_link] {
        let (dir, put) = linked(how);
        assert!(put("spare-snapshot"));
        let mut writer = begin_snapshot(&OsDisk, dir.path(), 7).unwrap();
        writer.node("/", None, -1, &StatPersisted::default()).unwrap();
        writer.finish(SnapshotTrailer { digest: None, last_processed: None }).unwrap();
        assert!(is_untouched(dir.path()));
        assert!(fs::symlink_metadata(dir.path().join("snapshot.7")).unwrap().is_file());
        assert!(!dir.path().join("spare-snapshot").exists());

        assert!(put("log.1"));
        let spare = SpareLog::new(dir.path().to_path_buf());
        assert!(spare.keep(&OsDisk, &dir.path().join("log.1")).unwrap());
        assert!(is_untouched(dir.path()));
        assert!(!dir.path().join("log.1").exists() && !dir.path().join("spare-log").exists());
    }
}

#[test]
fn a_lock_file_that_is_a_link_is_refused() {
    let (dir, put) = linked(soft_link);
    assert!(put("ostler.lock"));
    FolderLock::take(&DataFolders::at(dir.path(), None)).unwrap_err();
    assert!(is_untouched(dir.path()));
}

#[test]
fn files_are_private_by_default_and_have_the_given_mode_if_shared() {
    let dir = tempfile::tempdir().unwrap();
    let (data, logs) = (dir.path().join("a/data"), dir.path().join("a/logs"));
    let folders = DataFolders::open(&OsDisk, &data, Some(&logs), true).unwrap();
    let _lock = FolderLock::take(&folders).unwrap();
    let log = folders.logs.join("log.1");
    OsDisk.create(&log).unwrap();
    for folder in [&data, &logs, &folders.snapshots, &folders.logs] {
        assert_eq!(mode(folder), 0o700, "{}", folder.display());
    }
    for file in [&log, &data.join("ostler.lock"), &logs.join("ostler.lock")] {
        assert_eq!(mode(file), 0o600, "{}", file.display());
    }
    // Existing files keep their mode.
    fs::set_permissions(&log, fs::Permissions::from_mode(0o640)).unwrap();
    OsDisk.create(&log).unwrap();
    assert_eq!(mode(&log), 0o640);

    let shared = SharedFiles { mode: 0o640 };
    let folders = DataFolders::open(&shared, &dir.path().join("b"), None, true).unwrap();
    shared.create(&folders.logs.join("log.1")).unwrap();
    // The mode of the others depends on the umask of this process.
    assert_eq!(mode(&folders.logs) & !0o050, 0o700);
    assert_eq!(mode(&folders.logs.join("log.1")) & !0o040, 0o600);
}
