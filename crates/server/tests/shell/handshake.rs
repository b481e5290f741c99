//! The first frame of a connection: malformed handshakes, and requests that are sent without or with a handshake.

use crate::{
    client::{Client, create, handshake, op, path_watch, read_frame, read_to_end, reply, request, socket},
    neighbour::Neighbour,
    server::TestServer,
};
use ostler_proto::{
    connect::{ConnectRequest, ConnectResponse},
    id::SessionId,
};
use std::io::Write;

#[test]
fn requests_without_a_handshake_close_the_connection() {
    let server = TestServer::start();
    let neighbour = Neighbour::of(server.address);
    for frame in [
        request(1, op::CREATE, &create("/uninvited", b"x")),
        request(1, op::GET_DATA, &path_watch("/", false)),
        request(-2, op::PING, &[]),
        request(1, op::CLOSE, &[]),
    ] {
        let mut stream = socket(server.address);
        stream.write_all(&frame).unwrap();
        assert_eq!(read_to_end(&mut stream), b"");
    }
    assert!(!Client::open(server.address).exists("/uninvited"));
    neighbour.content();
}

#[test]
fn requests_sent_with_the_handshake_are_answered_after_it() {
    let server = TestServer::start();
    let mut stream = socket(server.address);
    let mut bytes = handshake(30_000, SessionId::NONE, &[0; 16]);
    for xid in 1..=200 {
        bytes.extend(request(xid, op::CREATE, &create(&format!("/early-{xid}"), b"")));
        bytes.extend(request(1000 + xid, op::EXISTS, &path_watch(&format!("/early-{xid}"), false)));
    }
    stream.write_all(&bytes).unwrap();
    let granted = ConnectResponse::read(&read_frame(&mut stream).unwrap()).unwrap();
    assert_eq!(granted.timeout_ms, 30_000);
    for xid in 1..=200 {
        for expected in [xid, 1000 + xid] {
            let answer = reply(&read_frame(&mut stream).unwrap());
            assert_eq!((answer.xid, answer.error), (expected, 0));
        }
    }
}

#[test]
fn requested_timeouts_are_limited_to_the_configured_range() {
    let server = TestServer::start();
    for (asked, granted) in [(i32::MIN, 4000), (-1, 4000), (0, 4000), (4001, 4001), (i32::MAX, 40_000)] {
        assert_eq!(Client::open_for(server.address, asked).granted.timeout_ms, granted, "asked for {asked}");
    }
}

#[test]
fn a_session_cannot_be_taken_with_a_wrong_id_or_password() {
    let server = TestServer::start();
    let neighbour = Neighbour::of(server.address);
    let owner = Client::open(server.address);
    let session = owner.granted.session;
    for (session, password) in [
        (session, &[0; 16][..]),
        (session, &owner.granted.password[..15]),
        (SessionId(session.0 + 1_000_000), &owner.granted.password),
        (SessionId(-1), &[0xff; 16]),
        (SessionId(i64::MIN), &[]),
    ] {
        let mut stream = socket(server.address);
        stream.write_all(&handshake(30_000, session, password)).unwrap();
        let answer = ConnectResponse::read(&read_frame(&mut stream).unwrap()).unwrap();
        assert_eq!((answer.timeout_ms, answer.session), (0, SessionId::NONE));
        assert_eq!(read_to_end(&mut stream), b"");
    }
    neighbour.content();
}

#[test]
fn a_client_that_has_seen_a_later_zxid_is_disconnected_without_an_answer() {
    let server = TestServer::start();
    let mut frame = Vec::new();
    ConnectRequest {
        protocol_version: 0,
        last_zxid_seen: i64::MAX,
        timeout_ms: 30_000,
        session: SessionId::NONE,
        password: None,
        read_only: None,
    }
    .write_frame(&mut frame);
    let mut stream = socket(server.address);
    stream.write_all(&frame).unwrap();
    assert_eq!(read_to_end(&mut stream), b"");
}

#[test]
fn a_second_handshake_is_answered_as_a_bad_request() {
    let server = TestServer::start();
    let neighbour = Neighbour::of(server.address);
    let mut client = Client::open(server.address);
    let mut again = handshake(30_000, SessionId::NONE, &[0; 16]);
    again[4 + 7] = 77;
    client.stream.write_all(&again).unwrap();
    let answer = client.reply().expect("an answer");
    assert_eq!(answer.error, -6);
    assert_eq!(client.reply(), None);
    neighbour.content();
}
