//! What a message says that an operator can do helps: the server starts then, and the next time as well.

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

/// A folder with some data, where a server has run twice, and its configuration.
struct Aged {
    dir: tempfile::TempDir,
    config: ServerConfig,
}

impl Aged {
    fn new() -> Aged {
        let dir = tempfile::tempdir().unwrap();
        let config = config(&dir.path().join("data"));
        let aged = Aged { dir, config };
        for round in 0..2 {
            let server = TestServer::start_in(&aged.config).unwrap();
            let mut client = Client::open(server.address);
            (0..40).for_each(|at| client.create(&format!("/znode-{round}-{at}"), b"some data"));
            drop(client);
            server.stop().unwrap();
        }
        aged
    }

    fn files(&self) -> PathBuf {
        self.config.folders.data_dir.join("version-2")
    }

    /// Files whose names begin so, by the number at the end.
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

    /// It does not start, and says all of this.
    #[track_caller]
    fn is_refused(&self, words: &[&str]) -> String {
        let Err(error) = TestServer::start_in(&self.config) else { panic!("it started") };
        let said = error.to_string();
        for word in words {
            assert!(said.contains(word), "{said}");
        }
        said
    }

    /// It starts, can be written to, and starts again with what it had.
    #[track_caller]
    fn starts_twice_with(&self, there: &[&str], gone: &[&str]) {
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
fn logs_that_are_trusted_once_need_not_be_trusted_again() {
    let _beside = gate::beside_others();
    let mut aged = Aged::new();
    aged.named("snapshot.").iter().for_each(|path| aged.move_away(path));
    aged.is_refused(&["start once with snapshot.trust.empty=true", "Put a snapshot back"]);
    aged.config.folders.snapshot_trust_empty = true;
    let server = TestServer::start_in(&aged.config).unwrap_or_else(|error| panic!("{error}"));
    server.stop().unwrap();
    aged.config.folders.snapshot_trust_empty = false;
    aged.starts_twice_with(&["/znode-0-0", "/znode-1-39"], &[]);
}

#[test]
fn a_damaged_log_is_cut_where_the_message_says() {
    let _beside = gate::beside_others();
    let aged = Aged::new();
    let logs = aged.named("log.");
    let mut bytes = fs::read(&logs[0]).unwrap();
    bytes[1500] ^= 1;
    fs::write(&logs[0], bytes).unwrap();
    let said = aged.is_refused(&["run `truncate -s ", "move all later log files away"]);
    let command = said.split("run `truncate -s ").nth(1).unwrap().split('`').next().unwrap();
    let (size, file) = command.split_once(' ').unwrap();
    assert_eq!(Path::new(file), logs[0]);
    File::options().write(true).open(file).unwrap().set_len(size.parse().unwrap()).unwrap();
    logs[1..].iter().for_each(|path| aged.move_away(path));
    aged.starts_twice_with(&["/znode-0-0"], &["/znode-0-39", "/znode-1-0"]);
}

#[test]
fn a_log_without_its_head_is_moved_away_with_those_after_it() {
    let _beside = gate::beside_others();
    let aged = Aged::new();
    let logs = aged.named("log.");
    let mut bytes = fs::read(&logs[1]).unwrap();
    bytes[0] ^= 1;
    fs::write(&logs[1], bytes).unwrap();
    aged.is_refused(&[&format!("move {} and all later log files away", logs[1].display())]);
    logs[1..].iter().for_each(|path| aged.move_away(path));
    aged.starts_twice_with(&["/znode-0-39"], &["/znode-1-0"]);
}

#[test]
fn a_damaged_snapshot_is_moved_away() {
    let _beside = gate::beside_others();
    let mut aged = Aged::new();
    aged.config.snapshots.snap_count = 10;
    let server = TestServer::start_in(&aged.config).unwrap();
    let mut client = Client::open(server.address);
    (0..40).for_each(|at| client.create(&format!("/later-{at}"), b""));
    drop(client);
    server.stop().unwrap();
    aged.config.snapshots.snap_count = 100_000;
    let snapshots = aged.named("snapshot.");
    let newest = snapshots.last().unwrap();
    let size = fs::metadata(newest).unwrap().len();
    let mut bytes = fs::read(newest).unwrap();
    bytes[size as usize / 2] ^= 1;
    fs::write(newest, bytes).unwrap();
    let first_needed = u64::from_str_radix(newest.extension().unwrap().to_str().unwrap(), 16).unwrap();
    for log in aged.named("log.") {
        let first = u64::from_str_radix(log.extension().unwrap().to_str().unwrap(), 16).unwrap();
        if first > 1 && first < first_needed + 2 {
            aged.move_away(&log);
        }
    }
    aged.is_refused(&["to accept the loss, move the snapshot away"]);
    aged.named("snapshot.").last().map(|path| aged.move_away(path)).unwrap();
    // Logs may be left that go on behind a gap: the message about them names its own way.
    if let Err(error) = TestServer::start_in(&aged.config).map(|server| server.stop().unwrap()) {
        let said = error.to_string();
        assert!(said.contains("move ") && said.contains("log"), "{said}");
        aged.named("log.").iter().skip(1).for_each(|path| aged.move_away(path));
    }
    aged.starts_twice_with(&["/znode-0-0"], &[]);
}

#[test]
fn snapshots_that_cannot_be_read_and_no_logs_give_way_to_an_empty_tree() {
    let _beside = gate::beside_others();
    for empties_folders in [false, true] {
        let aged = Aged::new();
        let mut config = aged.config.clone();
        config.snapshots.snap_count = 5;
        let server = TestServer::start_in(&config).unwrap();
        let mut client = Client::open(server.address);
        (0..20).for_each(|at| client.create(&format!("/later-{at}"), b""));
        drop(client);
        server.stop().unwrap();
        aged.named("log.").iter().for_each(|path| aged.move_away(path));
        for path in aged.named("snapshot.") {
            let mut bytes = fs::read(&path).unwrap();
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
            fs::write(&path, bytes).unwrap();
        }
        aged.is_refused(&[
            "move the snapshots away to start with an empty tree",
            "empty this server's data folders",
        ]);
        if empties_folders {
            fs::remove_dir_all(&aged.config.folders.data_dir).unwrap();
        } else {
            aged.named("snapshot.").iter().for_each(|path| aged.move_away(path));
        }
        aged.starts_twice_with(&["/zookeeper"], &["/znode-0-0"]);
    }
}

#[test]
fn a_file_called_initialize_says_that_nothing_is_right() {
    let _beside = gate::beside_others();
    let mut aged = Aged::new();
    aged.config.folders.db_autocreate = false;
    aged.config.folders.data_dir = aged.dir.path().join("another");
    aged.config.folders.data_log_dir = aged.dir.path().join("another-log");
    aged.is_refused(&["create an empty file named `initialize` in dataLogDir"]);
    File::create(aged.config.folders.data_log_dir.join("initialize")).unwrap();
    aged.starts_twice_with(&["/zookeeper"], &[]);
    assert!(!aged.config.folders.data_log_dir.join("initialize").exists());
}

#[test]
fn a_file_in_the_other_folder_is_moved_there() {
    let _beside = gate::beside_others();
    let mut aged = Aged::new();
    aged.config.folders.data_log_dir = aged.dir.path().join("logs");
    aged.is_refused(&["move the file to the other folder"]);
    for log in aged.named("log.") {
        fs::rename(&log, aged.config.folders.data_log_dir.join("version-2").join(log.file_name().unwrap()))
            .unwrap();
    }
    aged.starts_twice_with(&["/znode-0-0", "/znode-1-39"], &[]);
}

#[test]
fn a_folder_that_may_not_be_made_is_made_by_hand() {
    let _beside = gate::beside_others();
    let mut aged = Aged::new();
    aged.config.folders.datadir_autocreate = false;
    aged.config.folders.data_dir = aged.dir.path().join("by-hand");
    aged.config.folders.data_log_dir = aged.config.folders.data_dir.clone();
    let said = aged.is_refused(&["Create it"]);
    let folder = said.split(" does not exist").next().unwrap();
    fs::create_dir_all(folder).unwrap();
    aged.starts_twice_with(&["/zookeeper"], &[]);
}

#[test]
fn a_link_in_the_place_of_the_log_gives_way_to_the_file() {
    let _beside = gate::beside_others();
    let aged = Aged::new();
    let log = aged.named("log.").pop().unwrap();
    let elsewhere = aged.dir.path().join("elsewhere");
    fs::rename(&log, &elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &log).unwrap();
    aged.is_refused(&[log.to_str().unwrap(), "put the file itself there"]);
    fs::rename(&elsewhere, &log).unwrap();
    aged.starts_twice_with(&["/znode-0-0", "/znode-1-39"], &[]);
}

#[test]
fn folders_that_are_swapped_are_swapped_back() {
    let _beside = gate::beside_others();
    let mut aged = Aged::new();
    let (data, logs) = (aged.config.folders.data_dir.clone(), aged.dir.path().join("logs"));
    fs::create_dir_all(logs.join("version-2")).unwrap();
    for log in aged.named("log.").into_iter().chain([data.join("version-2/log-synced")]) {
        fs::rename(&log, logs.join("version-2").join(log.file_name().unwrap())).unwrap();
    }
    (aged.config.folders.data_dir, aged.config.folders.data_log_dir) = (logs.clone(), data.clone());
    aged.is_refused(&["check that they are not swapped"]);
    (aged.config.folders.data_dir, aged.config.folders.data_log_dir) = (data, logs);
    aged.starts_twice_with(&["/znode-0-0", "/znode-1-39"], &[]);
}

#[test]
fn a_folder_in_use_is_left_to_its_server_or_that_is_stopped() {
    let _beside = gate::beside_others();
    let mut aged = Aged::new();
    let other = TestServer::start_in(&aged.config).unwrap();
    let words = ["is in use by another server", "Stop that server, or give this one its own folder"];
    aged.is_refused(&words);
    let its_own = aged.dir.path().join("its-own");
    let shared = std::mem::replace(&mut aged.config.folders.data_dir, its_own.clone());
    aged.config.folders.data_log_dir = its_own;
    aged.starts_twice_with(&[], &["/znode-0-0"]);
    other.stop().unwrap();
    (aged.config.folders.data_dir, aged.config.folders.data_log_dir) = (shared.clone(), shared);
    aged.starts_twice_with(&["/znode-0-0", "/znode-1-39"], &[]);
}

/// `cp` writes over the file that is there, and what was synced into that looks lost.
#[test]
fn a_log_from_a_backup_is_read_without_the_mark_of_the_newer_one() {
    let _beside = gate::beside_others();
    let aged = Aged::new();
    let server = TestServer::start_in(&aged.config).unwrap();
    let mut client = Client::open(server.address);
    client.create("/before", b"");
    let log = aged.named("log.").pop().unwrap();
    let backup = aged.dir.path().join("backup");
    fs::copy(&log, &backup).unwrap();
    client.create("/after", b"");
    drop(client);
    server.stop().unwrap();
    fs::copy(&backup, &log).unwrap();
    let mark = aged.files().join("log-synced");
    aged.is_refused(&["says log-synced beside it (remove that one if this log was put back from a backup)"]);
    fs::remove_file(mark).unwrap();
    aged.starts_twice_with(&["/before", "/znode-1-39"], &["/after"]);
}

#[test]
fn a_server_that_may_not_start_empty_starts_with_its_data_put_in_place() {
    let _beside = gate::beside_others();
    let mut aged = Aged::new();
    aged.config.folders.db_autocreate = false;
    let elsewhere = aged.dir.path().join("elsewhere");
    fs::rename(&aged.config.folders.data_dir, &elsewhere).unwrap();
    aged.is_refused(&["put the data folder in place"]);
    fs::remove_dir_all(&aged.config.folders.data_dir).unwrap();
    fs::rename(&elsewhere, &aged.config.folders.data_dir).unwrap();
    aged.starts_twice_with(&["/znode-0-0", "/znode-1-39"], &[]);
}

#[test]
fn a_client_port_that_is_in_use_becomes_free_or_is_another() {
    let _beside = gate::beside_others();
    let mut aged = Aged::new();
    let holder = TcpListener::bind("127.0.0.1:0").unwrap();
    aged.config.clients.client_address = holder.local_addr().unwrap();
    aged.is_refused(&["stop the process that holds it, or choose another clientPort"]);
    let held = aged.config.clients.client_address;
    aged.config.clients.client_address.set_port(0);
    aged.starts_twice_with(&["/znode-0-0"], &[]);
    drop(holder);
    aged.config.clients.client_address = held;
    TestServer::start_in(&aged.config).unwrap().stop().unwrap();
}

#[test]
fn a_client_address_that_is_not_this_machines_is_corrected() {
    let _beside = gate::beside_others();
    let mut aged = Aged::new();
    // Reserved for documentation.
    aged.config.clients.client_address = "192.0.2.1:0".parse().unwrap();
    aged.is_refused(&["correct clientPortAddress"]);
    aged.config.clients.client_address = "127.0.0.1:0".parse().unwrap();
    aged.starts_twice_with(&["/znode-0-0"], &[]);
}
