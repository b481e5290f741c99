//! A client on a blocking socket, which can also break the protocol.

use ostler_proto::{
    connect::{ConnectRequest, ConnectResponse},
    id::SessionId,
    jute::{Reader, Writer},
    reply::{ReplyHeader, begin_frame, end_frame},
};
use std::{
    io::{self, ErrorKind, Read, Write},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

/// How long a server may be silent before a test fails.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) mod op {
    pub(crate) const CREATE: i32 = 1;
    pub(crate) const EXISTS: i32 = 3;
    pub(crate) const GET_DATA: i32 = 4;
    pub(crate) const SET_DATA: i32 = 5;
    pub(crate) const GET_CHILDREN: i32 = 8;
    pub(crate) const PING: i32 = 11;
    pub(crate) const MULTI_READ: i32 = 22;
    pub(crate) const GET_EPHEMERALS: i32 = 103;
    pub(crate) const ADD_WATCH: i32 = 106;
    pub(crate) const CLOSE: i32 = -11;
}

pub(crate) const NO_NODE: i32 = -101;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reply {
    pub(crate) xid: i32,
    pub(crate) zxid: i64,
    pub(crate) error: i32,
    pub(crate) body: Vec<u8>,
}

/// A client with a session.
pub(crate) struct Client {
    pub(crate) stream: TcpStream,
    pub(crate) granted: ConnectResponse,
    last_xid: i32,
}

impl Client {
    /// Opens a session with a timeout of 30 s.
    pub(crate) fn open(server: SocketAddr) -> Client {
        Client::open_for(server, 30_000)
    }

    pub(crate) fn open_for(server: SocketAddr, timeout_ms: i32) -> Client {
        let mut stream = socket(server);
        stream.write_all(&handshake(timeout_ms, SessionId::NONE, &[0; 16])).unwrap();
        let granted = ConnectResponse::read(&read_frame(&mut stream).expect("an answer to the handshake"));
        Client { stream, granted: granted.unwrap(), last_xid: 0 }
    }

    /// Sends without waiting; returns the xid.
    pub(crate) fn send(&mut self, code: i32, body: &[u8]) -> i32 {
        self.last_xid += 1;
        self.stream.write_all(&request(self.last_xid, code, body)).unwrap();
        self.last_xid
    }

    /// The next reply; `None` when the connection is closed.
    pub(crate) fn reply(&mut self) -> Option<Reply> {
        read_frame(&mut self.stream).map(|payload| reply(&payload))
    }

    /// Sends, and waits for the reply.
    pub(crate) fn ask(&mut self, code: i32, body: &[u8]) -> Reply {
        let xid = self.send(code, body);
        let reply = self.reply().expect("the connection stays open");
        assert!(reply.xid == xid || code == op::PING, "{reply:?} answers {xid}");
        reply
    }

    pub(crate) fn create(&mut self, path: &str, data: &[u8]) {
        let reply = self.ask(op::CREATE, &create(path, data));
        assert_eq!(reply.error, 0, "create {path}");
    }

    pub(crate) fn exists(&mut self, path: &str) -> bool {
        let reply = self.ask(op::EXISTS, &path_watch(path, false));
        assert!(matches!(reply.error, 0 | NO_NODE), "exists {path}: {reply:?}");
        reply.error == 0
    }
}

/// A connection on which nothing was sent yet.
pub(crate) fn socket(server: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(server).unwrap();
    stream.set_nodelay(true).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    stream
}

pub(crate) fn handshake(timeout_ms: i32, session: SessionId, password: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    ConnectRequest {
        protocol_version: 0,
        last_zxid_seen: 0,
        timeout_ms,
        session,
        password: Some(password),
        read_only: Some(false),
    }
    .write_frame(&mut out);
    out
}

/// A whole request frame.
pub(crate) fn request(xid: i32, code: i32, body: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(body.len() + 12);
    let start = begin_frame(&mut out);
    out.i32(xid);
    out.i32(code);
    out.raw(body);
    end_frame(&mut out, start);
    out
}

/// The body of a create request for a persistent znode with an open ACL.
pub(crate) fn create(path: &str, data: &[u8]) -> Vec<u8> {
    create_as(path, data, 0)
}

/// As [`create`], with the flags of a create mode.
pub(crate) fn create_as(path: &str, data: &[u8], flags: i32) -> Vec<u8> {
    let mut out = Vec::new();
    out.string(path);
    out.buffer(Some(data));
    out.length(1);
    out.i32(31);
    out.string("world");
    out.string("anyone");
    out.i32(flags);
    out
}

/// The body of exists, getData and getChildren.
pub(crate) fn path_watch(path: &str, watch: bool) -> Vec<u8> {
    let mut out = Vec::new();
    out.string(path);
    out.bool(watch);
    out
}

pub(crate) fn set_data(path: &str, data: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    out.string(path);
    out.buffer(Some(data));
    out.i32(-1);
    out
}

/// A multiRead that reads the same znode a number of times.
pub(crate) fn multi_read(path: &str, times: usize) -> Vec<u8> {
    let mut body = Vec::new();
    for _ in 0..times {
        body.i32(op::GET_DATA);
        body.bool(false);
        body.i32(-1);
        body.raw(&path_watch(path, false));
    }
    body.raw(b"\xff\xff\xff\xff\x01\xff\xff\xff\xff");
    body
}

pub(crate) fn add_watch(path: &str, mode: i32) -> Vec<u8> {
    let mut out = Vec::new();
    out.string(path);
    out.i32(mode);
    out
}

/// The next frame's payload; `None` when the connection is closed. Silence fails the test.
pub(crate) fn read_frame(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let mut length = [0; 4];
    if !filled(stream.read_exact(&mut length)) {
        return None;
    }
    let mut payload = vec![0; u32::from_be_bytes(length) as usize];
    filled(stream.read_exact(&mut payload)).then_some(payload)
}

pub(crate) fn reply(payload: &[u8]) -> Reply {
    let mut r = Reader::new(payload);
    let header = ReplyHeader::read(&mut r).unwrap();
    Reply { xid: header.xid.0, zxid: header.zxid, error: header.error, body: r.rest().to_vec() }
}

/// Everything up to the end of the connection. Silence fails the test.
pub(crate) fn read_to_end(stream: &mut TcpStream) -> Vec<u8> {
    let mut all = Vec::new();
    filled(stream.read_to_end(&mut all).map(drop));
    all
}

/// Returns false at the end of the connection, also if it was reset.
fn filled(read: io::Result<()>) -> bool {
    match read {
        Ok(()) => true,
        Err(error) if is_end(&error) => false,
        Err(error) => panic!("the server is silent: {error}"),
    }
}

fn is_end(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset | ErrorKind::BrokenPipe)
}

/// Writes, and ignores the error if the server has closed the connection.
pub(crate) fn write_if_open(stream: &mut TcpStream, bytes: &[u8]) {
    if let Err(error) = stream.write_all(bytes) {
        assert!(is_end(&error), "{error}");
    }
}

/// Whether the connection ends within `patience`. Bytes that come before the end do not count.
pub(crate) fn ends_within(stream: &mut TcpStream, patience: Duration) -> bool {
    let begun = std::time::Instant::now();
    let mut bytes = [0; 64 << 10];
    while let Some(left) = patience.checked_sub(begun.elapsed()).filter(|left| !left.is_zero()) {
        stream.set_read_timeout(Some(left)).unwrap();
        match stream.read(&mut bytes) {
            Ok(0) => return true,
            Ok(_) => {}
            Err(error) if is_end(&error) => return true,
            Err(_) => return false,
        }
    }
    false
}
