//! How much memory a client can make the server take.

use crate::{
    client::{
        Client, add_watch, create, create_as, multi_read, op, path_watch, request, set_data, socket,
        write_if_open,
    },
    gate::{self, MemoryMeter},
    neighbour::Neighbour,
    server::TestServer,
};
use ostler_proto::jute::Writer as _;
use std::{
    io::{ErrorKind, Write},
    net::TcpStream,
    time::Duration,
};

const MB: usize = 1 << 20;
const EPHEMERAL: i32 = 1;

/// Writes as much as the server takes, and gives up after a while without progress.
fn write_what_is_taken(stream: &mut TcpStream, bytes: &[u8]) {
    stream.set_write_timeout(Some(Duration::from_secs(2))).unwrap();
    let mut rest = bytes;
    while !rest.is_empty() {
        match stream.write(rest) {
            Ok(n) => rest = &rest[n..],
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => return,
            Err(_) => return,
        }
    }
}

fn settle() {
    std::thread::sleep(Duration::from_millis(1500));
}

#[test]
fn a_thousand_large_reads_that_nobody_reads() {
    let _alone = gate::alone();
    let server = TestServer::start_unguarded(|_| {});
    let neighbour = Neighbour::of(server.address);
    let mut client = Client::open(server.address);
    client.create("/large", &vec![7; MB - 1000]);
    let memory = MemoryMeter::start();
    let reads: Vec<u8> =
        (0..1000).flat_map(|_| request(1, op::GET_DATA, &path_watch("/large", false))).collect();
    write_what_is_taken(&mut client.stream, &reads);
    settle();
    assert!(memory.peak_growth_mb() < 64, "{} MB", memory.peak_growth_mb());
    neighbour.content();
}

/// A list of names is not shared with the tree, as data is: each answer is a copy.
#[test]
fn a_thousand_long_lists_behind_a_write_that_nobody_reads() {
    let _alone = gate::alone();
    let server = TestServer::start_unguarded(|_| {});
    let neighbour = Neighbour::of(server.address);
    let mut client = Client::open(server.address);
    client.create("/long", b"");
    for batch in 0..40 {
        for at in 0..100 {
            let name = format!("/long/{}-{}", "x".repeat(200), batch * 100 + at);
            client.send(op::CREATE, &create(&name, b""));
        }
        for _ in 0..100 {
            assert_eq!(client.reply().unwrap().error, 0);
        }
    }
    let memory = MemoryMeter::start();
    let mut requests = request(1, op::SET_DATA, &set_data("/long", b"x"));
    for xid in 2..1000 {
        requests.extend(request(xid, op::GET_CHILDREN, &path_watch("/long", false)));
    }
    write_what_is_taken(&mut client.stream, &requests);
    settle();
    assert!(memory.peak_growth_mb() < 256, "{} MB for one client", memory.peak_growth_mb());
    neighbour.content();
}

/// One small frame can ask for the same large znode many times.
#[test]
fn one_frame_that_asks_for_a_large_znode_five_hundred_times() {
    let _alone = gate::alone();
    let server = TestServer::start_unguarded(|_| {});
    let neighbour = Neighbour::of(server.address);
    let mut client = Client::open(server.address);
    client.create("/large", &vec![7; MB - 1000]);
    let body = multi_read("/large", 500);
    let memory = MemoryMeter::start();
    client.send(op::MULTI_READ, &body);
    settle();
    assert!(
        memory.peak_growth_mb() < 64,
        "{} MB for a frame of {} bytes",
        memory.peak_growth_mb(),
        body.len()
    );
    neighbour.content();
}

/// Answers that are copies, however short the requests are: what waits behind a write is answered all at once.
#[test]
fn long_answers_behind_a_write_that_nobody_reads() {
    let _alone = gate::alone();
    let server = TestServer::start_unguarded(|_| {});
    let neighbour = Neighbour::of(server.address);
    let mut owner = Client::open(server.address);
    owner.create("/large", &vec![7; MB - 1000]);
    let parts = multi_read("/large", 60);
    let many = |code: i32, body: &[u8]| -> Vec<u8> {
        let write = request(1, op::SET_DATA, &set_data("/large", b"x"));
        // The znode is large again when the others are answered.
        let write = [write, request(2, op::SET_DATA, &set_data("/large", &vec![7; MB - 1000]))].concat();
        let reads = (3..300).flat_map(|xid| request(xid, code, body));
        write.into_iter().chain(reads).collect()
    };
    let memory = MemoryMeter::start();
    let mut multi = Client::open(server.address);
    write_what_is_taken(&mut multi.stream, &many(op::MULTI_READ, &parts));
    settle();
    assert!(memory.peak_growth_mb() < 300, "{} MB for one client's multiReads", memory.peak_growth_mb());
    let mut with_ephemerals = Client::open(server.address);
    for at in 0..20 {
        let name = format!("/{}-{at}", "e".repeat(500_000));
        with_ephemerals.send(op::CREATE, &create_as(&name, b"", EPHEMERAL));
        assert_eq!(with_ephemerals.reply().unwrap().error, 0);
    }
    let memory = MemoryMeter::start();
    let mut prefix = Vec::new();
    prefix.string("/");
    write_what_is_taken(&mut with_ephemerals.stream, &many(op::GET_EPHEMERALS, &prefix));
    settle();
    assert!(memory.peak_growth_mb() < 300, "{} MB for one client's ephemerals", memory.peak_growth_mb());
    neighbour.content();
}

/// All of them want the same bytes, which the tree has.
#[test]
fn forty_long_multi_reads_that_nobody_reads() {
    let _alone = gate::alone();
    let server = TestServer::start_unguarded(|_| {});
    let neighbour = Neighbour::of(server.address);
    let mut owner = Client::open(server.address);
    owner.create("/large", &vec![7; MB - 1000]);
    let memory = MemoryMeter::start();
    let deaf = deaf_readers(&server, &multi_read("/large", 60));
    assert!(memory.peak_growth_mb() < 64, "{} MB", memory.peak_growth_mb());
    drop(deaf);
    neighbour.content();
}

fn deaf_readers(server: &TestServer, body: &[u8]) -> Vec<Client> {
    let deaf = (0..40).map(|_| {
        let mut client = Client::open(server.address);
        client.send(op::MULTI_READ, body);
        client
    });
    let deaf = deaf.collect();
    settle();
    deaf
}

/// Data that is short is copied: together the answers may take so much, and others wait for their turn.
#[test]
fn forty_multi_reads_of_copies_that_nobody_reads() {
    const BOUND: usize = 100 * MB;
    let _alone = gate::alone();
    let server =
        TestServer::start_unguarded(|config| config.limits.large_answers_max_bytes = Some(BOUND as u64));
    let neighbour = Neighbour::of(server.address);
    let mut owner = Client::open(server.address);
    owner.create("/short", &vec![7; 15_000]);
    owner.create("/large", &vec![7; MB - 1000]);
    let memory = MemoryMeter::start();
    let deaf = deaf_readers(&server, &multi_read("/short", 2000));
    // One more than fits, and what it is made of.
    assert!(memory.peak_growth_mb() < 100 + 2 * 30 + 64, "{} MB", memory.peak_growth_mb());
    // Its turn comes when they are gone, or have taken nothing for long while somebody waits.
    let large = owner.ask(op::GET_DATA, &path_watch("/large", false));
    assert_eq!(large.error, 0);
    drop(deaf);
    neighbour.content();
}

/// And often enough that the answer would be longer than a frame can be.
#[test]
fn an_answer_longer_than_a_frame_can_be_does_not_stop_the_server() {
    let _alone = gate::alone();
    let server = TestServer::start_unguarded(|_| {});
    let mut client = Client::open(server.address);
    client.create("/large", &vec![7; MB - 1000]);
    let body = multi_read("/large", 2100);
    client.send(op::MULTI_READ, &body);
    client.stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let _ = client.reply();
    let mut other = Client::open(server.address);
    assert!(other.exists("/large"));
    drop(server);
}

#[test]
fn notifications_that_nobody_reads() {
    const DEAF: usize = 2;
    let _alone = gate::alone();
    let server = TestServer::start_unguarded(|_| {});
    let neighbour = Neighbour::of(server.address);
    let mut owner = Client::open(server.address);
    let path = format!("/{}", "n".repeat(500_000));
    owner.create(&path, b"");
    let mut deaf: Vec<Client> = (0..DEAF).map(|_| Client::open_for(server.address, 40_000)).collect();
    for client in &mut deaf {
        assert_eq!(client.ask(op::ADD_WATCH, &add_watch(&path, 0)).error, 0);
    }
    let memory = MemoryMeter::start();
    let change = set_data(&path, b"");
    for _ in 0..8 {
        for _ in 0..20 {
            owner.send(op::SET_DATA, &change);
        }
        for _ in 0..20 {
            assert_eq!(owner.reply().unwrap().error, 0);
        }
    }
    // 64 MB may wait for each before it is given up, and as much may be on its way out.
    assert!(memory.peak_growth_mb() < 130 * DEAF as u64 + 100, "{} MB", memory.peak_growth_mb());
    drop(owner);
    assert!(server.connections_fall_to(1), "the connections of the deaf clients stay");
    neighbour.content();
}

#[test]
fn counts_and_lengths_that_no_bytes_stand_behind() {
    let _alone = gate::alone();
    let server = TestServer::start_unguarded(|_| {});
    let neighbour = Neighbour::of(server.address);
    let memory = MemoryMeter::start();
    let mut client = Client::open(server.address);
    let counts = [0x7fff_ffff_u32, 0x0fff_ffff, 0x00ff_ffff].map(u32::to_be_bytes);
    for count in counts {
        let create = [&b"\0\0\0\x02/a\0\0\0\0"[..], &count].concat();
        let set_watches = [&[0; 8][..], &count].concat();
        for (code, body) in [(op::CREATE, &create[..]), (101, &set_watches), (105, &set_watches), (5, &count)]
        {
            assert_ne!(client.ask(code, body).error, 0);
        }
    }
    // A frame's length is believed only as far as its bytes come.
    let promise = [&(MB as u32 - 1).to_be_bytes()[..], &[1; 100]].concat();
    let waiting: Vec<TcpStream> = (0..200)
        .map(|_| {
            let mut stream = socket(server.address);
            write_if_open(&mut stream, &promise);
            stream
        })
        .collect();
    settle();
    assert!(memory.peak_growth_mb() < 32, "{} MB", memory.peak_growth_mb());
    drop(waiting);
    neighbour.content();
}

/// Requests that wait for the handshake's answer, and then for the disk, are bounded in number and bytes.
#[test]
fn large_writes_without_end() {
    let _alone = gate::alone();
    let server = TestServer::start_unguarded(|_| {});
    let neighbour = Neighbour::of(server.address);
    let mut client = Client::open(server.address);
    client.create("/large", b"");
    let memory = MemoryMeter::start();
    let write = request(1, op::SET_DATA, &set_data("/large", &vec![1; MB - 1000]));
    for _ in 0..100 {
        write_what_is_taken(&mut client.stream, &write);
    }
    settle();
    assert!(memory.peak_growth_mb() < 128, "{} MB", memory.peak_growth_mb());
    neighbour.content();
}
