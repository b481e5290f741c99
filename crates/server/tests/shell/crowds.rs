//! Many connections: their limits, and thousands that open and close at once.

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

fn open_session(mut stream: TcpStream) -> Option<TcpStream> {
    write_if_open(&mut stream, &handshake(30_000, SessionId::NONE, &[0; 16]));
    crate::client::read_frame(&mut stream).map(|_| stream)
}

/// Connects until the server accepts: a connection counts for a moment after its end.
#[track_caller]
fn connect_until_served(connect: impl Fn() -> TcpStream) -> TcpStream {
    let begun = Instant::now();
    loop {
        if let Some(stream) = open_session(connect()) {
            return stream;
        }
        assert!(begun.elapsed() < Duration::from_secs(10), "a closed connection still counts");
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn connections_from_one_address_are_limited() {
    let server = TestServer::start_with(|config| config.clients.max_client_cnxns = Some(4));
    let neighbour = Neighbour::of(server.address);
    let here = || socket(server.address);
    let mut held: Vec<TcpStream> = (0..3).map(|_| open_session(here()).expect("within the limit")).collect();
    for _ in 0..5 {
        assert!(open_session(here()).is_none(), "above the limit");
    }
    let other = socket_from([127, 0, 0, 77], server.address);
    assert!(open_session(other).is_some(), "another address has its own limit");
    held.pop();
    held.push(connect_until_served(here));
    assert!(open_session(here()).is_none(), "full again");
    neighbour.content();
}

#[test]
fn connections_from_all_addresses_together_are_limited() {
    let server = TestServer::start_with(|config| config.clients.max_cnxns = Some(4));
    let neighbour = Neighbour::of(server.address);
    let from = |last: u8| socket_from([127, 0, 0, last], server.address);
    let mut held: Vec<TcpStream> =
        (11..14).map(|last| open_session(from(last)).expect("within the limit")).collect();
    assert!(open_session(from(14)).is_none(), "above the limit");
    held.pop();
    held.push(connect_until_served(|| from(15)));
    assert!(open_session(from(16)).is_none(), "full again");
    neighbour.content();
}

#[test]
fn thousands_of_connections_at_once_leave_no_descriptor_open() {
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
fn clients_that_vanish_amid_requests_leave_no_connection_and_no_znode() {
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
fn the_old_connection_of_a_session_that_moves_is_closed() {
    let server = TestServer::start();
    let neighbour = Neighbour::of(server.address);
    let mut first = Client::open(server.address);
    let (session, password) = (first.granted.session, first.granted.password);
    for _ in 0..50 {
        let mut stream = socket(server.address);
        stream.write_all(&handshake(30_000, session, &password)).unwrap();
        crate::client::read_frame(&mut stream).expect("the session comes back");
        assert!(
            ends_within(&mut first.stream, Duration::from_secs(10)),
            "the old connection of the session ends"
        );
        first.stream = stream;
    }
    assert!(server.connections_fall_to(2));
    neighbour.content();
}
