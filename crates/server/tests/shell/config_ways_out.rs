//! A server starts once a line of zoo.cfg is changed, or left out, as the message about it says.

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

/// A zoo.cfg, and a folder for the data with the server's number.
struct Place {
    dir: TempDir,
}

impl Place {
    fn new(myid: &str) -> Place {
        let place = Place { dir: tempfile::tempdir().unwrap() };
        fs::create_dir(place.data_dir()).unwrap();
        place.has_id(myid);
        place
    }

    fn data_dir(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    fn has_id(&self, myid: &str) {
        fs::write(self.data_dir().join("myid"), myid).unwrap();
    }

    fn starts(&self, lines: &str) -> Result<TestServer, String> {
        let file = self.dir.path().join("zoo.cfg");
        fs::write(&file, format!("dataDir={}\n{lines}\n", self.data_dir().display())).unwrap();
        let config = config::load(&file).map_err(|error| error.to_string())?.config;
        TestServer::start_in(&config).map_err(|error: ServerError| error.to_string())
    }

    #[track_caller]
    fn is_refused(&self, lines: &str, words: &str) {
        let Err(said) = self.starts(lines) else { panic!("it started with {lines}") };
        assert!(said.contains(words), "{said}");
    }

    #[track_caller]
    fn starts_twice(&self, lines: &str) {
        for _ in 0..2 {
            self.starts(lines).unwrap_or_else(|said| panic!("{lines}: {said}")).stop().unwrap();
        }
    }
}

/// One that nobody else has. It is none of those that the system gives to whoever asks for any.
fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let begin = 27_000 + std::process::id() as u16 % 100 * 10;
    let listens = |port: &u16| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok();
    let mut tried = std::iter::from_fn(|| Some(begin + NEXT.fetch_add(1, Ordering::Relaxed)));
    tried.find(listens).unwrap()
}

#[test]
fn one_of_two_client_addresses_is_removed() {
    let _beside = gate::beside_others();
    let place = Place::new("1");
    let general = "clientPort=0";
    let special = |client: &str| format!("server.1=127.0.0.1:1:2{client}");
    let other = format!(";127.0.0.1:{}", free_port());
    place.is_refused(&format!("{general}\n{}", special(&other)), "remove one of the two");
    place.starts_twice(&special(&other));
    place.starts_twice(&format!("{general}\n{}", special("")));
}

#[test]
fn an_ensemble_without_servers_gets_some_or_is_none() {
    let _beside = gate::beside_others();
    let place = Place::new("1");
    let wanted = "clientPort=0\nstandaloneEnabled=false";
    place.is_refused(wanted, "add such lines, or remove this one");
    place.starts_twice("clientPort=0");
    let line = format!("server.1=127.0.0.1:{}:{}", free_port(), free_port());
    place.starts_twice(&format!("{wanted}\n{line}"));
}

#[test]
fn a_server_whose_id_is_too_large_gets_another_or_ttls_are_off() {
    let _beside = gate::beside_others();
    let place = Place::new("255");
    let line = |id: u16| {
        format!("clientPort=0\nserver.1=127.0.0.1:1:2\nserver.{id}=127.0.0.1:{}:{}", free_port(), free_port())
    };
    let on = "extendedTypesEnabled=true";
    let words =
        "Give that server another id, in its myid and at all servers, or set extendedTypesEnabled=false";
    place.is_refused(&format!("{}\n{on}", line(255)), words);
    place.starts_twice(&format!("{}\nextendedTypesEnabled=false", line(255)));
    place.has_id("254");
    place.starts_twice(&format!("{}\n{on}", line(254)));
}

/// That of a name that comes later takes as long as that takes, and so does a port that another holds.
#[test]
fn a_port_for_other_servers_is_waited_for_without_end() {
    let _beside = gate::beside_others();
    let place = Place::new("1");
    let (quorum, held) = (free_port(), free_port());
    let holder = TcpListener::bind((Ipv4Addr::LOCALHOST, held)).unwrap();
    let lines = move |retries: u16| {
        let servers = format!("server.1=127.0.0.1:{quorum}:{held}\nserver.2=127.0.0.1:1:2");
        format!("clientPort=0\nelectionPortBindRetry={retries}\n{servers}")
    };
    place.is_refused(&lines(1), "set electionPortBindRetry=0");
    let (started, result) = mpsc::channel();
    thread::spawn(move || started.send(place.starts(&lines(0)).map(TestServer::stop)).unwrap());
    // One that gives up would say so by now.
    let early = result.recv_timeout(Duration::from_millis(1_500));
    assert!(early.is_err(), "{:?}", early.unwrap().map(drop));
    drop(holder);
    result.recv_timeout(PATIENCE).unwrap().unwrap().unwrap();
}

#[test]
fn an_epoch_that_is_no_number_is_restored() {
    let _beside = gate::beside_others();
    for name in ["currentEpoch", "acceptedEpoch"] {
        let place = Place::new("1");
        let line = format!("server.1=127.0.0.1:{}:{}", free_port(), free_port());
        let lines = format!("clientPort=0\nstandaloneEnabled=false\n{line}");
        let server = place.starts(&lines).unwrap();
        server.until_it_leads();
        server.stop().unwrap();
        let file = place.data_dir().join("version-2").join(name);
        let backup = fs::read(&file).unwrap();
        fs::write(&file, "x").unwrap();
        place.is_refused(&lines, "Restore it from a backup");
        fs::write(&file, backup).unwrap();
        place.starts_twice(&lines);
    }
}
