//! A server that refuses its files starts after the remedy that its message names, and at the next start as well.

use crate::{
    client::Client,
    gate,
    server::{TestServer, config},
};
use ostler_server::config::ServerConfig;
use std::{
    fs::{self, File},
    net::TcpListener,
    path::{Path, PathBuf},
};

/// A data folder in which a server has run twice, and its configuration.
struct UsedFolder {
    dir: tempfile::TempDir,
    config: ServerConfig,
}

impl UsedFolder {
    fn new() -> UsedFolder {
        let dir = tempfile::tempdir().unwrap();
        let config = config(&dir.path().join("data"));
        let used = UsedFolder { dir, config };
        for round in 0..2 {
            let server = TestServer::start_in(&used.config).unwrap();
            let mut client = Client::open(server.address);
            (0..40).for_each(|at| client.create(&format!("/znode-{round}-{at}"), b"some data"));
            drop(client);
            server.stop().unwrap();
        }
        used
    }

    fn files(&self) -> PathBuf {
        self.config.folders.data_dir.join("version-2")
    }

    /// The files whose names begin with `prefix`, ordered by the zxid at the end.
    fn named(&self, prefix: &str) -> Vec<PathBuf> {
        let mut found: Vec<(u64, PathBuf)> = Vec::new();
        for entry in fs::read_dir(self.files()).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            if let Some(zxid) = name.strip_prefix(prefix) {
                found.push((u64::from_str_radix(zxid, 16).unwrap(), path));
            }
        }
        found.sort();
        found.into_iter().map(|(_, path)| path).collect()
    }

    fn move_away(&self, path: &Path) {
        fs::rename(path, self.dir.path().join(path.file_name().unwrap())).unwrap();
    }

    /// Checks that a server does not start, and that its message has all of `words`.
    #[track_caller]
    fn check_refused(&self, words: &[&str]) -> String {
        let Err(error) = TestServer::start_in(&self.config) else { panic!("the server started") };
        let message = error.to_string();
        for word in words {
            assert!(message.contains(word), "{message}");
        }
        message
    }

    /// Checks that a server starts twice, has the znodes `there` and none of `gone`, and keeps a new write.
    #[track_caller]
    fn check_starts_twice(&self, there: &[&str], gone: &[&str]) {
        for round in 0..2 {
            let server = TestServer::start_in(&self.config).unwrap_or_else(|error| panic!("{error}"));
            let mut client = Client::open(server.address);
            for path in there {
                assert!(client.exists(path), "{path}");
            }
            for path in gone {
                assert!(!client.exists(path), "{path}");
            }
            client.create(&format!("/since-{round}"), b"");
            assert!(client.exists("/since-0"));
            drop(client);
            server.stop().unwrap();
        }
    }
}

#[test]
fn after_one_start_with_trust_empty_the_next_starts_without() {
    let _beside = gate::beside_others();
    let mut used = UsedFolder::new();
    used.named("snapshot.").iter().for_each(|path| used.move_away(path));
    used.check_refused(&["start once with snapshot.trust.empty=true", "Put a snapshot back"]);
    used.config.folders.snapshot_trust_empty = true;
    let server = TestServer::start_in(&used.config).unwrap_or_else(|error| panic!("{error}"));
    server.stop().unwrap();
    used.config.folders.snapshot_trust_empty = false;
    used.check_starts_twice(&["/znode-0-0", "/znode-1-39"], &[]);
}

#[test]
fn a_server_starts_once_a_damaged_log_is_cut_at_the_named_byte() {
    let _beside = gate::beside_others();
    let used = UsedFolder::new();
    let logs = used.named("log.");
    let mut bytes = fs::read(&logs[0]).unwrap();
    bytes[1500] ^= 1;
    fs::write(&logs[0], bytes).unwrap();
    let message = used.check_refused(&["run `truncate -s ", "move all later log files away"]);
    let command = message.split("run `truncate -s ").nth(1).unwrap().split('`').next().unwrap();
    let (size, file) = command.split_once(' ').unwrap();
    assert_eq!(Path::new(file), logs[0]);
    File::options().write(true).open(file).unwrap().set_len(size.parse().unwrap()).unwrap();
    logs[1..].iter().for_each(|path| used.move_away(path));
    used.check_starts_twice(&["/znode-0-0"], &["/znode-0-39", "/znode-1-0"]);
}

#[test]
fn a_server_starts_once_a_log_without_header_and_all_later_logs_are_moved_away() {
    let _beside = gate::beside_others();
    let used = UsedFolder::new();
    let logs = used.named("log.");
    let mut bytes = fs::read(&logs[1]).unwrap();
    bytes[0] ^= 1;
    fs::write(&logs[1], bytes).unwrap();
    used.check_refused(&[&format!("move {} and all later log files away", logs[1].display())]);
    logs[1..].iter().for_each(|path| used.move_away(path));
    used.check_starts_twice(&["/znode-0-39"], &["/znode-1-0"]);
}

#[test]
fn a_server_starts_once_a_damaged_snapshot_is_moved_away() {
    let _beside = gate::beside_others();
    let mut used = UsedFolder::new();
    used.config.snapshots.snap_count = 10;
    let server = TestServer::start_in(&used.config).unwrap();
    let mut client = Client::open(server.address);
    (0..40).for_each(|at| client.create(&format!("/later-{at}"), b""));
    drop(client);
    server.stop().unwrap();
    used.config.snapshots.snap_count = 100_000;
    let snapshots = used.named("snapshot.");
    let newest = snapshots.last().unwrap();
    let size = fs::metadata(newest).unwrap().len();
    let mut bytes = fs::read(newest).unwrap();
    bytes[size as usize / 2] ^= 1;
    fs::write(newest, bytes).unwrap();
    let first_needed = u64::from_str_radix(newest.extension().unwrap().to_str().unwrap(), 16).unwrap();
    for log in used.named("log.") {
        let first = u64::from_str_radix(log.extension().unwrap().to_str().unwrap(), 16).unwrap();
        if first > 1 && first < first_needed + 2 {
            used.move_away(&log);
        }
    }
    used.check_refused(&["to accept the loss, move the snapshot away"]);
    used.named("snapshot.").last().map(|path| used.move_away(path)).unwrap();
    // Logs after a gap may be left: the message about them names its own remedy.
    if let Err(error) = TestServer::start_in(&used.config).map(|server| server.stop().unwrap()) {
        let message = error.to_string();
        assert!(message.contains("move ") && message.contains("log"), "{message}");
        used.named("log.").iter().skip(1).for_each(|path| used.move_away(path));
    }
    used.check_starts_twice(&["/znode-0-0"], &[]);
}

#[test]
fn a_server_starts_empty_once_unreadable_snapshots_are_moved_away() {
    let _beside = gate::beside_others();
    for empties_folders in [false, true] {
        let used = UsedFolder::new();
        let mut config = used.config.clone();
        config.snapshots.snap_count = 5;
        let server = TestServer::start_in(&config).unwrap();
        let mut client = Client::open(server.address);
        (0..20).for_each(|at| client.create(&format!("/later-{at}"), b""));
        drop(client);
        server.stop().unwrap();
        used.named("log.").iter().for_each(|path| used.move_away(path));
        for path in used.named("snapshot.") {
            let mut bytes = fs::read(&path).unwrap();
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
            fs::write(&path, bytes).unwrap();
        }
        used.check_refused(&[
            "move the snapshots away to start with an empty tree",
            "empty this server's data folders",
        ]);
        if empties_folders {
            fs::remove_dir_all(&used.config.folders.data_dir).unwrap();
        } else {
            used.named("snapshot.").iter().for_each(|path| used.move_away(path));
        }
        used.check_starts_twice(&["/zookeeper"], &["/znode-0-0"]);
    }
}

#[test]
fn a_server_starts_empty_once_there_is_a_file_named_initialize() {
    let _beside = gate::beside_others();
    let mut used = UsedFolder::new();
    used.config.folders.db_autocreate = false;
    used.config.folders.data_dir = used.dir.path().join("another");
    used.config.folders.data_log_dir = used.dir.path().join("another-log");
    used.check_refused(&["create an empty file named `initialize` in dataLogDir"]);
    File::create(used.config.folders.data_log_dir.join("initialize")).unwrap();
    used.check_starts_twice(&["/zookeeper"], &[]);
    assert!(!used.config.folders.data_log_dir.join("initialize").exists());
}

#[test]
fn a_server_starts_once_its_logs_are_moved_to_the_log_folder() {
    let _beside = gate::beside_others();
    let mut used = UsedFolder::new();
    used.config.folders.data_log_dir = used.dir.path().join("logs");
    used.check_refused(&["move the file to the other folder"]);
    for log in used.named("log.") {
        fs::rename(&log, used.config.folders.data_log_dir.join("version-2").join(log.file_name().unwrap()))
            .unwrap();
    }
    used.check_starts_twice(&["/znode-0-0", "/znode-1-39"], &[]);
}

#[test]
fn a_server_starts_once_its_folder_is_made_by_hand() {
    let _beside = gate::beside_others();
    let mut used = UsedFolder::new();
    used.config.folders.datadir_autocreate = false;
    used.config.folders.data_dir = used.dir.path().join("by-hand");
    used.config.folders.data_log_dir = used.config.folders.data_dir.clone();
    let message = used.check_refused(&["Create it"]);
    let folder = message.split(" does not exist").next().unwrap();
    fs::create_dir_all(folder).unwrap();
    used.check_starts_twice(&["/zookeeper"], &[]);
}

#[test]
fn a_server_starts_once_a_symbolic_link_is_replaced_by_the_log_itself() {
    let _beside = gate::beside_others();
    let used = UsedFolder::new();
    let log = used.named("log.").pop().unwrap();
    let elsewhere = used.dir.path().join("elsewhere");
    fs::rename(&log, &elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &log).unwrap();
    used.check_refused(&[log.to_str().unwrap(), "put the file itself there"]);
    fs::rename(&elsewhere, &log).unwrap();
    used.check_starts_twice(&["/znode-0-0", "/znode-1-39"], &[]);
}

#[test]
fn a_server_starts_once_swapped_folders_are_swapped_back() {
    let _beside = gate::beside_others();
    let mut used = UsedFolder::new();
    let (data, logs) = (used.config.folders.data_dir.clone(), used.dir.path().join("logs"));
    fs::create_dir_all(logs.join("version-2")).unwrap();
    for log in used.named("log.").into_iter().chain([data.join("version-2/log-synced")]) {
        fs::rename(&log, logs.join("version-2").join(log.file_name().unwrap())).unwrap();
    }
    (used.config.folders.data_dir, used.config.folders.data_log_dir) = (logs.clone(), data.clone());
    used.check_refused(&["check that they are not swapped"]);
    (used.config.folders.data_dir, used.config.folders.data_log_dir) = (data, logs);
    used.check_starts_twice(&["/znode-0-0", "/znode-1-39"], &[]);
}

#[test]
fn a_server_starts_once_its_folder_is_its_own() {
    let _beside = gate::beside_others();
    let mut used = UsedFolder::new();
    let other = TestServer::start_in(&used.config).unwrap();
    let words = ["is in use by another server", "Stop that server, or give this one its own folder"];
    used.check_refused(&words);
    let its_own = used.dir.path().join("its-own");
    let shared = std::mem::replace(&mut used.config.folders.data_dir, its_own.clone());
    used.config.folders.data_log_dir = its_own;
    used.check_starts_twice(&[], &["/znode-0-0"]);
    other.stop().unwrap();
    (used.config.folders.data_dir, used.config.folders.data_log_dir) = (shared.clone(), shared);
    used.check_starts_twice(&["/znode-0-0", "/znode-1-39"], &[]);
}

/// `cp` overwrites the log, so the transactions that were synced later look lost.
#[test]
fn a_log_from_a_backup_is_read_once_the_sync_mark_is_removed() {
    let _beside = gate::beside_others();
    let used = UsedFolder::new();
    let server = TestServer::start_in(&used.config).unwrap();
    let mut client = Client::open(server.address);
    client.create("/before", b"");
    let log = used.named("log.").pop().unwrap();
    let backup = used.dir.path().join("backup");
    fs::copy(&log, &backup).unwrap();
    client.create("/after", b"");
    drop(client);
    server.stop().unwrap();
    fs::copy(&backup, &log).unwrap();
    let mark = used.files().join("log-synced");
    used.check_refused(&[
        "says log-synced beside it (remove that one if this log was put back from a backup)",
    ]);
    fs::remove_file(mark).unwrap();
    used.check_starts_twice(&["/before", "/znode-1-39"], &["/after"]);
}

#[test]
fn a_server_that_may_not_start_empty_starts_once_its_data_folder_is_back() {
    let _beside = gate::beside_others();
    let mut used = UsedFolder::new();
    used.config.folders.db_autocreate = false;
    let elsewhere = used.dir.path().join("elsewhere");
    fs::rename(&used.config.folders.data_dir, &elsewhere).unwrap();
    used.check_refused(&["put the data folder in place"]);
    fs::remove_dir_all(&used.config.folders.data_dir).unwrap();
    fs::rename(&elsewhere, &used.config.folders.data_dir).unwrap();
    used.check_starts_twice(&["/znode-0-0", "/znode-1-39"], &[]);
}

#[test]
fn a_server_starts_with_another_port_or_once_its_port_is_free() {
    let _beside = gate::beside_others();
    let mut used = UsedFolder::new();
    let holder = TcpListener::bind("127.0.0.1:0").unwrap();
    used.config.clients.client_address = Some(holder.local_addr().unwrap());
    used.check_refused(&["stop the process that holds it, or choose another clientPort"]);
    let held = used.config.clients.client_address;
    used.config.clients.client_address = Some("127.0.0.1:0".parse().unwrap());
    used.check_starts_twice(&["/znode-0-0"], &[]);
    drop(holder);
    used.config.clients.client_address = held;
    TestServer::start_in(&used.config).unwrap().stop().unwrap();
}

#[test]
fn a_server_starts_once_its_client_address_is_one_of_this_machine() {
    let _beside = gate::beside_others();
    let mut used = UsedFolder::new();
    // An address that is reserved for documentation.
    used.config.clients.client_address = Some("192.0.2.1:0".parse().unwrap());
    used.check_refused(&["correct clientPortAddress"]);
    used.config.clients.client_address = Some("127.0.0.1:0".parse().unwrap());
    used.check_starts_twice(&["/znode-0-0"], &[]);
}
