//! Limits of the memory that clients can make the server use.

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

/// Writes until the server has read all bytes, or reads none for 2 seconds.
fn write_as_much_as_is_read(stream: &mut TcpStream, bytes: &[u8]) {
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
fn a_thousand_unread_large_answers_take_little_memory() {
    let _alone = gate::alone();
    let server = TestServer::start_unguarded(|_| {});
    let neighbour = Neighbour::of(server.address);
    let mut client = Client::open(server.address);
    client.create("/large", &vec![7; MB - 1000]);
    let memory = MemoryMeter::start();
    let reads: Vec<u8> =
        (0..1000).flat_map(|_| request(1, op::GET_DATA, &path_watch("/large", false))).collect();
    write_as_much_as_is_read(&mut client.stream, &reads);
    settle();
    assert!(memory.peak_growth_mb() < 64, "{} MB", memory.peak_growth_mb());
    neighbour.content();
}

/// An answer shares data with the tree, but a list of names is a copy.
#[test]
fn a_thousand_unread_child_lists_behind_a_write_take_bounded_memory() {
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
    write_as_much_as_is_read(&mut client.stream, &requests);
    settle();
    assert!(memory.peak_growth_mb() < 256, "{} MB for one client", memory.peak_growth_mb());
    neighbour.content();
}

/// One small frame can ask for the same large znode many times.
#[test]
fn one_multi_read_of_a_large_znode_five_hundred_times_takes_little_memory() {
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

/// Requests that wait behind a write are answered all at once, and these answers are copies.
#[test]
fn unread_long_answers_behind_a_write_take_bounded_memory() {
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
    write_as_much_as_is_read(&mut multi.stream, &many(op::MULTI_READ, &parts));
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
    write_as_much_as_is_read(&mut with_ephemerals.stream, &many(op::GET_EPHEMERALS, &prefix));
    settle();
    assert!(memory.peak_growth_mb() < 300, "{} MB for one client's ephemerals", memory.peak_growth_mb());
    neighbour.content();
}

/// All answers share the same data with the tree.
#[test]
fn forty_unread_long_multi_reads_take_little_memory() {
    let _alone = gate::alone();
    let server = TestServer::start_unguarded(|_| {});
    let neighbour = Neighbour::of(server.address);
    let mut owner = Client::open(server.address);
    owner.create("/large", &vec![7; MB - 1000]);
    let memory = MemoryMeter::start();
    let deaf = open_unread_multi_reads(&server, &multi_read("/large", 60));
    assert!(memory.peak_growth_mb() < 64, "{} MB", memory.peak_growth_mb());
    drop(deaf);
    neighbour.content();
}

fn open_unread_multi_reads(server: &TestServer, body: &[u8]) -> Vec<Client> {
    let deaf = (0..40).map(|_| {
        let mut client = Client::open(server.address);
        client.send(op::MULTI_READ, body);
        client
    });
    let deaf = deaf.collect();
    settle();
    deaf
}

/// Short data is copied. Answers that would exceed the common limit wait for their turn.
#[test]
fn forty_unread_multi_reads_of_copies_stay_within_the_limit_of_all_answers() {
    const BOUND: usize = 100 * MB;
    let _alone = gate::alone();
    let server =
        TestServer::start_unguarded(|config| config.limits.large_answers_max_bytes = Some(BOUND as u64));
    let neighbour = Neighbour::of(server.address);
    let mut owner = Client::open(server.address);
    owner.create("/short", &vec![7; 15_000]);
    owner.create("/large", &vec![7; MB - 1000]);
    let memory = MemoryMeter::start();
    let deaf = open_unread_multi_reads(&server, &multi_read("/short", 2000));
    // The limit, one answer that exceeds it, and the parts of which that is made.
    assert!(memory.peak_growth_mb() < 100 + 2 * 30 + 64, "{} MB", memory.peak_growth_mb());
    // The turn of this read comes once the others are disconnected because they read nothing while it waits.
    let large = owner.ask(op::GET_DATA, &path_watch("/large", false));
    assert_eq!(large.error, 0);
    drop(deaf);
    neighbour.content();
}

#[test]
fn a_multi_read_whose_answer_exceeds_a_frame_does_not_stop_the_server() {
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
fn unread_notifications_take_bounded_memory() {
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
    // 64 MB may wait for each client before it is disconnected, and as much may be in the write under way.
    assert!(memory.peak_growth_mb() < 130 * DEAF as u64 + 100, "{} MB", memory.peak_growth_mb());
    drop(owner);
    assert!(server.connections_fall_to(1), "the connections of the deaf clients stay");
    neighbour.content();
}

#[test]
fn counts_and_lengths_without_bytes_take_little_memory() {
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
    // Memory for a frame is taken as its bytes arrive, not for its announced length.
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

/// Requests that wait for the handshake's answer, and then for the disk, are limited in number and bytes.
#[test]
fn endless_large_writes_take_bounded_memory() {
    let _alone = gate::alone();
    let server = TestServer::start_unguarded(|_| {});
    let neighbour = Neighbour::of(server.address);
    let mut client = Client::open(server.address);
    client.create("/large", b"");
    let memory = MemoryMeter::start();
    let write = request(1, op::SET_DATA, &set_data("/large", &vec![1; MB - 1000]));
    for _ in 0..100 {
        write_as_much_as_is_read(&mut client.stream, &write);
    }
    settle();
    assert!(memory.peak_growth_mb() < 128, "{} MB", memory.peak_growth_mb());
    neighbour.content();
}
