//! A client that speaks bytes, for handshakes and requests of all kinds.

use ostler_proto::{
    connect::{ConnectRequest, ConnectResponse},
    id::SessionId,
    jute::Writer,
    op::Op,
};
use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

/// The handshake of a client.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Handshake {
    pub(crate) timeout_ms: i32,
    pub(crate) read_only: Option<bool>,
    pub(crate) session: SessionId,
    pub(crate) password: [u8; 16],
}

impl Default for Handshake {
    fn default() -> Handshake {
        Handshake { timeout_ms: 60_000, read_only: Some(false), session: SessionId::NONE, password: [0; 16] }
    }
}

/// A connection with a session.
pub(crate) struct Raw {
    stream: TcpStream,
    pub(crate) session: SessionId,
    pub(crate) password: [u8; 16],
}

impl Raw {
    pub(crate) fn connect(to: SocketAddr) -> Raw {
        Raw::shake_hands(to, Handshake::default())
    }

    pub(crate) fn shake_hands(to: SocketAddr, of: Handshake) -> Raw {
        let mut stream = TcpStream::connect(to).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let mut frame = Vec::new();
        ConnectRequest {
            protocol_version: 0,
            last_zxid_seen: 0,
            timeout_ms: of.timeout_ms,
            session: of.session,
            password: Some(&of.password),
            read_only: of.read_only,
        }
        .write_frame(&mut frame);
        stream.write_all(&frame).unwrap();
        let answer = read_frame(&mut stream);
        let response = ConnectResponse::read(&answer).unwrap();
        Raw { stream, session: response.session, password: response.password }
    }

    /// Sends requests of these numbers and bodies at once, and returns the errors of the answers.
    pub(crate) fn ask(&mut self, requests: &[(i32, i32, Vec<u8>)]) -> Vec<i32> {
        let mut bytes = Vec::new();
        for (xid, code, body) in requests {
            bytes.i32(i32::try_from(body.len() + 8).unwrap());
            bytes.i32(*xid);
            bytes.i32(*code);
            bytes.extend_from_slice(body);
        }
        self.stream.write_all(&bytes).unwrap();
        requests.iter().map(|_| self.answer()).collect()
    }

    /// The error of the next answer.
    fn answer(&mut self) -> i32 {
        let frame = read_frame(&mut self.stream);
        i32::from_be_bytes(frame[12..16].try_into().unwrap())
    }

    /// Watches whether these paths exist, or their children.
    pub(crate) fn watch(&mut self, op: Op, paths: &[String]) {
        let request = |(xid, path): (i32, &String)| {
            let mut body = Vec::new();
            body.string(path);
            body.bool(true);
            (xid, op.code(), body)
        };
        for some in (1..).zip(paths).map(request).collect::<Vec<_>>().chunks(500) {
            self.ask(some);
        }
    }

    /// Adds a persistent watch.
    pub(crate) fn add_watch(&mut self, path: &str, is_recursive: bool) {
        let mut body = Vec::new();
        body.string(path);
        body.i32(i32::from(is_recursive));
        assert_eq!(self.ask(&[(1, Op::AddWatch.code(), body)]), [0]);
    }

    /// Sends what is no frame.
    pub(crate) fn garbage(&mut self) {
        self.stream.write_all(&[0x47, 0x45, 0x54, 0x20]).unwrap();
    }

    pub(crate) fn address(&self) -> String {
        self.stream.local_addr().unwrap().to_string()
    }
}

fn read_frame(stream: &mut TcpStream) -> Vec<u8> {
    let mut length = [0; 4];
    stream.read_exact(&mut length).unwrap();
    let mut frame = vec![0; u32::from_be_bytes(length) as usize];
    stream.read_exact(&mut frame).unwrap();
    frame
}
