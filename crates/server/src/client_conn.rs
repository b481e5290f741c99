//! One client's connection: bytes in, requests to the core; the outbox out. One task each.

use crate::{
    admin::{
        four_letter_door::FourLetterDoor,
        word_exchange::{self, Asked},
    },
    driver::Driver,
    outbox::{Outbox, Sending},
};
use ostler_proto::{connect::ConnectRequest, frame};
use ostler_server_core::{ClientRequest, ConnId, Input};
use std::{
    cell::RefCell,
    future::poll_fn,
    io,
    net::SocketAddr,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, ReadBuf},
    net::TcpStream,
};

/// What bounds a connection.
#[derive(Debug, Clone)]
pub(crate) struct ConnLimits {
    /// Bytes in a frame (`jute.maxbuffer`).
    pub(crate) frame_max: usize,
    /// Requests under way before no more are read.
    pub(crate) unanswered_max: usize,
    /// Time until the handshake.
    pub(crate) sessionless: Duration,
}

/// Bytes of requests read while others are unanswered: above it the socket waits.
const UNANSWERED_BYTES_MAX: usize = 8 << 20;
/// How long a closing connection's last bytes may take.
const LAST_WORDS: Duration = Duration::from_millis(500);
const READ_SIZE: usize = 64 << 10;

thread_local! {
    /// Idle connections have no buffer of their own; each thread has one to read into.
    static SCRATCH: RefCell<Vec<u8>> = RefCell::new(vec![0; READ_SIZE]);
}

/// Why a connection ended.
#[derive(Debug)]
enum End {
    /// By either side, in order.
    Closed,
    /// The peer is gone or the socket failed.
    Io(io::Error),
    /// Bytes that are no frame, or a first frame that is no handshake.
    Garbage(&'static str),
    /// It was for a four-letter word, which is still to be answered.
    Word(Asked),
}

impl From<io::Error> for End {
    fn from(error: io::Error) -> End {
        End::Io(error)
    }
}

/// Reads into this thread's buffer, which is the caller's until it awaits again. Unlike waiting for
/// `readable` and trying, this remembers that a short read has emptied the socket, and saves the call that
/// would only say so.
fn poll_read(stream: &mut TcpStream, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
    SCRATCH.with_borrow_mut(|scratch| {
        let mut buffer = ReadBuf::new(scratch);
        ready!(Pin::new(stream).poll_read(cx, &mut buffer))?;
        Poll::Ready(Ok(buffer.filled().len()))
    })
}

struct ClientConn {
    stream: TcpStream,
    conn: ConnId,
    outbox: Arc<Outbox>,
    driver: Arc<Driver>,
    limits: Arc<ConnLimits>,
    door: Arc<FourLetterDoor>,
    /// Bytes read that are no whole frame yet, or that wait for answers to leave first.
    partial: Vec<u8>,
    sending: Sending,
    shaken_hands: bool,
    /// The client has sent what is no request. What came before it is still answered, then this is the end.
    doomed: Option<&'static str>,
    bytes_since_idle: usize,
}

/// Serves a connection until its end.
pub(crate) async fn serve(
    stream: TcpStream,
    peer: SocketAddr,
    driver: Arc<Driver>,
    limits: Arc<ConnLimits>,
    door: Arc<FourLetterDoor>,
) {
    let (conn, outbox) = driver.accept(peer);
    let mut client = ClientConn {
        stream,
        conn,
        outbox,
        driver,
        limits,
        door,
        partial: Vec::new(),
        sending: Sending::default(),
        shaken_hands: false,
        doomed: None,
        bytes_since_idle: 0,
    };
    let mut end = client.run().await;
    if let End::Word(asked) = end {
        end = client.answer(asked).await;
    }
    client.driver.disconnected(conn);
    match end {
        End::Closed | End::Word(_) => {}
        End::Io(error) => tracing::debug!(?conn, %peer, %error, "connection lost"),
        End::Garbage(what) => tracing::warn!(?conn, %peer, what, "connection closed"),
    }
}

impl ClientConn {
    async fn run(&mut self) -> End {
        match tokio::time::timeout(self.limits.sessionless, self.until_handshake()).await {
            Err(_) => {
                self.driver.traffic.count_without_session();
                return End::Garbage("no handshake in time");
            }
            Ok(Err(end)) => return end,
            Ok(Ok(())) => {}
        }
        loop {
            if let Err(end) = self.turn().await {
                return end;
            }
        }
    }

    async fn until_handshake(&mut self) -> Result<(), End> {
        while !self.shaken_hands {
            self.turn().await?;
        }
        Ok(())
    }

    /// Waits for the socket or the outbox, and deals with what there is.
    async fn turn(&mut self) -> Result<(), End> {
        self.flush().await?;
        if let Some(what) = self.doomed {
            if self.outbox.unanswered() == 0 {
                return Err(End::Garbage(what));
            }
            self.outbox.woken().await;
            return Ok(());
        }
        if !self.partial.is_empty() && self.may_read() && self.take_frames_of_partial()? {
            // A batch that took its share of the member's time goes on after others.
            tokio::task::yield_now().await;
            return Ok(());
        }
        if self.may_read() {
            self.sending.shrink();
            tokio::select! {
                biased;
                read = poll_fn(|cx| poll_read(&mut self.stream, cx)) => self.arrived(read?)?,
                () = self.outbox.woken() => {}
            }
        } else {
            self.outbox.woken().await;
        }
        Ok(())
    }

    /// With too much unanswered the socket waits: TCP holds the client back.
    fn may_read(&mut self) -> bool {
        let unanswered = self.outbox.unanswered();
        if unanswered == 0 {
            self.bytes_since_idle = 0;
        }
        unanswered < self.limits.unanswered_max
            && self.bytes_since_idle < UNANSWERED_BYTES_MAX
            && !self.outbox.holds_back()
    }

    /// Writes until the outbox is empty. While the peer takes nothing, nothing is read from it either.
    async fn flush(&mut self) -> Result<(), End> {
        loop {
            let close = self.outbox.take(&mut self.sending);
            while !self.sending.is_empty() {
                let written = match self.sending.single() {
                    Some(bytes) => self.stream.try_write(bytes),
                    None => self.stream.try_write_vectored(&self.sending.slices()),
                };
                match written {
                    Ok(0) => return Err(End::Closed),
                    Ok(n) => self.sending.advance(n),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.until_writable().await?,
                    Err(error) => return Err(error.into()),
                }
            }
            if close.is_some() {
                return Err(self.close().await);
            }
            if self.outbox.len() == 0 {
                return Ok(());
            }
        }
    }

    /// A connection that is to be closed waits for its client only a moment longer.
    async fn until_writable(&mut self) -> Result<(), End> {
        if self.outbox.is_closing() {
            let waited = tokio::time::timeout(LAST_WORDS, self.stream.writable()).await;
            return waited.map_err(|_| End::Closed)?.map_err(End::Io);
        }
        tokio::select! {
            ready = self.stream.writable() => ready.map_err(End::Io),
            () = self.outbox.woken() => Ok(()),
        }
    }

    /// On the heap: no other connection needs room for it.
    async fn answer(&mut self, asked: Asked) -> End {
        Box::pin(word_exchange::answer(&self.door, (&self.driver, self.conn), &mut self.stream, asked)).await;
        self.close().await
    }

    /// What the client still sends is read and thrown away for a moment: closing over unread bytes would
    /// reset the connection, and with it the last reply.
    async fn close(&mut self) -> End {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let _ = self.stream.shutdown().await;
        // On the heap: an array would be part of every connection's task for all its life.
        let mut rest = vec![0; 4096];
        let drained = async { while matches!(self.stream.read(&mut rest).await, Ok(1..)) {} };
        let _ = tokio::time::timeout(Duration::from_millis(200), drained).await;
        End::Closed
    }

    /// Deals with the first `n` bytes of this thread's buffer.
    fn arrived(&mut self, n: usize) -> Result<(), End> {
        if n == 0 {
            self.driver.traffic.count_dropped();
            return Err(End::Closed);
        }
        self.driver.traffic.count_bytes(n);
        SCRATCH.with_borrow_mut(|scratch| {
            self.bytes_since_idle += n;
            if self.partial.is_empty() {
                let used = self.take_frames(&scratch[..n])?;
                self.partial.extend_from_slice(&scratch[used..n]);
            } else {
                self.partial.extend_from_slice(&scratch[..n]);
                self.take_frames_of_partial()?;
            }
            Ok(())
        })
    }

    /// Whether anything was taken.
    fn take_frames_of_partial(&mut self) -> Result<bool, End> {
        let partial = std::mem::take(&mut self.partial);
        let used = self.take_frames(&partial)?;
        self.partial = partial;
        self.partial.drain(..used);
        if self.partial.is_empty() {
            self.partial = Vec::new();
        }
        Ok(used > 0)
    }

    /// Hands whole frames to the core; returns how many bytes they were.
    fn take_frames(&mut self, bytes: &[u8]) -> Result<usize, End> {
        let mut used = 0;
        if !self.shaken_hands {
            used = self.handshake(bytes)?;
            if !self.shaken_hands {
                return Ok(used);
            }
        }
        let mut requests = Vec::new();
        let mut ends = Vec::new();
        let mut at = used;
        loop {
            match frame::split(&bytes[at..], self.limits.frame_max) {
                frame::Split::Frame { payload, used } => {
                    // Less than a request header: upstream closes without an answer.
                    let Ok(request) = ClientRequest::decode(payload) else {
                        self.doomed = Some("no request header");
                        break;
                    };
                    at += used;
                    requests.push(request);
                    ends.push(at);
                }
                frame::Split::Incomplete { .. } => break,
                frame::Split::BadLength(_) => {
                    self.doomed = Some("a frame length below zero or above jute.maxbuffer");
                    break;
                }
            }
        }
        if requests.is_empty() {
            return Ok(used);
        }
        let taken = self.driver.requests(self.conn, &self.outbox, requests);
        Ok(ends[taken - 1])
    }

    /// The first bytes: a four-letter word or the handshake.
    fn handshake(&mut self, bytes: &[u8]) -> Result<usize, End> {
        if let Some(asked) = Asked::read(bytes) {
            return Err(End::Word(asked));
        }
        match frame::split(bytes, self.limits.frame_max) {
            frame::Split::Incomplete { .. } => Ok(0),
            frame::Split::BadLength(_) => Err(End::Garbage("a first frame of impossible length")),
            frame::Split::Frame { payload, used } => {
                let request = ConnectRequest::read(payload)
                    .map_err(|_| End::Garbage("a first frame that is no handshake"))?;
                self.shaken_hands = true;
                self.driver.step(Input::Connect { conn: self.conn, request });
                Ok(used)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ten thousand idle sessions are ten thousand of these.
    #[test]
    fn the_task_of_a_connection_is_small() {
        fn size_of_future<A, F>(_: impl Fn(A) -> F) -> usize {
            size_of::<F>()
        }
        type Args = (TcpStream, SocketAddr, Arc<Driver>, Arc<ConnLimits>, Arc<FourLetterDoor>);
        let size = size_of_future(|(stream, peer, driver, limits, door): Args| {
            serve(stream, peer, driver, limits, door)
        });
        assert!(size <= 2048, "{size} bytes");
    }
}
