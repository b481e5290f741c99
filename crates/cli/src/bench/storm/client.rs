//! One client of a storm: its session, its connection of the moment, and what it does next. Times are nanoseconds.

use super::super::{session::connect_frame, template};
use mio::net::TcpStream;
use ostler_proto::{
    connect::{ConnectResponse, Password},
    frame::{Split, split},
    id::{SessionId, Xid},
    jute::Reader,
    reply::ReplyHeader,
};
use std::io::{self, ErrorKind, Read, Write};

const FRAME_LIMIT: usize = 1 << 20;

/// The stage of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// It has not begun.
    Idle,
    /// It waits before its next connection.
    Away,
    /// Its connection is made, or its connect request is not answered yet.
    Greeting,
    /// Its session is attached.
    Attached,
    /// Its session has expired.
    Lost,
}

/// The result of an event of a client's socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Nothing,
    Attached,
    Expired,
    /// A ping was answered that went out at this time.
    Pinged(u64),
}

pub(super) struct Client {
    pub(super) stage: Stage,
    /// The server of its connection, or of the next one.
    pub(super) server: usize,
    pub(super) stream: Option<TcpStream>,
    /// When it next acts by itself.
    pub(super) due: u64,
    pub(super) heard: u64,
    /// When the ping went out that is not answered yet.
    pinged: Option<u64>,
    /// The session timeout that was granted.
    pub(super) timeout: u64,
    session: SessionId,
    password: Password,
    zxid: i64,
    greeted: bool,
    input: Vec<u8>,
}

impl Client {
    pub(super) fn new(server: usize, timeout: u64) -> Client {
        Client {
            stage: Stage::Idle,
            server,
            stream: None,
            due: u64::MAX,
            heard: 0,
            pinged: None,
            timeout,
            session: SessionId::NONE,
            password: [0; 16],
            zxid: 0,
            greeted: false,
            input: Vec::new(),
        }
    }

    /// Takes a connection that is being made.
    pub(super) fn begin(&mut self, stream: TcpStream) {
        self.stage = Stage::Greeting;
        self.greeted = false;
        self.stream = Some(stream);
        self.input = Vec::new();
        self.pinged = None;
    }

    /// Drops its connection.
    pub(super) fn leave(&mut self) {
        self.stage = Stage::Away;
        self.stream = None;
    }

    /// Sends the connect request, if the connection is made.
    pub(super) fn writable(&mut self) -> io::Result<()> {
        let Some(stream) = self.stream.as_mut().filter(|_| self.stage == Stage::Greeting && !self.greeted)
        else {
            return Ok(());
        };
        if let Some(error) = stream.take_error()? {
            return Err(error);
        }
        match stream.peer_addr() {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::NotConnected => return Ok(()),
            Err(error) => return Err(error),
        }
        let timeout_ms = i32::try_from(self.timeout / 1_000_000).unwrap_or(i32::MAX);
        let frame = connect_frame(timeout_ms, self.zxid, self.session, &self.password);
        // A fresh socket takes a few bytes.
        stream.write_all(&frame)?;
        self.greeted = true;
        Ok(())
    }

    /// Sends a ping, if none is under way.
    pub(super) fn ping(&mut self, now: u64) -> io::Result<()> {
        if self.pinged.is_none()
            && let Some(stream) = &mut self.stream
        {
            stream.write_all(&template::ping())?;
            self.pinged = Some(now);
        }
        Ok(())
    }

    /// Reads what has come.
    ///
    /// # Errors
    /// `UnexpectedEof` if the server has closed the connection.
    pub(super) fn readable(
        &mut self,
        now: u64,
        buffer: &mut [u8],
        mut hear: impl FnMut(Outcome),
    ) -> io::Result<()> {
        let mut stream = match self.stream.take() {
            Some(stream) => stream,
            None => return Ok(()),
        };
        let read = loop {
            match stream.read(buffer) {
                Ok(0) => break Err(ErrorKind::UnexpectedEof.into()),
                Ok(size) => {
                    self.heard = now;
                    self.input.extend_from_slice(&buffer[..size]);
                    if let Err(error) = self.take_frames(&mut hear) {
                        break Err(error);
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => break Err(error),
            }
        };
        self.stream = Some(stream);
        read
    }

    fn take_frames(&mut self, hear: &mut impl FnMut(Outcome)) -> io::Result<()> {
        let input = std::mem::take(&mut self.input);
        let mut rest = &input[..];
        loop {
            match split(rest, FRAME_LIMIT) {
                Split::Frame { payload, used } => {
                    hear(self.take_frame(payload)?);
                    rest = &rest[used..];
                }
                Split::Incomplete { .. } => break,
                Split::BadLength(_) => return Err(ErrorKind::InvalidData.into()),
            }
        }
        self.input = rest.to_vec();
        Ok(())
    }

    fn take_frame(&mut self, payload: &[u8]) -> io::Result<Outcome> {
        let broken = |error| io::Error::new(ErrorKind::InvalidData, error);
        if self.stage == Stage::Greeting {
            let response = ConnectResponse::read(payload).map_err(broken)?;
            if response.timeout_ms <= 0 {
                self.stage = Stage::Lost;
                return Ok(Outcome::Expired);
            }
            self.stage = Stage::Attached;
            self.session = response.session;
            self.password = response.password;
            self.timeout = response.timeout_ms.unsigned_abs() as u64 * 1_000_000;
            return Ok(Outcome::Attached);
        }
        let header = ReplyHeader::read(&mut Reader::new(payload)).map_err(broken)?;
        if header.zxid > 0 {
            self.zxid = self.zxid.max(header.zxid);
        }
        if header.xid == Xid::PING {
            return Ok(self.pinged.take().map_or(Outcome::Nothing, Outcome::Pinged));
        }
        Ok(Outcome::Nothing)
    }
}
