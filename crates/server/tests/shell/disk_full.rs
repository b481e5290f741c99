//! A full disk: a small file system in memory. Mounting one needs root.

use crate::{
    client::{Client, create, op},
    gate,
    server::{TestServer, config},
};
use ostler_server::ServerError;
use ostler_storage::StorageError;
use std::{path::Path, process::Command};
use tempfile::TempDir;

/// A small file system. It is unmounted on drop.
struct SmallDisk(TempDir);

impl SmallDisk {
    /// Mounts a file system; `None` if this process may not.
    fn mount(kb: u32) -> Option<SmallDisk> {
        let dir = tempfile::tempdir().unwrap();
        mount(dir.path(), &format!("size={kb}k")).then_some(SmallDisk(dir))
    }

    fn grow(&self, kb: u32) {
        assert!(mount(self.0.path(), &format!("remount,size={kb}k")));
    }
}

fn mount(path: &Path, options: &str) -> bool {
    let mut command = Command::new("mount");
    command.args(["-t", "tmpfs", "-o", options, "ostler-test"]).arg(path);
    command.output().is_ok_and(|done| done.status.success())
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0.path()).output();
    }
}

#[test]
fn a_full_disk_stops_the_server_and_loses_nothing_that_was_answered() {
    let _beside = gate::beside_others();
    let Some(disk) = SmallDisk::mount(1024) else {
        println!("skipped: this process may not mount a file system in memory");
        return;
    };
    let mut config = config(disk.0.path());
    config.log.pre_alloc_size_kb = 64;
    let server = TestServer::start_in(&config).unwrap();
    let mut client = Client::open(server.address);
    let mut answered = 0;
    loop {
        client.send(op::CREATE, &create(&format!("/znode-{answered}"), &[1; 10_000]));
        client.stream.set_read_timeout(Some(std::time::Duration::from_secs(3))).unwrap();
        let mut first = [0; 1];
        // The server is silent or has closed the connection: nothing more is acknowledged.
        if !matches!(client.stream.peek(&mut first), Ok(1)) {
            break;
        }
        assert_eq!(client.reply().unwrap().error, 0);
        answered += 1;
        assert!(answered < 200, "more was acknowledged than the disk can hold");
    }
    assert!(answered > 10, "{answered}");
    let error = server.ended_by_itself().unwrap_err();
    assert!(matches!(error, ServerError::Storage(StorageError::DiskFull { .. })), "{error:?}");
    let message = error.to_string();
    assert!(
        message.contains("the disk is full") && message.contains(disk.0.path().to_str().unwrap()),
        "{message}"
    );

    disk.grow(16 << 10);
    for round in 0..2 {
        let server = TestServer::start_in(&config).unwrap();
        let mut client = Client::open(server.address);
        for at in 0..answered {
            assert!(client.exists(&format!("/znode-{at}")), "znode {at} of {answered} was acknowledged");
        }
        client.create(&format!("/goes-on-{round}"), b"");
        server.stop().unwrap();
    }
}

#[test]
fn a_disk_that_is_full_from_the_start_is_named() {
    let _beside = gate::beside_others();
    let Some(disk) = SmallDisk::mount(4) else {
        println!("skipped: this process may not mount a file system in memory");
        return;
    };
    let error = match TestServer::start_in(&config(disk.0.path())) {
        Err(error) => error,
        Ok(_) => panic!("the server started"),
    };
    let message = error.to_string();
    assert!(
        message.contains("the disk is full") && message.contains(disk.0.path().to_str().unwrap()),
        "{message}"
    );
}
