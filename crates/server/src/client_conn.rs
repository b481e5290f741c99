//! One client's connection, in a task of its own: it passes requests to the core, and writes what its outbox holds.

mod closing;
mod ending;
mod frames;
mod throttling;

use crate::{
    admin::{four_letter_door::FourLetterDoor, word_exchange::WordRequest},
    client_stream::ClientStream,
    driver::Driver,
    handshake_turns::HandshakeTurns,
    listener::ConnSlot,
    log_throttle::{LogTurn, SharedLogBudget},
    outbox::Outbox,
    room::Waiter,
    sending::Sending,
    tls_handshake::{HandshakeError, PortSecurity, SecuredStream},
    unidentified::UnidentifiedPeer,
};
use ending::Garbage;
use ostler_proto::acl::Id;
use ostler_server_core::{CloseReason, ConnId, Input, input::Mono};
use std::{
    cell::RefCell,
    future::poll_fn,
    io,
    net::SocketAddr,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};
use throttling::ConnThrottle;
use tokio::net::TcpStream;

/// The limits of a connection.
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
const READ_SIZE: usize = 64 << 10;
/// Bytes that are read while requests wait for answers to go out: pings can be among them, and the end of the
/// connection.
const READ_AHEAD: usize = 64 << 10;
/// The time between two looks at a connection whose answers do not go out, or whose next request waits for others'
/// answers to go out.
const LOOK: Duration = Duration::from_secs(1);
/// The shortest time between two notes that waiting bytes of requests are a sign of life.
const SIGN_OF_LIFE_MS: u64 = 100;
/// A connection whose client takes nothing of its answers for this time is closed, if another connection waits for the
/// room that they take.
const STALLED_MS: u64 = 10_000;

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
    Garbage(Garbage),
    /// The client has taken nothing of its answers for this number of ms.
    Stalled(u64),
    /// It was for a four-letter word, which is still to be answered.
    Word(WordRequest),
}

impl From<io::Error> for End {
    fn from(error: io::Error) -> End {
        End::Io(error)
    }
}

/// Why nothing more is read. Requests that came before are carried out, and answered if the client may still read.
#[derive(Debug, Clone, Copy)]
enum Over {
    ByClient,
    Garbage(Garbage),
}

/// The event that a connection has waited for.
enum Woken {
    Read(usize),
    Writable,
    Outbox,
    Room,
    /// Nothing has happened for a while.
    Look,
}

/// Reads into this thread's buffer, which is the caller's until it awaits again. Unlike waiting for
/// `readable` and trying, this remembers that a short read has emptied the socket, and saves the call that
/// would only say so.
fn poll_read(stream: &mut ClientStream, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
    SCRATCH.with_borrow_mut(|scratch| stream.poll_read(cx, scratch))
}

/// Waits for the socket, to read or to write as `reads` and `writes` say. Never ready if both are false.
fn poll_socket(
    stream: &mut ClientStream,
    cx: &mut Context<'_>,
    reads: bool,
    writes: bool,
) -> Poll<io::Result<Woken>> {
    if writes && let Poll::Ready(ready) = stream.poll_write_ready(cx) {
        return Poll::Ready(ready.map(|()| Woken::Writable));
    }
    if reads { poll_read(stream, cx).map_ok(Woken::Read) } else { Poll::Pending }
}

struct ClientConn {
    stream: ClientStream,
    peer: SocketAddr,
    _place: ConnSlot,
    conn: ConnId,
    outbox: Arc<Outbox>,
    driver: Arc<Driver>,
    limits: Arc<ConnLimits>,
    door: Arc<FourLetterDoor>,
    /// Bytes read that are no whole frame yet, or that wait for answers to leave first.
    partial: Vec<u8>,
    sending: Sending,
    /// The handshake has passed the limit of new connections.
    is_counted: bool,
    shaken_hands: bool,
    over: Option<Over>,
    bytes_since_idle: usize,
    /// `None` if neither requests nor their bytes are limited over all connections.
    throttle: Option<Box<ConnThrottle>>,
    /// The next request waits for others' answers to go out.
    waiter: Option<Waiter>,
    /// The handshake waits for its turn, or until the server has a leader.
    waits_to_open: bool,
    /// The handshake has waited for [`LOOK`], and waits for no leader any more.
    has_waited: bool,
    /// Since when the client has taken nothing of what waits for it.
    blocked_since: Option<Mono>,
    looked: Mono,
    noted_alive: Mono,
    /// The client's program has closed its side after this server had closed its own.
    other_side_closed: bool,
}

/// The parts of the server that all connections share.
#[derive(Clone)]
pub(crate) struct ClientService {
    pub(crate) driver: Arc<Driver>,
    pub(crate) limits: Arc<ConnLimits>,
    pub(crate) security: PortSecurity,
    pub(crate) handshake_turns: Arc<HandshakeTurns>,
    /// Limits the log lines about failed TLS handshakes.
    pub(crate) handshake_log: Arc<SharedLogBudget>,
    pub(crate) door: Arc<FourLetterDoor>,
}

/// A connection that was taken from the port.
pub(crate) struct Accepted {
    pub(crate) stream: TcpStream,
    pub(crate) peer: SocketAddr,
    pub(crate) place: ConnSlot,
}

/// Serves a connection at a port that takes TLS, until its end.
pub(crate) async fn serve_secure(accepted: Accepted, unidentified: UnidentifiedPeer, service: ClientService) {
    let Accepted { stream, peer, place } = accepted;
    let within = service.limits.sessionless;
    // On the heap: it is over before the connection's long part begins.
    let begun = Box::pin(async {
        tokio::select! {
            biased;
            begun = tokio::time::timeout(within, service.security.begin(stream, (&service.handshake_turns, place.address))) => Some(begun),
            () = unidentified.gives_way() => None,
        }
    });
    let begun = begun.await;
    drop(unidentified);
    let Some(begun) = begun else {
        service.driver.traffic.count_handshake_exceeded();
        return service.driver.traffic.count_failed_handshake();
    };
    let failed = match begun {
        Ok(Ok(secured)) => return Box::pin(serve_secured(secured, peer, place, service)).await,
        Ok(Err(error)) => error,
        Err(_) => HandshakeError::Late(within),
    };
    service.driver.traffic.count_failed_handshake();
    match service.handshake_log.take_line() {
        LogTurn::Line => {
            tracing::warn!(%peer, error = %failed, "a connection was closed before its TLS handshake was done");
        }
        LogTurn::LastLine => tracing::warn!(
            %peer, error = %failed,
            "a connection was closed before its TLS handshake was done; for a minute more of them are only counted \
             (unsuccessful_handshake in mntr)"
        ),
        LogTurn::None => {}
    }
}

/// Serves a connection without TLS until its end.
pub(crate) fn serve(accepted: Accepted, service: ClientService) -> impl Future<Output = ()> + Send {
    let Accepted { stream, peer, place } = accepted;
    serve_secured(SecuredStream { stream: ClientStream::Plain(stream), proven: None }, peer, place, service)
}

/// Serves the connection of a caller of the admin server, who has this address and proves these identities.
pub(crate) fn serve_inner(
    stream: TcpStream,
    peer: SocketAddr,
    proven: Vec<Id>,
    service: ClientService,
) -> impl Future<Output = ()> + Send {
    serve_as((ClientStream::Plain(stream), proven), peer, ConnSlot::uncounted(peer.ip()), service)
}

fn serve_secured(
    secured: SecuredStream,
    peer: SocketAddr,
    place: ConnSlot,
    service: ClientService,
) -> impl Future<Output = ()> + Send {
    serve_as((secured.stream, secured.proven.into_iter().collect()), peer, place, service)
}

/// No `async fn`: its task would keep room for the arguments beside the connection that is made of them.
fn serve_as(
    (stream, proven): (ClientStream, Vec<Id>),
    peer: SocketAddr,
    place: ConnSlot,
    service: ClientService,
) -> impl Future<Output = ()> + Send {
    let ClientService { driver, limits, door, .. } = service;
    let (conn, outbox) = driver.accept(peer);
    if matches!(stream, ClientStream::Tls(_)) {
        outbox.note_tls();
    } else {
        driver.traffic.count_plain(peer.ip());
    }
    if !proven.is_empty() {
        driver.step(Input::Identified { conn, ids: proven });
    }
    let throttle = ConnThrottle::of(&driver);
    let mut client = ClientConn {
        stream,
        peer,
        _place: place,
        conn,
        outbox,
        driver,
        limits,
        door,
        partial: Vec::new(),
        sending: Sending::default(),
        is_counted: false,
        shaken_hands: false,
        over: None,
        bytes_since_idle: 0,
        throttle,
        waiter: None,
        waits_to_open: false,
        has_waited: false,
        blocked_since: None,
        looked: Mono(0),
        noted_alive: Mono(0),
        other_side_closed: false,
    };
    async move {
        let mut end = client.run().await;
        if let End::Word(asked) = end {
            end = client.answer(asked).await;
        }
        client.ended(end);
    }
}

impl ClientConn {
    fn ended(&self, end: End) {
        let (conn, peer) = (self.conn, self.peer);
        self.driver.disconnected(conn, self.loss(&end));
        match end {
            End::Closed | End::Stalled(_) | End::Word(_) => {}
            End::Io(error) => tracing::debug!(?conn, %peer, %error, "connection lost"),
            End::Garbage(what) => {
                if let Some(ending) = self.driver.traffic.closed_log.take_line().ending() {
                    tracing::warn!(?conn, %peer, %what, "connection closed{ending}");
                }
            }
        }
    }

    async fn run(&mut self) -> End {
        let time = self.limits.sessionless;
        // On the heap, like everything that a connection needs only for a while: so the task of an idle one is small.
        match Box::pin(tokio::time::timeout(time, self.until_handshake())).await {
            Err(_) => {
                self.driver.traffic.count_without_session();
                return End::Garbage(Garbage::NoHandshakeInTime);
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

    /// Sends what there is, deals with what was read, and waits for the socket or the outbox.
    async fn turn(&mut self) -> Result<(), End> {
        self.free_answered();
        let all_answered = self.outbox.unanswered() == 0;
        let is_closing = match self.send()? {
            Some(close) => close.is_some(),
            None => self.outbox.close_reason().is_some(),
        };
        if is_closing {
            return Err(Box::pin(self.last_words()).await);
        }
        if self.may_execute() {
            if !self.partial.is_empty() && self.take_frames_of_partial()? {
                // A batch that took its share of the member's time goes on after others.
                tokio::task::yield_now().await;
                return Ok(());
            }
            match self.over {
                Some(Over::Garbage(what)) if all_answered => return Err(End::Garbage(what)),
                // The last answer came after the others were sent.
                Some(Over::Garbage(_)) if self.outbox.unanswered() == 0 => return Ok(()),
                Some(Over::ByClient) if !self.is_held() => return Err(End::Closed),
                _ => {}
            }
        }
        let reads = self.may_read();
        if self.blocked_since.is_some() || self.is_held() {
            self.look(reads)?;
            let woken = Box::pin(self.wait_and_look(reads)).await?;
            return self.woken(woken);
        }
        self.sending.shrink();
        let woken = self.wait(reads).await?;
        self.woken(woken)
    }

    async fn wait(&mut self, reads: bool) -> io::Result<Woken> {
        let writes = !self.sending.is_empty() || self.stream.has_unsent();
        tokio::select! {
            biased;
            ready = poll_fn(|cx| poll_socket(&mut self.stream, cx, reads, writes)) => ready,
            () = self.outbox.woken() => Ok(Woken::Outbox),
        }
    }

    /// As [`ClientConn::wait`], of a connection that is held up.
    async fn wait_and_look(&mut self, reads: bool) -> io::Result<Woken> {
        let driver = self.driver.clone();
        let waits_for_room = self.waiter.is_some();
        let look = self.stall().unwrap_or(LOOK);
        tokio::select! {
            biased;
            woken = self.wait(reads) => woken,
            () = driver.room.freed(), if waits_for_room => Ok(Woken::Room),
            () = tokio::time::sleep(look) => Ok(Woken::Look),
        }
    }

    fn woken(&mut self, woken: Woken) -> Result<(), End> {
        match woken {
            Woken::Read(n) => self.arrived(n)?,
            Woken::Room => self.waiter = None,
            Woken::Look => {
                self.waiter = None;
                self.has_waited |= self.waits_to_open;
                self.try_turn();
            }
            Woken::Outbox => self.try_turn(),
            Woken::Writable => {}
        }
        Ok(())
    }

    /// With too much unanswered, or with answers that do not go out, requests wait; then little more is read, and TCP
    /// holds the client back.
    fn may_execute(&self) -> bool {
        let unanswered = self.outbox.unanswered();
        let bytes = if unanswered == 0 { 0 } else { self.bytes_since_idle };
        self.sending.is_empty()
            && !self.is_held()
            && unanswered < self.limits.unanswered_max
            && bytes < UNANSWERED_BYTES_MAX
            && !self.outbox.holds_back()
    }

    fn may_read(&self) -> bool {
        self.over.is_none() && (self.may_execute() || self.partial.len() < READ_AHEAD)
    }

    /// Looks at a connection that is held up, once in [`LOOK`]: closes it if it has stalled, or notes a sign of life.
    fn look(&mut self, reads: bool) -> Result<(), End> {
        let now = self.driver.clock.mono();
        if now.0.saturating_sub(self.looked.0) < LOOK.as_millis() as u64 {
            return Ok(());
        }
        let moves = self.blocked_since.is_some_and(|since| since >= self.looked);
        self.looked = now;
        let blocked_ms = self.blocked_since.map_or(0, |since| now.0.saturating_sub(since.0));
        if blocked_ms > STALLED_MS && self.driver.room.is_wanted() && self.sending.takes_room() {
            tracing::warn!(
                conn = ?self.conn,
                "a client has taken nothing of its answers for {STALLED_MS} ms, and others wait for the memory that \
                 they take (largeAnswersMaxBytes): its connection is closed, its session goes on"
            );
            return Err(End::Stalled(blocked_ms));
        }
        // Pings of the client stand behind requests that wait, so they cannot be read. A client that takes its answers
        // lives. While this server makes the client wait, the client cannot show that it lives.
        if !reads && self.over.is_none() && (moves || self.is_held()) {
            self.driver.step(Input::Alive { conn: self.conn });
        }
        Ok(())
    }

    /// Notes that bytes of requests have come, and wait.
    fn note_sign_of_life(&mut self) {
        let now = self.driver.clock.mono();
        if now.0.saturating_sub(self.noted_alive.0) >= SIGN_OF_LIFE_MS {
            self.noted_alive = now;
            self.driver.step(Input::Alive { conn: self.conn });
        }
    }

    /// Writes until the outbox is empty. Returns why the connection is to be closed then, if it is; the outer `None` if
    /// the socket takes no more.
    fn send(&mut self) -> Result<Option<Option<CloseReason>>, End> {
        let mut moves = false;
        loop {
            let mut close = None;
            if self.sending.is_empty() {
                close = self.outbox.take(&mut self.sending);
            }
            let written = match self.sending.single() {
                Some(bytes) => self.stream.try_write(bytes),
                None if self.sending.is_empty() => match self.stream.try_flush() {
                    Ok(()) => {
                        self.blocked_since = None;
                        if let Some(number) = self.outbox.take_slow() {
                            self.driver.slow_written(number);
                        }
                        self.driver.traced_written(self.outbox.take_traced());
                        return Ok(Some(close));
                    }
                    Err(error) => Err(error),
                },
                None => self.stream.try_write_vectored(&self.sending.slices()),
            };
            match written {
                Ok(0) => return Err(End::Closed),
                Ok(n) => {
                    self.sending.advance(n);
                    moves = true;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if moves || self.blocked_since.is_none() {
                        self.blocked_since = Some(self.driver.clock.mono());
                    }
                    return Ok(None);
                }
                Err(error) => return Err(error.into()),
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
        type Args = (Accepted, ClientService);
        let size = size_of_future(|(accepted, service): Args| serve(accepted, service));
        assert!(size <= 576, "{size} bytes");
    }
}
