//! Clients that write slowly, read slowly, or send nothing.

use crate::{
    client::{
        Client, create, create_as, ends_within, handshake, multi_read, op, path_watch, read_frame, reply,
        request, set_data, socket,
    },
    neighbour::Neighbour,
    server::TestServer,
};
use ostler_proto::id::SessionId;
use socket2::SockRef;
use std::{
    io::{Read, Write},
    thread,
    time::{Duration, Instant},
};

#[test]
fn requests_sent_byte_by_byte_are_answered() {
    let server = TestServer::start();
    let neighbour = Neighbour::of(server.address);
    let mut stream = socket(server.address);
    let mut bytes = handshake(30_000, SessionId::NONE, &[0; 16]);
    bytes.extend(request(1, op::CREATE, &create("/slowly", b"data")));
    bytes.extend(request(2, op::GET_DATA, &path_watch("/slowly", false)));
    for byte in bytes {
        stream.write_all(&[byte]).unwrap();
        thread::sleep(Duration::from_millis(1));
    }
    read_frame(&mut stream).unwrap();
    for xid in [1, 2] {
        let answer = reply(&read_frame(&mut stream).unwrap());
        assert_eq!((answer.xid, answer.error), (xid, 0));
    }
    neighbour.content();
}

#[test]
fn a_connection_without_a_handshake_is_closed_after_the_configured_time() {
    let server = TestServer::start_with(|config| config.clients.sessionless_cnxn_timeout_ms = 700);
    let neighbour = Neighbour::of(server.address);
    let mut session = Client::open(server.address);
    let begun = Instant::now();
    let mut silent = socket(server.address);
    // Bytes of an incomplete handshake do not extend the time.
    let mut dribbling = socket(server.address);
    let first = handshake(30_000, SessionId::NONE, &[0; 16]);
    for byte in &first[..20] {
        // On a busy machine the limit may be over before the last byte.
        if dribbling.write_all(&[*byte]).is_err() {
            break;
        }
        thread::sleep(Duration::from_millis(10));
    }
    assert!(ends_within(&mut silent, Duration::from_secs(10)));
    assert!(begun.elapsed() >= Duration::from_millis(600), "closed after {:?} already", begun.elapsed());
    assert!(ends_within(&mut dribbling, Duration::from_secs(10)));
    // The limit does not apply to a connection with a session.
    assert!(session.exists("/"));
    neighbour.content();
}

#[test]
fn a_silent_session_expires_and_its_connection_ends() {
    let server = TestServer::start_with(|config| {
        (config.tick_time_ms, config.sessions.min_session_timeout_ms) = (100, 300);
    });
    let neighbour = Neighbour::of(server.address);
    let mut client = Client::open_for(server.address, 300);
    assert!(ends_within(&mut client.stream, Duration::from_secs(10)));
    let mut again = socket(server.address);
    again.write_all(&handshake(300, client.granted.session, &client.granted.password)).unwrap();
    let answer = ostler_proto::connect::ConnectResponse::read(&read_frame(&mut again).unwrap()).unwrap();
    assert_eq!(answer.timeout_ms, 0, "the session is gone");
    neighbour.content();
}

/// The socket is full of answers, so nothing more can be sent before the connection is closed.
#[test]
fn the_connection_of_an_expired_session_is_closed_although_its_client_does_not_read() {
    let server = TestServer::start_with(|config| {
        (config.tick_time_ms, config.sessions.min_session_timeout_ms) = (100, 300);
    });
    let neighbour = Neighbour::of(server.address);
    let mut owner = Client::open(server.address);
    owner.create("/large", &vec![1; 1 << 19]);
    let mut deaf = Client::open_for(server.address, 300);
    for _ in 0..100 {
        deaf.send(op::GET_DATA, &path_watch("/large", false));
    }
    assert!(server.connections_fall_to(2), "the connection of the expired session stays");
    neighbour.content();
}

const EPHEMERAL: i32 = 1;

/// Reads a little at a time for the time `lasts`, and calls `meanwhile` before each read.
fn read_slowly(client: &mut Client, lasts: Duration, mut meanwhile: impl FnMut(&mut Client)) {
    SockRef::from(&client.stream).set_recv_buffer_size(128 << 10).unwrap();
    let begun = Instant::now();
    let mut bytes = vec![0; 64 << 10];
    while begun.elapsed() < lasts {
        meanwhile(client);
        let n = client.stream.read(&mut bytes).expect("the connection stays open");
        assert!(n > 0, "closed after {:?}", begun.elapsed());
        thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_slow_reader_that_pings_keeps_its_session() {
    let server = TestServer::start_with(|config| {
        (config.tick_time_ms, config.sessions.min_session_timeout_ms) = (100, 300);
    });
    let neighbour = Neighbour::of(server.address);
    let mut owner = Client::open(server.address);
    owner.create("/large", &vec![1; 1 << 19]);
    let mut slow = Client::open_for(server.address, 6000);
    assert_eq!(slow.ask(op::CREATE, &create_as("/ephemeral", b"", EPHEMERAL)).error, 0);
    slow.send(op::MULTI_READ, &multi_read("/large", 60));
    let mut pinged = Instant::now();
    read_slowly(&mut slow, Duration::from_secs(8), |slow| {
        if pinged.elapsed() > Duration::from_millis(300) {
            pinged = Instant::now();
            slow.send(op::PING, &[]);
        }
    });
    assert!(owner.exists("/ephemeral"), "the session of the slow reader lives");
    neighbour.content();
}

/// The client has sent many requests ahead, so the server does not read its pings. Reading answers keeps the session alive,
/// too.
#[test]
fn a_slow_reader_with_many_requests_ahead_keeps_its_session() {
    let server = TestServer::start_with(|config| {
        (config.tick_time_ms, config.sessions.min_session_timeout_ms) = (100, 300);
    });
    let neighbour = Neighbour::of(server.address);
    let mut owner = Client::open(server.address);
    owner.create("/large", &vec![1; 1 << 19]);
    let mut slow = Client::open_for(server.address, 3000);
    assert_eq!(slow.ask(op::CREATE, &create_as("/ephemeral", b"", EPHEMERAL)).error, 0);
    slow.send(op::MULTI_READ, &multi_read("/large", 60));
    slow.send(op::SET_DATA, &set_data("/large", &vec![2; 1 << 19]));
    read_slowly(&mut slow, Duration::from_secs(6), |_| {});
    assert!(owner.exists("/ephemeral"), "the session of the slow reader lives");
    neighbour.content();
}

/// The server sees the end of the client's stream while answers still wait.
#[test]
fn requests_before_the_end_of_the_stream_are_done_although_the_client_reads_slowly() {
    let server = TestServer::start();
    let neighbour = Neighbour::of(server.address);
    let mut owner = Client::open(server.address);
    owner.create("/large", &vec![1; 1 << 19]);
    let mut slow = Client::open(server.address);
    SockRef::from(&slow.stream).set_recv_buffer_size(128 << 10).unwrap();
    slow.send(op::MULTI_READ, &multi_read("/large", 60));
    for _ in 0..20 {
        slow.send(op::GET_DATA, &path_watch("/large", false));
    }
    slow.send(op::CREATE, &create("/last", b""));
    slow.stream.shutdown(std::net::Shutdown::Write).unwrap();
    thread::sleep(Duration::from_millis(300));
    while read_frame(&mut slow.stream).is_some() {}
    // Writes are done in order: once this one is done, so is the earlier one.
    owner.create("/later", b"");
    assert!(owner.exists("/last"));
    neighbour.content();
}
