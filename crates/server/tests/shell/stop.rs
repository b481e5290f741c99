//! The orderly end of a server.

use crate::{
    client::{Client, create, ends_within, op, path_watch, request, set_data},
    gate,
    neighbour::Neighbour,
    server::{TestServer, config},
};
use ostler_server::config::ServerConfig;
use std::{
    fs,
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

#[test]
fn writes_are_there_after_a_restart() {
    let _beside = gate::beside_others();
    let dir = tempfile::tempdir().unwrap();
    for round in 0..4 {
        let server = TestServer::start_in(&config(dir.path())).unwrap();
        // The root, /zookeeper, its quota and its config.
        assert_eq!(server.znodes, 4 + round * 10);
        let mut client = Client::open(server.address);
        for at in 0..round * 10 {
            assert!(client.exists(&format!("/znode-{at}")));
        }
        for at in round * 10..(round + 1) * 10 {
            client.create(&format!("/znode-{at}"), b"data");
        }
        client.ask(op::CLOSE, &[]);
        server.stop().unwrap();
    }
}

/// A stopped server must not answer: its tree is old as soon as another server has the folder.
#[test]
fn a_stopped_server_has_closed_its_clients_connections() {
    let _beside = gate::beside_others();
    let dir = tempfile::tempdir().unwrap();
    let mut server = TestServer::start_in(&config(dir.path())).unwrap();
    let mut client = Client::open(server.address);
    assert!(server.stops_within(Duration::from_secs(10)), "the server does not stop");
    // The runtime still runs, so tasks that the server has left would go on.
    let _ = client.stream.write_all(&request(1, op::EXISTS, &path_watch("/", false)));
    let mut first = [0; 1];
    client.stream.set_read_timeout(Some(Duration::from_secs(3))).unwrap();
    assert!(!matches!(client.stream.read(&mut first), Ok(1)), "the server still answers");
    assert!(ends_within(&mut client.stream, Duration::from_secs(5)), "the connection is still open");
}

/// A program that embeds servers may start and stop many of them.
#[test]
fn a_stopped_server_leaves_no_thread_behind() {
    let _alone = gate::alone();
    let threads = || fs::read_dir("/proc/self/task").unwrap().count();
    let before = threads();
    for _ in 0..10 {
        TestServer::start_unguarded(|_| {}).stop().unwrap();
    }
    let begun = Instant::now();
    // A few may be on their way out, of this server's runtime or of the test's own.
    while threads() > before + 4 {
        assert!(begun.elapsed() < Duration::from_secs(10), "{} threads, not {before}", threads());
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn the_port_is_free_after_the_end() {
    let _beside = gate::beside_others();
    let dir = tempfile::tempdir().unwrap();
    let server = TestServer::start_in(&config(dir.path())).unwrap();
    let address = server.address;
    let client = Client::open(address);
    server.stop().unwrap();
    drop(client);
    let mut again = config(dir.path());
    again.clients.client_address = Some(address);
    let server = TestServer::start_in(&again).unwrap();
    Neighbour::of(server.address).content();
    server.stop().unwrap();
}

/// Clients that never pause keep something in the disk's queue all the time.
#[test]
fn a_server_stops_while_clients_keep_writing() {
    let _beside = gate::beside_others();
    let dir = tempfile::tempdir().unwrap();
    let mut server = TestServer::start_in(&config(dir.path())).unwrap();
    Client::open(server.address).create("/busy", b"");
    let stop = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> = (0..4).map(|_| busy_writer(server.address, stop.clone())).collect();
    thread::sleep(Duration::from_millis(500));

    let in_time = server.stops_within(Duration::from_secs(10));
    stop.store(true, Ordering::SeqCst);
    for writer in writers {
        writer.join().unwrap();
    }
    assert!(in_time, "the server does not stop as long as clients write");
}

/// Writes without waiting for answers, which another thread reads.
fn busy_writer(server: SocketAddr, stop: Arc<AtomicBool>) -> thread::JoinHandle<()> {
    let client = Client::open(server);
    let mut reader: TcpStream = client.stream.try_clone().unwrap();
    reader.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    let reading = stop.clone();
    let reads = thread::spawn(move || {
        let mut bytes = [0; 64 << 10];
        while !reading.load(Ordering::SeqCst) {
            if matches!(reader.read(&mut bytes), Ok(0)) {
                return;
            }
        }
    });
    thread::spawn(move || {
        let mut client = client;
        client.stream.set_write_timeout(Some(Duration::from_millis(100))).unwrap();
        let one = request(1, op::SET_DATA, &set_data("/busy", b"0123456789"));
        let many = one.repeat(50);
        while !stop.load(Ordering::SeqCst) {
            // A write that is cut short by its timeout would break the stream, so it ends this writer.
            match client.stream.write_all(&many) {
                Ok(()) => {}
                Err(_) => break,
            }
        }
        reads.join().unwrap();
    })
}

/// Writes without an answer may be missing, but only the last ones.
#[test]
fn a_stop_amid_writes_loses_nothing_that_was_answered() {
    let _beside = gate::beside_others();
    let dir = tempfile::tempdir().unwrap();
    let server = TestServer::start_in(&config(dir.path())).unwrap();
    let mut client = Client::open(server.address);
    for at in 0..500 {
        client.send(op::CREATE, &create(&format!("/znode-{at}"), b""));
    }
    let mut answered = 0;
    for _ in 0..100 {
        assert_eq!(client.reply().unwrap().error, 0);
        answered += 1;
    }
    server.stop().unwrap();
    let server = TestServer::start_in(&config(dir.path())).unwrap();
    let mut observer = Client::open(server.address);
    let there = (0..500).take_while(|at| observer.exists(&format!("/znode-{at}"))).count();
    assert!(there >= answered, "{there} of {answered}");
    assert!(
        (there..500).all(|at| !observer.exists(&format!("/znode-{at}"))),
        "a write is missing before a later one"
    );
    server.stop().unwrap();
}

/// The files of a server.
fn names(dir: &Path) -> Vec<String> {
    let all = fs::read_dir(dir.join("version-2")).unwrap();
    all.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

fn has_unfinished(dir: &Path) -> bool {
    names(dir).iter().any(|name| name.starts_with("unfinished."))
}

/// Stops a server that has just begun a snapshot. Says whether the unfinished file is there.
fn stops_amid_a_snapshot(small: &ServerConfig, dir: &Path) -> bool {
    let server = TestServer::start_in(small).unwrap();
    let mut client = Client::open(server.address);
    let data = vec![7; 1_000_000];
    let mut at = 0;
    while at < 60 && !has_unfinished(dir) {
        client.create(&format!("/znode-{at}"), &data);
        at += 1;
    }
    server.stop().unwrap();
    has_unfinished(dir)
}

/// A stop does not delete the unfinished file: that takes seconds for each hundred megabytes.
#[test]
fn an_unfinished_snapshot_is_cleaned_up_at_the_next_start() {
    let _beside = gate::beside_others();
    // A snapshot is written at a limited pace, so it takes at least a tenth of a second. On a busy machine it may be
    // complete before the stop, or before it is seen.
    let stopped = (0..5).find_map(|_| {
        let dir = tempfile::tempdir().unwrap();
        let mut small = config(dir.path());
        small.snapshots.snap_count = 30;
        stops_amid_a_snapshot(&small, dir.path()).then_some((dir, small))
    });
    let (dir, small) = stopped.expect("no stop leaves an unfinished snapshot");
    TestServer::start_in(&small).unwrap().stop().unwrap();
    let there = names(dir.path());
    assert!(there.iter().any(|name| name == "spare-snapshot"), "{there:?}");
    assert!(!has_unfinished(dir.path()), "{there:?}");
}
