//! One thread drives many sessions. One read takes all that has arrived on a socket, the driver gets all replies in it,
//! and one write sends the requests that follow from them.

use super::{
    error::{BenchError, Result, While},
    session::{PATIENCE, Session},
    wire::Wire,
};
use mio::{Events, Interest, Poll, Token};
use ostler_proto::{
    frame::{Split, split},
    jute::Reader,
    reply::ReplyHeader,
};
use std::{
    io::{self, ErrorKind},
    time::{Duration, Instant},
};

const FRAME_LIMIT: usize = 64 << 20;
const EVENTS: usize = 1024;

/// Decides which requests are sent, and counts replies. Times are nanoseconds since the fleet was made.
pub(crate) trait Driver {
    /// A reply or a notification came on connection `link`.
    fn reply(&mut self, link: usize, now: u64, header: ReplyHeader, body: &[u8]) -> Result<()>;

    /// All replies that had arrived on `link` were handed over. Appends the requests to send now.
    fn refill(&mut self, link: usize, now: u64, out: &mut Vec<u8>);
}

/// The sessions and the loop around them.
pub(crate) struct Fleet {
    poll: Poll,
    events: Events,
    links: Vec<Link>,
    arrivals: Arrivals,
    /// Whether sessions are being ended. Then the server closes connections.
    closing: bool,
}

/// Buffers that all connections share, and the time of the last read.
struct Arrivals {
    buffer: Vec<u8>,
    encrypted: Vec<u8>,
    start: Instant,
    last: u64,
}

struct Link {
    stream: Wire<mio::net::TcpStream>,
    /// The beginning of a frame whose rest has not arrived.
    tail: Vec<u8>,
    /// Bytes that the socket has not accepted yet.
    out: Vec<u8>,
    gone: bool,
}

/// Ignores replies while sessions are closed.
struct IgnoreReplies;

impl Driver for IgnoreReplies {
    fn reply(&mut self, _: usize, _: u64, _: ReplyHeader, _: &[u8]) -> Result<()> {
        Ok(())
    }
    fn refill(&mut self, _: usize, _: u64, _: &mut Vec<u8>) {}
}

impl Fleet {
    /// Takes over sessions; nothing may be outstanding on them.
    pub(crate) fn new(sessions: Vec<Session>) -> Result<Fleet> {
        let poll = Poll::new().during("cannot create an event queue")?;
        let mut links = Vec::with_capacity(sessions.len());
        for (number, session) in sessions.into_iter().enumerate() {
            let mut stream = session.into_stream();
            stream.socket().set_nonblocking(true).during("cannot make a socket nonblocking")?;
            let mut stream = stream.map(mio::net::TcpStream::from_std);
            poll.registry()
                .register(stream.socket(), Token(number), Interest::READABLE | Interest::WRITABLE)
                .during("cannot watch a socket")?;
            links.push(Link { stream, tail: Vec::new(), out: Vec::new(), gone: false });
        }
        Ok(Fleet {
            poll,
            events: Events::with_capacity(EVENTS),
            links,
            arrivals: Arrivals { buffer: Vec::new(), encrypted: Vec::new(), start: Instant::now(), last: 0 },
            closing: false,
        })
    }

    /// The number of sessions.
    pub(crate) fn len(&self) -> usize {
        self.links.len()
    }

    /// When the fleet was made: time 0 of its drivers.
    pub(crate) fn start(&self) -> Instant {
        self.arrivals.start
    }

    /// Nanoseconds since the fleet was made.
    pub(crate) fn now(&self) -> u64 {
        nanos_since(self.arrivals.start)
    }

    /// Sends what `fill` appends on connection `link`.
    pub(crate) fn send(&mut self, link: usize, fill: impl FnOnce(&mut Vec<u8>)) -> Result<()> {
        let connection = &mut self.links[link];
        fill(&mut connection.out);
        connection.flush().map_err(|cause| BenchError::Lost { number: link, cause })
    }

    /// Lets the driver fill all connections for the first time.
    pub(crate) fn refill_all(&mut self, driver: &mut impl Driver) -> Result<()> {
        for link in 0..self.links.len() {
            let now = self.now();
            self.send(link, |out| driver.refill(link, now, out))?;
        }
        Ok(())
    }

    /// Ends all sessions, so that they do not live on in the server until they expire.
    pub(crate) fn close(mut self) -> Result<()> {
        const FAREWELL: Duration = Duration::from_secs(20);
        self.closing = true;
        let frame = super::template::close_session(i32::MAX);
        for link in 0..self.links.len() {
            if self.send(link, |out| out.extend_from_slice(&frame)).is_err() {
                self.links[link].gone = true;
            }
        }
        let deadline = Instant::now() + FAREWELL;
        while self.links.iter().any(|link| !link.gone) && Instant::now() < deadline {
            self.turn(&mut IgnoreReplies, Duration::from_millis(100))?;
        }
        Ok(())
    }

    /// Waits at most `timeout` for data, and handles all that has come.
    pub(crate) fn turn(&mut self, driver: &mut impl Driver, timeout: Duration) -> Result<()> {
        match self.poll.poll(&mut self.events, Some(timeout)) {
            Err(cause) if cause.kind() == ErrorKind::Interrupted => return Ok(()),
            other => other.during("cannot wait for events")?,
        }
        for event in &self.events {
            let number = event.token().0;
            let link = &mut self.links[number];
            let lost = |cause| BenchError::Lost { number, cause };
            if event.is_readable() && !link.gone {
                // Edge-triggered: a read that does not fill the buffer has emptied the socket, and the
                // next arrival makes a new event. The end of the stream may have come with this one.
                let ended = event.is_read_closed();
                loop {
                    match link.read(number, driver, &mut self.arrivals) {
                        Ok(Arrived::More) => {}
                        Ok(Arrived::Some) if ended => {}
                        Ok(Arrived::Some | Arrived::Nothing) => break,
                        Err(BenchError::Lost { .. }) if self.closing => {
                            link.gone = true;
                            break;
                        }
                        Err(error) => return Err(error),
                    }
                }
                driver.refill(number, self.arrivals.last, &mut link.out);
            }
            if !link.gone && (!link.out.is_empty() || link.stream.has_unsent()) {
                link.flush().map_err(lost)?;
            }
        }
        if self.now().saturating_sub(self.arrivals.last) > PATIENCE.as_nanos() as u64 {
            return Err(BenchError::Silent(PATIENCE));
        }
        Ok(())
    }
}

/// The result of a read.
enum Arrived {
    Nothing,
    /// All data that had arrived.
    Some,
    /// A full buffer. There may be more data.
    More,
}

impl Link {
    /// Reads once and hands over the replies in it.
    fn read(&mut self, number: usize, driver: &mut impl Driver, arrivals: &mut Arrivals) -> Result<Arrived> {
        let kept = self.tail.len();
        let Arrivals { buffer, encrypted, start, last } = arrivals;
        let received = match self.stream.receive(buffer, kept, encrypted) {
            Ok(received) => received,
            Err(cause) if cause.kind() == ErrorKind::WouldBlock => return Ok(Arrived::Nothing),
            Err(cause) if cause.kind() == ErrorKind::Interrupted => return Ok(Arrived::More),
            Err(cause) => return Err(BenchError::Lost { number, cause }),
        };
        *last = nanos_since(*start);
        buffer[..kept].copy_from_slice(&self.tail);
        self.tail.clear();
        let mut rest = &buffer[..kept + received.size];
        loop {
            match split(rest, FRAME_LIMIT) {
                Split::Frame { payload, used } => {
                    let mut reader = Reader::new(payload);
                    let header = ReplyHeader::read(&mut reader)?;
                    driver.reply(number, *last, header, reader.rest())?;
                    rest = &rest[used..];
                }
                Split::Incomplete { .. } => break,
                Split::BadLength(length) => return Err(BenchError::BrokenFrame(length)),
            }
        }
        self.tail.extend_from_slice(rest);
        Ok(if received.was_full { Arrived::More } else { Arrived::Some })
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.send(&mut self.out)
    }
}

fn nanos_since(start: Instant) -> u64 {
    u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX)
}
