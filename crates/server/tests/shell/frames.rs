//! Malformed frames, malformed requests, and frames that arrive in pieces.

use crate::{
    client::{
        Client, create, ends_within, handshake, op, path_watch, read_frame, read_to_end, reply, request,
        socket, write_if_open,
    },
    neighbour::Neighbour,
    server::TestServer,
};
use ostler_proto::id::SessionId;
use std::{io::Write, net::SocketAddr, thread, time::Duration};

/// The largest frame by default (`jute.maxbuffer`).
const FRAME_MAX: usize = 1_048_575;

fn garbage(seed: u64, size: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    (0..size).map(|_| next()).collect()
}

fn new_session() -> Vec<u8> {
    handshake(30_000, SessionId::NONE, &[0; 16])
}

#[track_caller]
fn check_closed_after_handshake(server: SocketAddr, bytes: &[u8]) {
    let mut client = Client::open(server);
    write_if_open(&mut client.stream, bytes);
    assert_eq!(read_to_end(&mut client.stream), b"", "nothing is answered to {bytes:x?}");
}

#[test]
fn impossible_lengths_close_the_connection() {
    let server = TestServer::start();
    let neighbour = Neighbour::of(server.address);
    for length in [-1, i32::MIN, i32::MAX, FRAME_MAX as i32 + 1] {
        check_closed_after_handshake(server.address, &length.to_be_bytes());
        let mut fresh = socket(server.address);
        fresh.write_all(&length.to_be_bytes()).unwrap();
        assert_eq!(read_to_end(&mut fresh), b"", "first length {length}");
    }
    neighbour.content();
}

#[test]
fn the_largest_frame_is_served() {
    let server = TestServer::start();
    let neighbour = Neighbour::of(server.address);
    let mut client = Client::open(server.address);
    let rest = 8 + create("/large", b"").len();
    client.create("/large", &garbage(1, FRAME_MAX - rest));
    let read = client.ask(op::GET_DATA, &path_watch("/large", false));
    assert_eq!(read.body.len(), 4 + FRAME_MAX - rest + 68);
    neighbour.content();
}

#[test]
fn incomplete_headers_close_the_connection() {
    let server = TestServer::start();
    let neighbour = Neighbour::of(server.address);
    for size in 0..8 {
        let frame = [&(size as u32).to_be_bytes()[..], &garbage(2, size)].concat();
        check_closed_after_handshake(server.address, &frame);
    }
    neighbour.content();
}

#[test]
fn a_write_before_a_bad_frame_is_done() {
    let server = TestServer::start();
    let mut observer = Client::open(server.address);
    let bad_length = (-5_i32).to_be_bytes();
    let short_header = [0, 0, 0, 4, 0, 0, 0, 1];
    for (path, bad) in [("/before-length", &bad_length[..]), ("/before-header", &short_header)] {
        let mut client = Client::open(server.address);
        let good = request(1, op::CREATE, &create(path, b""));
        client.stream.write_all(&[&good, bad].concat()).unwrap();
        assert!(ends_within(&mut client.stream, Duration::from_secs(10)), "{path}: it is closed");
        // Writes are done in order: once this one is done, so is the earlier one.
        observer.create(&format!("{path}-later"), b"");
        assert!(observer.exists(path), "{path}: the request before the bad frame was whole");
    }
}

/// The answers are more than one batch, and the connection closes only after the last of them.
#[test]
fn all_requests_before_a_bad_frame_are_answered() {
    const READS: i32 = 60;
    let server = TestServer::start();
    let mut owner = Client::open(server.address);
    owner.create("/some", &garbage(3, 40_000));
    let bad_length = (-5_i32).to_be_bytes();
    let short_header = [0, 0, 0, 4, 0, 0, 0, 1];
    for (path, bad) in [("/before-length", &bad_length[..]), ("/before-header", &short_header)] {
        let mut client = Client::open(server.address);
        let reads = (0..READS).flat_map(|xid| request(xid, op::GET_DATA, &path_watch("/some", false)));
        let mut all: Vec<u8> = reads.collect();
        all.extend(request(READS, op::CREATE, &create(path, b"")));
        all.extend(bad);
        client.stream.write_all(&all).unwrap();
        let answered: Vec<i32> =
            std::iter::from_fn(|| read_frame(&mut client.stream)).map(|frame| reply(&frame).xid).collect();
        assert_eq!(answered, (0..=READS).collect::<Vec<_>>(), "{path}");
        assert!(owner.exists(path));
    }
}

#[test]
fn unknown_operations_are_answered_then_the_connection_closed() {
    let server = TestServer::start();
    let neighbour = Neighbour::of(server.address);
    for code in [0, 10, 13, 20, 23, 99, 1000, -1, -2, -10, i32::MAX, i32::MIN] {
        let mut client = Client::open(server.address);
        client.send(code, b"\0\0\0\x01/");
        let answer = client.reply().expect("an answer before the end");
        assert_eq!((answer.xid, answer.zxid, answer.error), (1, -1, -6), "operation {code}");
        assert_eq!(client.reply(), None, "operation {code}");
    }
    neighbour.content();
}

#[test]
fn bodies_that_do_not_decode_are_answered_and_the_session_goes_on() {
    let server = TestServer::start();
    let neighbour = Neighbour::of(server.address);
    let mut client = Client::open(server.address);
    let huge_list = b"\0\0\0\x02/a\0\0\0\0\x7f\xff\xff\xff";
    let cut_off = [&[][..], b"\x7f\xff\xff\xff", b"\xff\xff\xff\xfe"];
    for code in [1, 2, 3, 4, 5, 6, 7, 8, 12, 14, 15, 17, 18, 19, 21, 22, 101, 103, 104, 105, 106] {
        for body in cut_off {
            assert_ne!(client.ask(code, body).error, 0, "operation {code} with {body:x?}");
        }
    }
    for code in [1, 7, 15, 19, 21] {
        assert_ne!(client.ask(code, huge_list).error, 0, "operation {code}");
    }
    assert!(client.exists("/"));
    neighbour.content();
}

#[test]
fn garbage_does_not_disturb_other_sessions() {
    let server = TestServer::start_with(|config| config.clients.sessionless_cnxn_timeout_ms = 1000);
    let neighbour = Neighbour::of(server.address);
    let mut open = Vec::new();
    for seed in 0..300 {
        let bytes = garbage(seed, 1 + seed as usize * 7 % 4000);
        let mut fresh = socket(server.address);
        write_if_open(&mut fresh, &bytes);
        let mut client = Client::open(server.address);
        write_if_open(&mut client.stream, &bytes);
        open.extend([fresh, client.stream]);
    }
    drop(open);
    // A frame of possible length around the garbage.
    for seed in 0..300 {
        let bytes = garbage(seed, 8 + seed as usize % 200);
        let frame = [&(bytes.len() as u32).to_be_bytes()[..], &bytes].concat();
        write_if_open(&mut socket(server.address), &frame);
        write_if_open(&mut Client::open(server.address).stream, &frame);
    }
    neighbour.content();
}

#[test]
fn half_frames_wait_for_the_rest_and_end_with_their_connection() {
    let server = TestServer::start();
    let neighbour = Neighbour::of(server.address);
    let whole = request(1, op::CREATE, &create("/half", b"data"));
    let mut waiting = Client::open(server.address);
    waiting.stream.write_all(&whole[..whole.len() - 1]).unwrap();
    for cut in 1..whole.len() {
        let mut client = Client::open(server.address);
        client.stream.write_all(&whole[..cut]).unwrap();
    }
    let mut observer = Client::open(server.address);
    assert!(!observer.exists("/half"), "half a request does nothing");
    waiting.stream.write_all(&whole[whole.len() - 1..]).unwrap();
    assert_eq!(waiting.reply().unwrap().error, 0);
    neighbour.content();
}

/// Handshake and requests in one stream, cut in two at every place: the answers are the same.
#[test]
fn frames_cut_anywhere_are_answered_the_same() {
    let server = TestServer::start();
    let neighbour = Neighbour::of(server.address);
    let mut stream = new_session();
    stream.extend(request(1, op::EXISTS, &path_watch("/nothing", false)));
    stream.extend(request(2, op::GET_DATA, &path_watch("/zookeeper", false)));
    stream.extend(request(-2, op::PING, &[]));
    stream.extend(request(3, op::CLOSE, &[]));
    for cut in 0..=stream.len() {
        let mut client = socket(server.address);
        client.write_all(&stream[..cut]).unwrap();
        if cut % 4 == 0 {
            // With the pause the server reads the first piece alone.
            thread::sleep(Duration::from_millis(2));
        }
        client.write_all(&stream[cut..]).unwrap();
        read_frame(&mut client).expect("the handshake's answer");
        let answers: Vec<(i32, i32)> = std::iter::from_fn(|| read_frame(&mut client))
            .map(|payload| reply(&payload))
            .map(|reply| (reply.xid, reply.error))
            .collect();
        assert_eq!(answers, [(1, -101), (2, 0), (-2, 0), (3, 0)], "cut at {cut}");
    }
    neighbour.content();
}
