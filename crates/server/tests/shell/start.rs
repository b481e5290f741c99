//! A server that cannot start names the reason, the file or address, and the remedy, and changes no file.

use crate::{
    client::Client,
    gate,
    server::{TestServer, config},
};
use ostler_server::{ServerError, config::ServerConfig};
use ostler_storage::StorageError;
use std::{fs, net::TcpListener, path::Path};

#[track_caller]
fn refused(config: &ServerConfig) -> ServerError {
    match TestServer::start_in(config) {
        Err(error) => error,
        Ok(_) => panic!("the server started"),
    }
}

fn is_empty(dir: &Path) -> bool {
    fs::read_dir(dir).unwrap().next().is_none()
}

#[test]
fn a_port_in_use_is_named_and_no_file_is_touched() {
    let _beside = gate::beside_others();
    let dir = tempfile::tempdir().unwrap();
    let holder = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut config = config(dir.path());
    config.clients.client_address = Some(holder.local_addr().unwrap());
    let error = refused(&config);
    assert!(matches!(error, ServerError::Listen { .. }), "{error:?}");
    let message = error.to_string();
    assert!(
        message.contains(&config.clients.client_address.unwrap().to_string()) && message.contains("in use"),
        "{message}"
    );
    assert!(is_empty(dir.path()));
}

#[test]
fn a_port_that_another_server_holds_is_refused() {
    let first = TestServer::start();
    let dir = tempfile::tempdir().unwrap();
    let mut config = config(dir.path());
    config.clients.client_address = Some(first.address);
    assert!(matches!(refused(&config), ServerError::Listen { .. }));
    assert!(Client::open(first.address).exists("/"));
}

#[test]
fn an_address_of_another_machine_is_named() {
    let _beside = gate::beside_others();
    let dir = tempfile::tempdir().unwrap();
    let mut config = config(dir.path());
    // An address that is reserved for documentation.
    config.clients.client_address = Some("192.0.2.1:0".parse().unwrap());
    let message = refused(&config).to_string();
    assert!(message.contains("192.0.2.1:0") && message.contains("clientPortAddress"), "{message}");
}

#[test]
fn a_folder_that_cannot_be_made_is_named() {
    let _beside = gate::beside_others();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "in the way").unwrap();
    let below = file.join("data");
    let message = refused(&config(&below)).to_string();
    assert!(message.contains(below.to_str().unwrap()), "{message}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "in the way");

    let mut config = config(&dir.path().join("missing"));
    config.folders.datadir_autocreate = false;
    let message = refused(&config).to_string();
    assert!(message.contains("missing") && message.contains("datadir.autocreate"), "{message}");
}

#[test]
fn a_folder_that_another_server_holds_is_named() {
    let _beside = gate::beside_others();
    let dir = tempfile::tempdir().unwrap();
    let first = TestServer::start_in(&config(dir.path())).unwrap();
    let mut client = Client::open(first.address);
    client.create("/mine", b"");
    let error = refused(&config(dir.path()));
    assert!(matches!(error, ServerError::Storage(StorageError::Locked { .. })), "{error:?}");
    assert!(error.to_string().contains(dir.path().to_str().unwrap()), "{error}");
    client.create("/still-mine", b"");
    drop(client);
    first.stop().unwrap();
    TestServer::start_in(&config(dir.path())).unwrap().stop().unwrap();
}

#[test]
fn two_servers_with_one_log_folder_are_refused_although_their_data_folders_differ() {
    let _beside = gate::beside_others();
    let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let mut first = config(dirs[0].path());
    first.folders.data_log_dir = dirs[1].path().to_path_buf();
    let mut second = config(dirs[2].path());
    second.folders.data_log_dir = dirs[1].path().to_path_buf();
    let held = TestServer::start_in(&first).unwrap();
    let message = refused(&second).to_string();
    assert!(message.contains(dirs[1].path().to_str().unwrap()), "{message}");
    held.stop().unwrap();
}

#[test]
fn logs_without_their_snapshot_are_refused_and_kept() {
    let _beside = gate::beside_others();
    let dir = tempfile::tempdir().unwrap();
    let server = TestServer::start_in(&config(dir.path())).unwrap();
    Client::open(server.address).create("/kept", b"");
    server.stop().unwrap();

    let files = dir.path().join("version-2");
    let names = || -> Vec<String> {
        let entries = fs::read_dir(&files).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    };
    let snapshot = names().into_iter().find(|name| name.starts_with("snapshot.")).unwrap();
    fs::rename(files.join(&snapshot), dir.path().join("aside")).unwrap();
    let before = names();
    let message = refused(&config(dir.path())).to_string();
    assert!(message.contains("snapshot") && message.contains(files.to_str().unwrap()), "{message}");
    assert_eq!(names(), before);

    fs::rename(dir.path().join("aside"), files.join(&snapshot)).unwrap();
    let server = TestServer::start_in(&config(dir.path())).unwrap();
    assert!(Client::open(server.address).exists("/kept"));
    server.stop().unwrap();
}

#[test]
fn a_damaged_log_is_refused_with_the_file_and_the_byte() {
    let _beside = gate::beside_others();
    let dir = tempfile::tempdir().unwrap();
    let server = TestServer::start_in(&config(dir.path())).unwrap();
    let mut client = Client::open(server.address);
    for at in 0..50 {
        client.create(&format!("/znode-{at}"), b"some data");
    }
    drop(client);
    server.stop().unwrap();

    let log = dir.path().join("version-2/log.1");
    let good = fs::read(&log).unwrap();
    let mut bad = good.clone();
    bad[1000] ^= 1;
    fs::write(&log, &bad).unwrap();
    let message = refused(&config(dir.path())).to_string();
    assert!(message.contains(log.to_str().unwrap()) && message.contains("damaged at byte"), "{message}");
    assert!(fs::read(&log).unwrap() == bad, "the file is as it was");

    fs::write(&log, &good).unwrap();
    let server = TestServer::start_in(&config(dir.path())).unwrap();
    assert!(Client::open(server.address).exists("/znode-49"));
    server.stop().unwrap();
}
