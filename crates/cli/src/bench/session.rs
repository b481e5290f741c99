//! Opens sessions, and makes single requests before and after a measurement.

use super::{
    error::{BenchError, Result, While},
    template::Template,
    wire::{TlsDialer, Wire},
};
use ostler_proto::{
    connect::{ConnectRequest, ConnectResponse, Password},
    id::SessionId,
    jute::Reader,
    reply::ReplyHeader,
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use socket2::{Domain, Socket, Type};
use std::{
    io::{self, ErrorKind, Read, Write},
    net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream},
    time::{Duration, Instant},
};

/// The longest time without any reply before the run fails.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
/// Handshakes under way at once. Java's listen backlog is 50, and a connection beyond it waits a second.
const HANDSHAKES: usize = 40;
/// Connections per source address; the usual range of ephemeral ports has 28,000.
const PER_ADDRESS: usize = 20_000;

/// The servers, and the options of connections.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Target {
    pub(crate) server: SocketAddr,
    /// More servers of the same ensemble. Sessions are spread over all servers in turn.
    pub(crate) others: &'static [SocketAddr],
    /// Session timeout to ask for.
    pub(crate) timeout: Duration,
    /// The longest time to wait for the server at each step.
    pub(crate) patience: Duration,
    /// How to speak TLS; `None` without it.
    pub(crate) tls: Option<&'static TlsDialer>,
}

/// An open session on a blocking socket.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) stream: Wire<TcpStream>,
    /// The session timeout that the server has granted.
    pub(crate) timeout: Duration,
    pub(crate) id: SessionId,
    pub(crate) password: Password,
    last_xid: i32,
    number: usize,
}

impl Target {
    /// Opens one session.
    pub(crate) fn open(self) -> Result<Session> {
        Ok(self.open_many(1, |_| {})?.remove(0))
    }

    /// Opens `count` sessions, many handshakes at once. `opened` hears how many there are.
    pub(crate) fn open_many(self, count: usize, mut opened: impl FnMut(usize)) -> Result<Vec<Session>> {
        raise_descriptor_limit(count + 64)?;
        let mut sessions: Vec<Session> = Vec::with_capacity(count);
        let mut pinged = Instant::now();
        while sessions.len() < count {
            let first = sessions.len();
            let batch = HANDSHAKES.min(count - first);
            let mut streams =
                (first..first + batch).map(|n| self.greet(n)).collect::<Result<Vec<Wire<TcpStream>>>>()?;
            // All connect requests leave before the first answer is waited for: the server's disk is not waited for each time.
            for (number, stream) in (first..).zip(&mut streams) {
                stream.finish_handshake().map_err(|cause| self.failed(number, cause))?;
            }
            for stream in streams {
                let session = self.finish_handshake(stream, sessions.len())?;
                sessions.push(session);
            }
            opened(sessions.len());
            // A slow server takes longer for all of them than the first ones live.
            if pinged.elapsed() > sessions[0].timeout / 4 {
                ping_all(&mut sessions)?;
                pinged = Instant::now();
            }
        }
        Ok(sessions)
    }

    /// The server of a session.
    pub(crate) fn at(self, number: usize) -> SocketAddr {
        match number % (1 + self.others.len()) {
            0 => self.server,
            other => self.others[other - 1],
        }
    }

    fn greet(self, number: usize) -> Result<Wire<TcpStream>> {
        let wire = self.connect(number).and_then(|stream| Wire::new(stream, self.tls, number));
        let mut wire = wire.map_err(|cause| self.not_connected(number, cause))?;
        let greeted = wire.greet(&self.connect_frame(SessionId::NONE, &[0; 16]));
        greeted.map_err(|cause| self.failed(number, cause))?;
        Ok(wire)
    }

    /// The error of a connection that ended before it had a session.
    pub(crate) fn failed(self, number: usize, cause: io::Error) -> BenchError {
        match cause.kind() {
            ErrorKind::ConnectionRefused | ErrorKind::InvalidData => self.not_connected(number, cause),
            ErrorKind::WouldBlock | ErrorKind::TimedOut => BenchError::Silent(self.patience),
            _ => self.refused(number),
        }
    }

    /// The error of a connection that could not be made.
    pub(crate) fn not_connected(self, number: usize, cause: io::Error) -> BenchError {
        let server = self.at(number);
        match cause.kind() {
            ErrorKind::ConnectionRefused => BenchError::Refused(server),
            ErrorKind::InvalidData => BenchError::Tls { server, cause },
            _ => BenchError::Connect { server, cause },
        }
    }

    /// The first frame of a connection: it asks for a new session, or takes up an older one.
    pub(crate) fn connect_frame(self, session: SessionId, password: &Password) -> Vec<u8> {
        connect_frame(i32::try_from(self.timeout.as_millis()).unwrap_or(i32::MAX), 0, session, password)
    }

    fn connect(self, number: usize) -> io::Result<TcpStream> {
        let server = self.at(number);
        let socket = Socket::new(Domain::for_address(server), Type::STREAM, None)?;
        if number >= PER_ADDRESS && server.ip().is_loopback() && server.is_ipv4() {
            let last = u8::try_from(1 + number / PER_ADDRESS).unwrap_or(u8::MAX);
            socket.bind(&SocketAddr::new(IpAddr::V4(Ipv4Addr::new(127, 0, 0, last)), 0).into())?;
        }
        socket.connect_timeout(&server.into(), self.patience)?;
        socket.set_tcp_nodelay(true)?;
        socket.set_read_timeout(Some(self.patience))?;
        socket.set_write_timeout(Some(self.patience))?;
        Ok(socket.into())
    }

    fn finish_handshake(self, mut stream: Wire<TcpStream>, number: usize) -> Result<Session> {
        let payload = read_frame(&mut stream, number).map_err(|cause| match cause {
            BenchError::Lost { cause, .. } => self.failed(number, cause),
            other => other,
        })?;
        let response = ConnectResponse::read(&payload)?;
        if response.timeout_ms <= 0 {
            return Err(self.refused(number));
        }
        let timeout = Duration::from_millis(response.timeout_ms.unsigned_abs().into());
        let (id, password) = (response.session, response.password);
        Ok(Session { number, stream, timeout, id, password, last_xid: 0 })
    }

    /// The error of a connection that the server has closed before it granted a session.
    pub(crate) fn refused(self, number: usize) -> BenchError {
        BenchError::SessionRefused { server: self.at(number), number }
    }
}

/// A connect request of a client that has seen the transactions up to a zxid.
pub(crate) fn connect_frame(timeout_ms: i32, seen: i64, session: SessionId, password: &Password) -> Vec<u8> {
    let mut frame = Vec::new();
    ConnectRequest {
        protocol_version: 0,
        last_zxid_seen: seen,
        timeout_ms,
        session,
        password: Some(password),
        read_only: Some(false),
    }
    .write_frame(&mut frame);
    frame
}

impl Session {
    /// Sends all requests and waits for all replies; gives the error codes in order.
    pub(crate) fn call_all<'a>(
        &mut self,
        requests: impl IntoIterator<Item = (&'a Template, [u32; 2])>,
    ) -> Result<Vec<i32>> {
        // Few enough that neither side's socket buffers fill up while the other waits.
        const AT_ONCE: usize = 200;
        let mut codes = Vec::new();
        let mut requests = requests.into_iter().peekable();
        while requests.peek().is_some() {
            let mut bytes = Vec::new();
            let mut sent = 0;
            for (template, numbers) in requests.by_ref().take(AT_ONCE) {
                self.last_xid += 1;
                template.append(&mut bytes, self.last_xid, &numbers);
                sent += 1;
            }
            self.send(&bytes)?;
            for _ in 0..sent {
                codes.push(self.reply()?.0);
            }
        }
        Ok(codes)
    }

    /// One request; the error code and the body of its reply.
    pub(crate) fn call(&mut self, request: &Template) -> Result<(i32, Vec<u8>)> {
        self.last_xid += 1;
        self.send(&request.frame(self.last_xid))?;
        self.reply()
    }

    fn send(&mut self, bytes: &[u8]) -> Result<()> {
        self.stream.write_all(bytes).map_err(|cause| lost(self.number, cause))
    }

    fn reply(&mut self) -> Result<(i32, Vec<u8>)> {
        let payload = read_frame(&mut self.stream, self.number)?;
        let mut reader = Reader::new(&payload);
        let header = ReplyHeader::read(&mut reader)?;
        Ok((header.error, reader.rest().to_vec()))
    }

    /// Ends the session. A server may close the connection without a reply.
    pub(crate) fn close(mut self) {
        let frame = super::template::close_session(self.last_xid + 1);
        if self.stream.write_all(&frame).is_ok() {
            let _ = read_frame(&mut self.stream, self.number);
        }
    }

    /// The connection.
    pub(crate) fn into_stream(self) -> Wire<TcpStream> {
        self.stream
    }
}

fn ping_all(sessions: &mut [Session]) -> Result<()> {
    let ping = super::template::ping();
    sessions.iter_mut().try_for_each(|session| session.send(&ping))?;
    sessions.iter_mut().try_for_each(|session| session.reply().map(|_| ()))
}

fn lost(number: usize, cause: io::Error) -> BenchError {
    match cause.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => BenchError::Silent(PATIENCE),
        _ => BenchError::Lost { number, cause },
    }
}

fn read_frame(stream: &mut Wire<TcpStream>, number: usize) -> Result<Vec<u8>> {
    let mut prefix = [0; 4];
    stream.read_exact(&mut prefix).map_err(|cause| lost(number, cause))?;
    let length = i32::from_be_bytes(prefix);
    let size = usize::try_from(length).map_err(|_| BenchError::BrokenFrame(length))?;
    let mut payload = vec![0; size];
    stream.read_exact(&mut payload).map_err(|cause| lost(number, cause))?;
    Ok(payload)
}

/// Lets this process have at least `wanted` descriptors, if the hard limit allows it.
pub(crate) fn raise_descriptor_limit(wanted: usize) -> Result<()> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let wanted = wanted as u64;
    if current.is_none_or(|current| current >= wanted) {
        return Ok(());
    }
    if maximum.is_some_and(|maximum| maximum < wanted) {
        return Err(BenchError::Usage(format!(
            "{wanted} descriptors are needed and the hard limit is {}: raise it (ulimit -Hn), or use fewer \
             connections",
            maximum.unwrap_or_default()
        )));
    }
    setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum })
        .map_err(io::Error::from)
        .during("cannot raise the limit of open files")
}
