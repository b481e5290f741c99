//! A server that refuses its zoo.cfg starts after the change that its message asks for.

use crate::{client::PATIENCE, gate, server::TestServer};
use ostler_server::{ServerError, config};
use std::{
    fs,
    net::{Ipv4Addr, TcpListener},
    path::PathBuf,
    sync::{
        atomic::{AtomicU16, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};
use tempfile::TempDir;

/// A zoo.cfg, and a data folder with a myid.
struct ServerFiles {
    dir: TempDir,
}

impl ServerFiles {
    fn new(myid: &str) -> ServerFiles {
        let files = ServerFiles { dir: tempfile::tempdir().unwrap() };
        fs::create_dir(files.data_dir()).unwrap();
        files.write_myid(myid);
        files
    }

    fn data_dir(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    fn write_myid(&self, myid: &str) {
        fs::write(self.data_dir().join("myid"), myid).unwrap();
    }

    fn start(&self, lines: &str) -> Result<TestServer, String> {
        let file = self.dir.path().join("zoo.cfg");
        fs::write(&file, format!("dataDir={}\n{lines}\n", self.data_dir().display())).unwrap();
        let config = config::load(&file).map_err(|error| error.to_string())?.config;
        TestServer::start_in(&config).map_err(|error: ServerError| error.to_string())
    }

    #[track_caller]
    fn check_refused(&self, lines: &str, words: &str) {
        let Err(message) = self.start(lines) else { panic!("the server started with {lines}") };
        assert!(message.contains(words), "{message}");
    }

    #[track_caller]
    fn check_starts_twice(&self, lines: &str) {
        for _ in 0..2 {
            self.start(lines).unwrap_or_else(|message| panic!("{lines}: {message}")).stop().unwrap();
        }
    }
}

/// A port that no other test uses. It is below the range from which the system chooses free ports.
fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let begin = 27_000 + std::process::id() as u16 % 100 * 10;
    let listens = |port: &u16| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok();
    let mut tried = std::iter::from_fn(|| Some(begin + NEXT.fetch_add(1, Ordering::Relaxed)));
    tried.find(listens).unwrap()
}

#[test]
fn a_server_with_two_client_addresses_starts_once_one_is_removed() {
    let _beside = gate::beside_others();
    let files = ServerFiles::new("1");
    let general = "clientPort=0";
    let special = |client: &str| format!("server.1=127.0.0.1:1:2{client}");
    let other = format!(";127.0.0.1:{}", free_port());
    files.check_refused(&format!("{general}\n{}", special(&other)), "remove one of the two");
    files.check_starts_twice(&special(&other));
    files.check_starts_twice(&format!("{general}\n{}", special("")));
}

#[test]
fn an_ensemble_without_server_lines_starts_once_there_are_some_or_it_is_standalone() {
    let _beside = gate::beside_others();
    let files = ServerFiles::new("1");
    let wanted = "clientPort=0\nstandaloneEnabled=false";
    files.check_refused(wanted, "add such lines, or remove this one");
    files.check_starts_twice("clientPort=0");
    let line = format!("server.1=127.0.0.1:{}:{}", free_port(), free_port());
    files.check_starts_twice(&format!("{wanted}\n{line}"));
}

#[test]
fn a_server_with_too_large_an_id_starts_with_another_id_or_without_ttls() {
    let _beside = gate::beside_others();
    let files = ServerFiles::new("255");
    let line = |id: u16| {
        format!("clientPort=0\nserver.1=127.0.0.1:1:2\nserver.{id}=127.0.0.1:{}:{}", free_port(), free_port())
    };
    let on = "extendedTypesEnabled=true";
    let words =
        "Give that server another id, in its myid and at all servers, or set extendedTypesEnabled=false";
    files.check_refused(&format!("{}\n{on}", line(255)), words);
    files.check_starts_twice(&format!("{}\nextendedTypesEnabled=false", line(255)));
    files.write_myid("254");
    files.check_starts_twice(&format!("{}\n{on}", line(254)));
}

/// The test holds the port. A name without an address is waited for in the same way.
#[test]
fn with_bind_retry_zero_a_server_waits_without_end_for_a_port_in_use() {
    let _beside = gate::beside_others();
    let files = ServerFiles::new("1");
    let (quorum, held) = (free_port(), free_port());
    let holder = TcpListener::bind((Ipv4Addr::LOCALHOST, held)).unwrap();
    let lines = move |retries: u16| {
        let servers = format!("server.1=127.0.0.1:{quorum}:{held}\nserver.2=127.0.0.1:1:2");
        format!("clientPort=0\nelectionPortBindRetry={retries}\n{servers}")
    };
    files.check_refused(&lines(1), "set electionPortBindRetry=0");
    let (started, result) = mpsc::channel();
    thread::spawn(move || started.send(files.start(&lines(0)).map(TestServer::stop)).unwrap());
    // A server that gives up would have ended by now.
    let early = result.recv_timeout(Duration::from_millis(1_500));
    assert!(early.is_err(), "{:?}", early.unwrap().map(drop));
    drop(holder);
    result.recv_timeout(PATIENCE).unwrap().unwrap().unwrap();
}

#[test]
fn a_server_starts_once_a_damaged_epoch_file_is_restored() {
    let _beside = gate::beside_others();
    for name in ["currentEpoch", "acceptedEpoch"] {
        let files = ServerFiles::new("1");
        let line = format!("server.1=127.0.0.1:{}:{}", free_port(), free_port());
        let lines = format!("clientPort=0\nstandaloneEnabled=false\n{line}");
        let server = files.start(&lines).unwrap();
        server.wait_until_it_leads();
        server.stop().unwrap();
        let file = files.data_dir().join("version-2").join(name);
        let backup = fs::read(&file).unwrap();
        fs::write(&file, "x").unwrap();
        files.check_refused(&lines, "Restore it from a backup");
        fs::write(&file, backup).unwrap();
        files.check_starts_twice(&lines);
    }
}
