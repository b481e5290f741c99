//! Many connections: limits, and crowds that come and go.

use crate::{
    client::{Client, create, ends_within, handshake, op, request, socket, write_if_open},
    neighbour::Neighbour,
    server::TestServer,
};
use ostler_proto::id::SessionId;
use socket2::{Domain, Socket, Type};
use std::{
    fs,
    io::Write,
    net::{SocketAddr, TcpStream},
    thread,
    time::{Duration, Instant},
};

fn socket_from(address: [u8; 4], server: SocketAddr) -> TcpStream {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.bind(&SocketAddr::from((address, 0)).into()).unwrap();
    socket.connect(&server.into()).unwrap();
    let stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(crate::client::PATIENCE)).unwrap();
    stream
}

fn is_served(mut stream: TcpStream) -> Option<TcpStream> {
    write_if_open(&mut stream, &handshake(30_000, SessionId::NONE, &[0; 16]));
    crate::client::read_frame(&mut stream).map(|_| stream)
}

/// A place is given back a moment after its connection ended.
#[track_caller]
fn served_soon(connect: impl Fn() -> TcpStream) -> TcpStream {
    let begun = Instant::now();
    loop {
        if let Some(stream) = is_served(connect()) {
            return stream;
        }
        assert!(begun.elapsed() < Duration::from_secs(10), "the place of one who left is not given again");
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn one_address_has_so_many_connections() {
    let server = TestServer::start_with(|config| config.clients.max_client_cnxns = Some(4));
    let neighbour = Neighbour::of(server.address);
    let here = || socket(server.address);
    let mut held: Vec<TcpStream> = (0..3).map(|_| is_served(here()).expect("within the limit")).collect();
    for _ in 0..5 {
        assert!(is_served(here()).is_none(), "above the limit");
    }
    let other = socket_from([127, 0, 0, 77], server.address);
    assert!(is_served(other).is_some(), "another address has places of its own");
    held.pop();
    held.push(served_soon(here));
    assert!(is_served(here()).is_none(), "full again");
    neighbour.content();
}

#[test]
fn all_addresses_together_have_so_many_connections() {
    let server = TestServer::start_with(|config| config.clients.max_cnxns = Some(4));
    let neighbour = Neighbour::of(server.address);
    let from = |last: u8| socket_from([127, 0, 0, last], server.address);
    let mut held: Vec<TcpStream> =
        (11..14).map(|last| is_served(from(last)).expect("within the limit")).collect();
    assert!(is_served(from(14)).is_none(), "above the limit");
    held.pop();
    held.push(served_soon(|| from(15)));
    assert!(is_served(from(16)).is_none(), "full again");
    neighbour.content();
}

#[test]
fn thousands_come_and_go_at_once() {
    const ROUNDS: usize = 3;
    const AT_ONCE: usize = 2000;
    let server = TestServer::start();
    let neighbour = Neighbour::of(server.address);
    for round in 0..ROUNDS {
        let mut crowd: Vec<TcpStream> = (0..AT_ONCE).map(|_| socket(server.address)).collect();
        for (at, stream) in crowd.iter_mut().enumerate() {
            match (at + round) % 3 {
                0 => write_if_open(stream, &handshake(30_000, SessionId::NONE, &[0; 16])),
                1 => write_if_open(stream, &[0, 0, 0]),
                _ => {}
            }
        }
    }
    assert!(server.connections_fall_to(1));
    neighbour.content();
    assert!(server.connections_fall_to(0));
    let files = fs::read_dir("/proc/self/fd").unwrap().count();
    assert!(files < AT_ONCE, "{files} descriptors are open");
}

#[test]
fn clients_that_vanish_amid_requests_leave_nothing_behind() {
    let server = TestServer::start();
    let neighbour = Neighbour::of(server.address);
    for round in 0..300 {
        let mut client = Client::open(server.address);
        let whole = request(1, op::CREATE, &create(&format!("/vanished-{round}"), &[9; 3000]));
        let part = if round % 2 == 0 { whole.len() } else { whole.len() / 2 };
        client.stream.write_all(&whole[..part]).unwrap();
        if round % 3 == 0 {
            // Closing over unread answers resets the connection.
            client.send(op::PING, &[]);
        }
    }
    assert!(server.connections_fall_to(1));
    let mut observer = Client::open(server.address);
    assert!(!observer.exists("/vanished-1"), "half a request does nothing");
    drop(observer);
    neighbour.content();
}

#[test]
fn a_session_that_moves_takes_its_place_along() {
    let server = TestServer::start();
    let neighbour = Neighbour::of(server.address);
    let mut first = Client::open(server.address);
    let (session, password) = (first.granted.session, first.granted.password);
    for _ in 0..50 {
        let mut stream = socket(server.address);
        stream.write_all(&handshake(30_000, session, &password)).unwrap();
        crate::client::read_frame(&mut stream).expect("the session comes back");
        assert!(ends_within(&mut first.stream, Duration::from_secs(10)), "its old connection ends");
        first.stream = stream;
    }
    assert!(server.connections_fall_to(2));
    neighbour.content();
}
