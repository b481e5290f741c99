//! Clients that take their time, to write, to read or to say anything at all.

use crate::{
    client::{Client, create, ends_within, handshake, op, path_watch, read_frame, reply, request, socket},
    neighbour::Neighbour,
    server::TestServer,
};
use ostler_proto::id::SessionId;
use std::{
    io::Write,
    thread,
    time::{Duration, Instant},
};

#[test]
fn a_byte_at_a_time_is_fast_enough() {
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
fn without_a_handshake_a_connection_ends_after_its_time() {
    let server = TestServer::start_with(|config| config.sessionless_cnxn_timeout_ms = 700);
    let neighbour = Neighbour::of(server.address);
    let mut session = Client::open(server.address);
    let begun = Instant::now();
    let mut silent = socket(server.address);
    // A sign of life is no handshake.
    let mut dribbling = socket(server.address);
    let first = handshake(30_000, SessionId::NONE, &[0; 16]);
    for byte in &first[..20] {
        dribbling.write_all(&[*byte]).unwrap();
        thread::sleep(Duration::from_millis(10));
    }
    assert!(ends_within(&mut silent, Duration::from_secs(10)));
    assert!(begun.elapsed() >= Duration::from_millis(600), "closed after {:?} already", begun.elapsed());
    assert!(ends_within(&mut dribbling, Duration::from_secs(10)));
    // With a session the time does not count any more.
    assert!(session.exists("/"));
    neighbour.content();
}

#[test]
fn a_silent_session_expires_and_its_connection_ends() {
    let server = TestServer::start_with(|config| {
        (config.tick_time_ms, config.min_session_timeout_ms) = (100, 300);
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

/// Its socket is full of answers, so the server cannot tell it goodbye; it must let go of it all the same.
#[test]
fn a_session_that_expires_while_its_client_does_not_read_is_let_go() {
    let server = TestServer::start_with(|config| {
        (config.tick_time_ms, config.min_session_timeout_ms) = (100, 300);
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
