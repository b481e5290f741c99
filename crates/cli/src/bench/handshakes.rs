//! Connections that are opened and closed again and again.

use super::{
    counted,
    error::{BenchError, Result, While},
    meter::Meter,
    process::Process,
    progress::Progress,
    report::Report,
    session::Target,
    tally::Tally,
    wire::Wire,
};
use clap::Args;
use mio::{Events, Interest, Poll, Token, net::TcpStream};
use ostler_proto::{
    connect::ConnectResponse,
    frame::{Split, split},
};
use std::{
    io::{self, ErrorKind},
    time::{Duration, Instant},
};

const TURN: Duration = Duration::from_millis(100);
const FRAME_LIMIT: usize = 64 << 10;

/// Measure how fast clients connect: each connection is closed as soon as its session is confirmed.
///
/// An operation is a connection: TCP, with --tls-ca a full handshake of TLS without resumption, a connect request and its
/// answer. The sessions are opened once, before the measurement, and each connection takes up one of them: a session that
/// is opened costs a write, which is not what is measured here. At the end they are left to expire. The latency is the
/// time from the call of connect to the answer.
#[derive(Args)]
#[command(
    after_help = "Example: ostler bench handshakes --at-once 16 --tls-ca ca.pem --server localhost:2281"
)]
pub(crate) struct Options {
    /// Number of clients that connect at the same time, each with a session of its own.
    #[arg(long, default_value_t = 8, value_name = "N")]
    at_once: usize,
    /// How long to measure, in seconds.
    #[arg(long, default_value_t = 10.0, value_name = "SECONDS")]
    seconds: f64,
    /// How long to connect before measuring, in seconds.
    #[arg(long, default_value_t = 2.0, value_name = "SECONDS")]
    warmup: f64,
}

pub(crate) fn run(options: &Options, target: Target, process: Option<Process>) -> Result<Report> {
    if options.at_once == 0 {
        return Err(BenchError::Usage("--at-once must be at least 1".into()));
    }
    let mut progress = Progress::new("handshakes");
    let mut clients = Clients::open(options.at_once, target)?;
    clients.run_for(Duration::from_secs_f64(options.warmup), &mut progress)?;
    clients.tally.clear();
    let meter = Meter::start(process);
    clients.run_for(Duration::from_secs_f64(options.seconds), &mut progress)?;
    let metered = meter.stop(clients.tally.ops());
    drop(progress);
    let kind = if target.tls.is_some() { "TLS" } else { "plain text" };
    let settings = format!("{} at once, {kind}", counted(options.at_once, "connection"));
    let report = Report::new("handshakes", target.server, settings, &clients.tally, metered);
    Ok(report)
}

/// The clients, each with one connection at a time.
struct Clients {
    target: Target,
    poll: Poll,
    clients: Vec<Client>,
    /// Buffers that all connections share.
    buffer: Vec<u8>,
    encrypted: Vec<u8>,
    tally: Tally,
}

/// One client, and its connection of the moment.
struct Client {
    /// The connect request that takes up this client's session.
    request: Vec<u8>,
    wire: Wire<TcpStream>,
    began: Instant,
    /// Bytes that the socket has not accepted yet.
    out: Vec<u8>,
    /// The bytes of the answer that have come.
    answer: Vec<u8>,
}

impl Clients {
    fn open(count: usize, target: Target) -> Result<Clients> {
        let poll = Poll::new().during("cannot create an event queue")?;
        let mut clients = Vec::with_capacity(count);
        // A session lives on without its first connection.
        for (number, session) in target.open_many(count, |_| {})?.into_iter().enumerate() {
            let request = target.connect_frame(session.id, &session.password);
            clients.push(Client {
                wire: connect(target, number, &poll)?,
                began: Instant::now(),
                out: request.clone(),
                request,
                answer: Vec::new(),
            });
        }
        Ok(Clients { target, poll, clients, buffer: Vec::new(), encrypted: Vec::new(), tally: Tally::new() })
    }

    fn run_for(&mut self, duration: Duration, progress: &mut Progress) -> Result<()> {
        let mut events = Events::with_capacity(1024);
        let end = Instant::now() + duration;
        let mut last = Instant::now();
        while Instant::now() < end {
            match self.poll.poll(&mut events, Some(TURN)) {
                Err(cause) if cause.kind() == ErrorKind::Interrupted => continue,
                other => other.during("cannot wait for events")?,
            }
            for event in &events {
                last = Instant::now();
                self.advance(event.token().0)?;
            }
            if last.elapsed() > self.target.patience {
                return Err(BenchError::Silent(self.target.patience));
            }
            progress.show(self.tally.ops(), "connections");
        }
        Ok(())
    }

    /// Goes on with a connection. If it is answered, the next one takes its place.
    fn advance(&mut self, number: usize) -> Result<()> {
        let client = &mut self.clients[number];
        let exchanged = client.exchange(&mut self.buffer, &mut self.encrypted);
        exchanged.map_err(|cause| self.target.failed(number, cause))?;
        let timeout_ms = match split(&client.answer, FRAME_LIMIT) {
            Split::Frame { payload, .. } => ConnectResponse::read(payload)?.timeout_ms,
            Split::Incomplete { .. } => return Ok(()),
            Split::BadLength(length) => return Err(BenchError::BrokenFrame(length)),
        };
        if timeout_ms <= 0 {
            return Err(self.target.refused(number));
        }
        self.tally.count(u64::try_from(client.began.elapsed().as_nanos()).unwrap_or(u64::MAX), 0);
        client.wire.say_goodbye();
        client.began = Instant::now();
        client.wire = connect(self.target, number, &self.poll)?;
        client.out.clone_from(&client.request);
        client.answer.clear();
        Ok(())
    }
}

impl Client {
    /// Sends what there is, and reads what has come.
    fn exchange(&mut self, buffer: &mut Vec<u8>, encrypted: &mut Vec<u8>) -> io::Result<()> {
        if !self.out.is_empty() || self.wire.has_unsent() {
            self.wire.send(&mut self.out)?;
        }
        loop {
            match self.wire.receive(buffer, 0, encrypted) {
                Ok(received) => self.answer.extend_from_slice(&buffer[..received.size]),
                Err(cause) if cause.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(cause) if cause.kind() == ErrorKind::Interrupted => {}
                // The answer may have come before.
                Err(cause) if cause.kind() == ErrorKind::UnexpectedEof && !self.answer.is_empty() => {
                    return Ok(());
                }
                Err(cause) => return Err(cause),
            }
        }
    }
}

/// Begins a connection. It is made when its socket can be written to.
fn connect(target: Target, number: usize, poll: &Poll) -> Result<Wire<TcpStream>> {
    let failed = |cause| target.not_connected(number, cause);
    let mut socket = TcpStream::connect(target.at(number)).map_err(failed)?;
    socket.set_nodelay(true).map_err(failed)?;
    poll.registry()
        .register(&mut socket, Token(number), Interest::READABLE | Interest::WRITABLE)
        .during("cannot watch a socket")?;
    Wire::new(socket, target.tls, number).map_err(failed)
}
